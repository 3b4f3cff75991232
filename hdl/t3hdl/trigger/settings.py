"""The registers of the trigger that outlive a disarm: quotas, shares of the tile marks, the watchdog's time limit."""

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..common.broadcast import written
from ..common.protected_register import protected_register
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import ConfigWrite

_UNLIMITED = regs.Quota.const(regs.RESET[regs.QUOTA]).as_bits()


class TriggerSettings(wiring.Component):
    """QUOTA of each context, TILE_MARKS, and WATCHDOG.

    Parameters
    ----------
    config : gives ``contexts``, ``protect``.

    Members
    -------
    config_valid, config : In : configuration writes (QUOTA, TILE_MARKS, WATCHDOG).
    quota : Out(Quota).array(contexts)
    cycles : Out(32) : WATCHDOG.
    halvings, marks_lost : Out(3), Out(1) : TILE_MARKS; pulse: it has an uncorrectable error, and is 0 from the next
        cycle on, so that what is in the table of tile marks means nothing any more.
    uncorrectable_error : Out(contexts) : pulse; the quota has an uncorrectable error, and is 0 from the next cycle on.
    corrected, uncorrectable : Out(1) : a single-bit error of a register is corrected, an error is uncorrectable.

    Latency: 1. Reset: no limits, no halving, watchdog off. A WATCHDOG register with an uncorrectable error is off.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite),
            "quota": Out(regs.Quota).array(config.contexts), "cycles": Out(32),
            "halvings": Out(3), "marks_lost": Out(1),
            "uncorrectable_error": Out(config.contexts), "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._contexts, self._protect = config.contexts, config.protect

    def elaborate(self, platform: Any) -> Module:
        """A register per address."""
        m = Module()
        watchdog = protected_register(m, 32, name="watchdog", protect=self._protect)
        marks = protected_register(m, len(self.halvings), name="tile_marks", protect=self._protect)
        quotas = [
            protected_register(m, regs.Quota, name=f"quota_{c}", protect=self._protect, init=_UNLIMITED)
            for c in range(self._contexts)
        ]
        addresses = [regs.WATCHDOG, regs.TILE_MARKS, *(regs.QUOTA + 8 * c for c in range(self._contexts))]
        registers = [watchdog, marks, *quotas]
        for address, register in zip(addresses, registers, strict=True):
            with m.If(written(self.config_valid, self.config, address)):
                m.d.comb += register.following.eq(self.config.data)
            with m.Elif(register.uncorrectable):
                m.d.comb += register.following.eq(0)
        m.d.comb += [
            *(port.eq(quota.value) for port, quota in zip(self.quota, quotas, strict=True)),
            self.cycles.eq(watchdog.value),
            self.halvings.eq(marks.value),
            self.marks_lost.eq(marks.uncorrectable),
            self.uncorrectable_error.eq(Cat(quota.uncorrectable for quota in quotas)),
            self.corrected.eq(Cat(register.corrected for register in registers).any()),
            self.uncorrectable.eq(Cat(register.uncorrectable for register in registers).any()),
        ]
        return m
