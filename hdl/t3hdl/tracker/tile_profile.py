"""The geometry profile: how many lines a wavefront's tile has."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.ram import Ram
from ..common.state_parity import CHECKED
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import ConfigWrite

_TILES = 64

TileLines = data.StructLayout({"lines": 16, "corrected": 1, "uncorrectable": 1})
"""Lines of a tile; they mean nothing if ``uncorrectable``."""


def profile_name(token: Any) -> Value:
    """Profile index of a token's tile: bottom, right, wf."""
    return Cat(token.wf, token.right, token.bottom)


class TileProfile(wiring.Component):
    """The PROFILE registers, as a memory per bank and one bit per register: written since reset. They outlive a disarm.

    Parameters
    ----------
    config : gives the counter width, the number of lookups (one per tracker bank), and ``protect``.

    Members
    -------
    config_valid, config : In : configuration writes.
    name : In(6).array(banks) : :func:`profile_name` of a tile.
    read : In(1).array(banks) : fetches its lines.
    found : Out(TileLines).array(banks) : in the next cycle, and until the next read; in ``tile_count_bits`` bits.
    damaged : Out(1) : the parity of the bits per register is wrong; no lookup can be trusted.

    Latency: 1; a register written at t is seen by a read at t+1. Throughput: one read per bank and cycle. Reset: every
    register is 0, no tile exists.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite),
            "name": In(6).array(config.tracker_banks), "read": In(1).array(config.tracker_banks),
            "found": Out(TileLines).array(config.tracker_banks), "damaged": Out(1),
        })  # fmt: skip
        self._width, self._protect = config.tile_count_bits, config.protect

    def elaborate(self, platform: Any) -> Module:
        """The registers lie at addresses of eight bytes each in an aligned block."""
        m = Module()
        write, row = Signal(), Signal(range(_TILES))
        written = Signal(_TILES, attrs=dict(CHECKED))
        block = (8 * _TILES).bit_length() - 1
        m.d.comb += [
            row.eq(self.config.address[3:block]),
            write.eq(self.config_valid & (self.config.address[block:] == regs.PROFILE >> block)),
        ]
        with m.If(write):
            m.d.sync += written.eq(written | (1 << row))
        if self._protect:
            parity = Signal(attrs=dict(CHECKED))
            with m.If(write & ~written.bit_select(row, 1)):
                m.d.sync += parity.eq(~parity)
            m.d.comb += self.damaged.eq(written.xor() != parity)
        for b, (name, found) in enumerate(zip(self.name, self.found, strict=True)):
            m.submodules[f"table_{b}"] = table = Ram(self._width, depth=_TILES, protect=self._protect)
            known, damaged = Signal(name=f"known_{b}"), Signal(name=f"damaged_{b}")
            is_written = written.bit_select(name, 1)
            m.d.comb += [
                table.write.eq(write),
                table.write_row.eq(row),
                table.write_data.eq(self.config.data),
                table.read.eq(self.read[b] & is_written),
                table.read_row.eq(name),
                found.lines.eq(Mux(known, table.data, 0)),
                found.corrected.eq(known & table.corrected),
                found.uncorrectable.eq((known & table.uncorrectable) | damaged),
            ]
            with m.If(self.read[b]):
                m.d.sync += [known.eq(is_written), damaged.eq(self.damaged)]
        return m
