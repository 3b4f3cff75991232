"""Steps through the blocks of one slot: to clear them and its tile marks, to fire what an overflow left, to scan."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import T3Config
from .block_table import BlockOp


class BlockWalker(wiring.Component):
    """One walk at a time, one block per cycle; a flush goes before a clear, a clear before a scan.

    Parameters
    ----------
    config : gives ``blocks``, ``chunk_window``, ``tile_marks``, ``wavefronts``.

    Members
    -------
    flush_any, flush_slot : In : a slot to be flushed.
    flush_take : Out(1) : pulse; the flush of ``flush_slot`` begins in the next cycle.
    clear_any, clear_slot, clear_last : In : a slot to be cleared, and its last word of tile marks.
    clear_take, cleared : Out(1) : pulses; the clear begins in the next cycle, has ended with this one.
    scan_any, scan_slot : In : a slot to be scanned.
    drop_scan : In(1) : pulse; a scan becomes a walk without effect, also one that begins in this cycle.
    hold : In(1) : the pipeline takes something else in this cycle.
    walking : Out(1) : the operation below waits to enter the pipeline.
    op, slot, number : Out : do this (``NONE``: nothing) with this block of this slot. A clear goes on beyond the last
        block if there are more words of tile marks.

    Latency: 1. Throughput: one block, and word, per cycle without ``hold``. Reset: not walking.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "flush_any": In(1), "flush_slot": In(6), "flush_take": Out(1),
            "clear_any": In(1), "clear_slot": In(6), "clear_last": In(range(config.mark_words)),
            "clear_take": Out(1), "cleared": Out(1),
            "scan_any": In(1), "scan_slot": In(6), "drop_scan": In(1),
            "hold": In(1),
            "walking": Out(1), "op": Out(BlockOp), "slot": Out(6), "number": Out(config.walk_bits),
        })  # fmt: skip
        self._last_block = config.blocks - 1

    def elaborate(self, platform: Any) -> Module:
        """Idle: take a flush, else a clear, else a scan. Walking: count to the last number."""
        m = Module()
        last, last_number = Signal(), Signal.like(self.number)
        scan = Mux(self.drop_scan, BlockOp.NONE, BlockOp.SCAN)
        m.d.comb += [
            self.flush_take.eq(~self.walking & self.flush_any),
            self.clear_take.eq(~self.walking & ~self.flush_any & self.clear_any),
            last.eq(self.walking & ~self.hold & (self.number == last_number)),
            self.cleared.eq(last & (self.op == BlockOp.CLEAR)),
        ]
        with m.If(self.walking):
            with m.If(last):
                m.d.sync += [self.walking.eq(0), self.number.eq(0)]
            with m.Elif(~self.hold):
                m.d.sync += self.number.eq(self.number + 1)
            with m.If(self.op == BlockOp.SCAN):
                m.d.sync += self.op.eq(scan)
        with m.Else():
            m.d.sync += self.walking.eq(self.flush_any | self.clear_any | self.scan_any)
            with m.If(self.flush_any | self.clear_any | self.scan_any):
                m.d.sync += last_number.eq(self._last_block)
            with m.If(self.clear_take & (self.clear_last > self._last_block)):
                m.d.sync += last_number.eq(self.clear_last)
            with m.If(self.flush_any):
                m.d.sync += [self.op.eq(BlockOp.FLUSH), self.slot.eq(self.flush_slot)]
            with m.Elif(self.clear_any):
                m.d.sync += [self.op.eq(BlockOp.CLEAR), self.slot.eq(self.clear_slot)]
            with m.Elif(self.scan_any):
                m.d.sync += [self.op.eq(scan), self.slot.eq(self.scan_slot)]
        return m
