"""Steps through the blocks of one slot: to clear them for a new chunk, or to fire what an overflow left unfired."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .config import T3Config


class BlockWalker(wiring.Component):
    """One walk at a time, one block per cycle; a flush goes before a clear that has not begun.

    Parameters
    ----------
    config : gives ``blocks``.

    Members
    -------
    flush_any, flush_slot : In : a slot to be flushed.
    flush_take : Out(1) : pulse; the flush of ``flush_slot`` begins in the next cycle.
    clear_any, clear_slot : In : a slot to be cleared.
    clear_take, cleared : Out(1) : pulses; the clear begins in the next cycle, has ended with this one.
    hold : In(1) : the pipeline takes something else in this cycle.
    walking : Out(1) : the operation below waits to enter the pipeline.
    flush, slot, block : Out : flush (else clear) this block of this slot.

    Latency: 1. Throughput: one block per cycle without ``hold``. Reset: not walking.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "flush_any": In(1), "flush_slot": In(6), "flush_take": Out(1),
            "clear_any": In(1), "clear_slot": In(6), "clear_take": Out(1), "cleared": Out(1),
            "hold": In(1),
            "walking": Out(1), "flush": Out(1), "slot": Out(6), "block": Out(6),
        })  # fmt: skip
        self._blocks = config.blocks

    def elaborate(self, platform: Any) -> Module:
        """Idle: take a flush, else a clear. Walking: count to the last block."""
        m = Module()
        last = Signal()
        m.d.comb += [
            self.flush_take.eq(~self.walking & self.flush_any),
            self.clear_take.eq(~self.walking & ~self.flush_any & self.clear_any),
            last.eq(self.walking & ~self.hold & (self.block == self._blocks - 1)),
            self.cleared.eq(last & ~self.flush),
        ]
        with m.If(self.flush_take | self.clear_take):
            m.d.sync += [self.walking.eq(1), self.flush.eq(self.flush_take), self.block.eq(0)]
        with m.Elif(last):
            m.d.sync += self.walking.eq(0)
        with m.Elif(self.walking & ~self.hold):
            m.d.sync += self.block.eq(self.block + 1)
        with m.If(self.flush_take):
            m.d.sync += self.slot.eq(self.flush_slot)
        with m.Elif(self.clear_take):
            m.d.sync += self.slot.eq(self.clear_slot)
        return m
