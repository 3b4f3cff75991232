"""The geometry profile: how many lines a wavefront's tile has."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from . import register_map as regs
from .config import T3Config
from .layouts import ConfigWrite

_CLASSES = 4
_WAVEFRONTS = 16


class TileProfile(wiring.Component):
    """The PROFILE registers. They outlive a disarm.

    Parameters
    ----------
    config : gives wavefronts, counter width and the number of lookups (one per tracker bank).

    Members
    -------
    config_valid, config : In : configuration writes.
    name : In(6).array(banks) : bottom, right and wf of a tile, bottom first (most significant).
    lines : Out.array(banks) : its lines, in ``tile_count_bits`` bits; 0 for a wavefront that does not exist.

    Latency: 0; a register written at t is visible at t+1. Reset: 0, no tile exists.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite),
            "name": In(6).array(config.tracker_banks),
            "lines": Out(config.tile_count_bits).array(config.tracker_banks),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """One register per edge class and wavefront, one multiplexer per bank."""
        m = Module()
        width = self._parameters.tile_count_bits
        entries = []
        for edge in range(_CLASSES):
            for wf in range(_WAVEFRONTS):
                if wf >= self._parameters.wavefronts:
                    entries.append(Const(0, width))
                    continue
                entry = Signal(width, name=f"lines_{edge}_{wf}")
                address = regs.PROFILE + 8 * (edge * _WAVEFRONTS + wf)
                with m.If(self.config_valid & (self.config.address == address)):
                    m.d.sync += entry.eq(self.config.data)
                entries.append(entry)
        for name, lines in zip(self.name, self.lines, strict=True):
            m.d.comb += lines.eq(Array(entries)[name])
        return m


def profile_name(token: Any) -> Any:
    """The name under which :class:`TileProfile` knows the tile of a token."""
    return Cat(token.wf, token.right, token.bottom)
