"""One simulation of a report, named by all that can change its result and by nothing else."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from t3sim.common.cache import digest
from t3sim.inputs.machine.files import Machine
from t3sim.inputs.workload import Workload, custom_workload
from t3sim.run.request import TRACKED, Backend, Policy, RunRequest

UNUSED_SECTIONS = {"t3": ("arbiter",), "t3-mca": ()}
"""Machine sections that a policy never reads (tests/sim/study/test_experiment.py holds it to that)."""
UNUSED_WITHOUT_T3 = ("arbiter", "dma")
"""The same, for every other policy."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One policy on one workload and machine. Two experiments with one ``key`` have the same result.

    The name of model and sublayer is not part of the key: FC-1 and FC-2 of a model are one GEMM. Raises ValueError,
    as :class:`~t3sim.run.request.RunRequest` does, for what cannot be simulated.
    """

    workload: Workload
    machine: Machine
    policy: Policy
    hardware: Backend = "golden"
    mirror: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        self.request()
        if self.policy not in TRACKED:  # both backends are exact, and this one needs no compiler
            object.__setattr__(self, "hardware", "golden")

    def request(self, threads: int = 1) -> RunRequest:
        """What the simulator is asked."""
        work = self.workload
        return RunRequest(
            workload=custom_workload(work.m, work.n, work.k, work.tp), machine=self.machine, policy=self.policy,
            hardware=self.hardware, mirror=self.mirror, threads=threads, seed=self.seed,
        )  # fmt: skip

    @cached_property
    def identity(self) -> dict[str, Any]:
        """All that can change the result: sizes, policy and the machine's values (not its name and sources)."""
        work = self.workload
        unused = UNUSED_SECTIONS.get(self.policy, UNUSED_WITHOUT_T3)
        machine = self.machine.model_dump(mode="json", exclude={"name", "sources", "settings", "hardware", *unused})
        return {
            "m": work.m, "n": work.n, "k": work.k, "tp": work.tp, "policy": self.policy, "hardware": self.hardware,
            "mirror": self.mirror, "seed": self.seed, "machine": machine,
            "configuration": asdict(self.machine.hardware.config()),
        }  # fmt: skip

    @cached_property
    def key(self) -> str:
        """Name of the result: 32 hexadecimal digits."""
        return digest(json.dumps(self.identity, sort_keys=True, default=str))

    @property
    def label(self) -> str:
        """Name for people."""
        scope = "one GPU mirrored" if self.mirror else f"{self.workload.tp} GPUs"
        return f"{self.workload.title} {self.policy} ({self.hardware}, {scope}, {self.machine.title})"

    @cached_property
    def cost(self) -> float:
        """Rough seconds of one core, for the order of runs and the time to go; of no influence on results.

        A run's work is its cache requests and its DRAM lines; seconds per million of each were measured once.
        """
        work = self.workload
        output_lines = work.m * work.n * 2 / 32 / 1e6
        requests = 2 * work.m * work.n * work.k / work.tp * 2 / 128 / 128 / 1e6
        seconds = REQUEST_SECONDS * requests + LINE_SECONDS * 8 * output_lines
        return (1 if self.mirror else work.tp) * seconds


REQUEST_SECONDS, LINE_SECONDS = 0.15, 0.6
"""Seconds per million cache requests and DRAM lines."""
