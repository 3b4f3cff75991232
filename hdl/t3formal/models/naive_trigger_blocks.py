"""The block walker and the block pipeline of the naive trigger (docs/hardware/trigger.md)."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config
from t3hdl.interface.layouts import ChunkKind

from .naive_trigger_state import Chunk, Loading, NaiveState, Step, Waiting, Walk, any_of, block_row, lowest, pick


@dataclass(frozen=True)
class Push:
    """A block that enters the ready list of ``context``."""

    valid: Signal
    context: Signal
    block: Any


def block_walker(m: Module, ports: Any, state: NaiveState) -> Value:
    """Takes a FLUSH, CLEAR or SCAN and walks over the blocks; gives whether it takes a SCAN in this cycle."""
    slots, blocks = state.slots, ports.parameters.blocks
    pending = [slot.pending for slot in slots]
    waiting = [slot.used & ~slot.done & ~slot.poisoned for slot in slots]
    due = ports.now >= state.since + ports.cycles
    asks = (ports.cycles != 0) & ~state.quiesced & ~state.stuck.valid & ~state.scanning & any_of(waiting) & due
    taken = Signal(name="naive_scan_taken")
    with m.If(~state.walking):
        m.d.sync += [state.walk_number.eq(0), state.walking.eq(1), state.walk_dropped.eq(0), state.walk_end.eq(blocks)]
        with m.If(any_of(pending)):
            m.d.sync += [state.walk.eq(Walk.FLUSH), state.walk_slot.eq(lowest(pending))]
            for s, slot in enumerate(slots):
                with m.If(lowest(pending) == s):
                    m.d.sync += slot.pending.eq(0)
        with m.Elif(state.loading == Loading.START):
            m.d.sync += [state.walk.eq(Walk.CLEAR), state.walk_slot.eq(state.loader_slot)]
            m.d.sync += state.loading.eq(Loading.CLEAR)
            words = (last_place(state.chunk.place) >> ports.parameters.word_tile_bits) + 1
            with m.If((words > blocks) & ~too_large(ports.parameters, state.chunk.place)):
                m.d.sync += state.walk_end.eq(words)
        with m.Elif(asks):
            m.d.sync += [state.walk.eq(Walk.SCAN), state.walk_slot.eq(lowest(waiting))]
            m.d.comb += taken.eq(1)
        with m.Else():
            m.d.sync += state.walking.eq(0)
    with m.Elif(~ports.tile_seen):
        m.d.sync += state.walk_number.eq(state.walk_number + 1)
        with m.If(state.walk_number == state.walk_end - 1):
            m.d.sync += state.walking.eq(0)
            with m.If(state.loading == Loading.CLEAR):
                m.d.sync += state.loading.eq(Loading.LOAD)
    return taken


def block_pipeline(m: Module, ports: Any, state: NaiveState) -> Push:
    """What enters stage A, moves on to stage C, and happens there; gives what is pushed in this cycle."""
    slots = state.slots
    entering: Any = Signal(Step, name="naive_entering")
    with m.If(ports.tile_seen):
        m.d.comb += [entering.valid.eq(1), entering.op.eq(Walk.TILE), entering.slot.eq(ports.tile_done.slot)]
    with m.Elif(state.walking):
        m.d.comb += entering.valid.eq((state.walk != Walk.SCAN) | ~state.walk_dropped)
        m.d.comb += [entering.op.eq(state.walk), entering.slot.eq(state.walk_slot)]
        m.d.comb += entering.last.eq(state.walk_number == state.walk_end - 1)
    chunk = data.View(Chunk, pick([slot.chunk for slot in slots], entering.slot))
    target, last, tiles = chunk.target, chunk.last, chunk.tiles
    row, column = Signal(12, name="naive_block_row"), Signal(12, name="naive_block_column")
    with m.If(ports.tile_seen):
        m.d.comb += row.eq((ports.tile_done.row - chunk.place.row0)[:12] >> target.row_shift)
        m.d.comb += column.eq((ports.tile_done.col - chunk.place.col0)[:12] >> target.col_shift)
        number = (column << target.row_blocks_log) | row
        m.d.comb += entering.number.eq(number % ports.parameters.blocks)
    with m.Else():
        m.d.comb += [entering.number.eq(state.walk_number), row.eq(block_row(state.walk_number, chunk.target))]
        m.d.comb += column.eq(state.walk_number >> target.row_blocks_log)
    at_bottom, at_right = row == last.last_block_row, column == last.last_block_col
    m.d.comb += [
        entering.inside.eq((row <= last.last_block_row) & (column <= last.last_block_col)),
        entering.tiles.eq(
            Mux(
                at_bottom,
                Mux(at_right, tiles.tiles_corner, tiles.tiles_bottom),
                Mux(at_right, tiles.tiles_right, tiles.tiles_inner),
            )
        ),
        entering.dma.eq(chunk.place.kind == ChunkKind.DMA),
        entering.context.eq(pick([slot.context for slot in slots], entering.slot)),
        entering.descriptor.eq(pick([slot.descriptor for slot in slots], entering.slot)),
        entering.tile.eq(ports.tile_done),
        entering.mark.eq(_mark(ports.parameters, chunk.place, ports.tile_done)),
    ]
    moves = ((state.stage_a, entering), (state.stage_b, state.stage_a), (state.stage_c, state.stage_b))
    m.d.sync += [to.eq(step) for to, step in moves]
    with m.If(ports.write_watchdog):  # the walk of a scan goes on without effect
        m.d.sync += state.walk_dropped.eq(1)
        for to, step in moves:
            with m.If(step.op == Walk.SCAN):
                m.d.sync += to.valid.eq(0)
    return _stage_c(m, state, _marks(m, ports, state))


def last_place(place: Any) -> Value:
    """The place of the chunk's last tile in the share of its slot."""
    last_row, last_column = (place.row1 - place.row0 - 1)[:12], (place.col1 - place.col0 - 1)[:12]
    return (last_column << _row_bits(place)) | last_row


def too_large(config: T3Config, place: Any) -> Value:
    """Whether the chunk has more tiles than a slot has marks."""
    return last_place(place) >= 1 << config.share_bits


def _row_bits(place: Any) -> Value:
    """Bits that the number of a row in the chunk takes."""
    rows = (place.row1 - place.row0)[:12]
    bits: Value = Const(12, 4)
    for count in reversed(range(12)):
        bits = Mux((rows != 0) & (rows <= 1 << count), count, bits)
    return bits


def _mark(config: T3Config, place: Any, tile: Any) -> Value:
    """Number of a tile's mark in the share of its slot."""
    row, column = (tile.row - place.row0)[:12], (tile.col - place.col0)[:12]
    tile_number = ((column << _row_bits(place)) | row) % (1 << config.share_bits)
    return (tile_number << config.wavefront_bits) | (tile.wf % (1 << config.wavefront_bits))


def _marks(m: Module, ports: Any, state: NaiveState) -> Signal:
    """Sets and clears marks in stage C; gives whether the tile there has its mark already."""
    step, config = state.stage_c, ports.parameters
    tile, doubled = step.valid & (step.op == Walk.TILE), Signal(name="naive_doubled")
    word = 1 << config.word_tile_bits + config.wavefront_bits
    for s, slot in enumerate(state.slots):
        with m.If(step.slot == s):
            for number, mark in enumerate(slot.marks):
                words = len(slot.marks) // word
                with m.If(tile & (step.mark == number)):
                    m.d.comb += doubled.eq(mark)
                    m.d.sync += mark.eq(1)
                with m.If(step.valid & (step.op == Walk.CLEAR) & (step.number % words == number // word)):
                    m.d.sync += mark.eq(0)
            with m.If(doubled & ~slot.poisoned):
                with m.If(~state.tile_twice.valid):
                    m.d.sync += [state.tile_twice[name].eq(step.tile[name]) for name in ("row", "col", "wf")]
                    m.d.sync += [state.tile_twice[name].eq(step[name]) for name in ("descriptor", "context")]
                    m.d.sync += state.tile_twice.valid.eq(1)
                with m.If(slot.used & ~ports.aborted(slot.context)):
                    m.d.sync += [slot.poisoned.eq(1), state.poisoned.bit_select(slot.descriptor, 1).eq(1)]
    return doubled


def _stage_c(m: Module, state: NaiveState, doubled: Value) -> Push:
    """Counts and fires."""
    step, block = state.stage_c, Signal(Waiting, name="naive_push_block")
    push = Push(Signal(name="naive_push"), Signal(4, name="naive_push_context"), block)
    for s, slot in enumerate(state.slots):
        for number, (count, fired) in enumerate(zip(slot.counts, slot.fired, strict=True)):
            fires = Signal(name=f"naive_fires_{s}_{number}")
            mine = step.valid & (step.slot == s) & (step.number % len(slot.counts) == number)
            with m.If(mine & ~doubled), m.Switch(step.op):
                with m.Case(Walk.TILE):
                    new = (count + 1)[:16]
                    m.d.sync += count.eq(new)
                    m.d.comb += fires.eq((new == step.tiles) & step.inside & ~fired)
                with m.Case(Walk.FLUSH):
                    m.d.comb += fires.eq(step.inside & ~fired)
                with m.Case(Walk.CLEAR):
                    m.d.sync += [count.eq(0), fired.eq(0)]
            with m.If(fires):
                m.d.sync += fired.eq(1)
                m.d.comb += push.valid.eq(step.dma & slot.used & ~slot.poisoned)
    m.d.comb += [push.context.eq(step.context), push.block.slot.eq(step.slot), push.block.number.eq(step.number)]
    m.d.comb += push.block.by_chunk.eq(step.op == Walk.FLUSH)
    return push
