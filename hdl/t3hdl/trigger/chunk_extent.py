"""How many tile marks the chunk takes that is being made live, and whether its slot has so many."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import T3Config
from ..interface import register_map as regs


class ChunkExtent(wiring.Component):
    """From a chunk's rectangle to the place of its last tile in the share of its slot.

    Parameters
    ----------
    config : gives ``chunk_window``, ``tile_marks``, ``wavefronts``.

    Members
    -------
    take, place : In : the rectangle; what it is in the last two cycles of ``take`` counts.
    halvings : In(3) : TILE_MARKS.
    rows_log : Out(4) : bits of a tile's row in the chunk.
    last_word : Out : number of the last word of marks that the chunk has; 0 for one that is too large.
    too_large : Out(1) : the chunk has more tiles than its slot has marks.

    Latency: 2 cycles of ``take``; the outputs then stay. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "take": In(1), "place": In(regs.Place), "halvings": In(3),
            "rows_log": Out(4), "last_word": Out(range(config.mark_words)), "too_large": Out(1),
        })  # fmt: skip
        self._slot_bits, self._share_bits, self._tile_bits = config.slot_bits, config.share_bits, config.word_tile_bits

    def elaborate(self, platform: Any) -> Module:
        """The bits of the last row, then the last column above them."""
        m = Module()
        last_row, last_col, last = Signal(12), Signal(12), Signal(24)
        beyond = Signal()
        m.d.comb += [
            last_row.eq(self.place.row1 - self.place.row0 - 1),
            last_col.eq(self.place.col1 - self.place.col0 - 1),
            last.eq((last_col << self.rows_log) | last_row),
        ]
        with m.Switch(self.halvings):
            for halvings in range(self._slot_bits):
                with m.Case(halvings):
                    m.d.comb += beyond.eq(last[self._share_bits + halvings :].any())
            with m.Default():
                m.d.comb += beyond.eq(last[self._share_bits + self._slot_bits :].any())
        rows_log = Signal(4)
        for bit in range(12):
            with m.If(last_row[bit]):
                m.d.comb += rows_log.eq(bit + 1)
        with m.If(self.take):
            m.d.sync += [
                self.rows_log.eq(rows_log),
                self.last_word.eq(Mux(beyond, 0, last >> self._tile_bits)),
                self.too_large.eq(beyond),
            ]
        return m
