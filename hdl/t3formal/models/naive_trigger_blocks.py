"""The block walker and the block pipeline of the naive trigger (docs/hardware/trigger.md)."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
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
        m.d.sync += [state.walk_number.eq(0), state.walking.eq(1), state.walk_dropped.eq(0)]
        with m.If(any_of(pending)):
            m.d.sync += [state.walk.eq(Walk.FLUSH), state.walk_slot.eq(lowest(pending))]
            for s, slot in enumerate(slots):
                with m.If(lowest(pending) == s):
                    m.d.sync += slot.pending.eq(0)
        with m.Elif(state.loading == Loading.START):
            m.d.sync += [state.walk.eq(Walk.CLEAR), state.walk_slot.eq(state.loader_slot)]
            m.d.sync += state.loading.eq(Loading.CLEAR)
        with m.Elif(asks):
            m.d.sync += [state.walk.eq(Walk.SCAN), state.walk_slot.eq(lowest(waiting))]
            m.d.comb += taken.eq(1)
        with m.Else():
            m.d.sync += state.walking.eq(0)
    with m.Elif(~ports.tile_seen):
        m.d.sync += state.walk_number.eq(state.walk_number + 1)
        with m.If(state.walk_number == blocks - 1):
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
        m.d.comb += entering.last.eq(state.walk_number == ports.parameters.blocks - 1)
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
    ]
    moves = ((state.stage_a, entering), (state.stage_b, state.stage_a), (state.stage_c, state.stage_b))
    m.d.sync += [to.eq(step) for to, step in moves]
    with m.If(ports.write_watchdog):  # the walk of a scan goes on without effect
        m.d.sync += state.walk_dropped.eq(1)
        for to, step in moves:
            with m.If(step.op == Walk.SCAN):
                m.d.sync += to.valid.eq(0)
    return _stage_c(m, state)


def _stage_c(m: Module, state: NaiveState) -> Push:
    """Counts and fires."""
    step, block = state.stage_c, Signal(Waiting, name="naive_push_block")
    push = Push(Signal(name="naive_push"), Signal(4, name="naive_push_context"), block)
    for s, slot in enumerate(state.slots):
        for number, (count, fired) in enumerate(zip(slot.counts, slot.fired, strict=True)):
            fires = Signal(name=f"naive_fires_{s}_{number}")
            with m.If(step.valid & (step.slot == s) & (step.number == number)), m.Switch(step.op):
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
