"""Sticky status: interrupts, refused writes, exception flags of the NMC units."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interface import register_map as regs
from ..interface.layouts import Refusal

_RISING = ("watchdog", "corrected", "uncorrectable", "tile_twice")
_MASKS = ("error", "complete")
_NMC_FLAGS = 5
_COUNT_MAX = (1 << 32) - 1


class EventRecord(wiring.Component):
    """Sticky bits that software clears by writing ones; an event of the same cycle wins.

    Parameters
    ----------
    contexts : number of contexts.

    Members
    -------
    watchdog, corrected, uncorrectable, tile_twice : In(1) : levels; an interrupt when one rises.
    error, complete : In(4), In(contexts) : levels; an interrupt when any of their bits rises.
    aborting : In(contexts) : levels; an interrupt when any of its bits falls.
    locked_write : In(1) : pulse, an interrupt.
    violations, violation : In : refused writes to other contexts' ranges in this cycle, and the first of them.
    stale_updates, stale_update : In : refused updates of no live epoch in this cycle, and the first of them.
    nmc_flags : In : flags raised in this cycle.
    damaged : In(1) : pulse; a bit of the registers or of an NMC unit is wrong.
    clear_irq, clear_flags : In : ones clear the bits of ``irq``, ``flags``.
    clear_refusals : In(1) : forgets what was refused, whatever else happens, and ``damage`` of the cycles before.
    busy : Out(1) : there were refused writes in the last cycle; as many in this one count again.
    damage, news : Out(1) : sticky, ``damaged`` was given; and in this cycle it becomes an interrupt.
    irq, flags : Out : the registers IRQ_STATUS and NMC_FLAGS.
    first_violation, violation_count : Out : the registers VIOLATION and VIOLATIONS.
    first_stale, stale_count : Out : the registers STALE_UPDATE and STALE_UPDATES.

    Latency: 1. Reset: 0; a level that is 1 in the first cycle after reset has risen.
    """

    def __init__(self, *, contexts: int) -> None:
        super().__init__({
            **{name: In(1) for name in _RISING}, "error": In(4), "complete": In(contexts), "aborting": In(contexts),
            "locked_write": In(1), "nmc_flags": In(_NMC_FLAGS), "damaged": In(1),
            "violations": In(8), "violation": In(Refusal), "stale_updates": In(8), "stale_update": In(Refusal),
            "clear_irq": In(regs.Interrupts.size), "clear_flags": In(_NMC_FLAGS), "clear_refusals": In(1),
            "irq": Out(regs.Interrupts), "flags": Out(_NMC_FLAGS),
            "first_violation": Out(regs.RefusalRecord), "violation_count": Out(32),
            "first_stale": Out(regs.RefusalRecord), "stale_count": Out(32),
            "busy": Out(1), "damage": Out(1), "news": Out(1),
        })  # fmt: skip
        self._contexts = contexts

    def elaborate(self, platform: Any) -> Module:
        """Edges, then the sticky registers."""
        m = Module()
        event = Signal(regs.Interrupts)
        violates, stale = self.violations != 0, self.stale_updates != 0
        levels = Cat(getattr(self, name) for name in _RISING)
        before = Signal(len(levels), name="levels_before")
        m.d.sync += before.eq(levels)
        m.d.comb += [
            *(event[name].eq(bit) for name, bit in zip(_RISING, levels & ~before, strict=True)),
            *(event[name].eq(self._rising(m, getattr(self, name), name).any()) for name in _MASKS),
            event.aborted.eq(self._rising(m, ~self.aborting, "settled", init=-1).any()),
            self.news.eq(self.damage & ~before[_RISING.index("uncorrectable")]),
            event.violation.eq(violates),
            event.stale_update.eq(stale),
            event.locked_write.eq(self.locked_write),
        ]
        m.d.sync += [
            self.busy.eq(violates | stale),
            self.damage.eq((self.damage & ~self.clear_refusals) | self.damaged),
            self.irq.eq((self.irq.as_value() & ~self.clear_irq) | event.as_value()),
            self.flags.eq((self.flags & ~self.clear_flags) | self.nmc_flags),
        ]
        self._record(m, self.violations, self.violation, self.first_violation, self.violation_count)
        self._record(m, self.stale_updates, self.stale_update, self.first_stale, self.stale_count)
        return m

    def _rising(self, m: Module, level: Value, name: str, init: int = 0) -> Value:
        """The bits of ``level`` that are 1 and were not in the cycle before."""
        before = Signal(len(level), name=f"{name}_before", init=init)
        m.d.sync += before.eq(level)
        return (level & ~before)[: len(level)]

    def _record(self, m: Module, refused: Value, refusal: data.View, first: data.View, count: Value) -> None:
        """The first refused write in full, and how many there were."""
        total = Signal(33, name="total")
        m.d.comb += total.eq(count + refused)
        m.d.sync += count.eq(Mux(total[-1], _COUNT_MAX, total))
        with m.If((refused != 0) & ~first.valid):
            m.d.sync += [first[name].eq(refusal[name]) for name in Refusal.members]
            m.d.sync += first.valid.eq(1)
        with m.If(self.clear_refusals):
            m.d.sync += [first.eq(0), count.eq(0)]
