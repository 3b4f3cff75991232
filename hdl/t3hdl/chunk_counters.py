"""What is counted of every live chunk, and the pulses that say so."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from .config import T3Config
from .layouts import COUNT_BITS, ChunkDone, EventKind, SlotLoad, TileDone


def event_layout(config: T3Config) -> data.StructLayout:
    """What a tracker bank reports: a finished tile, or lines of a tile that has no entry."""
    lines = max(config.tile_count_bits, COUNT_BITS)
    return data.StructLayout({"kind": 1, "slot": 6, "lines": lines, "row": 12, "col": 12, "wf": 4})


class ChunkCounters(wiring.Component):
    """Adds up the lines of each live chunk; takes one event per cycle.

    Parameters
    ----------
    config : gives ``chunk_window`` and the counter widths.

    Members
    -------
    load_valid, load : In : pulse; slot ``load.slot`` starts from zero. Wins over an event of the same cycle.
    event_valid, event : In : pulse; an event of a bank.
    tile_done_valid, tile_done : Out : pulse; the event was a finished tile.
    chunk_done_valid, chunk_done : Out : pulse; the event completed its chunk.
    overflowed : Out(7) : chunks with at least one line counted without a tile entry.
    over_total : Out(1) : sticky; a chunk got more lines than it expects.
    busy : Out(1) : a pulse is being given, so the next cycle changes something.

    Latency: 1. Throughput: one event per cycle. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load_valid": In(1), "load": In(SlotLoad),
            "event_valid": In(1), "event": In(event_layout(config)),
            "tile_done_valid": Out(1), "tile_done": Out(TileDone),
            "chunk_done_valid": Out(1), "chunk_done": Out(ChunkDone),
            "overflowed": Out(7), "over_total": Out(1), "busy": Out(1),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """Look up the slot, add, compare; then the registers."""
        m = Module()
        window, bits, event = self._parameters.chunk_window, self._parameters.chunk_count_bits, self.event
        m.submodules.expected = expected = memory.Memory(shape=bits, depth=window, init=[])
        m.submodules.totals = totals = memory.Memory(shape=bits, depth=window, init=[])
        loading, wanted = expected.write_port(), expected.read_port(domain="comb")
        counting, counted = totals.write_port(), totals.read_port(domain="comb")
        fresh, overflow, complete = Signal(window), Signal(window), Signal(window)

        total, limit = Signal(max(bits, len(event.lines)) + 1), Signal(bits)
        bit, load_bit = Signal(window), Signal(window)
        spilled, was_spilled, was_complete, finished = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            loading.addr.eq(self.load.slot),
            loading.data.eq(self.load.expected),
            loading.en.eq(load_bit.any()),
            wanted.addr.eq(event.slot),
            limit.eq(wanted.data),
            counting.addr.eq(event.slot),
            counting.data.eq(total),
            counting.en.eq(self.event_valid),
            counted.addr.eq(event.slot),
            total.eq(Mux((fresh & bit).any(), 0, counted.data) + event.lines),
            bit.eq(1 << event.slot),
            load_bit.eq(Mux(self.load_valid, 1 << self.load.slot, 0)),
            was_spilled.eq((overflow & bit).any()),
            was_complete.eq((complete & bit).any()),
            spilled.eq(event.kind == EventKind.OVERFLOW),
            finished.eq(self.event_valid & ~was_complete & (total == limit)),
            self.busy.eq(self.tile_done_valid | self.chunk_done_valid),
        ]

        m.d.sync += [
            self.tile_done_valid.eq(self.event_valid & ~spilled),
            self.chunk_done_valid.eq(finished),
            # A slot counts from zero if nothing was counted since its load.
            fresh.eq((fresh & ~Mux(self.event_valid, bit, 0)) | load_bit),
            overflow.eq((overflow | Mux(self.event_valid & spilled, bit, 0)) & ~load_bit),
            complete.eq((complete | Mux(finished, bit, 0)) & ~load_bit),
        ]
        with m.If(self.event_valid):
            m.d.sync += [
                self.overflowed.eq(self.overflowed + (spilled & ~was_spilled)),
                self.over_total.eq(self.over_total | was_complete | (total > limit)),
                *(self.tile_done[field].eq(event[field]) for field in TileDone.members),
                self.chunk_done.slot.eq(event.slot),
                self.chunk_done.overflowed.eq(was_spilled | spilled),
            ]
        return m
