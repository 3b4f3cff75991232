"""Error reporting of the tracker: two sticky flags, and the slots whose counts are invalid."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import lowest_bit, one_hot_index
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
    slot_error : In(Poison).array(banks + 1) : pulses; an uncorrectable error while counting for this slot.
    damaged : In(chunk_window) : slots whose registers are damaged.
    lost : In(1) : some register is damaged that may concern any slot.
    corrected, uncorrectable : In(1) : an error was corrected, or was uncorrectable, in this cycle.
    loading : In(chunk_window) : slots that get a new chunk in this cycle; pending errors of the old one are dropped.
    corrected_sticky, uncorrectable_sticky : Out(1) : sticky.
    poison_valid, poison_slot : Out : pulse; the lowest of the slots that are still to be named.
    busy : Out(1) : the next cycle changes something.

    Latency: 1. Throughput: one slot per cycle. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        window = config.chunk_window
        super().__init__({
            "slot_error": In(Poison).array(config.tracker_banks + 1), "damaged": In(window), "lost": In(1),
            "corrected": In(1), "uncorrectable": In(1), "loading": In(window),
            "corrected_sticky": Out(1), "uncorrectable_sticky": Out(1),
            "poison_valid": Out(1), "poison_slot": Out(6), "busy": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A bit per slot that is still to be named. A damaged register is reported once, at its rising edge."""
        m = Module()
        pending, reported, damaged_before = (
            Signal.like(self.damaged),
            Signal.like(self.damaged),
            Signal.like(self.damaged),
        )
        new_errors = (self.damaged & ~damaged_before) | self.lost.replicate(len(damaged_before))
        for slot_error in self.slot_error:
            new_errors |= Mux(slot_error.valid, 1 << slot_error.slot, 0)[: len(pending)]
        new_uncorrectable = self.uncorrectable | self.damaged.any() | self.lost
        m.d.comb += [
            reported.eq(lowest_bit(pending)),
            self.poison_valid.eq(pending.any()),
            self.poison_slot.eq(one_hot_index(reported)),
            self.busy.eq(
                pending.any()
                | (self.damaged != damaged_before)
                | self.lost
                | (self.corrected & ~self.corrected_sticky)
                | (new_uncorrectable & ~self.uncorrectable_sticky)
            ),
        ]
        m.d.sync += [
            damaged_before.eq(self.damaged),
            pending.eq(((pending & ~reported) | new_errors) & ~self.loading),
            self.corrected_sticky.eq(self.corrected_sticky | self.corrected),
            self.uncorrectable_sticky.eq(self.uncorrectable_sticky | new_uncorrectable),
        ]
        return m
