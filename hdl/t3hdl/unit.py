"""The top: the T3 hardware of one GPU with AXI4-Lite."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring

from .config import T3Config
from .core import T3Core
from .interface.signatures import AXI, BUS, core_signature, unit_signature
from .registers.axi import AxiLitePort


class T3Unit(wiring.Component):
    """:class:`~t3hdl.core.T3Core` behind :class:`~t3hdl.registers.axi.AxiLitePort`.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    axi_* : the AXI4-Lite subordinate, 64-bit data, 16-bit addresses.
    everything else : as in :class:`~t3hdl.core.T3Core`.

    Latency: ``latency`` cycles from an update's transfer on ``dram`` to the command that it triggers. Throughput: one
    request per slice and cycle. Reset: ``init_done`` when the tracker has written its tables.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(unit_signature(config))
        self._core = T3Core(config=config)
        self._axi = AxiLitePort(config=config)
        self._shared = [name for name in core_signature(config).members if name in self.signature.members]

    @property
    def latency(self) -> int:
        """Cycles from the last counted transfer on ``dram`` to its command, everything empty (count_on = accepted)."""
        return self._core.latency

    def elaborate(self, platform: Any) -> Module:
        """Wires; ``idle`` also needs that no request or answer is between the two."""
        m = Module()
        m.submodules.core = core = self._core
        m.submodules.axi = axi = self._axi
        for name in self._shared:
            if name not in ("idle", "wake_at"):
                self._connect(m, getattr(self, name), getattr(core, name), self.signature.members[name])
        for name, member in AXI.items():
            self._connect(m, getattr(self, name), getattr(axi, name), member)
        for name, member in BUS.items():
            self._connect(m, getattr(core, name), getattr(axi, name), member)
        m.d.comb += [
            self.idle.eq(core.idle & axi.idle & ~axi.bus_valid & ~core.response_valid),
            self.wake_at.eq(core.wake_at),
        ]
        return m

    def _connect(self, m: Module, outer: Any, inner: Any, member: wiring.Member) -> None:
        """Two ports of one member of a signature, an array of them, or a stream."""
        if member.dimensions:
            for each_outer, each_inner in zip(outer, inner, strict=True):
                self._connect_one(m, each_outer, each_inner, member)
        else:
            self._connect_one(m, outer, inner, member)

    def _connect_one(self, m: Module, outer: Any, inner: Any, member: wiring.Member) -> None:
        if member.is_signature:
            ends = (wiring.flipped(outer), inner)
            wiring.connect(m, *ends)
        elif member.flow == wiring.In:
            m.d.comb += inner.eq(outer)
        else:
            m.d.comb += outer.eq(inner)
