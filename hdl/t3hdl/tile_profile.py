"""The geometry profile: how many lines a wavefront's tile has."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from . import register_map as regs
from .config import T3Config
from .layouts import ConfigWrite

_TILES = 64


def profile_name(token: Any) -> Value:
    """The name under which the profile knows the tile of a token: bottom, right, wf."""
    return Cat(token.wf, token.right, token.bottom)


class TileProfile(wiring.Component):
    """The PROFILE registers, as a memory and one bit per register: written since reset. They outlive a disarm.

    Parameters
    ----------
    config : gives the counter width and the number of lookups (one per tracker bank).

    Members
    -------
    config_valid, config : In : configuration writes.
    name : In(6).array(banks) : :func:`profile_name` of a tile.
    read : In(1).array(banks) : fetches its lines.
    lines : Out.array(banks) : in the next cycle, and until the next read; in ``tile_count_bits`` bits.

    Latency: 1; a register written at t is seen by a read at t+1. Throughput: one read per bank and cycle. Reset: every
    register is 0, no tile exists.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite),
            "name": In(6).array(config.tracker_banks), "read": In(1).array(config.tracker_banks),
            "lines": Out(config.tile_count_bits).array(config.tracker_banks),
        })  # fmt: skip
        self._width = config.tile_count_bits

    def elaborate(self, platform: Any) -> Module:
        """The registers lie at addresses of eight bytes each in an aligned block."""
        m = Module()
        m.submodules.table = table = memory.Memory(shape=self._width, depth=_TILES, init=[])
        write, written = table.write_port(), Signal(_TILES)
        block = (8 * _TILES).bit_length() - 1
        m.d.comb += [
            write.addr.eq(self.config.address[3:block]),
            write.data.eq(self.config.data),
            write.en.eq(self.config_valid & (self.config.address[block:] == regs.PROFILE >> block)),
        ]
        with m.If(write.en):
            m.d.sync += written.eq(written | (1 << write.addr))
        for b, (name, lines) in enumerate(zip(self.name, self.lines, strict=True)):
            found, known = table.read_port(), Signal(name=f"known_{b}")
            m.d.comb += [
                found.addr.eq(name),
                found.en.eq(self.read[b]),
                lines.eq(Mux(known, found.data, 0)),
            ]
            with m.If(self.read[b]):
                m.d.sync += known.eq(written.bit_select(name, 1))
        return m
