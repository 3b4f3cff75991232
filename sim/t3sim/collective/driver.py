"""The library that the collective calls to map an output; it programs a T3 unit over its bus."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, Dtype, Op, profile_index
from t3hdl.interface.words import WORD_BYTES, pack

from t3sim.inputs.geometry import Blocks, Chunk, Grid
from t3sim.inputs.limits import check_count, check_marks, check_window

from .arbitration import Arbitration

EPOCH = 1
"""The epoch of the one job of a run, on every GPU."""
RANGE_OP = Op.ADD
"""What a local store to the tracked output becomes."""


@dataclass
class Driver:
    """Collects the register writes of one armed output; ``writes`` are (address, value) in order."""

    config: T3Config
    receive_lines: int
    """Room of the link's receive buffer."""
    grid: Grid
    base: int
    """First line of the output buffer, the same on every GPU."""
    writes: list[tuple[int, int]] = field(default_factory=list)
    mapped: int = 0
    marks_log: int = 0
    """log2 of the tile marks of the largest chunk that is tracked here."""
    incoming: list[int] = field(default_factory=list)
    """Lines that other GPUs send for each tracked chunk, in the order of mapping."""

    def map_output(self) -> None:
        """Program range 0 (stores into it become FP16 additions) and the geometry profile."""
        attributes = pack(regs.RangeAttributes, valid=1, context=0, epoch=EPOCH, op=RANGE_OP, dtype=Dtype.FP16)
        self.writes += [
            (regs.RANGE_BASE, pack(regs.Line, line=self.base)),
            (regs.RANGE_LIMIT, pack(regs.Line, line=self.base + self.grid.lines)),
            (regs.RANGE_ATTRIBUTES, attributes),
            *self._profile(),
        ]

    def _profile(self) -> Iterator[tuple[int, int]]:
        for bottom in (0, 1):
            for right in (0, 1):
                for wf in range(self.grid.wavefronts):
                    lines = self.grid.profile(bool(bottom), bool(right), wf)
                    yield regs.PROFILE + regs.PROFILE_STRIDE * profile_index(bottom, right, wf), lines

    def remote_map(self, chunk: Chunk, peer: int) -> None:
        """Stores to ``chunk`` go to GPU ``peer`` as updates; nothing is stored or tracked here."""
        self._descriptor(chunk, ChunkKind.REMOTE, peer, 0, Blocks(0, 0, 1, 1))

    def dma_map(self, chunk: Chunk, peer: int, addends: int, blocks: Blocks) -> None:
        """Stores to ``chunk`` stay; each block is sent to ``peer`` as updates once ``addends`` updates per element are
        counted."""
        self._descriptor(chunk, ChunkKind.DMA, peer, addends, blocks)

    def own(self, chunk: Chunk, addends: int, blocks: Blocks) -> None:
        """``chunk`` ends here: it is tracked until all its updates are counted."""
        self._descriptor(chunk, ChunkKind.LOCAL, 0, addends, blocks)

    def _descriptor(self, chunk: Chunk, kind: ChunkKind, peer: int, addends: int, blocks: Blocks) -> None:
        if self.mapped == self.config.descriptors:
            raise ValueError(
                f"the T3 hardware has {self.config.descriptors} descriptors, one per chunk, but the output has more "
                f"chunks: use at most TP {self.config.descriptors} or set hardware.descriptors"
            )
        last = (blocks.row_blocks - 1, blocks.col_blocks - 1)
        expected = self.grid.chunk_lines(chunk) * addends
        check_count(expected, self.config.chunk_count_bits, "chunk", "chunk_count_bits")
        if kind != ChunkKind.REMOTE:
            check_marks(chunk, self.config)
            self.marks_log = max(self.marks_log, chunk.marks_log)
            self.incoming.append(self.grid.chunk_lines(chunk) * (addends - 1))
        per_tile = self.grid.profile(False, False, 0) * addends
        check_count(per_tile, self.config.tile_count_bits, "wavefront tile", "tile_count_bits")

        def tiles(block_row: int, block_col: int) -> int:
            return self.grid.block_tiles(chunk, blocks, block_row, block_col)

        words = (
            {"row0": chunk.row0, "row1": chunk.row1, "col0": chunk.col0, "col1": chunk.col1, "kind": kind,
             "op": RANGE_OP, "peer": peer},
            {"expected": expected, "addends": addends, "context": 0, "epoch": EPOCH,
             "dtype": Dtype.FP16},
            {"base": self.base, "pitch": self.grid.pitch},
            {"peer_base": self.base, "row_shift": blocks.row_shift, "col_shift": blocks.col_shift,
             "row_blocks_log": blocks.row_blocks_log},
            {"tiles_inner": tiles(0, 0), "tiles_bottom": tiles(last[0], 0), "tiles_right": tiles(0, last[1]),
             "tiles_corner": tiles(*last)},
            {"last_block_row": last[0], "last_block_col": last[1], **self.grid.tile_sizes(chunk)},
        )  # fmt: skip
        address = regs.DESCRIPTOR + self.mapped * regs.DESCRIPTOR_STRIDE
        for i, (layout, values) in enumerate(zip(regs.DESCRIPTOR_LAYOUTS, words, strict=True)):
            self.writes.append((address + WORD_BYTES * i, pack(layout, **values)))
        self.mapped += 1

    def set_arbiter(self, values: Arbitration) -> None:
        """How the unit arbitrates between the streams."""
        self.writes += [
            (regs.ARBITER, pack(regs.Arbiter, **values.arbiter)),
            (regs.THRESHOLDS, pack(regs.Thresholds, **values.thresholds)),
        ]

    def arm(self) -> None:
        """Start tracking: all mapped chunks, in the order in which they were mapped. As many chunks are live at a time
        as the marks of the largest one allow. Raises ValueError if what may arrive for the others finds no room."""
        check_window(self.incoming, self.marks_log, self.receive_lines, self.config)
        self.writes.append((regs.TILE_MARKS, max(0, self.marks_log - self.config.share_bits)))
        self.writes.append((regs.CONTROL, pack(regs.Control, arm=1, descriptors=self.mapped)))

    @property
    def load_cycles(self) -> int:
        """Cycles after which every descriptor that fits the window is live (docs/hardware/trigger.md)."""
        words = 1 << max(0, self.marks_log - self.config.word_tile_bits)
        return self.mapped * (max(self.config.blocks, words) + 16) + 64
