"""Two contexts that store at the same time, in every shape of bursts that a GEMM's output makes."""

from dataclasses import dataclass

from t3hdl.config import T3Config

from t3sim.inputs.geometry import Grid, ceil_div

from .streams import LINE_CYCLES
from .traffic import BAND, Job

PAPER_SLICES = 64
"""Slices of the paper's machine, of which the rates and sizes here are; other configurations have their share."""
STAGE = 80
"""Workgroups that store at the same time: one on each CU of the paper's machine."""
LINK_LINES = 4.6875
"""Lines per cycle that a link brings at most: 150 GB/s at 1 GHz, without headers."""
TALL, SHORT = 128, 16
"""Rows of a workgroup's tile for configurations of the paper's slices; of fewer, which count to 255 per tile."""
_BUFFER_LINES = (1 << 20) // 32


@dataclass(frozen=True, kw_only=True)
class Contexts:
    """Two jobs at a time on outputs of ``whole`` + ``beyond`` columns (of a quarter of ``whole`` in small ones).

    ``paced``: their bursts are there as their sources can make them; else at once, so that memory alone is the limit.
    ``addends`` of 2: every tile is half counted, so that most have no entry.
    """

    name: str
    what: str
    whole: int = 4096
    beyond: int = 0
    tile_cols: int = 128
    chunks: int = 8
    addends: int = 1
    paced: bool = False

    def jobs(self, config: T3Config) -> tuple[Job, Job]:
        """The stores of one context, what arrives for the other one."""
        large = config.slices >= PAPER_SLICES
        tile_rows = TALL if large else SHORT
        grid = Grid(
            m=2 * BAND * tile_rows,
            n=self.whole // (1 if large else 4) + self.beyond,
            tile_rows=tile_rows,
            tile_cols=self.tile_cols,
            wavefronts=min(8, config.wavefronts),
        )
        share = config.slices / PAPER_SLICES
        room = ceil_div(grid.lines, _BUFFER_LINES) * _BUFFER_LINES
        chunks = min(self.chunks, config.chunk_window // 2)
        first = Job(
            grid=grid, context=0, order="stage", base=_BUFFER_LINES, chunks=chunks, addends=self.addends,
            stage=round(STAGE * share), rate=float(config.egress_ports) if self.paced else None,
        )  # fmt: skip
        second = Job(
            grid=grid, context=1, order="tiles", base=_BUFFER_LINES + room, chunks=chunks, addends=self.addends,
            rate=LINK_LINES * share if self.paced else None,
        )  # fmt: skip
        return first, second


CONTEXTS = (
    Contexts(name="aligned", what="whole bursts of 8 lines, at the memory's rate"),
    Contexts(name="unaligned, as made", what="two bursts for each row, at their sources' rate", beyond=160, paced=True),
    Contexts(
        name="short rows, as made", what="a last column of one line, at the sources' rate", whole=2048, beyond=16,
        paced=True,
    ),
    Contexts(
        name="64 columns, as made", what="bursts of 3 lines on average, at the sources' rate", whole=2048, beyond=8,
        tile_cols=64, paced=True,
    ),
    Contexts(name="overflowed, aligned", what="half-counted tiles, at the memory's rate", addends=2),
    Contexts(
        name="overflowed, unaligned, as made", what="both, at the sources' rate", beyond=160, addends=2, chunks=16,
        paced=True,
    ),
    Contexts(name="unaligned", what="two bursts for each row, at the memory's rate", beyond=160),
    Contexts(name="short rows", what="a last column of one line, at the memory's rate", whole=2048, beyond=16),
    Contexts(
        name="64 columns", what="bursts of 3 lines on average, at the memory's rate", whole=2048, beyond=8,
        tile_cols=64,
    ),
)  # fmt: skip
"""Two contexts at a time. What the sources make is what a machine has; the memory's rate alone is more than that."""


def memory_bursts(config: T3Config, bursts: int, lines: int) -> float:
    """Bursts per cycle that memory takes of these if all channels are at work: a token each."""
    return config.slices / LINE_CYCLES * bursts / lines


def made_bursts(contexts: Contexts, config: T3Config, bursts: int, lines: int) -> float:
    """Bursts per cycle that the sources of paced contexts make of these at most."""
    rates = [(job.rate or 0.0) * (1 if job.order == "stage" else bursts / lines) for job in contexts.jobs(config)]
    return sum(rates)
