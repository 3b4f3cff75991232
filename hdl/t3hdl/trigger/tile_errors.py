"""What software did wrong with tiles: one that was complete twice, a chunk with more of them than there are marks."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..interface.layouts import TileTwice


class TileErrors(wiring.Component):
    """The registers TILE_TWICE and ERRORS.too_large.

    Members
    -------
    twice, tile : In : pulse; this tile was complete before. Its ``valid`` means nothing.
    refused : In(1) : pulse; a chunk was too large.
    tile_twice : Out(TileTwice) : the first one.
    too_large : Out(1) : sticky.

    Latency: 1. Throughput: one of each pulse per cycle. Reset: 0.
    """

    def __init__(self) -> None:
        super().__init__({
            "twice": In(1), "tile": In(TileTwice), "refused": In(1),
            "tile_twice": Out(TileTwice), "too_large": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """The first tile stays."""
        m = Module()
        with m.If(self.twice & ~self.tile_twice.valid):
            m.d.sync += [self.tile_twice.eq(self.tile), self.tile_twice.valid.eq(1)]
        with m.If(self.refused):
            m.d.sync += self.too_large.eq(1)
        return m
