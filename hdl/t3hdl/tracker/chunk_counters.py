"""Line counters of the live chunks, and the completion pulses."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.ram import Ram
from ..common.state_parity import CHECKED
from ..config import T3Config
from ..interface.layouts import ChunkDone, EventKind, SlotLoad, TileDone
from .event_queue import Event


def counted_layout(config: T3Config) -> data.StructLayout:
    """What is counted for a chunk: a finished tile, or (OVERFLOW) lines without an entry, of all banks."""
    lines = max(Event["lines"].width, config.pending_bits + config.bank_bits)
    return data.StructLayout({"kind": 1, **Event.members, "lines": lines})


class ChunkCounters(wiring.Component):
    """Counts the lines of each live chunk down from what it expects; takes one event per cycle.

    Parameters
    ----------
    config : gives ``chunk_window``, the counter widths, and ``protect``.

    Members
    -------
    load_valid, load : In : pulse; slot ``load.slot`` starts anew. Wins over an event of the same cycle.
    event_valid, event : In : pulse; see :func:`counted_layout`.
    event_damaged : In(1) : its lines are wrong.
    excess : In(1) : lines came for a chunk that is complete, or a tile of one has an entry.
    tile_done_valid, tile_done : Out : pulse; the event was a finished tile.
    chunk_done_valid, chunk_done : Out : pulse; the event completed its chunk.
    tiles : Out(32) : pulses of ``tile_done``.
    overflowed : Out(7) : chunks with at least one line counted without a tile entry.
    complete_slots : Out(chunk_window) : slots whose chunk is complete.
    over_total : Out(1) : sticky; a chunk got more lines than it expects, or ``excess`` was 1.
    corrected, uncorrectable : Out(1) : of the counters of the event in this cycle.
    poison, poison_slot : Out : the lines of this event could not be counted.
    damaged : Out(chunk_window) : slots whose flags have a wrong parity; nothing is counted for them.
    busy : Out(1) : a pulse is being given, so the next cycle changes something.

    Latency: 1. Throughput: one event per cycle. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load_valid": In(1), "load": In(SlotLoad),
            "event_valid": In(1), "event": In(counted_layout(config)), "event_damaged": In(1), "excess": In(1),
            "tile_done_valid": Out(1), "tile_done": Out(TileDone),
            "chunk_done_valid": Out(1), "chunk_done": Out(ChunkDone),
            "tiles": Out(32), "overflowed": Out(7), "over_total": Out(1), "complete_slots": Out(config.chunk_window),
            "corrected": Out(1), "uncorrectable": Out(1), "poison": Out(1), "poison_slot": Out(6),
            "damaged": Out(config.chunk_window), "busy": Out(1),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """Look up what is left of the slot, compare, subtract; then the registers."""
        m = Module()
        config, event = self._parameters, self.event
        window, bits = config.chunk_window, config.chunk_count_bits
        m.submodules.expected = expected = Ram(bits, depth=window, latency=0, protect=config.protect)
        m.submodules.remaining = remaining = Ram(bits, depth=window, latency=0, protect=config.protect)
        fresh, overflow, complete = (
            Signal(window, name=name, attrs=dict(CHECKED)) for name in ("fresh", "overflow", "complete")
        )
        before = Signal(bits, name="before")
        # One bit more than either: set if more lines come than are left.
        after = Signal(max(bits, len(event.lines)) + 1, name="after")
        bit, load_bit, counted = Signal(window), Signal(window), Signal(window)
        is_fresh, overflowed_now, was_overflowed, was_complete, is_last, finished = (Signal() for _ in range(6))
        m.d.comb += [
            expected.write.eq(load_bit.any()),
            expected.write_row.eq(self.load.slot),
            expected.write_data.eq(self.load.expected),
            expected.read.eq(self.event_valid),
            expected.read_row.eq(event.slot),
            remaining.write.eq(counted.any()),
            remaining.write_row.eq(event.slot),
            remaining.write_data.eq(after),
            remaining.read.eq(self.event_valid & ~is_fresh),
            remaining.read_row.eq(event.slot),
            # All that is expected is left if nothing was counted since the load.
            before.eq(Mux(is_fresh, expected.data, remaining.data)),
            after.eq(before - event.lines),
            bit.eq(1 << event.slot),
            load_bit.eq(Mux(self.load_valid, 1 << self.load.slot, 0)),
            is_fresh.eq((fresh & bit).any()),
            was_overflowed.eq((overflow & bit).any()),
            was_complete.eq((complete & bit).any()),
            overflowed_now.eq(event.kind == EventKind.OVERFLOW),
            self.corrected.eq(expected.corrected | remaining.corrected),
            self.uncorrectable.eq(expected.uncorrectable | remaining.uncorrectable),
            self.poison.eq(self.event_valid & (self.uncorrectable | self.event_damaged | (self.damaged & bit).any())),
            self.poison_slot.eq(event.slot),
            counted.eq(Mux(self.event_valid & ~self.poison, bit, 0)),
            # Both are compared in parallel: `fresh` arrives late.
            is_last.eq(Mux(is_fresh, expected.data == event.lines, remaining.data == event.lines)),
            finished.eq(self.event_valid & ~self.poison & ~was_complete & is_last),
            self.busy.eq(self.tile_done_valid | self.chunk_done_valid),
            self.complete_slots.eq(complete),
        ]
        self._flags(
            m,
            load_bit,
            (
                (fresh, (fresh & ~counted) | load_bit),
                (overflow, (overflow | Mux(self.event_valid & overflowed_now, bit, 0)) & ~load_bit),
                (complete, (complete | Mux(finished, bit, 0)) & ~load_bit),
            ),
        )
        is_tile = self.event_valid & ~overflowed_now
        m.d.sync += [
            self.tile_done_valid.eq(is_tile),
            self.tiles.eq(self.tiles + is_tile),
            self.chunk_done_valid.eq(finished),
        ]
        too_many = self.event_valid & ~self.poison & (was_complete | after[-1])
        m.d.sync += self.over_total.eq(self.over_total | self.excess | too_many)
        with m.If(self.event_valid):
            m.d.sync += [
                self.overflowed.eq(self.overflowed + (overflowed_now & ~was_overflowed)),
                *(self.tile_done[field].eq(event[field]) for field in TileDone.members),
                self.chunk_done.slot.eq(event.slot),
                self.chunk_done.overflowed.eq(was_overflowed | overflowed_now),
            ]
        return m

    def _flags(self, m: Module, load_bit: Value, flags: Any) -> None:
        """The flags of the slots and what they become; a parity bit over those of a slot, rewritten by a load only."""
        for flag, new in flags:
            m.d.sync += flag.eq(new)
        if not self._parameters.protect:
            return
        parity = Signal.like(load_bit, name="parity", attrs=dict(CHECKED))
        odd = Signal.like(load_bit, name="odd")
        changes = Signal.like(load_bit, name="changes")
        m.d.comb += [
            odd.eq(flags[0][0] ^ flags[1][0] ^ flags[2][0]),
            changes.eq(odd ^ flags[0][1] ^ flags[1][1] ^ flags[2][1]),
            self.damaged.eq(parity ^ odd),
        ]
        # After a load only `fresh` is set.
        m.d.sync += parity.eq((parity ^ changes) | load_bit)
