"""The register file that software sees: request and response port in, broadcast configuration writes out."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from . import register_map as regs
from .config import T3Config
from .layouts import NEVER
from .signatures import registers_signature

_RANGE_WORDS = 3
"""Registers of one range (base, limit, attributes)."""


class ControlRegisters(wiring.Component):
    """Decodes the bus, answers every request one cycle later, broadcasts good writes as ``config`` pulses.

    Latency: a request taken at t has its response, and its ``config`` pulse if it is a good write, at t+1. One
    request per two cycles. ``response_error`` and ``response_data`` mean nothing while ``response_valid`` is 0.
    Which requests are errors: docs/hardware.md, "ControlRegisters".
    """

    def __init__(self, *, config: T3Config) -> None:
        self._config = config
        super().__init__(registers_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from a request to its response and configuration write."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """Decode, judge, answer."""
        m = Module()
        address = self.bus_address
        taken = Signal()
        locked_write = Signal()
        m.d.comb += [
            self.bus_ready.eq(~self.response_valid),
            taken.eq(self.bus_valid & self.bus_ready),
            self.idle.eq(~self.response_valid),
            self.wake_at.eq(NEVER),
        ]

        # Table addresses exist as far as this configuration reaches.
        in_range, in_profile, in_descriptor = self._decode_tables(m)
        in_table = in_range | in_profile | in_descriptor
        writable = in_table | self._is_one_of(regs.CONTROL, regs.ARBITER, regs.THRESHOLDS)

        # Reads: one word of status, captured with the request.
        read_value = Signal(64)
        readable = Signal()
        with m.Switch(address):
            for register, value in self._status_words(locked_write).items():
                with m.Case(register):
                    m.d.comb += [readable.eq(1), read_value.eq(value)]

        # Rules beyond the address: tables are locked while armed, arm needs a ready unit and a legal count.
        control = data.View(regs.Control, self.bus_data[: regs.Control.size])
        locked = in_table & self.armed
        bad_count = (control.descriptors == 0) | (control.descriptors > self._config.descriptors)
        bad_arm = control.arm & (control.disarm | self.armed | ~self.init_done | bad_count)
        is_control = self._is_one_of(regs.CONTROL)
        good = Signal()
        m.d.comb += good.eq(Mux(self.bus_write, writable & ~locked & ~(is_control & bad_arm), readable))

        m.d.sync += [self.response_valid.eq(taken), self.config_valid.eq(taken & self.bus_write & good)]
        with m.If(taken):
            m.d.sync += [
                self.response_error.eq(~good),
                self.response_data.eq(Mux(self.bus_write, 0, read_value)),
                self.config.address.eq(address),
                self.config.data.eq(self.bus_data),
            ]
            with m.If(self.bus_write & locked):
                m.d.sync += locked_write.eq(1)
            with m.If(self.bus_write & good & is_control & control.disarm):
                m.d.sync += locked_write.eq(0)
        return m

    def _is_one_of(self, *addresses: int) -> Value:
        return Cat(self.bus_address == each for each in addresses).any()

    def _decode_tables(self, m: Module) -> tuple[Value, Value, Value]:
        """Whether the address is a register of a range, of the profile, of a descriptor."""
        address, config = self.bus_address, self._config
        in_range, in_profile, in_descriptor = Signal(), Signal(), Signal()
        aligned = address[:3] == 0
        range_index = address[5:7]  # four ranges at most, RANGE_STRIDE bytes each
        m.d.comb += [
            in_range.eq(
                aligned
                & (address[7:] == regs.RANGE >> 7)
                & (range_index < config.ranges)
                & (address[3:5] < _RANGE_WORDS)
            ),
            in_profile.eq(aligned & (address[9:] == regs.PROFILE >> 9) & (address[3:7] < config.wavefronts)),
            in_descriptor.eq(
                aligned
                & (address[12:] == regs.DESCRIPTOR >> 12)
                & (address[6:12] < config.descriptors)
                & (address[3:6] < regs.DESCRIPTOR_WORDS)
            ),
        ]
        return in_range, in_profile, in_descriptor

    def _status_words(self, locked_write: Value) -> dict[int, Value | int]:
        """Readable registers: address to value."""
        status = {
            "init_done": self.init_done, "armed": self.armed, "live": self.live, "chunks_done": self.chunks_done,
            "unmatched": self.unmatched, "over_count": self.over_count, "over_total": self.over_total,
            "locked_write": locked_write,
        }  # fmt: skip
        return {
            regs.ID: regs.ID_VALUE,
            regs.STATUS: Cat(status[name] for name, _ in regs.Status),
            regs.PEAK_ENTRIES: self.peak_entries,
            regs.OVERFLOWED: self.overflowed,
            regs.THRESHOLD: Cat(self.threshold, self.chosen),
        }
