"""Status bits of the descriptors: done and poisoned."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import chosen, lowest_bit
from ..config import T3Config


class ChunkProgress(wiring.Component):
    """A bit per descriptor and property.

    Parameters
    ----------
    config : gives ``chunk_window``, ``protect``.

    Members
    -------
    arm, first, descriptors : In : pulse; descriptors [first, first + descriptors) begin anew.
    newly_done : In(chunk_window) : pulse; the chunk in this slot is done. One bit at most.
    newly_poisoned : In(chunk_window) : pulse; slots that become poisoned. One bit at most without ``protect``.
    cancel, cancelled : In(2), In(6).array(2) : pulses; these descriptors are poisoned, whatever else happens.
    aborted : In(chunk_window) : pulse; what the other pulses say of these slots does not count.
    numbers : In(6).array(chunk_window) : the descriptor of each slot.
    chunks_done : Out(7) : chunks done, modulo 128.
    done_mask, poisoned : Out(64) : descriptors that are done, are poisoned.
    busy : Out(1) : poisoned chunks of before are not yet in ``poisoned``: it takes one per cycle, lowest slot first.

    Latency: 1. Throughput: one of each pulse per cycle. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "arm": In(1), "first": In(6), "descriptors": In(7),
            "newly_done": In(config.chunk_window), "newly_poisoned": In(config.chunk_window),
            "aborted": In(config.chunk_window), "cancel": In(2), "cancelled": In(6).array(2),
            "numbers": In(6).array(config.chunk_window),
            "chunks_done": Out(7), "done_mask": Out(64), "poisoned": Out(64), "busy": Out(1),
        })  # fmt: skip
        self._protect = config.protect

    def elaborate(self, platform: Any) -> Module:
        """What is kept by an arm, and the bits of this cycle."""
        m = Module()
        window, unaffected = Signal(64), Signal(64)
        m.d.comb += [
            window.eq((~0 << self.first) & ~(~0 << (self.first + self.descriptors))),
            unaffected.eq(~(window & self.arm.replicate(64))),
        ]
        reported, counts = self._reported(m)
        # A choice, not a shifted pulse: without a pulse the number may be unknown, and in Verilog the sum then is, too.
        cancelled = [
            Mux(pulse, (1 << number)[:64], 0) for pulse, number in zip(self.cancel, self.cancelled, strict=True)
        ]
        with m.If((self.newly_done & ~self.aborted).any()):  # arrives late: the sum is computed before it
            m.d.sync += self.chunks_done.eq(self.chunks_done + 1)
        m.d.sync += [
            self.done_mask.eq((self.done_mask & unaffected) | self._bit_of(self.newly_done, ~self.aborted)),
            self.poisoned.eq(
                (self.poisoned & unaffected) | self._bit_of(reported, counts) | cancelled[0] | cancelled[1]
            ),
        ]
        return m

    def _bit_of(self, slot: Value, counts: Value) -> Value:
        """The bit of the descriptor in the one slot of a mask; 0 if the mask is empty, or the slot does not count.

        Whether it counts comes late, and is no part of the way to the number. The mask itself picks the number: to the
        slot's number and back is a quarter of a cycle.
        """
        bit = (1 << chosen(slot, self.numbers))[:64]
        return bit & (slot & counts).any().replicate(64)

    def _reported(self, m: Module) -> tuple[Value, Value]:
        """The poisoned chunk whose bit comes next, but for an abort, one-hot; poisoned chunks that count.

        Only an error found within can poison several at a time.
        """
        if not self._protect:
            return self.newly_poisoned, ~self.aborted
        left = Signal(len(self.newly_poisoned))
        to_report, counts = left | self.newly_poisoned, left | (self.newly_poisoned & ~self.aborted)
        reported = lowest_bit(to_report)
        m.d.comb += self.busy.eq(left.any())
        m.d.sync += left.eq(counts & ~reported)
        return reported, counts
