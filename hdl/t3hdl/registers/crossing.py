"""An AXI4-Lite clock-domain crossing, for a host bus with a clock of its own."""

from typing import Any

from amaranth.hdl import Cat, ClockDomain, Fragment, Module, Value
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.lib import fifo, wiring

from ..common.synthesis_attributes import SYNCHRONISER
from ..interface.signatures import crossing_signature

_DEPTH = 4
"""Entries per channel: one access is under way at a time, the rest hides the latency of the synchronisers."""

_CHANNELS = {
    "aw": ("addr", "prot"),
    "w": ("data", "strb"),
    "b": ("resp",),
    "ar": ("addr", "prot"),
    "r": ("data", "resp"),
}
_TO_HOST = ("b", "r")
_SYNCHRONISERS = ("produce_cdc", "consume_cdc", "rst_cdc")
"""Those of a queue that it depends on; nothing reads the fill level, for which it has another one."""


class AxiLiteCrossing(wiring.Component):
    """One asynchronous queue per AXI4-Lite channel between the domains ``host`` and ``sync``.

    Both domains must be held in reset together for at least two cycles of the slower clock, and no host request may be
    given before both are released. Gray-coded pointers cross through two flip-flops; constrain each crossing path to
    less than one cycle of the faster clock (the SDC template names them). The flip-flops of the synchronisers have the
    attributes ``ASYNC_REG`` (Vivado), ``altera_attribute`` with SYNCHRONIZER_IDENTIFICATION (Quartus), ``keep``,
    ``preserve`` and ``syn_preserve``.

    Members
    -------
    host_axi_* : the AXI4-Lite subordinate in domain ``host``.
    axi_* : the AXI4-Lite manager in domain ``sync``, to :class:`~t3hdl.registers.axi.AxiLitePort`.
    host_clk, host_rst : In : clock and synchronous reset of domain ``host``.

    Latency: 3 cycles of the receiving clock and 1 of the sending one per channel. Throughput: one transfer per cycle of
    the slower clock, up to the queue's depth. Reset: empty.
    """

    def __init__(self) -> None:
        super().__init__(crossing_signature())

    def elaborate(self, platform: Any) -> Module:
        """Host to unit: AW, W, AR; back: B, R."""
        m = Module()
        m.domains.host = host = ClockDomain(local=True)
        m.d.comb += [host.clk.eq(self.host_clk), host.rst.eq(self.host_rst)]
        for channel, fields in _CHANNELS.items():
            backwards = channel in _TO_HOST
            source, sink = ("", "host_") if backwards else ("host_", "")
            domains = ("sync", "host") if backwards else ("host", "sync")
            sent, received = (
                Cat(getattr(self, f"{side}axi_{channel}{field}") for field in fields) for side in (source, sink)
            )
            queue = fifo.AsyncFIFOBuffered(width=len(sent), depth=_DEPTH, w_domain=domains[0], r_domain=domains[1])
            m.submodules[channel] = _marked(Fragment.get(queue, platform))
            m.d.comb += [
                queue.w_data.eq(sent),
                queue.w_en.eq(self._port(source, channel, "valid")),
                self._port(source, channel, "ready").eq(queue.w_rdy),
                received.eq(queue.r_data),
                self._port(sink, channel, "valid").eq(queue.r_rdy),
                queue.r_en.eq(self._port(sink, channel, "ready")),
            ]
        return m

    def _port(self, side: str, channel: str, name: str) -> Value:
        return getattr(self, f"{side}axi_{channel}{name}")


def _marked(queue: Fragment) -> Fragment:
    """The queue, with attributes on the flip-flops of its synchronisers."""
    for part, name, _ in queue.subfragments:
        if name in _SYNCHRONISERS:
            written = LHSMaskCollector()
            for domain, statements in part.statements.items():
                if domain != "comb":
                    written.visit_stmt(statements)
            for signal, *_ in written.chunks():
                signal.attrs.update(SYNCHRONISER)
        _marked(part)
    return queue
