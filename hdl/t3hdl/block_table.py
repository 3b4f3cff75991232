"""Counts the finished tiles of every block, and says once that a block is ready."""

import enum
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .config import T3Config
from .layouts import TileDone

BlockPlaces = data.StructLayout({
    "dma": 1, "row0": 12, "col0": 12, "row_shift": 4, "col_shift": 4, "row_blocks_log": 4,
    "tiles": data.ArrayLayout(16, 4),
    "last_block_row": 6, "last_block_col": 6,
})  # fmt: skip
"""Where the blocks of a chunk lie; ``tiles``: of an inner, bottom, right, corner block."""

ReadyBlock = data.StructLayout({"slot": 6, "block": 6, "by_chunk": 1})
"""A block whose tiles are complete; ``by_chunk``: known only because its whole chunk is."""


_Entry = data.StructLayout({"count": 16, "fired": 1})


class _Op(enum.IntEnum):
    """What a stage does."""

    NONE = 0
    TILE = 1
    FLUSH = 2
    CLEAR = 3


class BlockTable(wiring.Component):
    """The block entries (tile count, fired) of all slots behind a pipeline of two stages.

    Parameters
    ----------
    config : gives ``chunk_window`` and ``blocks``.

    Members
    -------
    load, load_slot, load_places : In : pulse; writes the places of a slot that no operation in the pipeline is about.
    tile_valid, tile : In : pulse; a tile of a slot in use is complete.
    walk_valid, walk_flush, walk_slot, walk_block : In : flush or clear this block, unless ``tile_valid``.
    ready_valid, ready : Out : pulse; the block became ready.
    busy : Out(1) : an operation is in the pipeline.

    Latency: 2 cycles from an operation to ``ready``. Throughput: one operation per cycle. Reset: pipeline empty; the
    tables are undefined, a slot is cleared before it is loaded.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load": In(1), "load_slot": In(6), "load_places": In(BlockPlaces),
            "tile_valid": In(1), "tile": In(TileDone),
            "walk_valid": In(1), "walk_flush": In(1), "walk_slot": In(6), "walk_block": In(6),
            "ready_valid": Out(1), "ready": Out(ReadyBlock), "busy": Out(1),
        })  # fmt: skip
        self._window = config.chunk_window
        self._block_bits = (config.blocks - 1).bit_length()

    def _places(self, m: Module, slot: Value, enable: Value) -> Any:
        """The places of ``slot``, one cycle later."""
        m.submodules.places = table = memory.Memory(shape=BlockPlaces, depth=self._window, init=[])
        write, read = table.write_port(), table.read_port()
        m.d.comb += [
            write.addr.eq(self.load_slot), write.data.eq(self.load_places), write.en.eq(self.load),
            read.addr.eq(slot), read.en.eq(enable),
        ]  # fmt: skip
        return read.data

    def elaborate(self, platform: Any) -> Module:
        """Entry: the operation and its slot; stage A: which block; stage B: count, compare, write back."""
        m = Module()
        op, slot = Signal(_Op), Signal(6)
        with m.If(self.tile_valid):
            m.d.comb += [op.eq(_Op.TILE), slot.eq(self.tile.slot)]
        with m.Elif(self.walk_valid):
            m.d.comb += [op.eq(Mux(self.walk_flush, _Op.FLUSH, _Op.CLEAR)), slot.eq(self.walk_slot)]
        places = self._places(m, slot, op != _Op.NONE)

        a = Signal(data.StructLayout({"op": _Op, "slot": 6, "row": 12, "col": 12, "block": 6}))
        m.d.sync += a.op.eq(op)
        with m.If(op != _Op.NONE):
            m.d.sync += [
                a.slot.eq(slot), a.row.eq(self.tile.row), a.col.eq(self.tile.col), a.block.eq(self.walk_block),
            ]  # fmt: skip

        b = Signal(data.StructLayout({
            "op": _Op, "slot": 6, "block": 6, "dma": 1, "inside": 1, "bottom": 1, "right": 1,
            "tiles": data.ArrayLayout(16, 4),
        }))  # fmt: skip
        m.d.sync += b.op.eq(a.op)
        block = self._locate(m, a, b, places)
        self._count(m, b, Cat(block[: self._block_bits], a.slot), a.op != _Op.NONE)
        m.d.comb += self.busy.eq((a.op != _Op.NONE) | (b.op != _Op.NONE))
        return m

    def _locate(self, m: Module, a: Any, b: Any, places: Any) -> Value:
        """Stage A: place of the block in the chunk, from a tile's place or from the block's number."""
        row, col, block = Signal(12), Signal(12), Signal(6)
        log = places.row_blocks_log
        with m.If(a.op == _Op.TILE):
            m.d.comb += [
                row.eq((a.row - places.row0)[:12] >> places.row_shift),
                col.eq((a.col - places.col0)[:12] >> places.col_shift),
                block.eq((col << log) | row),
            ]
        with m.Else():
            m.d.comb += [row.eq(a.block & ~(~0 << log)), col.eq(a.block >> log), block.eq(a.block)]
        with m.If(a.op != _Op.NONE):
            m.d.sync += [
                b.slot.eq(a.slot),
                b.block.eq(block),
                b.dma.eq(places.dma),
                b.inside.eq((row <= places.last_block_row) & (col <= places.last_block_col)),
                b.bottom.eq(row == places.last_block_row),
                b.right.eq(col == places.last_block_col),
                b.tiles.eq(places.tiles),
            ]
        return block

    def _count(self, m: Module, b: Any, read_address: Value, read_enable: Value) -> None:
        """Stage B: the entry, read in stage A, is written back in every operation."""
        depth = self._window << self._block_bits
        m.submodules.entries = table = memory.Memory(shape=_Entry, depth=depth, init=[])
        write = table.write_port()
        read = table.read_port(transparent_for=(write,))
        count, tile, flush = Signal(16), Signal(), Signal()
        m.d.comb += [
            read.addr.eq(read_address),
            read.en.eq(read_enable),
            count.eq(read.data.count + (b.op == _Op.TILE)),
            tile.eq((b.op == _Op.TILE) & ~read.data.fired & (count == b.tiles[Cat(b.bottom, b.right)])),
            flush.eq((b.op == _Op.FLUSH) & ~read.data.fired & b.inside),
            write.addr.eq(Cat(b.block[: self._block_bits], b.slot)),
            write.en.eq(b.op != _Op.NONE),
            self.ready_valid.eq((tile & b.dma) | flush),
            self.ready.slot.eq(b.slot),
            self.ready.block.eq(b.block),
            self.ready.by_chunk.eq(flush),
        ]
        with m.If(b.op != _Op.CLEAR):
            m.d.comb += [write.data.count.eq(count), write.data.fired.eq(read.data.fired | tile | flush)]
