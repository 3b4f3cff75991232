"""Bursts of the stores of a GEMM, as a stage of workgroups makes them or as a DMA engine sends them."""

from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, Dtype, MemoryRequest, Op, SlotLoad, channel_of, profile_index
from t3hdl.interface.words import pack, split

from t3sim.inputs.geometry import Chunk, Grid, Partition

BAND = 8
"""Tile rows down which workgroups follow one another."""
Order = Literal["stage", "tiles"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """The stores to one output, of one context, all of one addend.

    ``order``: "stage" takes a row of each of ``stage`` workgroups in turn, as CUs store; "tiles" one workgroup after
    the other, as a DMA engine sends. ``base``: first line. ``addends``: those that the tracker expects. ``rate``: what
    the source makes in a cycle at most: bursts of a stage, lines of tiles; None: all are there from the beginning.
    """

    grid: Grid
    context: int
    order: Order
    base: int
    chunks: int
    addends: int = 1
    stage: int = 1
    rate: float | None = None

    @property
    def epoch(self) -> int:
        """Each context's own."""
        return self.context + 1

    def writes(self) -> list[tuple[int, int]]:
        """The configuration of slices and tracker: range, and profile, which all jobs share."""
        number = regs.RANGE_STRIDE * self.context
        attributes = {"valid": 1, "context": self.context, "epoch": self.epoch, "op": Op.ADD, "dtype": Dtype.FP16}
        profile = [
            (
                regs.PROFILE + regs.PROFILE_STRIDE * profile_index(bottom, right, wf),
                self.grid.profile(bool(bottom), bool(right), wf),
            )
            for bottom in (0, 1)
            for right in (0, 1)
            for wf in range(self.grid.wavefronts)
        ]
        return [
            (regs.RANGE_BASE + number, pack(regs.Line, line=self.base)),
            (regs.RANGE_LIMIT + number, pack(regs.Line, line=self.base + self.grid.lines)),
            (regs.RANGE_ATTRIBUTES + number, pack(regs.RangeAttributes, **attributes)),
            *profile,
        ]

    def loads(self, first_slot: int) -> list[int]:
        """What makes the chunks live, in slots from this one on."""
        return [
            pack(
                SlotLoad,
                row0=chunk.row0,
                row1=chunk.row1,
                col0=chunk.col0,
                col1=chunk.col1,
                addends=self.addends,
                slot=first_slot + number,
                valid=1,
                expected=self.grid.chunk_lines(chunk) * self.addends,
                context=self.context,
                epoch=self.epoch,
                descriptor=first_slot + number,
            )
            for number, chunk in enumerate(self._chunks)
        ]

    @property
    def _chunks(self) -> tuple[Chunk, ...]:
        return Partition(grid=self.grid, count=self.chunks, swizzle_rows=BAND).chunks

    def bursts(self) -> NDArray[np.int64]:
        """In the order in which they are made: rows of two request words, lines, line address, and the cycle from which
        on the burst is there."""
        tiles = [
            (row, col)
            for chunk in self._chunks
            for col in range(chunk.col0, chunk.col1)
            for row in range(chunk.row0, chunk.row1)
        ]
        rows = []
        rest = iter(tiles)
        while group := list(islice(rest, self.stage)):
            for tile_row in range(self.grid.tile_rows):
                for row, col in group:
                    if tile_row < self.grid.tile_height(row == self.grid.rows - 1):
                        rows += self._row(row, col, tile_row)
        made = np.array(rows, np.uint64).view(np.int64)
        before = np.arange(len(made)) if self.order == "stage" else np.cumsum(made[:, 2])
        there = np.zeros(len(made)) if self.rate is None else before / self.rate
        return np.column_stack([made, np.floor(there).astype(np.int64)])

    def _row(self, row: int, col: int, tile_row: int) -> list[tuple[int, ...]]:
        """The bursts of a row of a workgroup's tile: one, or two if it leaves its aligned block."""
        grid = self.grid
        right, bottom = int(col == grid.cols - 1), int(row == grid.rows - 1)
        line = self.base + (row * grid.tile_rows + tile_row) * grid.pitch + col * grid.tile_lines
        end = line + grid.row_lines(bool(right))
        found: list[tuple[int, ...]] = []
        while line < end:
            lines = min(end - line, BURST_LINES - line % BURST_LINES)
            request = pack(
                MemoryRequest, line=line, op=Op.STORE if self.order == "stage" else Op.ADD, context=self.context,
                epoch=self.epoch, tagged=1, wf=tile_row // grid.wavefront_rows, right=right, bottom=bottom,
                row=row, col=col, length=lines - 1,
            )  # fmt: skip
            found.append((*split(request, 2), lines, line))
            line += lines
        return found


@dataclass(frozen=True)
class Queues:
    """Bursts by channel: those of channel c are ``bursts[first[c] : first[c + 1]]``, rows as of :meth:`Job.bursts`."""

    bursts: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, job: Job, config: T3Config) -> "Queues":
        """Each channel gets the bursts of its addresses, in their order."""
        bursts = job.bursts()
        channels = np.array([channel_of(int(line), config.slices) for line in bursts[:, 3]])
        order = np.argsort(channels, kind="stable")
        first = np.searchsorted(channels[order], np.arange(config.slices + 1))
        return cls(bursts[order], first.astype(np.int64))
