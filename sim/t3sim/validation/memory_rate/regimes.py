"""Runs in which stores come fast, all at once, unaligned, short, or of chunks that have overflowed."""

from dataclasses import asdict, dataclass

from t3hdl.config import T3Config

from t3sim.inputs.geometry import Grid, ceil_div
from t3sim.inputs.machine.files import load_machine, parse_settings
from t3sim.inputs.workload import Workload, custom_workload, model_workload
from t3sim.run.policies import Watch, run_policies
from t3sim.run.request import Backend, RunRequest

from .traffic import BAND, Job

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


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """Cycles of all channels in which a stream waited for the tracker alone; lines that were tracked, chunks that
    overflowed, and the GEMM's time."""

    compute: int
    communication: int
    updates: int
    overflowed_chunks: int
    gemm_ns: float

    def record(self) -> dict[str, float]:
        """As it is kept."""
        return asdict(self)


def measure(regime: Regime, hardware: Backend, watch: Watch) -> Blocked:
    """Runs it."""
    record = run_policies(regime.request(hardware), ("t3-mca",), watch)["t3-mca"].record
    contention = record.contention
    return Blocked(
        compute=contention.compute.blocked_by_tracker_cycles,
        communication=contention.communication.blocked_by_tracker_cycles,
        updates=record.tracker.updates,
        overflowed_chunks=record.tracker.overflowed_chunks,
        gemm_ns=record.time_ns.gemm,
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
)
"""Where compute once waited for the tracker, beside what is usual."""


@dataclass(frozen=True, kw_only=True)
class Contexts:
    """Two jobs at a time, m x n outputs each. Their bursts are there as their sources can make them (``paced``), or at
    once, so that memory alone is the limit. ``addends`` of 2: every tile is half counted, so that most have no entry.
    """

    name: str
    what: str
    m: int
    n: int
    tile_cols: int = 128
    chunks: int = 8
    addends: int = 1
    paced: bool = False

    def jobs(self, config: T3Config) -> tuple[Job, Job]:
        """The stores of one context, what arrives for the other one."""
        tile_rows = 128
        grid = Grid(
            m=self.m, n=self.n, tile_rows=tile_rows, tile_cols=self.tile_cols, wavefronts=min(8, config.wavefronts)
        )
        room = ceil_div(grid.lines, _BUFFER_LINES) * _BUFFER_LINES
        first, second = (
            Job(
                grid=grid, context=context, order=order, base=_BUFFER_LINES + context * room, chunks=self.chunks,
                addends=self.addends, paced=self.paced,
            )
            for context, order in enumerate(("stage", "tiles"))
        )  # fmt: skip
        return first, second


_BUFFER_LINES = (1 << 20) // 32
_HIGH = 2 * BAND * 128

CONTEXTS = (
    Contexts(name="aligned", what="whole bursts of 8 lines", m=_HIGH, n=4096),
    Contexts(
        name="unaligned, as made", what="two bursts for each row, at their sources' rate", m=_HIGH, n=4256, paced=True
    ),
    Contexts(
        name="short rows, as made", what="a last column of one line, at the sources' rate", m=_HIGH, n=2064, paced=True
    ),
    Contexts(name="overflowed, aligned", what="half-counted tiles", m=_HIGH, n=4096, addends=2),
    Contexts(name="overflowed, unaligned, as made", what="both", m=_HIGH, n=4256, addends=2, chunks=16, paced=True),
    Contexts(name="unaligned", what="two bursts for each row, at the memory's rate", m=_HIGH, n=4256),
    Contexts(name="short rows", what="a last column of one line, at the memory's rate", m=_HIGH, n=2064),
    Contexts(name="64 columns, unaligned", what="bursts of 3 lines on average", m=_HIGH, n=2056, tile_cols=64),
)
"""Two contexts at a time."""
