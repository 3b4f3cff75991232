"""Which wavefront tiles of the live chunks were complete: a mark for each, so that none counts twice."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.ram import Ram
from ..config import T3Config

_FOUND_OF = 16
"""Bits of a word whose mark is looked for before a register; the registers of a word are ORed behind it."""


def stage_layout(config: T3Config) -> data.StructLayout:
    """An operation in stage A or B: what it is, the row of the table, and a word in which the tile's bit alone is 1."""
    bits = config.word_tile_bits + config.wavefront_bits
    return data.StructLayout({"tile": 1, "clear": 1, "row": range(config.mark_words), "mark": 1 << bits})


class TileMarks(wiring.Component):
    """The marks of all slots, beside the block pipeline: read in stage A, judged and set in B, reported in C.

    A slot has a share of the words of its own, whatever is in it, so the marks of two chunks never meet. A workgroup
    tile's place in the share is its column in the chunk, then its row.

    Parameters
    ----------
    config : gives ``chunk_window``, ``tile_marks``, ``wavefronts`` and ``protect``.

    Members
    -------
    halvings : In(3) : TILE_MARKS; more than there are slots to halve means one slot.
    tile, clear, slot : In : the operation in stage A sets a mark, clears a word, of this slot.
    row, col, wf, rows_log : In : the tile's row and column in the chunk, its wavefront, bits of a row in the chunk.
    word : In : number of the word to be cleared, modulo those of the share.
    marked : Out(1) : the tile in stage C had its mark already.
    corrected, uncorrectable : Out(1) : of the word of the tile in stage C; with ``uncorrectable`` its slot's marks are
        lost, and ``marked`` is 0.

    Latency: 2 cycles from stage A to ``marked``. Throughput: one tile or word per cycle; a tile sees the marks of those
    before it. Reset: no operation; the marks are undefined until they are cleared.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._slot_bits, self._wavefront_bits = config.slot_bits, config.wavefront_bits
        self._tile_bits, self._least = config.word_tile_bits, config.share_bits - config.word_tile_bits
        self._depth, self._protect, self._stage = config.mark_words, config.protect, stage_layout(config)
        super().__init__({
            "halvings": In(3), "tile": In(1), "clear": In(1), "slot": In(6),
            "row": In(12), "col": In(12), "wf": In(4), "rows_log": In(4), "word": In(range(self._depth)),
            "marked": Out(1), "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A: row of the table, bit of the word, read; B: the word is written back; C: what was found.

        What B writes is kept for the operation behind it, if that is of the same row. The word comes late, out of a
        large memory, and has as little behind it as can be: the bit is there beside it as a mask, the two words are
        looked at before one of them is chosen, and what is found in it is put together in stage C.
        In a cycle of a disarm the operation in B still writes: marks are cleared before they are used again.
        """
        m = Module()
        bits = self._tile_bits + self._wavefront_bits
        a, b = (Signal(self._stage, name=f"stage_{name}") for name in "ab")
        m.submodules.words = words = Ram(1 << bits, depth=self._depth, protect=self._protect)
        again, written = Signal(name="again"), Signal(1 << bits, name="written")
        place = ((self.col << self.rows_log) | self.row)[: self._tile_bits + len(self.word)]
        bit = Cat(place[: self._tile_bits], self.wf[: self._wavefront_bits])
        m.d.comb += [
            a.tile.eq(self.tile), a.clear.eq(self.clear), a.mark.eq(Const(1) << bit),
            a.row.eq(self._row(m, Mux(self.clear, self.word, place[self._tile_bits :]))),
            words.read.eq(a.tile), words.read_row.eq(a.row),
            words.write.eq(b.tile | b.clear), words.write_row.eq(b.row),
            words.write_data.eq(Mux(b.clear, 0, Mux(again, written, words.data) | b.mark)),
        ]  # fmt: skip
        in_row, in_written = words.data & b.mark, written & b.mark
        found = Signal((len(in_row) + _FOUND_OF - 1) // _FOUND_OF, name="found")
        found_written = Signal(name="found_written")
        m.d.comb += self.marked.eq((found.any() | found_written) & ~self.uncorrectable)
        m.d.sync += [
            b.tile.eq(a.tile),
            b.clear.eq(a.clear),
            found.eq(Cat(b.tile & ~again & in_row[k * _FOUND_OF :][:_FOUND_OF].any() for k in range(len(found)))),
            found_written.eq(b.tile & again & in_written.any()),
            self.corrected.eq(b.tile & ~again & words.corrected),
            self.uncorrectable.eq(b.tile & ~again & words.uncorrectable),
        ]
        with m.If(a.tile | a.clear):
            m.d.sync += [
                b.row.eq(a.row), b.mark.eq(a.mark),
                again.eq(words.write & (b.row == a.row)), written.eq(words.write_data),
            ]  # fmt: skip
        return m

    def _row(self, m: Module, word: Value) -> Signal:
        """Row of word number ``word`` of the slot's share: the slot's number above it, with fewer bits the larger the
        share is."""
        row = Signal(range(self._depth), name="row_in_table")
        with m.Switch(self.halvings):
            for halvings in range(self._slot_bits):
                with m.Case(halvings):
                    m.d.comb += row.eq(Cat(word[: self._least + halvings], self.slot[: self._slot_bits - halvings]))
            with m.Default():
                m.d.comb += row.eq(word)
        return row


def usable_slots(config: T3Config, halvings: Value) -> Value:
    """A bit per slot of the chunk window: whether it has a share of the marks, and may hold a chunk."""
    window, slots = config.chunk_window, 1 << config.slot_bits
    usable = Const((1 << max(1, slots >> config.slot_bits)) - 1, window)
    for count in reversed(range(config.slot_bits)):
        usable = Mux(halvings == count, (1 << min(window, slots >> count)) - 1, usable)
    return usable
