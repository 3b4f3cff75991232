"""Counts the complete tiles of every block, each once, and reports each ready block once."""

import enum
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.ram import Ram
from ..config import T3Config
from ..interface.layouts import TileDone, TileTwice
from .ready_lists import ReadyBlock
from .tile_marks import TileMarks
from .watchdog import ScannedBlock

BlockPlaces = data.StructLayout({
    "dma": 1, "descriptor": 6, "context": 4,
    "row0": 12, "col0": 12, "row_shift": 4, "col_shift": 4, "row_blocks_log": 4, "rows_log": 4,
    "tiles": data.ArrayLayout(16, 4),
    "last_block_row": 6, "last_block_col": 6,
})  # fmt: skip
"""Where the blocks of a chunk lie; ``tiles``: of an inner, bottom, right, corner block; ``rows_log``: bits of a tile's
row in the chunk."""


class BlockOp(enum.IntEnum):
    """What a stage does with a block."""

    NONE = 0
    TILE = 1
    FLUSH = 2
    CLEAR = 3
    SCAN = 4


_Entry = data.StructLayout({"count": 16, "fired": 1})
_Tile = data.StructLayout({"row": 12, "col": 12, "wf": 4})
_Owner = data.StructLayout({"dma": 1, "descriptor": 6, "context": 4})
_StageB = data.StructLayout({
    "op": BlockOp, "slot": 6, "block": 6, "row": 12, "col": 12, "last_block_row": 6, "last_block_col": 6,
    "tiles": data.ArrayLayout(16, 4), "owner": _Owner, "tile": _Tile,
})  # fmt: skip
_StageC = data.StructLayout({
    "op": BlockOp, "slot": 6, "block": 6, "inside": 1, "tiles": 16, "owner": _Owner, "tile": _Tile,
})  # fmt: skip


class BlockTable(wiring.Component):
    """The block entries (tile count, fired) and tile marks of all slots behind a pipeline of three stages.

    Parameters
    ----------
    config : gives ``chunk_window``, ``blocks``, ``tile_marks``, ``wavefronts`` and ``protect``.

    Members
    -------
    load, load_slot, load_places : In : pulse; writes the places of a slot that no operation in the pipeline is about.
    tile_valid, tile : In : pulse; a tile of a slot in use is complete.
    walk_op, walk_slot, walk_number : In : do this with the block, unless ``tile_valid``; a clear is of a word of marks,
        too, and may have a number beyond the blocks, or beyond the words.
    halvings : In(3) : TILE_MARKS.
    drop_scan : In(1) : pulse; scans in the pipeline, and one that would enter it, do nothing.
    counts, poisoned : In(chunk_window) : slots whose blocks may become ready; whose tiles are not reported any more.
    ready_valid, ready, ready_context : Out : pulse; the block became ready.
    ready_offered : Out(1) : 1 whenever ``ready_valid`` is, and by registers alone.
    twice, twice_slot, twice_tile : Out : pulse; this tile was complete before, and does not count.
    scanned_valid, scanned : Out : pulse; a scan looks at the block.
    scanning, busy : Out(1) : a scan, an operation is in the pipeline.
    faults : Out(chunk_window) : pulse; a word of the slot has an uncorrectable error: its blocks are invalid.
    corrected : Out(1) : a single-bit error of a word is corrected.

    Latency: 3 cycles from an operation to ``ready``. Throughput: one operation per cycle. Reset: pipeline empty; the
    tables are undefined, a slot is cleared before it is loaded.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load": In(1), "load_slot": In(6), "load_places": In(BlockPlaces),
            "tile_valid": In(1), "tile": In(TileDone),
            "walk_op": In(BlockOp), "walk_slot": In(6), "walk_number": In(config.walk_bits), "halvings": In(3),
            "drop_scan": In(1), "counts": In(config.chunk_window), "poisoned": In(config.chunk_window),
            "ready_valid": Out(1), "ready": Out(ReadyBlock), "ready_context": Out(4), "ready_offered": Out(1),
            "twice": Out(1), "twice_slot": Out(6), "twice_tile": Out(TileTwice),
            "scanned_valid": Out(1), "scanned": Out(ScannedBlock),
            "scanning": Out(1), "busy": Out(1),
            "faults": Out(config.chunk_window), "corrected": Out(1),
        })  # fmt: skip
        self.parameters, self._window, self._protect = config, config.chunk_window, config.protect
        self._block_bits = (config.blocks - 1).bit_length()

    def elaborate(self, platform: Any) -> Module:
        """Entry: the operation and its slot; A: which block; B: its entry, its tiles; C: count, compare, write back."""
        m = Module()
        op, slot = Signal(BlockOp), Signal(6)
        stage_a = data.StructLayout({"op": BlockOp, "slot": 6, "tile": _Tile, "number": self.parameters.walk_bits})
        a, b, c = Signal(stage_a), Signal(_StageB), Signal(_StageC)
        places = Ram(BlockPlaces, depth=self._window, protect=self._protect)
        entries = Ram(_Entry, depth=self._window << self._block_bits, write_through=True, protect=self._protect)
        m.submodules.places, m.submodules.entries = places, entries
        m.submodules.marks = marks = TileMarks(config=self.parameters)
        m.d.comb += [
            op.eq(Mux(self.tile_valid, BlockOp.TILE, self.walk_op)),
            slot.eq(Mux(self.tile_valid, self.tile.slot, self.walk_slot)),
            places.write.eq(self.load),
            places.write_row.eq(self.load_slot),
            places.write_data.eq(self.load_places),
            places.read.eq(_reads(op)),
            places.read_row.eq(slot),
            entries.read.eq(_reads(b.op)),
            entries.read_row.eq(Cat(b.block[: self._block_bits], b.slot)),
        ]
        m.d.sync += [to.op.eq(self._unless_dropped(of)) for to, of in ((a, op), (b, a.op), (c, b.op))]
        with m.If(op != BlockOp.NONE):
            m.d.sync += [
                a.slot.eq(slot),
                *(a.tile[field].eq(self.tile[field]) for field in _Tile.members),
                a.number.eq(self.walk_number),
            ]
        self._locate(m, a, b, places.data, marks)
        with m.If(b.op != BlockOp.NONE):
            self._compare(m, b, c)
        self._count(m, c, entries, marks)
        m.d.comb += [
            self.busy.eq(Cat(stage.op != BlockOp.NONE for stage in (a, b, c)).any()),
            self.scanning.eq(Cat(stage.op == BlockOp.SCAN for stage in (a, b, c)).any()),
            self.faults.eq(
                Mux(_reads(a.op) & places.uncorrectable, 1 << a.slot, 0)
                | Mux((_reads(c.op) & entries.uncorrectable) | marks.uncorrectable, 1 << c.slot, 0)
            ),
            self.corrected.eq((_reads(a.op) & places.corrected) | (_reads(c.op) & entries.corrected) | marks.corrected),
        ]
        return m

    def _unless_dropped(self, op: Value) -> Value:
        """``op``, or nothing if it is a scan that is dropped."""
        return Mux(self.drop_scan & (op == BlockOp.SCAN), BlockOp.NONE, op)

    def _locate(self, m: Module, a: Any, b: Any, places: Any, marks: TileMarks) -> None:
        """Stage A: place of the block in the chunk, from a tile's place or from the block's number; the tile's mark."""
        is_tile, number, log = a.op == BlockOp.TILE, a.number[:6], places.row_blocks_log
        tile_row, tile_col, row, col = Signal(12), Signal(12), Signal(12), Signal(12)
        m.d.comb += [
            tile_row.eq(a.tile.row - places.row0), row.eq(tile_row >> places.row_shift),
            tile_col.eq(a.tile.col - places.col0), col.eq(tile_col >> places.col_shift),
            marks.halvings.eq(self.halvings), marks.tile.eq(is_tile), marks.clear.eq(a.op == BlockOp.CLEAR),
            marks.slot.eq(a.slot), marks.row.eq(tile_row), marks.col.eq(tile_col), marks.wf.eq(a.tile.wf),
            marks.rows_log.eq(places.rows_log), marks.word.eq(a.number),
        ]  # fmt: skip
        with m.If(is_tile):
            m.d.sync += [b.row.eq(row), b.col.eq(col), b.block.eq(((col << log) | row)[: self._block_bits])]
        with m.Elif(a.op != BlockOp.NONE):
            m.d.sync += [b.row.eq(number & ~(~0 << log)), b.col.eq(number >> log), b.block.eq(number)]
        with m.If(a.op != BlockOp.NONE):
            self._follow(m, a, b, places)

    def _follow(self, m: Module, a: Any, b: Any, places: Any) -> None:
        """What stage B takes as it is."""
        m.d.sync += [
            b.slot.eq(a.slot),
            b.tile.eq(a.tile),
            *(b[field].eq(places[field]) for field in ("last_block_row", "last_block_col", "tiles")),
            *(b.owner[field].eq(places[field]) for field in _Owner.members),
        ]

    def _compare(self, m: Module, b: Any, c: Any) -> None:
        """Stage B: whether the block lies in the chunk, and how many tiles it has there."""
        edges = Cat(b.row == b.last_block_row, b.col == b.last_block_col)
        m.d.sync += [
            c.inside.eq((b.row <= b.last_block_row) & (b.col <= b.last_block_col)),
            c.tiles.eq(b.tiles[edges]),
            *(c[field].eq(b[field]) for field in ("slot", "block", "owner", "tile")),
        ]

    def _count(self, m: Module, c: Any, entries: Ram, marks: TileMarks) -> None:
        """Stage C: the entry, read in stage B, is written back in every operation but a scan. A tile with a mark does
        not count."""
        entry, following = entries.data, Signal(_Entry)
        tile, flush, open_block, counts = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            open_block.eq(c.inside & ~entry.fired),
            tile.eq((c.op == BlockOp.TILE) & open_block & _follows(c.tiles, entry.count) & ~marks.marked),
            flush.eq((c.op == BlockOp.FLUSH) & open_block),
            counts.eq(self.counts.bit_select(c.slot, 1) & ~entries.uncorrectable & ~marks.uncorrectable),
            entries.write.eq((c.op != BlockOp.NONE) & (c.op != BlockOp.SCAN)),
            entries.write_row.eq(Cat(c.block[: self._block_bits], c.slot)),
            entries.write_data.eq(following),
            self.ready_valid.eq(((tile & c.owner.dma) | flush) & counts),
            self.ready_offered.eq((c.op == BlockOp.TILE) | (c.op == BlockOp.FLUSH)),
            self.ready.slot.eq(c.slot),
            self.ready.block.eq(c.block),
            self.ready.by_chunk.eq(flush),
            self.ready_context.eq(c.owner.context),
            self.twice.eq(marks.marked & ~self.poisoned.bit_select(c.slot, 1)),
            self.twice_slot.eq(c.slot),
            *(self.twice_tile[field].eq(c.tile[field]) for field in _Tile.members),
            *(self.twice_tile[field].eq(c.owner[field]) for field in ("descriptor", "context")),
            self.scanned_valid.eq(c.op == BlockOp.SCAN),
            self.scanned.waits.eq(open_block & counts),
            self.scanned.block.eq(c.block),
            self.scanned.expected.eq(c.tiles),
            self.scanned.seen.eq(entry.count),
            *(self.scanned[field].eq(c.owner[field]) for field in ("descriptor", "context")),
        ]
        with m.If(c.op != BlockOp.CLEAR):
            m.d.comb += [
                following.count.eq(Mux((c.op == BlockOp.TILE) & ~marks.marked, entry.count + 1, entry.count)),
                following.fired.eq(entry.fired | tile | flush),
            ]


def _reads(op: Value) -> Value:
    """Whether an operation reads: what is cleared may never have been written."""
    return (op != BlockOp.NONE) & (op != BlockOp.CLEAR)


def _follows(number: Value, count: Value) -> Value:
    """Whether ``number`` = ``count`` + 1 (modulo), bit by bit: a carry chain would take longer.

    Counting on changes the lowest bit, and each further one if the one below changes from 1 to 0.
    """
    changes = number ^ count
    return changes == Cat(Const(1, 1), changes & count)[: len(count)]
