"""The golden Tracker and several jobs: quotas of ways, debug read, counters; one test per rule of the contract."""

import pytest
from golden_bench import pack, unpack
from golden_tracker_scene import LINES, STICKY, Scene, fill_set, live
from t3hdl.config import preset
from t3hdl.interface import register_map
from t3hdl.interface.layouts import ConfigWrite

ROWS = preset("small").sets_per_bank
SELECT_0 = pack(ConfigWrite, address=register_map.DEBUG_SELECT, data=0)


def set_quota(scene: Scene, context: int, ways: int) -> None:
    scene.bench.write(register_map.QUOTA + 8 * context, pack(register_map.Quota, ways=ways, slots=64, credits=255))


def two_tiles(scene: Scene, context: int = 0) -> list[int]:
    """Two tiles of one table row; the entries and overflowed chunks that there are then."""
    for col in (0, 2):
        scene.send(col=col, context=context)
    scene.settle()
    return scene.get("entries", "overflowed")


def test_a_context_has_as_many_ways_of_a_row_as_its_quota_says():
    scene = live()
    set_quota(scene, 0, 1)
    assert two_tiles(scene) == [1, 1], "a way is free, but not for this context"
    scene.send(row=1)  # in other rows of the table
    scene.send(row=1, col=1)
    scene.settle()
    assert scene.get("entries", "overflowed") == [3, 1]


def test_a_quota_counts_the_ways_of_its_own_context():
    scene = live()
    scene.load(slot=1, context=1, descriptor=1)
    set_quota(scene, 1, 1)
    scene.send(col=0)
    scene.send(col=2, context=1)
    scene.settle()
    assert scene.get("entries", "overflowed") == [2, 0]


def test_quota_of_two_ways_fills_the_row_and_a_written_quota_acts_at_once():
    scene = live()
    set_quota(scene, 0, 2)
    assert two_tiles(scene) == [2, 0]
    set_quota(scene, 0, 1)
    scene.send(row=2, col=0, n=1)
    scene.settle()
    assert scene.bench.get("overflowed") == 1
    scene.send(col=2, n=LINES - 1)  # entries above the quota count on
    scene.settle()
    assert len(scene.tiles) == 1


def test_no_way_with_a_quota_of_zero_but_whole_tiles():
    scene = live()
    set_quota(scene, 0, 0)
    scene.send(col=0, n=LINES)
    scene.send(col=2, n=1)
    scene.settle()
    assert len(scene.tiles) == 1 and scene.get("entries", "overflowed") == [0, 1]


def test_a_context_of_no_job_has_no_quota():
    scene = live(context=2)  # two contexts in all
    set_quota(scene, 2, 0)
    assert two_tiles(scene, context=2) == [2, 0]


def test_a_disarm_keeps_quotas_and_a_reset_does_not():
    scene = live()
    set_quota(scene, 0, 1)
    scene.control(disarm=1)
    scene.tick(ROWS)
    scene.load()
    assert two_tiles(scene) == [1, 1]
    scene.bench.instance.reset()
    scene.tick(ROWS)
    scene.profile(0, 0, 0, LINES)
    scene.load()
    assert two_tiles(scene) == [2, 0]


def debug_read(scene: Scene, *, row: int, way: int = 0, bank: int = 0) -> dict[str, int]:
    select = pack(register_map.DebugSelect, row=row, way=way, bank=bank)
    scene.tick(config=pack(ConfigWrite, address=register_map.DEBUG_SELECT, data=select))
    assert scene.get("maintenance", "debug_data") == [1, 0]
    scene.over()
    return unpack(register_map.DebugData, scene.bench.get("debug_data"))


ENTRY = {"valid": 1, "context": 1, "epoch": 2, "wf": 1, "row": 5, "col": 0, "count": 2, "reserved": 0, "ready": 1}
EMPTY = dict.fromkeys(ENTRY, 0) | {"ready": 1}


def test_debug_read_shows_an_entry():
    scene = live(context=1, epoch=2)
    scene.send(row=5, col=0, wf=1, n=2, context=1, epoch=2)  # bank 1, row (5 & 1) >> 1
    scene.settle()
    assert debug_read(scene, row=0, bank=1) == ENTRY
    assert debug_read(scene, row=0, bank=5) == ENTRY, "bank modulo banks"
    assert scene.bench.get("entries") == 1
    scene.send(row=5, col=0, wf=1, n=LINES - 2, context=1, epoch=2)
    scene.settle()
    assert debug_read(scene, row=0, bank=1) == EMPTY, "an entry that was freed"


@pytest.mark.parametrize("where", [{"row": 0, "way": 1}, {"row": 2}, {"row": 4095}, {"row": 0, "way": 2}, {"row": 1}])
def test_debug_read_of_what_does_not_exist(where):
    scene = live()
    two_tiles(scene)
    scene.send(row=5, col=0)  # row 0, way 0 of bank 1
    scene.settle()
    assert debug_read(scene, bank=1, **where) == EMPTY


def test_time_of_a_debug_read():
    scene = live()
    scene.tick(config=SELECT_0)  # at t; now t + 1, which is the drained cycle d
    for _ in range(3):
        assert scene.get("maintenance", "debug_data") == [1, 0]
        scene.tick()
    assert scene.get("maintenance", "debug_data") == [0, 1 << 63]
    scene.tick(config=SELECT_0)
    start = scene.bench.now
    scene.send(n=LINES)
    scene.settle()
    assert [cycle for cycle, *_ in scene.tiles] == [start + 3 + 6], "M takes it in d + 3, 6 cycles before its pulse"


def test_updates_and_tiles_count_what_is_matched():
    scene = live(row1=4)
    scene.send(n=2)
    scene.send(row=9, n=5)  # unmatched
    scene.send(row=1, n=LINES)
    scene.send(row=2, n=1023)  # over_count
    scene.settle()
    assert scene.get("updates", "tiles") == [2 + LINES + 1023, 1]
    scene.control(disarm=1)
    assert scene.get("updates", "tiles") == [0, 0]


def test_tiles_are_counted_with_their_pulse():
    scene = live()
    scene.send(n=LINES)
    while not scene.tiles:
        assert scene.bench.get("tiles") == 0
        scene.tick()
    assert scene.get("tile_done_valid", "tiles") == [1, 1]


def test_a_golden_tracker_has_no_faults():
    scene = live()
    fill_set(scene)
    scene.settle()
    assert scene.get("poison_valid", "poison_slot", "corrected", "uncorrectable", *STICKY) == [0] * 7
