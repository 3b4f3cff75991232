"""The trigger counts a wavefront tile once per epoch: what a second completion does, and what none is."""

from dataclasses import replace
from random import Random

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind

from tests.contract.trigger.scene import BLOCKS, COLUMN, OTHER, Chunk, Scene

PAIR = Chunk(rows=1, cols=2, col_shift=1, wavefronts=1)
"""One block of two tiles."""
NOTHING = {"valid": 0, "descriptor": 0, "context": 0, "row": 0, "col": 0, "wf": 0}


def twice(row: int = 0, col: int = 0, wf: int = 0, *, descriptor: int = 0, context: int = 0) -> dict[str, int]:
    """TILE_TWICE as this tile leaves it."""
    return {"valid": 1, "descriptor": descriptor, "context": context, "row": row, "col": col, "wf": wf}


def poisoned(d: Scene, *descriptors: int) -> bool:
    """Whether these chunks are poisoned, and no other is."""
    return d["poisoned"] == sum(1 << number for number in descriptors)


def test_a_block_whose_first_tile_is_complete_twice_gives_no_command(backend):
    d = Scene(backend)
    d.make_live(PAIR)
    d.tile(0, 0, 0)
    d.tile(0, 0, 0)
    d.settle()
    assert d.commands == [] and poisoned(d, 0)
    assert d.fields("tile_twice") == twice()
    d.tile(0, 0, 1)
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert d.commands == [] and d.context().slots == 1, "neither by its tiles nor by its chunk"
    assert d.values("done_mask", "too_large") == (1, 0)


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 9])
def test_a_second_completion_after_any_time(backend, distance):
    d = Scene(backend)
    d.make_live(PAIR, replace(PAIR, rows=2))
    d.tile(0, 0, 0)
    d.step(distance - 1)
    at = d.tile(0, 0, 0)
    d.until_cycle(at + 4)
    assert d.fields("tile_twice") == twice() and poisoned(d, 0)
    d.tile(0, 0, 1)
    d.settle()
    assert d.commands == []


def test_it_shows_four_cycles_after_the_tile(backend):
    d = Scene(backend)
    d.make_live(PAIR)
    d.tile(0, 0, 0)
    at = d.tile(0, 0, 0)
    d.until_cycle(at + 3)
    assert d.values("poisoned", "tile_twice") == (0, 0) and not d["idle"]
    d.step()
    assert d["poisoned"] and d["tile_twice"]


def test_tiles_of_the_same_word_one_after_the_other_count_each(backend):
    d = Scene(backend)
    chunk = Chunk(rows=4, cols=4, row_shift=2, col_shift=2)
    d.make_live(chunk)
    start = d.now
    for tile in chunk.tiles():
        d.tile(0, *tile)
    d.settle()
    assert d.since(start) == [31 + 7] and d["tile_twice"] == 0


def test_the_wavefronts_of_a_tile_are_tiles_of_their_own(backend):
    d = Scene(backend)
    chunk = replace(PAIR, cols=1, wavefronts=2)
    d.make_live(chunk)
    d.tile(0, 0, 0, 0)
    d.tile(0, 0, 0, 1)
    d.settle()
    assert len(d.commands) == 1 and d["tile_twice"] == 0
    d.tile(0, 0, 0, 1)
    d.settle()
    assert d.fields("tile_twice") == twice(wf=1) and poisoned(d, 0)


def test_the_same_tile_of_another_chunk_and_of_another_context_counts(backend):
    d = Scene(backend)
    d.make_live(PAIR, PAIR)
    d.make_live(replace(PAIR, context=1), first=4)
    for descriptor in (0, 1, 4):
        d.tile(descriptor, 0, 0)
        d.tile(descriptor, 0, 1)
    d.settle()
    assert sorted(d.of_commands("descriptor")) == [(0,), (1,), (4,)]
    d.tile(4, 0, 1)
    d.tile(1, 0, 0)
    d.settle()
    assert d.fields("tile_twice") == twice(col=1, descriptor=4, context=1), "the first one stays"
    assert poisoned(d, 1, 4)


def test_the_next_epoch_begins_without_marks(backend):
    d = Scene(backend)
    for epoch in range(3):
        d.make_live(COLUMN, epoch=epoch)
        assert d.slot_of[0] == 0
        d.finish(0, COLUMN)
        d.settle()
        assert d.context().complete
    assert len(d.commands) == 3 * 4 and d["tile_twice"] == 0


def test_a_slot_that_was_aborted_in_the_middle_begins_without_marks(backend):
    d = Scene(backend)
    d.make_live(COLUMN)
    d.rows(0, 0, 2)
    d.abort()
    d.works(COLUMN)
    assert d.values("tile_twice", "poisoned") == (0, 0)


def test_a_poisoned_chunk_is_freed_by_an_abort_and_reports_nothing_more(backend):
    d = Scene(backend)
    d.make_live(COLUMN, OTHER)
    d.tile(0, 1)
    d.tile(0, 1)
    d.settle()
    d.tile(0, 2)
    d.tile(0, 2)
    d.settle()
    assert d.fields("tile_twice") == twice(row=1)
    d.abort()
    d.works(COLUMN)
    assert d.fields("tile_twice") == twice(row=1), "until a disarm"
    d.control(disarm=1)
    assert d.fields("tile_twice") == NOTHING and d["too_large"] == 0
    d.works(COLUMN)


def test_a_double_of_an_aborted_context_poisons_nothing(backend):
    for beside in range(5):
        d = Scene(backend)
        d.make_live(PAIR)
        d.tile(0, 0, 0)
        d.tile(0, 0, 0)
        d.step(beside)
        d.abort()
        d.settle()
        assert d["poisoned"] == int(beside >= 3), "an abort in the cycle of stage C wins"
        d.works(replace(COLUMN, row0=5))


def test_a_double_beside_the_end_of_its_chunk_is_told(backend):
    d = Scene(backend)
    d.make_live(replace(PAIR, kind=ChunkKind.LOCAL), replace(PAIR, kind=ChunkKind.LOCAL))
    d.tile(0, 0, 0)
    d.step(tile_done={"slot": d.slot_of[0]}, chunk_done={"slot": d.slot_of[0]})
    d.settle()
    assert d.fields("tile_twice") == twice() and d.context().slots == 1
    assert d["poisoned"] == 0, "it had been retired"


@pytest.mark.parametrize("behind", range(1, 8))
def test_a_flush_never_overtakes_a_double(backend, behind):
    """The chunk ends in the cycle of the double, or after it."""
    d = Scene(backend)
    d.make_live(PAIR)
    d.tile(0, 0, 0)
    d.tile(0, 0, 0)
    d.step(behind - 1)
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert d.commands == [] and poisoned(d, 0)


def test_two_chunks_are_poisoned_in_the_same_cycle(backend):
    d = Scene(backend)
    d.make_live(PAIR, PAIR)
    d.tile(0, 0, 0)
    at = d.tile(0, 0, 0)
    d.until_cycle(at + 3)
    d.poison(d.slot_of[1])
    assert poisoned(d, 0, 1)


def writes_shares(d: Scene, halvings: int) -> None:
    """Writes TILE_MARKS."""
    d.write(regs.TILE_MARKS, halvings)


@pytest.mark.own_size
@pytest.mark.parametrize(("halvings", "slots"), [(0, 4), (1, 2), (2, 1), (3, 1), (7, 1)])
def test_fewer_slots_have_larger_shares(backend, halvings, slots):
    """Of 64 tiles in all; the largest chunk of a share fills it, and one tile more is too large."""
    d = Scene(backend, tile_marks=64)
    writes_shares(d, halvings)
    whole = Chunk(rows=8, cols=64 // slots // 8, row_shift=3, col_shift=3)
    d.make_live(whole, whole, whole, whole, live=slots)
    d.settle()
    assert [load["slot"] for _, load in d.loads] == list(range(slots))
    for tile in sorted(whole.tiles(), key=lambda tile: Random(str(tile)).random()):
        for number in range(slots):
            d.tile(number, *tile)
    for number in range(slots):
        d.chunk_done(number)
    d.settle()
    assert d["tile_twice"] == 0 and sorted(d.of_commands("descriptor")) == [(n,) for n in range(slots)]
    d.abort()
    d.settle()
    d.describe(replace(whole, cols=whole.cols + 1))
    d.arm(1)
    d.settle()
    assert poisoned(d, 0) and d["too_large"] == 1


def test_a_chunk_with_more_tiles_than_its_slot_has_marks_is_poisoned(backend):
    d = Scene(backend)
    large = Chunk(rows=5, cols=17, row_shift=3, col_shift=5)  # 16 x 8 + 5 places of 128
    d.describe(COLUMN, large, COLUMN)
    armed = d.arm(3)
    d.until_true(lambda: d["too_large"])
    at = d.now
    d.settle()
    assert [load["descriptor"] for _, load in d.loads] == [0, 2]
    assert at == armed + 2 * (11 + BLOCKS) - 1 and d.values("live", "done_mask") == (3, 0)
    assert poisoned(d, 1) and d["tile_twice"] == 0
    status = d.context()
    assert (status.slots, status.following, status.complete) == (3, 3, 0)
    for descriptor in (0, 2):
        d.finish(descriptor, COLUMN)
    d.settle()
    assert len(d.commands) == 8
    d.abort()
    d.works(COLUMN)
    assert d["too_large"] == 1
    d.control(disarm=1)
    assert d["too_large"] == 0


@pytest.mark.parametrize("beside", [0, 1, 2])
def test_an_abort_beside_the_load_of_a_chunk_that_is_too_large(backend, beside):
    d = Scene(backend)
    d.describe(Chunk(rows=64, cols=64))
    armed = d.arm(1)
    d.until_cycle(armed + 9 + BLOCKS + beside)  # LOAD is one cycle later
    d.abort()
    d.settle()
    assert d.values("too_large", "poisoned") == ((0, 0) if beside < 2 else (1, 1))
    d.works(COLUMN)


def test_tiles_far_from_the_origin_and_rows_that_are_no_power_of_two(backend):
    d = Scene(backend)
    chunk = Chunk(rows=5, cols=7, row0=4090, col0=4088, row_shift=3, col_shift=3)
    d.make_live(chunk)
    tiles = list(chunk.tiles())
    d.random.shuffle(tiles)
    for tile in tiles:
        d.tile(0, *tile)
    d.settle()
    assert len(d.commands) == 1 and d["tile_twice"] == 0
    d.tile(0, *tiles[11])
    d.settle()
    assert d.fields("tile_twice") == twice(*tiles[11])


@pytest.mark.own_size
def test_a_clear_takes_as_long_as_the_chunk_has_words(backend):
    """With a block per chunk and 64 marks in a word, of 32 tiles."""
    d = Scene(backend, blocks=1, event_queue=3, tracker_banks=1, row_index_bits=1, tile_marks=1024)
    sizes = [Chunk(rows=8, cols=cols, row_shift=3, col_shift=5) for cols in (1, 4, 5, 32)]
    d.describe(*sizes)
    armed = d.arm(4)
    d.settle()
    # 1, 1, 2 and 8 words; the next descriptor begins with the load pulse
    assert [cycle - armed for cycle, _ in d.loads] == [12, 12 + 11, 12 + 11 + 12, 12 + 11 + 12 + 18]
    for descriptor, chunk in enumerate(sizes):
        d.finish(descriptor, chunk)
    d.settle()
    assert len(d.commands) == 4 and d.context().complete
    d.make_live(*sizes)
    for descriptor, chunk in enumerate(sizes):
        d.finish(descriptor, chunk)
    d.settle()
    assert len(d.commands) == 8 and d["tile_twice"] == 0
