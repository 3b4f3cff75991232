"""What the tracker says about damaged bits: two sticky flags, and the slots whose counts are lost."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import index_of, lowest_bit
from ..config import T3Config

Poison = data.StructLayout({"valid": 1, "slot": 6})
"""A pulse: the count of this slot can no longer be trusted."""


class TrackerFaults(wiring.Component):
    """Collects faults of all banks and registers; names the slots concerned one after the other.

    Parameters
    ----------
    config : gives ``tracker_banks`` and ``chunk_window``.

    Members
    -------
    met : In(Poison).array(banks + 1) : pulses; something damaged was met while counting for this slot.
    damaged : In(chunk_window) : slots whose registers are damaged.
    lost : In(1) : some register is damaged that may concern any slot.
    corrected, uncorrectable : In(1) : something was put right, or could not be, in this cycle.
    loading : In(chunk_window) : slots that get a new chunk in this cycle; what is known of the old one is forgotten.
    ever_corrected, ever_uncorrectable : Out(1) : sticky.
    poison_valid, poison_slot : Out : pulse; the lowest of the slots that are still to be named.
    busy : Out(1) : the next cycle changes something.

    Latency: 1. Throughput: one slot per cycle. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        window = config.chunk_window
        super().__init__({
            "met": In(Poison).array(config.tracker_banks + 1), "damaged": In(window), "lost": In(1),
            "corrected": In(1), "uncorrectable": In(1), "loading": In(window),
            "ever_corrected": Out(1), "ever_uncorrectable": Out(1),
            "poison_valid": Out(1), "poison_slot": Out(6), "busy": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A bit per slot that is still to be named. Damaged registers are met once, when they become so."""
        m = Module()
        pending, named, before = Signal.like(self.damaged), Signal.like(self.damaged), Signal.like(self.damaged)
        arriving = (self.damaged & ~before) | self.lost.replicate(len(before))
        for met in self.met:
            arriving |= Mux(met.valid, 1 << met.slot, 0)[: len(pending)]
        worse = self.uncorrectable | self.damaged.any() | self.lost
        m.d.comb += [
            named.eq(lowest_bit(pending)),
            self.poison_valid.eq(pending.any()),
            self.poison_slot.eq(index_of(named)),
            self.busy.eq(
                pending.any() | (self.damaged != before) | self.lost
                | (self.corrected & ~self.ever_corrected) | (worse & ~self.ever_uncorrectable)
            ),
        ]  # fmt: skip
        m.d.sync += [
            before.eq(self.damaged),
            pending.eq(((pending & ~named) | arriving) & ~self.loading),
            self.ever_corrected.eq(self.ever_corrected | self.corrected),
            self.ever_uncorrectable.eq(self.ever_uncorrectable | worse),
        ]
        return m
