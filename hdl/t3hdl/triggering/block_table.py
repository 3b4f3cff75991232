"""Counts the finished tiles of every block, and says once that a block is ready."""

import enum
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..blocks.ram import Ram
from ..config import T3Config
from ..layouts import TileDone
from .ready_lists import ReadyBlock
from .watchdog import ScannedBlock

BlockPlaces = data.StructLayout({
    "dma": 1, "descriptor": 6, "context": 4,
    "row0": 12, "col0": 12, "row_shift": 4, "col_shift": 4, "row_blocks_log": 4,
    "tiles": data.ArrayLayout(16, 4),
    "last_block_row": 6, "last_block_col": 6,
})  # fmt: skip
"""Where the blocks of a chunk lie; ``tiles``: of an inner, bottom, right, corner block."""


class BlockOp(enum.IntEnum):
    """What a stage does with a block."""

    NONE = 0
    TILE = 1
    FLUSH = 2
    CLEAR = 3
    SCAN = 4


_Entry = data.StructLayout({"count": 16, "fired": 1})
_StageA = data.StructLayout({"op": BlockOp, "slot": 6, "row": 12, "col": 12, "block": 6})
_StageB = data.StructLayout({
    "op": BlockOp, "slot": 6, "block": 6, "dma": 1, "descriptor": 6, "context": 4,
    "inside": 1, "bottom": 1, "right": 1, "tiles": data.ArrayLayout(16, 4),
})  # fmt: skip


class BlockTable(wiring.Component):
    """The block entries (tile count, fired) of all slots behind a pipeline of two stages.

    Parameters
    ----------
    config : gives ``chunk_window``, ``blocks`` and ``protect``.

    Members
    -------
    load, load_slot, load_places : In : pulse; writes the places of a slot that no operation in the pipeline is about.
    tile_valid, tile : In : pulse; a tile of a slot in use is complete.
    walk_op, walk_slot, walk_block : In : do this with the block, unless ``tile_valid``.
    drop_scan : In(1) : pulse; scans in the pipeline, and one that would enter it, do nothing.
    counts : In(chunk_window) : slots whose blocks may become ready.
    ready_valid, ready, ready_context : Out : pulse; the block became ready.
    scanned_valid, scanned : Out : pulse; a scan looks at the block.
    scanning, busy : Out(1) : a scan, an operation is in the pipeline.
    faults : Out(chunk_window) : pulse; a word about the slot is beyond repair: its blocks mean nothing any more.
    corrected : Out(1) : a word holds a wrong bit that is put right.

    Latency: 2 cycles from an operation to ``ready``. Throughput: one operation per cycle. Reset: pipeline empty; the
    tables are undefined, a slot is cleared before it is loaded.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load": In(1), "load_slot": In(6), "load_places": In(BlockPlaces),
            "tile_valid": In(1), "tile": In(TileDone),
            "walk_op": In(BlockOp), "walk_slot": In(6), "walk_block": In(6),
            "drop_scan": In(1), "counts": In(config.chunk_window),
            "ready_valid": Out(1), "ready": Out(ReadyBlock), "ready_context": Out(4),
            "scanned_valid": Out(1), "scanned": Out(ScannedBlock),
            "scanning": Out(1), "busy": Out(1),
            "faults": Out(config.chunk_window), "corrected": Out(1),
        })  # fmt: skip
        self._window, self._protect = config.chunk_window, config.protect
        self._block_bits = (config.blocks - 1).bit_length()

    def elaborate(self, platform: Any) -> Module:
        """Entry: the operation and its slot; stage A: which block; stage B: count, compare, write back."""
        m = Module()
        op, slot = Signal(BlockOp), Signal(6)
        a, b = Signal(_StageA), Signal(_StageB)
        places = Ram(BlockPlaces, depth=self._window, protect=self._protect)
        entries = Ram(_Entry, depth=self._window << self._block_bits, write_through=True, protect=self._protect)
        m.submodules.places, m.submodules.entries = places, entries
        m.d.comb += [
            op.eq(Mux(self.tile_valid, BlockOp.TILE, self.walk_op)),
            slot.eq(Mux(self.tile_valid, self.tile.slot, self.walk_slot)),
            places.write.eq(self.load), places.write_row.eq(self.load_slot), places.write_data.eq(self.load_places),
            places.read.eq(_reads(op)), places.read_row.eq(slot),
        ]  # fmt: skip
        m.d.sync += [a.op.eq(self._unless_dropped(op)), b.op.eq(self._unless_dropped(a.op))]
        with m.If(op != BlockOp.NONE):
            m.d.sync += [
                a.slot.eq(slot), a.row.eq(self.tile.row), a.col.eq(self.tile.col), a.block.eq(self.walk_block),
            ]  # fmt: skip
        block = self._locate(m, a, b, places.data)
        self._count(m, b, entries)
        m.d.comb += [
            entries.read_row.eq(Cat(block, a.slot)),
            entries.read.eq(_reads(a.op)),
            self.busy.eq((a.op != BlockOp.NONE) | (b.op != BlockOp.NONE)),
            self.scanning.eq((a.op == BlockOp.SCAN) | (b.op == BlockOp.SCAN)),
            self.faults.eq(
                Mux(_reads(a.op) & places.uncorrectable, 1 << a.slot, 0)
                | Mux(_reads(b.op) & entries.uncorrectable, 1 << b.slot, 0)
            ),
            self.corrected.eq((_reads(a.op) & places.corrected) | (_reads(b.op) & entries.corrected)),
        ]
        return m

    def _unless_dropped(self, op: Value) -> Value:
        """``op``, or nothing if it is a scan that is dropped."""
        return Mux(self.drop_scan & (op == BlockOp.SCAN), BlockOp.NONE, op)

    def _locate(self, m: Module, a: Any, b: Any, places: Any) -> Value:
        """Stage A: place of the block in the chunk, from a tile's place or from the block's number."""
        row, col, block = Signal(12), Signal(12), Signal(self._block_bits)
        log = places.row_blocks_log
        with m.If(a.op == BlockOp.TILE):
            m.d.comb += [
                row.eq((a.row - places.row0)[:12] >> places.row_shift),
                col.eq((a.col - places.col0)[:12] >> places.col_shift),
                block.eq((col << log) | row),
            ]
        with m.Else():
            m.d.comb += [row.eq(a.block & ~(~0 << log)), col.eq(a.block >> log), block.eq(a.block)]
        with m.If(a.op != BlockOp.NONE):
            m.d.sync += [
                b.slot.eq(a.slot),
                b.block.eq(block),
                b.inside.eq((row <= places.last_block_row) & (col <= places.last_block_col)),
                b.bottom.eq(row == places.last_block_row),
                b.right.eq(col == places.last_block_col),
                *(b[field].eq(places[field]) for field in ("dma", "descriptor", "context", "tiles")),
            ]
        return block

    def _count(self, m: Module, b: Any, entries: Ram) -> None:
        """Stage B: the entry, read in stage A, is written back in every operation but a scan."""
        entry, following = entries.data, Signal(_Entry)
        count, tile, flush, open_block, counts = Signal(16), Signal(), Signal(), Signal(), Signal()
        tiles = b.tiles[Cat(b.bottom, b.right)]
        m.d.comb += [
            count.eq(entry.count + (b.op == BlockOp.TILE)),
            open_block.eq(b.inside & ~entry.fired),
            tile.eq((b.op == BlockOp.TILE) & open_block & (count == tiles)),
            flush.eq((b.op == BlockOp.FLUSH) & open_block),
            counts.eq(self.counts.bit_select(b.slot, 1) & ~entries.uncorrectable),
            entries.write.eq((b.op != BlockOp.NONE) & (b.op != BlockOp.SCAN)),
            entries.write_row.eq(Cat(b.block[: self._block_bits], b.slot)),
            entries.write_data.eq(following),
            self.ready_valid.eq(((tile & b.dma) | flush) & counts),
            self.ready.slot.eq(b.slot),
            self.ready.block.eq(b.block),
            self.ready.by_chunk.eq(flush),
            self.ready_context.eq(b.context),
            self.scanned_valid.eq(b.op == BlockOp.SCAN),
            self.scanned.waits.eq(open_block & counts),
            self.scanned.expected.eq(tiles),
            self.scanned.seen.eq(entry.count),
            *(self.scanned[field].eq(b[field]) for field in ("block", "descriptor", "context")),
        ]
        with m.If(b.op != BlockOp.CLEAR):
            m.d.comb += [following.count.eq(count), following.fired.eq(entry.fired | tile | flush)]


def _reads(op: Value) -> Value:
    """Whether an operation reads: what is cleared may never have been written."""
    return (op != BlockOp.NONE) & (op != BlockOp.CLEAR)
