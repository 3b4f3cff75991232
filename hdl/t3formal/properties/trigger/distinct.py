"""No block is ready by its tiles before each of its distinct tiles was complete in this epoch."""

from typing import Any

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import TileDone
from t3hdl.trigger.block_table import BlockOp, BlockPlaces, BlockTable

from ...prover.harness import Harness, SizeError
from ...prover.proof import Proof

_Shape = data.StructLayout({"last_row": 2, "last_col": 2, "row_shift": 1, "col_shift": 1, "row0": 1})
"""A chunk: its last tile row and column, and how it is cut into blocks."""


def _row_bits(shape: Any) -> Value:
    return Mux(shape.last_row > 1, 2, shape.last_row > 0)


def _places(shape: Any, config: T3Config) -> tuple[Any, Value]:
    """What the loader gives the block table for this chunk, and whether it has marks and block numbers for it."""
    places: Any = data.View(BlockPlaces, Signal(BlockPlaces.size, name="places"))
    rows, cols = shape.last_row + 1, shape.last_col + 1
    last_row, last_col = shape.last_row >> shape.row_shift, shape.last_col >> shape.col_shift
    height, width = 1 << shape.row_shift, 1 << shape.col_shift
    low, narrow = rows - (last_row << shape.row_shift), cols - (last_col << shape.col_shift)
    log = Mux(last_row > 1, 2, last_row > 0)
    fields = {
        "dma": 1, "row0": shape.row0, "row_shift": shape.row_shift, "col_shift": shape.col_shift,
        "row_blocks_log": log, "rows_log": _row_bits(shape), "last_block_row": last_row, "last_block_col": last_col,
    }  # fmt: skip
    sizes = (height * width, low * width, height * narrow, low * narrow)
    value = [(places[name], value) for name, value in fields.items()]
    value += [(places.tiles[i], (size * config.wavefronts)[:16]) for i, size in enumerate(sizes)]
    has_marks = ((shape.last_col << _row_bits(shape)) | shape.last_row) < 1 << config.share_bits
    return (places, value), has_marks & ((last_col + 1) << log <= config.blocks)


def _distinct(config: T3Config) -> Harness:
    """One tile of one slot is chosen. Chunks of every shape that has marks and block numbers come and go.

    Raises SizeError for more than 2 blocks, or for another window than 2: it clears and loads no others.
    """
    if config.blocks > 2 or config.chunk_window != 2:
        raise SizeError(f"blocks must be 1 or 2, chunk_window 2, not {config.blocks} and {config.chunk_window}")
    table = BlockTable(config=config)
    harness = Harness(table)
    m = harness.m
    walk, number = harness.free("operation", 2), harness.free("block", 1)
    slot, load_slot, mine = (harness.free("slot", 1), harness.free("load_into", 1), harness.chosen("my_slot", 1))
    shape, mine_now = (data.View(_Shape, Value.cast(Signal(_Shape, name=name))) for name in ("shape", "my_shape"))
    m.d.comb += Value.cast(shape).eq(harness.free("shape_loaded", _Shape.size))
    (places, assignments), legal = _places(shape, config)
    m.d.comb += [place.eq(value) for place, value in assignments]
    harness.drive(table.load_places, places)
    harness.drive(table.load_slot, load_slot)
    # A slot's next chunk is loaded many cycles after the last tile or walk of the one before.
    looks = Cat(Mux(table.tile_valid, 1, (table.walk_op != BlockOp.NONE) & (table.walk_op != BlockOp.CLEAR)), slot)
    before = [harness.past(looks)]
    before += [harness.past(before[0])]
    recent = Cat(each[0] & (each[1] == load_slot) for each in before).any()
    loads = harness.free("loads") & legal & ~recent
    harness.drive(table.load, loads)
    harness.drive(table.halvings, 0)
    tile: Any = data.View(TileDone, Signal(TileDone.size, name="tile_in"))
    place = Cat(harness.free("row", 2), harness.free("col", 2), harness.free("wf", config.wavefront_bits or 1))
    row, col, wf = place[:2], place[2:4], place[4:]
    bounds = [data.View(_Shape, Value.cast(Signal(_Shape, name=f"shape_{s}"))) for s in range(2)]
    for s, bound in enumerate(bounds):
        with m.If(loads & (load_slot == s)):
            m.d.sync += Value.cast(bound).eq(shape)
    bound = data.View(_Shape, Value.cast(Signal(_Shape, name="bound")))
    m.d.comb += Value.cast(bound).eq(Mux(slot, Value.cast(bounds[1]), Value.cast(bounds[0])))
    in_chunk = (row <= bound.last_row) & (col <= bound.last_col) & (wf < config.wavefronts)
    m.d.comb += [tile.slot.eq(slot), tile.row.eq(row + bound.row0), tile.col.eq(col), tile.wf.eq(wf)]
    harness.drive(table.tile, tile)
    done = harness.free("tile_is_done") & in_chunk
    harness.drive(table.tile_valid, done)
    harness.drive(table.walk_op, Mux(walk == 0, BlockOp.NONE, walk + 1))
    harness.drive(table.walk_slot, slot)
    harness.drive(table.walk_number, Mux(number < config.blocks, number, 0))
    _order(harness, table, slot, mine, loads & (load_slot == mine))
    m.d.comb += Value.cast(mine_now).eq(Mux(mine, Value.cast(bounds[1]), Value.cast(bounds[0])))
    _follow(harness, table, config, (done & (slot == mine), place), mine, mine_now, loads & (load_slot == mine))
    return harness


def _order(harness: Harness, table: BlockTable, slot: Value, mine: Any, loads: Value) -> None:
    """What the whole trigger keeps to: every block and mark is cleared, then its slot is loaded, then looked at."""
    m, blocks = harness.m, 2
    op = Mux(table.tile_valid, BlockOp.TILE, Value.cast(table.walk_op))
    cleared, loaded = Signal(blocks, name="cleared_model"), Signal(name="loaded_model")
    clears = (op == BlockOp.CLEAR) & (slot == mine)
    looks = (slot == mine) & (op != BlockOp.NONE) & ~clears
    with m.If(clears):
        m.d.sync += [cleared.eq(cleared | (1 << table.walk_number[:1])), loaded.eq(0)]
    with m.If(loads):
        m.d.sync += [loaded.eq(1), cleared.eq(0)]
    every = cleared.all() if table.parameters.blocks > 1 else cleared.any()
    harness.assume("a block is cleared before its slot is loaded", ~loads | every)
    harness.assume("marks are cleared before their slot is loaded", ~loads | every)
    harness.assume("a slot is loaded before its blocks are looked at", ~looks | loaded)
    harness.assume("a slot is not looked at while it is loaded", ~(looks & loads))


def _follow(
    harness: Harness,
    table: BlockTable,
    config: T3Config,
    tile: tuple[Value, Value],
    mine: Any,
    shape: Any,
    loads: Value,
) -> None:
    """Whether the chosen tile was complete since the load, by the tiles that entered three cycles ago."""
    m, (done, place) = harness.m, tile
    interest = harness.chosen("tile_of_interest", len(place))
    hit, seen = done & (place == interest), Signal(name="seen_model")
    row, col, wf = interest[:2], interest[2:4], interest[4:]
    block = ((col >> shape.col_shift) << Mux(shape.last_row >> shape.row_shift > 1, 2,
             shape.last_row >> shape.row_shift > 0)) | (row >> shape.row_shift)  # fmt: skip
    exists = (row <= shape.last_row) & (col <= shape.last_col) & (wf < config.wavefronts)
    now = harness.past(harness.past(harness.past(hit)))
    with m.If(now):
        m.d.sync += seen.eq(1)
    with m.If(loads):
        m.d.sync += seen.eq(0)
    ready = table.ready_valid & (table.ready.slot == mine) & ~table.ready.by_chunk
    of_block = ready & (table.ready.block == block) & exists
    harness.claim("each of its tiles was complete", ~of_block | seen | now)
    doubled = now & seen
    harness.claim(
        "a tile that was complete before is told", ~doubled | table.poisoned.bit_select(mine, 1) | table.twice
    )
    harness.claim("and makes nothing ready", ~doubled | ~table.ready_valid)
    harness.claim("no other tile is told", ~table.twice | (table.twice_slot != mine) | ~now | seen)
    again = Signal(name="loaded_again")
    with m.If(of_block):
        m.d.sync += again.eq(1)
    harness.cover("a block is ready by two tiles or more", of_block & seen & ~now)
    harness.cover("the tile comes again", doubled & table.twice)
    harness.cover("a block is ready after its slot was loaded again", of_block & again & seen)


_SMALL = {"contexts": 2, "descriptors": 2, "chunk_window": 2, "tile_marks": 8, "event_queue": 3, "tracker_banks": 1}
PROOFS = (
    Proof(
        name="block-table.distinct",
        invariants=(1, 3),
        says="A block is ready by its tiles only when each of its distinct tiles was complete since its slot was "
        "loaded, in chunks of one and of several blocks, and after the slot was loaded again; a tile that was complete "
        "before is told, and makes nothing ready. Tiles lie in their chunk, and descriptors give their true number.",
        harness=_distinct,
        sizes={
            "2 blocks": preset("small", **_SMALL, blocks=2),
            "1 block, 1 wavefront": preset("small", **_SMALL, blocks=1, wavefronts=1),
        },
        method="bounded",
        depth=13,
        cover_depth=13,
        quick=False,
    ),
)
