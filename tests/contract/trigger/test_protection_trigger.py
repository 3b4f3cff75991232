"""Wrong bits in the protected trigger: one per word changes nothing, more poison what they concern and nothing else."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Shape
from t3hdl.common.secded import check_bits
from t3hdl.interface import register_map as regs
from t3hdl.trigger.block_table import BlockPlaces
from t3hdl.trigger.command_issuer import CommandTemplate
from t3hdl.trigger.ready_lists import ReadyBlock

from tests.contract.trigger.scene import COLUMN, OTHER, Scene
from tests.support.fault_injection import Stored, bits_of, flip, stored_words

_KEPT = ("slot_", "list_", "context_", "quota_", "watchdog")
"""Long-lived registers, which are protected."""
_LOADER = ("chosen", *(f"word{w}" for w in range(regs.DESCRIPTOR_WORDS)))
"""What the loader knows of a descriptor while its blocks are being cleared."""
_UNCOMPARED = {"corrected", "uncorrectable", "idle", "wake_at"}


def _table(depth: int, shape: Any) -> tuple[int, int]:
    """Rows, and bits of a row with its check bits."""
    width = Shape.cast(shape).width
    return depth, width + check_bits(width)


_DESCRIPTORS, _PLACES, _PLANS = _table(64, 64), _table(4, BlockPlaces), _table(4, CommandTemplate)
_ENTRIES, _LINKS = _table(16, 17), _table(16, ReadyBlock)


def _stored(d: Scene, *, table: tuple[int, int] | None = None, row: int = 0, name: str = "") -> Stored:
    """The row of this table, or the register of this name."""
    (word,) = (word for word in stored_words(d) if word.table == table and word.row == row and name in ("", word.name))
    return word


def _protected(d: Scene) -> list[Stored]:
    return [word for word in stored_words(d) if word.table or word.name.startswith(_KEPT) or word.name in _LOADER]


def _traffic(d: Scene, disturb: Callable[[], None]) -> list[dict[str, int]]:
    """Two contexts with tiles in random order, overflows, quotas; returns the outputs of all cycles."""
    rng, trace = random.Random(7), []
    chunks = [COLUMN, COLUMN, COLUMN, COLUMN, OTHER, OTHER, OTHER, OTHER]
    for context in range(2):
        d.quota(context, slots=2 - context, credits=2)
    d.patience(50)
    d.describe(*chunks)
    d.arm(4)
    d.arm(4, first=4, context=1)
    left: dict[int, list[tuple[int, int, int]]] = {}
    for _ in range(900):
        left |= {n: rng.sample(list(chunks[n].tiles()), 8) for n in sorted(d.slot_of) if n not in left}
        open_chunks = [n for n, tiles in left.items() if tiles]
        inputs: dict[str, Any] = {}
        if open_chunks and rng.random() < 0.3:
            n = rng.choice(open_chunks)
            row, col, wf = left[n].pop()
            inputs = {"tile_done": {"slot": d.slot_of[n], "row": row, "col": col, "wf": wf}}
            if len(left[n]) == n % 2:
                left[n] = []
                inputs |= {"chunk_done": {"slot": d.slot_of[n], "overflowed": n % 2}}
        if rng.random() < 0.1:
            inputs |= {"command_done": rng.randrange(2)}
        disturb()
        d.step(**inputs)
        trace.append({name: d[name] for name in d._outputs if name not in _UNCOMPARED})
    return trace


@pytest.mark.long
def test_a_wrong_bit_in_any_word_changes_nothing():
    plain = Scene("amaranth")
    expected = _traffic(plain, lambda: None)
    assert plain.values("corrected", "uncorrectable", "chunks_done") == (0, 0, 8)
    d = Scene("amaranth", protect=True)
    rng, words = random.Random(8), _protected(d)
    fresh = {id(word) for word in words}

    def disturb() -> None:
        # A register is corrected at once, a row of a table when it is written.
        for word in rng.sample(words, 5):
            if not word.table or id(word) in fresh:
                fresh.discard(id(word))
                flip(d, word, rng.randrange(bits_of(word)))

    assert _traffic(d, disturb) == expected
    assert d.values("corrected", "uncorrectable") == (1, 0)
    d.control(disarm=1)
    assert d["corrected"] == 0


@pytest.mark.parametrize("name", [f"{kind}{i}" for kind in _KEPT[:-1] for i in range(2)] + ["watchdog"])
def test_every_bit_of_a_long_lived_register_is_put_right(name):
    d = Scene("amaranth", protect=True)
    d.quota(1, slots=3, credits=5)
    d.patience(100000)
    d.make_live(COLUMN, COLUMN)
    d.make_live(OTHER, OTHER, first=4)
    d.accept["command"] = 0
    for row in (0, 1, 2):
        for descriptor in (0, 4):
            d.rows(descriptor, row)
    d.step(20)
    word = _stored(d, name=name)
    right = d.backend.context.get(word.place)
    shown = {port: d[port] for port in d._outputs if port not in _UNCOMPARED}
    for bit in range(bits_of(word)):
        flip(d, word, bit)
        assert {port: d[port] for port in shown} == shown
        d.step()
        assert (d.backend.context.get(word.place), d["corrected"], d["uncorrectable"]) == (right, 1, 0)


def _begin(d: Scene) -> None:
    """Chunks 0 and 1 of context 0 and 4 of context 1 are live; three blocks of chunk 0 wait behind a command."""
    d.accept["command"] = 0
    d.make_live(COLUMN, COLUMN)
    d.make_live(OTHER, first=4)
    for descriptor, rows in ((1, (0, 1)), (0, (0, 1, 2))):
        d.rows(descriptor, *rows)
    d.step(20)  # block 0 of chunk 1 is the command, block 1 is built; the rest is in the list
    assert d.context(0).ready == 3


def _end(d: Scene, *, lost: set[int]) -> None:
    """The rest of all chunks; those in ``lost`` are poisoned and give nothing, the others give everything."""
    d.accept["command"] = 1
    for descriptor, rows in ((0, (3,)), (1, (2, 3)), (4, range(4))):
        d.rows(descriptor, *rows)
        d.chunk_done(descriptor)
    d.settle()
    assert (d["uncorrectable"], d["poisoned"]) == (1, sum(1 << descriptor for descriptor in lost))
    for descriptor in {0, 1, 4} - lost:
        assert sorted(d.blocks(descriptor)) == sorted(COLUMN.blocks())
    for context, members in enumerate(({0, 1}, {4})):
        assert d.context(context).slots == len(members & lost)
        assert bool(d.context(context).complete) == (not members & lost)
        assert d.context(context).ready == 0


def _works_again(d: Scene) -> None:
    """After a disarm everything is as it was."""
    d.control(disarm=1)
    assert (d["uncorrectable"], d["poisoned"]) == (0, 0)
    for context in range(2):
        d.quota(context)
    d.commands.clear()
    d.make_live(COLUMN, COLUMN)
    d.finish(0, COLUMN)
    d.settle()
    assert (len(d.blocks(0)), d["uncorrectable"]) == (4, 0)


def _check_double(damage: Callable[[Scene], None], *, lost: set[int], most: dict[int, int] | None = None) -> None:
    """One word is damaged; ``most``: how many commands a lost chunk may have given before."""
    d = Scene("amaranth", protect=True)
    _begin(d)
    damage(d)
    _end(d, lost=lost)
    for descriptor in lost:
        assert len(d.blocks(descriptor)) <= (most or {}).get(descriptor, 0)
    _works_again(d)


@pytest.mark.parametrize(("table", "row"), [
    (_PLACES, 0), (_PLANS, 0), (_ENTRIES, 3),
], ids=["places", "plan", "entry"])  # fmt: skip
def test_a_word_of_a_slot_beyond_repair_poisons_its_chunk(table, row):
    def damage(d: Scene) -> None:
        flip(d, _stored(d, table=table, row=row), 1, 5)
        if table != _PLANS:
            d.tile(0, 3, 0)

    _check_double(damage, lost={0})


@pytest.mark.parametrize("name", ["done_mask", "quiesced", "peak_ready"])
def test_a_wrong_bit_in_any_other_register_poisons_every_chunk(name):
    def damage(d: Scene) -> None:
        word = _stored(d, name=name)
        flip(d, word, 0)
        d.step()
        if name in ("done_mask", "quiesced"):  # they stay wrong, and the test wants to go on
            flip(d, word, 0)

    _check_double(damage, lost={0, 1, 4}, most={1: 2})


def test_a_link_beyond_repair_poisons_all_chunks_of_the_context():
    def damage(d: Scene) -> None:
        flip(d, _stored(d, table=_LINKS, row=0), 0, 9)  # what comes after block 0 of chunk 0

    # Block 0 itself is sound, and already a command when the list reads what comes after it.
    _check_double(damage, lost={0, 1}, most={0: 1, 1: 2})


@pytest.mark.parametrize("name", ["list_0", "context_0", "quota_0"])
def test_a_register_of_a_context_beyond_repair_poisons_all_its_chunks(name):
    d = Scene("amaranth", protect=True)
    _begin(d)
    flip(d, _stored(d, name=name), 2, 7)
    d.step(3)
    assert (d["uncorrectable"], d["poisoned"], d.context(0).ready) == (1, 0b11, 0)
    d.accept["command"] = 1
    d.finish(0, COLUMN)
    d.finish(4, OTHER)
    d.settle()
    assert (d.blocks(0), len(d.blocks(1)), len(d.blocks(4))) == ([], 1, 4)
    assert (d.context(0).complete, d.context(1).complete) == (0, 1)
    _works_again(d)


def test_a_record_of_a_slot_beyond_repair_keeps_the_slot_from_use():
    d = Scene("amaranth", protect=True)
    _begin(d)
    flip(d, _stored(d, name="slot_0"), 0, 5)
    d.step()
    d.accept["command"] = 1
    d.finish(0, COLUMN)
    d.finish(4, OTHER)
    d.settle()
    assert (d["uncorrectable"], d.blocks(0), len(d.blocks(4)), d.context(1).complete) == (1, [], 4, 1)
    d.make_live(OTHER, OTHER, first=5)
    assert {d.slot_of[n] for n in (5, 6)}.isdisjoint({0})
    _works_again(d)


@pytest.mark.parametrize("word", range(6))
def test_a_descriptor_beyond_repair_is_poisoned_before_it_is_live(word):
    d = Scene("amaranth", protect=True)
    d.describe(COLUMN, COLUMN, COLUMN)
    flip(d, _stored(d, table=_DESCRIPTORS, row=8 + word), 3, 4)
    d.arm(3)
    d.until_true(lambda: d["live"] == 3)
    assert [load["descriptor"] for _, load in d.loads] == [0, 2]
    for descriptor in (0, 2):
        d.finish(descriptor, COLUMN)
    d.settle()
    assert (d["uncorrectable"], d["poisoned"], len(d.commands)) == (1, 0b10, 8)
    assert (d.context(0).slots, d.context(0).complete, d.context(0).following) == (1, 0, 3)
    d.abort()
    d.make_live(COLUMN, COLUMN, COLUMN)
    assert d["poisoned"] == 0


@pytest.mark.parametrize("name", _LOADER)
def test_a_descriptor_damaged_in_the_loader_is_poisoned_or_read_again(name):
    d = Scene("amaranth", protect=True)
    d.describe(COLUMN, COLUMN)
    d.arm(2)
    d.step(10)
    flip(d, _stored(d, name=name), 3, 4)
    d.until_true(lambda: d["live"] == 2)
    lost = [] if name == "chosen" else [0]
    whole = [descriptor for descriptor in range(2) if descriptor not in lost]
    assert [load["descriptor"] for _, load in d.loads] == whole
    for descriptor in whole:
        d.finish(descriptor, COLUMN)
    d.settle()
    assert (d["uncorrectable"], d["poisoned"], len(d.commands)) == (1, len(lost), 4 * len(whole))
    assert d.context(0).complete == (not lost)


def test_a_watchdog_register_beyond_repair_is_off():
    d = Scene("amaranth", protect=True)
    d.patience(30)
    d.make_live(COLUMN)
    flip(d, _stored(d, name="watchdog"), 1, 2)
    d.step(60)
    assert (d["uncorrectable"], d["stuck"], d["poisoned"]) == (1, 0, 0)


_MARKS = _table(16, 64)
"""Tile marks: four words for each of four slots."""


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_wrong_bit_of_a_word_of_tile_marks(wrong):
    """One is corrected: what was complete stays so, and nothing else is. Two poison the chunk of the next tile."""
    d = Scene("amaranth", protect=True)
    d.make_live(COLUMN, COLUMN)
    d.rows(0, 0)
    d.step(4)
    flip(d, _stored(d, table=_MARKS, row=0), *range(5, 5 + wrong))
    d.rows(0, 1)
    d.settle()
    assert d.values("corrected", "uncorrectable", "poisoned", "tile_twice") == (wrong == 1, wrong == 2, wrong == 2, 0)
    d.finish(1, COLUMN)
    if wrong == 1:
        d.rows(0, 2, 3)
        d.settle()
        assert len(d.blocks(0)) == 4 and not d["tile_twice"]
        d.tile(0, 0)
        d.settle()
        assert d.fields("tile_twice")["valid"]
    d.settle()
    assert len(d.blocks(1)) == 4 and d["poisoned"] == 1
    _works_again(d)


def test_shares_of_the_marks_beyond_repair_poison_every_chunk_and_restart_the_load():
    d = Scene("amaranth", protect=True)
    d.write(regs.TILE_MARKS, 1)
    d.make_live(COLUMN)
    d.describe(OTHER, first=4)
    d.arm(1, first=4, context=1)
    d.step(12)
    flip(d, _stored(d, name="tile_marks"), 0, 2)
    d.until_true(lambda: d["live"] == 2)
    assert d.values("uncorrectable", "poisoned") == (1, 0b1)
    d.finish(4, OTHER)
    d.settle()
    assert len(d.blocks(4)) == 4 and d.context(1).complete
    _works_again(d)
