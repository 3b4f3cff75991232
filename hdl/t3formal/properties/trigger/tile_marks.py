"""The tile marks: a tile has one exactly if it was complete since its slot was cleared."""

from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.trigger.tile_marks import TileMarks, stage_layout

from ...prover.harness import Harness
from ...prover.memories import row_of
from ...prover.proof import Proof


def _marks(config: T3Config) -> Harness:
    """One tile of one slot is chosen, by its place in the slot's share and its wavefront, and any division of the marks
    among the slots."""
    marks = TileMarks(config=config)
    harness = Harness(marks)
    m = harness.m
    halvings = harness.chosen("division", 3)
    harness.drive(marks.halvings, halvings)
    most = config.tile_marks.bit_length() - 1
    share, words, slots = Signal(5), Signal(5), Signal(7)
    m.d.comb += [
        share.eq(config.share_bits + Mux(halvings > config.slot_bits, config.slot_bits, halvings)),
        words.eq(share - config.word_tile_bits), slots.eq(config.tile_marks >> share),
    ]  # fmt: skip
    mine, place, wf = (
        Cat(harness.chosen(name, bits), Const(0, 1))
        for name, bits in (("slot_of_interest", 6), ("place_of_interest", most), ("wavefront_of_interest", 4))
    )
    inside = (place >> share == 0) & (wf < 1 << config.wavefront_bits) & (mine < slots)

    def modulo(value: Any, log: Any) -> Any:
        return value & ((Const(1) << log) - 1)

    at = modulo((marks.col << marks.rows_log) | marks.row, share)
    same = (at == place) & (modulo(marks.wf, config.wavefront_bits) == wf)
    cleared = modulo(marks.word, words) == place >> config.word_tile_bits
    legal = ~(marks.tile | marks.clear) | (marks.slot < slots)
    harness.assume("a tile or a clear is of a slot with a share of the marks", legal & ~(marks.tile & marks.clear))
    hit, clear = Signal(name="hit"), Signal(name="hit_by_clear")
    m.d.comb += hit.eq(inside & marks.tile & (marks.slot == mine) & same)
    m.d.comb += clear.eq(inside & marks.clear & (marks.slot == mine) & cleared)
    in_b, clear_in_b = harness.past(hit), harness.past(clear)
    told = harness.past(in_b)
    model, known = Signal(name="mark_model"), Signal(name="mark_known")
    with m.If(clear_in_b):
        m.d.sync += [model.eq(0), known.eq(1)]
    with m.If(in_b):
        m.d.sync += model.eq(1)
    before, certain = harness.past(model), harness.past(known)
    row, bit = Signal(range(config.mark_words)), Signal(6)
    m.d.comb += row.eq((mine << words) | (place >> config.word_tile_bits))
    m.d.comb += bit.eq((wf << config.word_tile_bits) | modulo(place, config.word_tile_bits))
    word, there = row_of(harness, r"words\..*rows", row, name="tile marks", through=False)
    b = data.View(stage_layout(config), harness.inside["stage_b"])
    behind = harness.inside["again"] & (b.tile | b.clear) & (b.row == row)
    harness.claim("what was cleared is there", ~known | there)
    harness.claim("what was written just now is kept", ~behind | ~there | (harness.inside["written"] == word))
    harness.claim("the mark is as the model", ~(known & inside) | (word.bit_select(bit, 1) == model))
    harness.claim("a tile has a mark if it was complete since the clear", ~(told & certain) | (marks.marked == before))
    harness.cover("a tile right behind itself", told & certain & before & harness.past(told))
    harness.cover("a tile after another clear", in_b & harness.past(clear_in_b) & harness.past(model))
    return harness


_SIZES = {
    "2 slots": preset("small", chunk_window=2, tile_marks=8),
    "3 slots": preset("small", chunk_window=3, tile_marks=8, wavefronts=3),
    "2 words a slot": preset("small", chunk_window=2, tile_marks=16, wavefronts=16),
}
PROOFS = (
    Proof(
        name="tile-marks.once",
        invariants=(1, 3),
        says="A tile in stage C has its mark exactly if it was complete since its word was cleared, whatever happens "
        "to other tiles, other words and other slots; for every division of the marks among the slots.",
        harness=_marks,
        sizes=_SIZES,
        method="induction",
        depth=3,
        cover_depth=8,
    ),
)
