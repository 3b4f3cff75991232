"""Runs in which stores come fast, all at once, unaligned, short, or of chunks that have overflowed."""

from dataclasses import dataclass

from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.settings import parse_settings
from t3sim.inputs.workload import Workload, custom_workload, model_workload
from t3sim.run.request import Backend, RunRequest

HELD = ("gpu.dispatch=stage", "gpu.store_release=performed")
"""Workgroups start and store stage by stage, and keep their places until their stores are in memory."""


@dataclass(frozen=True, kw_only=True)
class Regime:
    """``what``: why it is here. ``gemm``: model, sublayer and TP degree, or m, n, k and TP degree. ``settings``: of the
    machine, as of ``--set``."""

    name: str
    what: str
    gemm: tuple[str, str, int] | tuple[int, int, int, int]
    settings: tuple[str, ...] = ()
    machine: str = "paper"

    @property
    def workload(self) -> Workload:
        """The GEMM."""
        if len(self.gemm) == 3:
            return model_workload(*self.gemm)
        m, n, k, tp = self.gemm
        return custom_workload(m, n, k, tp)

    @property
    def command(self) -> str:
        """What runs it by hand."""
        if len(self.gemm) == 3:
            model, sublayer, tp = self.gemm
            what = f"--model {model} --sublayer {sublayer} --tp {tp}"
        else:
            what = " ".join(f"--{name} {value}" for name, value in zip(("m", "n", "k", "tp"), self.gemm, strict=True))
        machine = "" if self.machine == "paper" else f" --machine {self.machine}"
        settings = "".join(f" --set {setting}" for setting in self.settings)
        return f"t3 run {what}{machine}{settings} --hardware golden --mirror"

    def request(self, hardware: Backend) -> RunRequest:
        """One GPU, its traffic mirrored, with t3-mca."""
        machine = load_machine(self.machine, parse_settings(self.settings))
        return RunRequest(
            workload=self.workload, machine=machine, policy="t3-mca", hardware=hardware, mirror=True, threads=1
        )


REGIMES = (
    Regime(name="op", what="all inputs in the cache, many stores", gemm=("t-nlg", "op", 8)),
    Regime(name="op, stages held", what="the same, a stage at a time", gemm=("t-nlg", "op", 8), settings=HELD),
    Regime(name="fc2", what="inputs from memory", gemm=("t-nlg", "fc2", 8)),
    Regime(name="fc2, stages held", what="the same, a stage at a time", gemm=("t-nlg", "fc2", 8), settings=HELD),
    Regime(
        name="unaligned rows",
        what="an odd number of lines from row to row: nearly every row of a tile is two bursts",
        gemm=(4096, 4104, 2048, 8),
        settings=HELD,
    ),
    Regime(
        name="short edge tiles",
        what="last tiles of one row, and of rows of one line",
        gemm=(2049, 2064, 2048, 8),
        settings=HELD,
    ),
    Regime(
        name="overflowed chunks",
        what="a quarter of the tracker's sets",
        gemm=("t-nlg", "op", 8),
        settings=(*HELD, "hardware.tracker_sets=64"),
    ),
    Regime(name="64 small chunks", what="many of them overflowed at the same time", gemm=(3826, 1441, 8375, 64)),
    Regime(name="64 small chunks, more columns", what="likewise", gemm=(2895, 2235, 6752, 64)),
    Regime(name="two large chunks", what="mostly stores", gemm=(4655, 1304, 607, 2)),
    Regime(name="64 chunks of few tiles", what="a fraction of a stage", gemm=(627, 1641, 956, 64)),
    Regime(name="aligned", what="stages held", gemm=(256, 256, 512, 4), settings=HELD, machine="toy"),
    Regime(name="unaligned rows", what="and short edge tiles", gemm=(257, 200, 64, 4), settings=HELD, machine="toy"),
    Regime(
        name="overflowed chunks",
        what="one way in each set of the tracker",
        gemm=(512, 496, 32, 4),
        settings=(*HELD, "hardware.tracker_ways=1"),
        machine="toy",
    ),
)
"""Where compute once waited for the tracker, beside what is usual."""
