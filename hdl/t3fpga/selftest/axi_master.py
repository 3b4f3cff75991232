"""Register accesses as AXI4-Lite transfers."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from t3hdl.interface.signatures import AXI

from .sequencer import BusRequest


class AxiMaster(wiring.Component):
    """One access at a time: the addresses and data of a write go together, an answer is taken at once.

    Members
    -------
    request : In(stream(BusRequest)), response_valid, response_error, response_data : Out : an access, and its answer.
    axi_* : an AXI4-Lite manager.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "request": In(stream.Signature(BusRequest)),
                "response_valid": Out(1),
                "response_error": Out(1),
                "response_data": Out(64),
                **{name: member.flip() for name, member in AXI.items()},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The valids are registers; what they go with comes from the request, which is held until the answer."""
        m = Module()
        request = self.request.payload
        m.d.comb += [
            self.axi_awaddr.eq(request.address),
            self.axi_araddr.eq(request.address),
            self.axi_wdata.eq(request.data),
            self.axi_wstrb.eq(0xFF),
            self.axi_bready.eq(1),
            self.axi_rready.eq(1),
        ]
        m.d.sync += [
            self.response_valid.eq(self.axi_bvalid | self.axi_rvalid),
            self.response_error.eq((self.axi_bvalid & self.axi_bresp.any()) | (self.axi_rvalid & self.axi_rresp.any())),
            self.response_data.eq(self.axi_rdata),
        ]
        for name in ("aw", "w", "ar"):
            valid, ready = getattr(self, f"axi_{name}valid"), getattr(self, f"axi_{name}ready")
            with m.If(ready):
                m.d.sync += valid.eq(0)
        with m.If(self.request.valid & self.request.ready):
            m.d.sync += [
                self.axi_awvalid.eq(request.write),
                self.axi_wvalid.eq(request.write),
                self.axi_arvalid.eq(~request.write),
            ]
        m.d.comb += self.request.ready.eq(1)
        return m
