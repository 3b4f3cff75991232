"""Mistakes in the tile marks that proofs, or scenarios of the contract, must find."""

import pytest
from amaranth.hdl import Cat, Signal
from t3hdl.trigger.block_table import BlockTable
from t3hdl.trigger.chunk_extent import ChunkExtent
from t3hdl.trigger.tile_marks import TileMarks

from tests.contract import backends
from tests.contract.trigger import test_trigger_tile_marks as scenarios
from tests.formal.seeded_bugs import expect_failure

MARKS, IN_BLOCK_TABLE = "t3formal.properties.trigger.tile_marks.TileMarks", "t3hdl.trigger.block_table.TileMarks"
EXTENT = "t3hdl.trigger.trigger.ChunkExtent"
TOLD = "a tile has a mark if it was complete since the clear"


class _OneShare(TileMarks):
    """Seeded: all slots have the same share."""

    def _row(self, m, word):
        row = Signal.like(self.word)
        m.d.comb += row.eq(word)
        return row


class _NoDivision(TileMarks):
    """Seeded: shares do not grow with TILE_MARKS."""

    def _row(self, m, word):
        row = Signal.like(self.word)
        m.d.comb += row.eq(Cat(word[: self._least], self.slot[: self._slot_bits]))
        return row


class _NoWrite(TileMarks):
    """Seeded: a word is written back as it was read: neither marks nor clears stay."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.words.write_data.eq(m.submodules.words.data)
        return m


class _Blind(TileMarks):
    """Seeded: no tile is ever found to have a mark."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.marked.eq(0)
        return m


class _Silent(BlockTable):
    """Seeded: a tile that comes again does not count, but is not told."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.twice.eq(0)
        return m


class _ShortClear(ChunkExtent):
    """Seeded: only the first word of a chunk's marks is cleared."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += self.last_word.eq(0)
        return m


class _AnySize(ChunkExtent):
    """Seeded: every chunk has marks, it is thought."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += self.too_large.eq(0)
        return m


@pytest.mark.parametrize("mistake", [_OneShare, _NoDivision, _NoWrite, _Blind])
def test_a_mistake_in_the_marks_is_found(monkeypatch, mistake):
    monkeypatch.setattr(MARKS, mistake)
    expect_failure("tile-marks.once", None, TOLD, "the mark is as the model", "what was cleared is there")


@pytest.mark.long
def test_a_block_table_that_counts_a_tile_again_is_found(monkeypatch):
    monkeypatch.setattr(IN_BLOCK_TABLE, _Blind)
    claims = ("each of its tiles was complete", "a tile that was complete before is told", "and makes nothing ready")
    expect_failure("block-table.distinct", None, *claims)


@pytest.mark.long
def test_a_clear_of_too_few_words_is_found(monkeypatch):
    monkeypatch.setattr(EXTENT, _ShortClear)
    expect_failure("trigger.blocks", None, "marks are cleared before their slot is loaded")


@pytest.mark.parametrize(
    ("place", "mistake", "scenario"),
    [
        ("t3hdl.trigger.trigger.BlockTable", _Silent, "test_a_flush_never_overtakes_a_double"),
        (EXTENT, _AnySize, "test_a_chunk_with_more_tiles_than_its_slot_has_marks_is_poisoned"),
        (EXTENT, _ShortClear, "test_a_clear_takes_as_long_as_the_chunk_has_words"),
    ],
)
def test_a_mistake_fails_a_scenario(monkeypatch, place, mistake, scenario):
    monkeypatch.setattr(place, mistake)
    backends._simulated.cache_clear()
    arguments = {"behind": 1} if "flush" in scenario else {}
    with pytest.raises(AssertionError):
        getattr(scenarios, scenario)("amaranth", **arguments)
    backends._simulated.cache_clear()
