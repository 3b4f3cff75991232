"""The block table counts every tile, and says once of every block that it is ready."""

from dataclasses import replace
from typing import Any

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import TileDone
from t3hdl.trigger.block_table import BlockOp, BlockPlaces, BlockTable

from ...prover.harness import Harness
from ...prover.memories import row_of
from ...prover.proof import Proof

_BITS = {"dma": 1, "context": 1, "row0": 1, "col0": 1, "row_shift": 1, "col_shift": 1, "row_blocks_log": 1,
         "last_block_row": 1, "last_block_col": 1}  # fmt: skip
"""Free low bits of what a slot is loaded with; the tiles of a block have two, as a tile's row and column."""


def _few(harness: Harness, name: str, values: int, *, chosen: bool = False) -> Value:
    """A free or chosen number below ``values``, a power of two."""
    bits = (values - 1).bit_length()
    if not bits:
        return Const(0, 1)
    return Value.cast(harness.chosen(name, bits) if chosen else harness.free(name, bits))


def narrow(harness: Harness, table: BlockTable, config: T3Config) -> tuple[Value, Value]:
    """Drives all inputs from few bits; gives what enters the pipeline, and the slot that it is about."""
    places: Any = data.View(BlockPlaces, Signal(BlockPlaces.size, name="places_in"))
    tile: Any = data.View(TileDone, Signal(TileDone.size, name="tile_in"))
    slot, walk = _few(harness, "slot", config.chunk_window), harness.free("operation", 2)
    m = harness.m
    m.d.comb += [places[field].eq(harness.free(f"load_{field}", width)) for field, width in _BITS.items()]
    m.d.comb += [places.tiles[i].eq(harness.free(f"load_tiles_{i}", 2)) for i in range(4)]
    m.d.comb += [tile.slot.eq(slot), tile.row.eq(harness.free("row", 2)), tile.col.eq(harness.free("col", 2))]
    harness.drive(table.load_places, places)
    harness.drive(table.load_slot, _few(harness, "load_into", config.chunk_window))
    harness.drive(table.tile, tile)
    harness.drive(table.walk_op, Mux(walk == 0, BlockOp.NONE, walk + 1))
    harness.drive(table.walk_slot, slot)
    number, beyond = _few(harness, "block", config.blocks), harness.free("beyond")
    harness.drive(table.walk_number, number + Mux(beyond & (walk == BlockOp.CLEAR - 1), config.blocks, 0))
    harness.drive(table.halvings, Const(0, 3))
    return Mux(table.tile_valid, BlockOp.TILE, Value.cast(table.walk_op)), slot


def _fires(config: T3Config) -> Harness:
    """One block of one slot is chosen. Three cycles after an operation on it entered, the block counts it."""
    table = BlockTable(config=config)
    harness = Harness(table)
    m = harness.m
    op, slot = narrow(harness, table, config)
    mine = _few(harness, "slot_of_interest", config.chunk_window, chosen=True)
    number = _few(harness, "block_of_interest", config.blocks, chosen=True)

    chunk: Any = data.View(BlockPlaces, Signal(BlockPlaces.size, name="chunk_model"))
    loads, loaded, cleared = table.load & (table.load_slot == mine), Signal(), Signal()
    row, col = Signal(12, name="block_row"), Signal(12, name="block_col")
    hit = Signal(name="block_hit")
    with m.If(table.tile_valid):
        m.d.comb += row.eq((table.tile.row - chunk.row0)[:12] >> chunk.row_shift)
        m.d.comb += col.eq((table.tile.col - chunk.col0)[:12] >> chunk.col_shift)
        m.d.comb += hit.eq((((col << chunk.row_blocks_log) | row) & (config.blocks - 1)) == number)
    with m.Else():
        m.d.comb += [row.eq(number & ((1 << chunk.row_blocks_log) - 1)), col.eq(number >> chunk.row_blocks_log)]
        m.d.comb += hit.eq(table.walk_number % config.blocks == number)
    with m.If(loads):
        m.d.sync += [chunk.eq(table.load_places), loaded.eq(1)]
    looks = (slot == mine) & (op != BlockOp.NONE) & (op != BlockOp.CLEAR)
    with m.If((slot == mine) & (op == BlockOp.CLEAR) & hit):
        m.d.sync += cleared.eq(1)
    harness.assume("a block is cleared before its slot is loaded", ~loads | cleared)
    harness.assume("a slot is loaded before its blocks are looked at", ~looks | loaded)
    harness.assume("a slot is not looked at while it is loaded", ~looks | ~loads)
    places, placed = row_of(harness, r"places\..*rows", mine, name="block places", through=False)
    harness.claim("the places are those of the last load", ~loaded | (placed & (places == chunk.as_value())))
    harness.claim("what is loaded is cleared", ~loaded | cleared)
    edges = Cat(row == chunk.last_block_row, col == chunk.last_block_col)
    inside = (row <= chunk.last_block_row) & (col <= chunk.last_block_col)
    tiles = Array(chunk.tiles[i] for i in range(4))[edges]
    entered = [Mux((slot == mine) & hit, op, 0), inside, tiles, chunk.dma, chunk.context, cleared]
    _stage_c(harness, table, entered, mine, number, Cat(number, mine) if config.blocks > 1 else mine)
    return harness


def _stage_c(harness: Harness, table: BlockTable, entered: list[Value], mine: Value, number: Value, row: Value) -> None:
    """What becomes of the chosen block, and when it is ready. ``row``: of its entry."""
    m = harness.m
    op, inside, tiles, dma, context, cleared = (harness.past(harness.past(harness.past(value))) for value in entered)
    count, fired, fires = Signal(16, name="tiles_model"), Signal(name="fired_model"), Signal(name="fires_model")
    new, counts = (count + 1)[:16], (op == BlockOp.TILE) & ~harness.inside[r"marks\.marked"]
    complete, flushed = counts & (new == tiles), op == BlockOp.FLUSH
    m.d.comb += fires.eq(inside & ~fired & (complete | flushed))
    with m.If(counts):
        m.d.sync += count.eq(new)
    with m.If(fires):
        m.d.sync += fired.eq(1)
    with m.If(op == BlockOp.CLEAR):
        m.d.sync += [count.eq(0), fired.eq(0)]
    ready = table.ready_valid & (table.ready.slot == mine) & (table.ready.block == number)
    pushed = fires & (dma | flushed) & table.counts.bit_select(mine, 1)
    harness.claim("a block is ready with its last tile or its chunk, once, and never else", ready == pushed)
    harness.claim("it says whose it is", ~ready | (table.ready_context == context))
    harness.claim("what is ready was offered", ~table.ready_valid | table.ready_offered)
    harness.claim("and whether by its chunk", ~ready | (table.ready.by_chunk == flushed))
    entry, known = row_of(harness, r"entries\..*rows", row, name="block entries", through=True)
    harness.claim("what is cleared is known", ~cleared | known)
    harness.claim("the entry is as the model", ~known | (entry == Cat(count, fired)))
    again = Signal(name="ready_again")
    with m.If(ready):
        m.d.sync += again.eq(1)
    with m.Elif(op == BlockOp.CLEAR):
        m.d.sync += again.eq(0)
    harness.claim("what was ready has fired", ~again | fired)
    harness.claim("not twice between two clears", ~(ready & again))
    harness.cover("ready with its second tile, one cycle after the first", ready & harness.past(op == BlockOp.TILE))
    harness.cover("ready with its chunk", ready & table.ready.by_chunk)
    harness.cover("ready again after a clear", ready & harness.past(harness.past(again & (op == BlockOp.CLEAR))))


_SMALL = preset(
    "small", contexts=2, descriptors=2, chunk_window=2, blocks=2, tile_marks=8, event_queue=3, tracker_banks=1,
    row_index_bits=1,
)  # fmt: skip
PROOFS = (
    Proof(
        name="block-table.fires-once",
        invariants=(1, 3, 4),
        says="A block is ready exactly when the last of its tiles without a mark is counted or its chunk is complete, "
        "3 cycles after the pulse, once between two clears; tiles of other blocks and slots do nothing to it.",
        harness=_fires,
        sizes={"1 block": replace(_SMALL, blocks=1), "2 blocks": _SMALL, "4 blocks": replace(_SMALL, blocks=4)},
        method="induction",
        depth=4,
        cover_depth=14,
    ),
)
