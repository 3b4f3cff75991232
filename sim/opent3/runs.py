"""One sublayer under one policy or several."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from t3sim.common.output import output_folder
from t3sim.inputs import arguments
from t3sim.inputs.machine.files import Machine, load_machine
from t3sim.inputs.workload import Workload
from t3sim.run.policies import Watch, failures, run_policies, speedups, write_comparison, write_run
from t3sim.run.request import COMPARED, Backend, OnProgress, Policy, RunRequest, RunResult, Timeline

from .frames import record_frame

if TYPE_CHECKING:  # they take a second to import
    import pandas as pd


class Options(TypedDict, total=False):
    """How to simulate; all have defaults.

    ``machine``: a preset's name, a TOML file, or a Machine ("paper"). ``settings``: values of the former two that are
    changed, such as ``{"link.gb_s": 300}``. ``hardware``: the T3 hardware as compiled Verilog ("rtl", the default) or
    as its cycle-exact model ("golden"). ``mirror``: simulate one GPU and reflect its traffic (False). ``threads``: all
    usable cores; results do not depend on it. ``seed``: of data and samples (0). ``data_lines``: lines of 32 bytes
    that carry data (all, or a sample if the output is large). ``events``: keep what a trace shows (False).
    """

    machine: str | Path | Machine
    settings: Mapping[str, object]
    hardware: Backend
    mirror: bool
    threads: int
    seed: int
    data_lines: int | None
    events: bool


@dataclass(frozen=True, kw_only=True)
class Run(RunResult):
    """A finished simulation: what was asked for, the record (all of ``result.json``), what happened when, real time.

    The ideal policies are computed from others and have no timeline.
    """

    request: RunRequest

    @property
    def failures(self) -> list[str]:
        """Accounting identities that do not hold and output elements that differ; empty if the run is sound."""
        return failures(self.record)

    def frame(self) -> pd.DataFrame:
        """The record as one row; nested fields are columns such as ``time_ns.total`` (ns, bytes, cycles)."""
        return record_frame([self.record])

    def timeline_frame(self) -> pd.DataFrame:
        """A row for each GPU and bin: ``start_ns``, ``cu_busy`` (0 to 1), ``link_bytes``, ``updates`` and
        ``local_updates`` (lines of 32 bytes), DRAM bytes by cause, and what waits when the bin begins
        (``queues.dram_mean`` and so on, as in ``timeline.json``). Raises ValueError for a computed policy."""
        import numpy as np
        import pandas as pd

        timeline = self._timeline()
        gpus, bins = timeline.cu_busy.shape
        table = pd.DataFrame({"gpu": np.repeat(np.arange(gpus), bins)})
        table["start_ns"] = np.tile(np.arange(bins) * timeline.bin_ns, gpus)
        for name in ("cu_busy", "link_bytes", "updates", "local_updates"):
            table[name] = getattr(timeline, name).ravel()
        for cause, values in timeline.bytes.items():
            table[cause] = values.ravel()
        for queue, values in timeline.queues.items():
            table[f"queues.{queue}"] = values.ravel()
        return table

    def interval_frame(self) -> pd.DataFrame:
        """A row for each phase of a GPU: ``gpu``, ``kind``, ``start_ns``, ``end_ns``. ValueError as above."""
        import pandas as pd

        return pd.DataFrame([asdict(interval) for interval in self._timeline().intervals])

    def trigger_frame(self) -> pd.DataFrame:
        """A row for each DMA block that fired: ``gpu``, ``chunk``, ``time_ns``. ValueError as above."""
        import pandas as pd

        events = [asdict(event) for event in self._timeline().triggers]
        return pd.DataFrame(events, columns=["gpu", "chunk", "time_ns"])

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 run -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(Path(folder)) as inside:
            self.write_into(inside)

    def write_into(self, folder: Path) -> None:
        """The same, into an open output folder (:func:`~t3sim.common.output.output_folder`)."""
        write_run(self.request, self, folder)

    def _timeline(self) -> Timeline:
        if self.timeline is None:
            raise ValueError(f"policy {self.record.policy} is computed from others: it has no timeline")
        return self.timeline


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs of one sublayer by policy, in the order in which they were asked for."""

    runs: Mapping[Policy, Run]

    @property
    def speedups(self) -> dict[Policy, float | None]:
        """Time of the sequential policy over that of each; None if ``sequential`` is not among them."""
        gains = speedups([run.record for run in self.runs.values()])
        return dict(zip(self.runs, gains, strict=True))

    @property
    def failures(self) -> list[str]:
        """As :attr:`Run.failures`, of all runs."""
        return [text for run in self.runs.values() for text in run.failures]

    def frame(self) -> pd.DataFrame:
        """A row for each policy: :meth:`Run.frame`, and the column ``speedup``."""
        table = record_frame([run.record for run in self.runs.values()])
        table.insert(1, "speedup", list(self.speedups.values()))
        return table

    def save(self, folder: str | Path) -> None:
        """Writes what ``t3 compare -o`` writes. Raises ValueError if ``folder`` holds what is not t3's."""
        with output_folder(Path(folder)) as inside:
            self.write_into(inside)

    def write_into(self, folder: Path) -> None:
        """The same, into an open output folder (:func:`~t3sim.common.output.output_folder`)."""
        write_comparison(next(iter(self.runs.values())).request, dict(self.runs), folder)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def request_of(
    workload: Workload,
    policy: Policy,
    *,
    machine: str | Path | Machine = "paper",
    settings: Mapping[str, object] | None = None,
    threads: int | None = None,
    hardware: Backend = "rtl",
    mirror: bool = False,
    seed: int = 0,
    data_lines: int | None = None,
    events: bool = False,
) -> RunRequest:
    """What is to be simulated, checked (see :class:`Options`). Raises ValueError if a choice is unknown or things do
    not fit together."""
    if not isinstance(machine, Machine):
        machine = load_machine(machine, arguments.settings("settings", settings))
    elif settings:
        raise ValueError("settings change a preset or a machine file, not a Machine: load it with them")
    return RunRequest(
        workload=workload,
        machine=machine,
        policy=policy,
        hardware=hardware,
        mirror=mirror,
        threads=usable_cores() if threads is None else threads,
        seed=seed,
        data_lines=data_lines,
        events=events,
    )


def requests_of(workload: Workload, policies: Sequence[Policy], **options: Unpack[Options]) -> list[RunRequest]:
    """A request for each of ``policies``. Raises ValueError as :func:`request_of`, and if a policy comes twice."""
    policies = arguments.items("policies", policies, str, "names of policies")
    if not policies or len(set(policies)) != len(policies):
        raise ValueError(f"--policies must name each policy once, not {','.join(policies)!r}")
    return [request_of(workload, policy, **options) for policy in policies]


def run(
    workload: Workload,
    policy: Policy = "t3-mca",
    *,
    watch: Watch | None = None,
    out: str | Path | None = None,
    **options: Unpack[Options],
) -> Run:
    """Simulates ``policy``. With ``out`` results are written there as by :meth:`Run.save`; whether they can be is
    checked first.

    Raises ValueError for what cannot be simulated or written, BuildError if the hardware cannot be compiled,
    SimulationError if the simulated system does what it never may.
    """
    requests = requests_of(workload, (policy,), **options)
    with output_folder(arguments.folder_of(out)) as folder:
        found = _simulated(requests, watch).runs[policy]
        if folder is not None:
            found.write_into(folder)
    return found


def compare(
    workload: Workload,
    policies: Sequence[Policy] = COMPARED,
    *,
    watch: Watch | None = None,
    out: str | Path | None = None,
    **options: Unpack[Options],
) -> Comparison:
    """Simulates each of ``policies`` on the same sublayer; ``out`` and errors as with :func:`run`."""
    requests = requests_of(workload, policies, **options)
    with output_folder(arguments.folder_of(out)) as folder:
        found = _simulated(requests, watch)
        if folder is not None:
            found.write_into(folder)
    return found


def _simulated(requests: Sequence[RunRequest], watch: Watch | None) -> Comparison:
    """The runs of requests that differ in their policy alone."""
    results = run_policies(requests[0], [request.policy for request in requests], watch or _silent)
    return Comparison(
        runs={request.policy: Run(request=request, **vars(results[request.policy])) for request in requests}
    )


def _silent(label: str) -> AbstractContextManager[OnProgress]:
    return nullcontext(lambda progress: None)
