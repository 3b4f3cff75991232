"""AXI4-Lite in front of the registers."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring

from ..config import T3Config
from ..interface.layouts import NEVER
from ..interface.signatures import axi_signature

OKAY, SLVERR = 0, 2
"""Responses that this subordinate gives."""

_Address = data.StructLayout({"address": 16, "privileged": 1})
_Data = data.StructLayout({"data": 64, "strobe": 8})


class AxiLitePort(wiring.Component):
    """An AXI4-Lite subordinate of 64 bits, one access at a time, reads and writes in turns when both wait.

    A write whose WSTRB is not all ones gets SLVERR and does not reach the registers. ``bus_privileged`` is AxPROT[0].

    Parameters
    ----------
    config : the hardware configuration (nothing of it matters here).

    Members
    -------
    axi_* : the AXI4-Lite subordinate; every output is a register.
    bus_*, response_* : the bus of :class:`~t3hdl.registers.registers.ControlRegisters`, from the requester's side.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is ``NEVER``.

    Latency: ``latency`` cycles from the last of address and data to the response. Throughput: one access per 4 cycles.
    Reset: nothing is held.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(axi_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from the transfer that completes a request to its response: choose, bus, answer, response."""
        return 4

    def elaborate(self, platform: Any) -> Module:
        """One register per channel; CHOOSE, then REQUEST and WAIT, or a refusal at once."""
        m = Module()
        aw, w, ar = Signal(_Address), Signal(_Data), Signal(_Address)
        aw_full, w_full, ar_full = Signal(), Signal(), Signal()
        read_next, take_write, take_read = Signal(), Signal(), Signal()
        self._receive(m, aw, aw_full, self.axi_awvalid, (self.axi_awaddr, self.axi_awprot[0]), take_write)
        self._receive(m, w, w_full, self.axi_wvalid, (self.axi_wdata, self.axi_wstrb), take_write)
        self._receive(m, ar, ar_full, self.axi_arvalid, (self.axi_araddr, self.axi_arprot[0]), take_read)
        m.d.comb += [self.axi_awready.eq(~aw_full), self.axi_wready.eq(~w_full), self.axi_arready.eq(~ar_full)]
        with m.If(self.axi_bready):
            m.d.sync += self.axi_bvalid.eq(0)
        with m.If(self.axi_rready):
            m.d.sync += self.axi_rvalid.eq(0)

        write_there, read_there = aw_full & w_full & ~self.axi_bvalid, ar_full & ~self.axi_rvalid

        def grant_request(granted: Any) -> list[Any]:
            """Chosen before the request, as what the registers make of an address takes long."""
            return [self.bus_address.eq(granted.address), self.bus_privileged.eq(granted.privileged)]

        m.d.comb += [
            self.bus_data.eq(w.data),
            self.wake_at.eq(NEVER),
        ]
        with m.FSM(name="access"):
            with m.State("CHOOSE"):
                m.d.comb += self.idle.eq(~write_there & ~read_there)
                with m.If(read_there & (read_next | ~write_there)):
                    m.d.sync += [self.bus_write.eq(0), read_next.eq(0), self.bus_valid.eq(1), *grant_request(ar)]
                    m.next = "REQUEST"
                with m.Elif(write_there & w.strobe.all()):
                    m.d.sync += [self.bus_write.eq(1), read_next.eq(1), self.bus_valid.eq(1), *grant_request(aw)]
                    m.next = "REQUEST"
                with m.Elif(write_there):
                    m.d.comb += take_write.eq(1)
                    m.d.sync += [self.axi_bvalid.eq(1), self.axi_bresp.eq(SLVERR), read_next.eq(1)]
            with m.State("REQUEST"), m.If(self.bus_ready):
                m.d.comb += [take_write.eq(self.bus_write), take_read.eq(~self.bus_write)]
                m.d.sync += self.bus_valid.eq(0)
                m.next = "WAIT"
            # A register file that is ready again without an answer has lost it by a wrong bit.
            with m.State("WAIT"), m.If(self.response_valid | self.bus_ready):
                good = self.response_valid & ~self.response_error
                answer = Mux(good, OKAY, SLVERR)
                with m.If(self.bus_write):
                    m.d.sync += [self.axi_bvalid.eq(1), self.axi_bresp.eq(answer)]
                with m.Else():
                    m.d.sync += [
                        self.axi_rvalid.eq(1),
                        self.axi_rresp.eq(answer),
                        self.axi_rdata.eq(Mux(good, self.response_data, 0)),
                    ]
                m.next = "CHOOSE"
        return m

    def _receive(self, m: Module, register: Any, full: Signal, valid: Any, fields: tuple[Any, ...], take: Any) -> None:
        """A channel's register: takes an item while it is empty, and is empty again after ``take``."""
        with m.If(take):
            m.d.sync += full.eq(0)
        with m.If(valid & ~full):
            m.d.sync += full.eq(1)
            m.d.sync += [register[name].eq(value) for name, value in zip(register.shape().members, fields, strict=True)]
