"""What the trigger knows of each slot: in use, done, waiting for a flush, blocks not yet issued."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .choose import index_of, lowest_bit
from .config import T3Config
from .layouts import ChunkDone


class SlotState(wiring.Component):
    """One bit per slot and property; a slot is retired when its chunk is done and its blocks are issued.

    Parameters
    ----------
    config : gives ``chunk_window``.

    Members
    -------
    load, load_slot, load_descriptor, load_dma, load_blocks : In : pulse; the slot is in use from the next cycle on.
    chunk_done_valid, chunk_done : In : pulse; ignored for a slot that is not in use or is done already.
    issue, issue_slot : In : pulse; one more block of the slot has become a command.
    flush_take : In(1) : pulse; the walker takes ``flush_slot``.
    used : Out(chunk_window) : slots in use.
    free_any, free_slot : Out : the lowest slot that is not in use.
    flush_any, flush_slot : Out : the lowest slot whose unfired blocks must be fired.
    chunks_done, done_mask : Out : how many chunks are done, and which descriptors.
    retiring : Out(1) : a slot leaves use in this cycle.

    Latency: 1. Throughput: one of each pulse per cycle. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load": In(1), "load_slot": In(6), "load_descriptor": In(6), "load_dma": In(1), "load_blocks": In(7),
            "chunk_done_valid": In(1), "chunk_done": In(ChunkDone),
            "issue": In(1), "issue_slot": In(6),
            "flush_take": In(1),
            "used": Out(config.chunk_window),
            "free_any": Out(1), "free_slot": Out(6),
            "flush_any": Out(1), "flush_slot": Out(6),
            "chunks_done": Out(7), "done_mask": Out(64), "retiring": Out(1),
        })  # fmt: skip
        self._window = config.chunk_window

    def _when(self, pulse: Value, slot: Value) -> Value:
        """The bit of ``slot`` in the cycle of the pulse."""
        return Mux(pulse, (1 << slot)[: self._window], 0)

    def elaborate(self, platform: Any) -> Module:
        """Masks: each event sets or clears the bit of its slot in every property that it concerns."""
        m = Module()
        dma, done, all_issued, pending = (
            Signal(self._window, name=name) for name in ("dma", "done", "all_issued", "pending")
        )
        descriptors = Array(Signal(6, name=f"descriptor_{s}") for s in range(self._window))
        unissued = Array(Signal(7, name=f"unissued_{s}") for s in range(self._window))
        retired, loaded, finished, flushed, issued = (
            Signal(self._window, name=name) for name in ("retired", "loaded", "finished", "flushed", "issued")
        )
        left = Signal(7)
        free = lowest_bit(~self.used)
        flush = lowest_bit(pending)
        m.d.comb += [
            loaded.eq(self._when(self.load, self.load_slot)),
            finished.eq(self._when(self.chunk_done_valid, self.chunk_done.slot) & self.used & ~done),
            issued.eq(self._when(self.issue, self.issue_slot)),
            left.eq(unissued[self.issue_slot] - 1),
            flushed.eq(Mux(self.flush_take, flush, 0)),
            retired.eq(self.used & done & all_issued),
            self.retiring.eq(retired.any()),
            self.free_any.eq(~self.used.all()),
            self.free_slot.eq(index_of(free)),
            self.flush_any.eq(pending.any()),
            self.flush_slot.eq(index_of(flush)),
        ]
        m.d.sync += [
            self.used.eq((self.used | loaded) & ~retired),
            done.eq((done | finished) & ~loaded),
            dma.eq(Mux(self.load_dma, dma | loaded, dma & ~loaded)),
            all_issued.eq(Mux(self.load_dma, all_issued & ~loaded, all_issued | loaded) | Mux(left == 0, issued, 0)),
            pending.eq((pending | Mux(self.chunk_done.overflowed, finished & dma, 0)) & ~flushed),
        ]
        for s in range(self._window):
            with m.If(loaded[s]):
                m.d.sync += [descriptors[s].eq(self.load_descriptor), unissued[s].eq(self.load_blocks)]
            with m.Elif(issued[s]):
                m.d.sync += unissued[s].eq(left)
        with m.If(finished.any()):
            m.d.sync += [
                self.chunks_done.eq(self.chunks_done + 1),
                self.done_mask.eq(self.done_mask | (1 << descriptors[self.chunk_done.slot])),
            ]
        return m
