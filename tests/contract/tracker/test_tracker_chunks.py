"""The tracker: chunk totals, slots that are used again, and tiles that find no way of their set."""

import pytest

from tests.contract.tracker.scene import LINES, MANY_SLOTS, Scene, live


def test_chunk_done_comes_with_its_last_tile(backend):
    scene = live(backend, slot=1, expected=2 * LINES)
    scene.count(row=0, n=LINES)
    assert scene.chunks == []
    start = scene.now
    scene.count(row=2, n=LINES)
    assert scene.chunks == [(start + 7, 1, 0)] and scene.errors == [] and scene["overflowed"] == 0


@pytest.mark.parametrize(("after", "tiles", "error"), [(1, 2, "over_total"), (6, 2, "over_total"), (7, 1, "unmatched")])
def test_a_complete_chunk_matches_from_the_cycle_after_its_pulse_nothing(backend, after, tiles, error):
    """The pulse is at 7; M takes a token a cycle after its transfer. What is matched is a tile, but an error."""
    scene = live(backend, expected=LINES)
    scene.deliver(row=0, n=LINES)
    scene.step(after - 1)
    scene.deliver(row=2, n=LINES)
    scene.settle()
    assert len(scene.chunks) == 1 and len(scene.tiles) == tiles and scene.errors == [error]


@pytest.mark.parametrize(("expected", "tiles"), [(LINES - 1, 1), (LINES + 1, 2)])
def test_a_total_beyond_what_is_expected_is_an_error(backend, expected, tiles):
    scene = live(backend, expected=expected)
    for row in range(tiles):
        scene.count(row=row, n=LINES)
    assert scene.chunks == [] and len(scene.tiles) == tiles and scene.errors == ["over_total"]


@pytest.mark.own_size
def test_expected_is_cut_to_the_counter_and_sums_are_not(backend):
    scene = Scene(backend, **MANY_SLOTS)
    for k, tiles in enumerate((1, 2)):  # an event that is the whole of it, and one that is not
        scene.load(expected=256 + tiles * LINES)
        for row in range(tiles):
            scene.count(row=row, n=LINES)
        assert len(scene.chunks) == k + 1 and scene.errors == []
    scene.load(expected=250)
    scene.profile(0, 0, 0, 200)
    for row in (0, 2):
        scene.count(row=row, n=200)
    assert scene.errors == ["over_total"], "400 is compared before it is cut to 144"


def test_overflow_is_counted_by_chunk(backend):
    scene = live(backend, expected=4 * LINES, descriptor=5)
    scene.fill_set()
    scene.offer(col=4, n=2)  # no way left: marked
    scene.count(col=4, n=LINES - 2)
    assert scene.tiles == [] and scene.get("entries", "overflowed") == [2, 1]
    for col in (0, 2):
        scene.count(col=col, n=LINES - 1)  # entries still count
    assert scene.done_tiles == [(0, 0, 0, 0), (0, 0, 2, 0)] and scene["entries"] == 0
    scene.count(col=6, n=LINES - 1)  # ways are free, but the row is marked for this descriptor
    assert scene["entries"] == 0 and scene.chunks == []
    start = scene.now
    scene.count(col=6, n=1)
    assert scene.chunks == [(start + 8, 0, 1)] and len(scene.tiles) == 2
    assert scene.get("overflowed", "peak_entries") == [1, 2] and scene.errors == []


def test_a_whole_tile_needs_no_way_unless_the_row_is_marked(backend):
    scene = live(backend, expected=2 * LINES + 1)
    scene.fill_set()
    scene.count(col=6, n=LINES)
    assert scene.done_tiles == [(0, 0, 6, 0)] and scene.get("entries", "overflowed") == [2, 0]
    scene.count(col=4, n=1)
    scene.count(col=8, n=LINES)
    assert len(scene.tiles) == 1 and scene.done_chunks == [(0, 1)]


def test_marks_are_per_row_and_per_descriptor(backend):
    scene = live(backend, slot=0, descriptor=1, row1=2)
    scene.load(slot=1, descriptor=7, row0=2)
    scene.fill_set()
    scene.offer(row=0, col=4, n=1)  # marks row 0 of bank 0 for descriptor 1
    scene.offer(row=0, col=0, n=LINES - 1)
    scene.offer(row=2, col=4, n=1)  # same row, another descriptor: the way that became free
    scene.offer(row=1, col=1, n=1)  # bank 0, row 1
    scene.settle()
    assert scene.get("entries", "overflowed") == [3, 1]
    scene.offer(row=1, col=1, n=LINES - 1)
    scene.offer(row=2, col=4, n=LINES - 1)
    scene.settle()
    assert scene.done_tiles == [(0, 0, 0, 0), (0, 1, 1, 0), (1, 2, 4, 0)]


@pytest.mark.parametrize("lines", [1, 2])
def test_the_first_overflow_may_complete_the_chunk_and_is_in_its_flag(backend, lines):
    scene = live(backend, expected=lines)
    scene.fill_set()
    scene.count(col=4, n=lines)
    assert scene.done_chunks == [(0, 1)]


def test_a_slot_is_used_again(backend):
    scene = Scene(backend)
    scene.crowd(0)
    scene.load(expected=LINES, descriptor=0)
    for col in (4, 6):
        scene.count(col=col, n=LINES // 2)
    assert scene.done_chunks == [(0, 1)]
    scene.load(expected=LINES, descriptor=1)  # no longer complete, no longer flagged
    scene.count(row=1, n=LINES)
    assert scene.done_chunks == [(0, 1), (0, 0)] and scene["overflowed"] == 1
    scene.load(expected=2 * LINES, descriptor=2)
    scene.count(col=4, n=LINES)
    scene.count(col=6, n=1)
    assert scene["overflowed"] == 2
    scene.load(expected=LINES, context=1, descriptor=3)  # of the chunk that is not complete nothing is left
    scene.count(row=1, context=1, n=LINES)
    assert scene.done_chunks[2:] == [(0, 0)] and scene.errors == []


@pytest.mark.parametrize("cycle", [5, 6, 7])
def test_a_load_in_the_cycle_of_an_event_wins_the_total(backend, cycle):
    """The event is counted at 6; the load of the same cycle comes after it. The tile's pulse is never lost."""
    scene = live(backend, expected=2 * LINES)
    start = scene.now
    scene.deliver(n=LINES)
    scene.step(cycle - 1)
    scene.load(expected=2 * LINES)
    scene.settle()
    assert scene.tiles == [(start + 7, 0, 0, 0, 0)] and scene.chunks == []
    scene.count(row=2, n=LINES)
    assert len(scene.chunks) == (cycle < 6)
    if cycle >= 6:
        scene.count(row=4, n=LINES)
    assert len(scene.chunks) == 1 and scene.errors == []


@pytest.mark.own_size
def test_slot_63_and_descriptor_63_use_the_top_bit(backend):
    scene = Scene(backend, **MANY_SLOTS)
    scene.crowd(0)
    scene.load(slot=63, descriptor=63, expected=3)
    scene.offer(col=4, n=2)
    scene.count(col=6, n=1)
    assert scene.done_chunks == [(63, 1)] and scene.errors == []
