"""How many ways of a tracker set each context may use."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.broadcast import written
from ..common.parity import write_with_parity
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import ConfigWrite

_AFTER_RESET = regs.RESET[regs.QUOTA]["ways"]


class WayQuotas(wiring.Component):
    """QUOTA.ways of every context. They outlive a disarm.

    Parameters
    ----------
    config : gives ``contexts`` and ``protect``.

    Members
    -------
    config_valid, config : In : configuration writes.
    ways : Out(5).array(16) : of each context; 16 (no limit) for those that do not exist, 0 for one that is damaged.
    damaged : Out(1) : a parity bit is wrong.

    Latency: a register written at t is visible at t+1. Reset: 16.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite), "ways": Out(5).array(16), "damaged": Out(1),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """One register per context."""
        m = Module()
        sound = []
        source = data.View(regs.Quota, self.config.data[: regs.Quota.size])
        for c, ways in enumerate(self.ways):
            if c >= self._parameters.contexts:
                m.d.comb += ways.eq(_AFTER_RESET)
                continue
            register = Signal(5, name=f"ways_{c}", init=_AFTER_RESET)
            write = written(self.config_valid, self.config, regs.QUOTA + 8 * c)
            good = write_with_parity(m, register, write=write, value=source.ways, protect=self._parameters.protect)
            m.d.comb += ways.eq(Mux(good, register, 0))
            sound.append(good)
        m.d.comb += self.damaged.eq(~Cat(sound).all())
        return m
