"""Ways of a tracker set per context, and what the tracker counts of itself."""

import pytest

from tests.contract.tracker.scene import LINES, ONE_SET, STICKY, Scene, live


def two_tiles(scene: Scene, context: int = 0) -> list[int]:
    """Two tiles of one table row; the entries and overflowed chunks that there are then."""
    for col in (0, 2):
        scene.offer(col=col, context=context)
    scene.settle()
    return scene.get("entries", "overflowed")


@pytest.mark.own_size
@pytest.mark.parametrize("ways", [0, 1, 2, 3, 31])
def test_a_context_uses_no_more_of_three_ways_than_its_quota(backend, ways):
    scene = Scene(backend, **ONE_SET)
    scene.quota(1, ways)
    scene.load(slot=0, descriptor=0)
    scene.load(slot=1, context=1, descriptor=1, expected=4 * LINES)
    for col in (0, 2, 4, 6):
        scene.offer(context=1, col=col)
    scene.settle()
    assert scene.get("entries", "overflowed") == [min(ways, 3), 1]
    scene.count(col=0)
    room = ways < 3
    assert scene.get("entries", "overflowed") == [min(ways, 3) + room, 1 + (not room)]
    for col in (0, 2, 4, 6):
        scene.offer(context=1, col=col, n=LINES - 1)
    scene.settle()
    assert scene.done_chunks == [(1, 1)] and len(scene.tiles) == min(ways, 3) and scene.errors == []


@pytest.mark.parametrize("ways", [0, 1, 2])
def test_a_quota_holds_for_every_row_of_the_table(backend, ways):
    scene = live(backend)
    scene.quota(0, ways)
    assert two_tiles(scene) == [ways, int(ways < 2)]
    scene.offer(row=1, col=0)
    scene.offer(row=1, col=1)
    scene.settle()
    assert scene.get("entries", "overflowed") == [3 * ways if ways < 2 else 4, int(ways < 2)]


def test_a_quota_counts_the_ways_of_its_own_context(backend):
    scene = live(backend)
    scene.load(slot=1, context=1, descriptor=1)
    scene.quota(1, 1)
    scene.offer(col=0)
    scene.offer(col=2, context=1)
    scene.settle()
    assert scene.get("entries", "overflowed") == [2, 0]


def test_a_written_quota_acts_at_once_and_entries_above_it_count_on(backend):
    scene = live(backend)
    scene.quota(0, 2)
    scene.deliver(col=0)
    scene.settle()
    scene.quota(0, 1)
    scene.count(col=2)
    assert scene.get("entries", "overflowed") == [1, 1]
    scene.quota(0, 0)
    scene.count(col=0, n=LINES - 1)
    assert scene.done_tiles == [(0, 0, 0, 0)]


def test_a_whole_tile_needs_no_quota(backend):
    scene = live(backend)
    scene.quota(0, 0)
    scene.count(n=LINES)
    assert len(scene.tiles) == 1 and scene.get("entries", "overflowed") == [0, 0]


def test_contexts_that_do_not_exist_have_no_quota(backend):
    scene = live(backend, context=2)  # two contexts in all
    for context in range(3):
        scene.quota(context, 0)
    assert two_tiles(scene, context=2) == [2, 0]


def test_a_mark_outlasts_the_quota_that_made_it_and_a_quota_outlasts_a_disarm_but_no_reset(backend):
    scene = live(backend)
    scene.quota(0, 1)
    assert two_tiles(scene) == [1, 1]
    scene.quota(0, 2)
    scene.count(col=2)
    assert scene.get("entries", "overflowed") == [1, 1]
    scene.quota(0, 1)
    scene.control(disarm=1)
    scene.until("init_done")
    scene.load()
    assert two_tiles(scene) == [1, 1]
    scene.reset()
    scene.until("init_done")
    scene.profile(0, 0, 0, LINES)
    scene.load()
    assert two_tiles(scene) == [2, 0]


def test_updates_and_tiles_count_what_is_matched(backend):
    scene = live(backend, row1=4)
    for col in range(4):
        scene.offer(col=col, n=LINES - 2)
        scene.offer(row=5, col=col, n=100)  # no chunk
    scene.settle()
    assert scene.get("updates", "tiles") == [4 * (LINES - 2), 0]
    for col in range(4):
        scene.offer(col=col, n=2)
    for _ in range(30):
        scene.step()
        assert scene["tiles"] == len(scene.tiles), "visible together with the pulse"
    assert scene.get("updates", "tiles") == [4 * LINES, 4]
    scene.count(n=1023)  # too many: an error, but an update all the same
    assert scene.get("updates", "tiles", "over_count") == [4 * LINES + 1023, 4, 1]
    scene.control(disarm=1)
    assert scene.get("updates", "tiles") == [0, 0]


def test_without_check_bits_there_are_no_faults(backend):
    scene = live(backend)
    scene.fill_set()
    scene.settle()
    assert scene.get("poison_valid", "poison_slot", "corrected", "uncorrectable", *STICKY) == [0] * 7
