"""The golden Tracker against scenarios worked out from docs/hardware.md: chunk totals, overflow, slots."""

from golden_tracker_scene import LINES, Scene, fill_set, live
from t3hdl.config import preset


def test_chunk_done_comes_with_its_last_tile():
    scene = live(slot=1, expected=2 * LINES)
    scene.send(row=0, n=LINES)
    scene.settle()
    assert scene.chunks == []
    start = scene.bench.now
    scene.send(row=2, n=LINES)
    scene.settle()
    assert scene.chunks == [(start + 7, 1, 0)] and scene.errors() == [] and scene.bench.get("overflowed") == 0


def test_event_for_a_complete_chunk_is_an_error_but_a_tile():
    scene = live(expected=LINES)
    for row in (0, 2):
        scene.send(row=row, n=LINES)
    scene.settle()
    assert len(scene.chunks) == 1 and len(scene.tiles) == 2 and scene.errors() == ["over_total"]


def test_a_complete_chunk_matches_nothing():
    scene = live(expected=LINES)
    scene.send(row=0, n=LINES)
    scene.settle()
    scene.send(row=2, n=LINES)
    scene.settle()
    assert len(scene.chunks) == 1 and len(scene.tiles) == 1 and scene.errors() == ["unmatched"]


def test_total_beyond_expected_is_an_error():
    scene = live(expected=LINES + 1)
    for row in (0, 2):
        scene.send(row=row, n=LINES)
    scene.settle()
    assert scene.chunks == [] and len(scene.tiles) == 2 and scene.errors() == ["over_total"]


def test_expected_is_cut_to_the_counter_and_sums_are_not():
    config = preset("small", chunk_count_bits=8)
    scene = Scene(config)
    scene.load(expected=256 + 12)
    for row in (0, 2):
        scene.send(row=row, n=LINES)
    scene.settle()
    assert len(scene.chunks) == 1 and scene.errors() == []
    scene.load(expected=250)
    scene.profile(0, 0, 0, 200)
    for row in (0, 2):
        scene.send(row=row, n=200)
    scene.settle()
    assert scene.errors() == ["over_total"], "400 is compared before it is cut to 144"


def test_overflow_is_counted_by_chunk():
    scene = live(expected=4 * LINES, descriptor=5)
    fill_set(scene)
    scene.send(col=4, n=2)  # no way left: marked
    scene.send(col=4, n=LINES - 2)
    scene.settle()
    assert scene.tiles == [] and scene.get("entries", "overflowed") == [2, 1]
    for col in (0, 2):
        scene.send(col=col, n=LINES - 1)  # entries still count
    scene.settle()
    assert [tile[3] for tile in scene.tiles] == [0, 2] and scene.bench.get("entries") == 0
    scene.send(col=6, n=LINES - 1)  # ways are free, but the row is marked for this descriptor
    scene.settle()
    assert scene.bench.get("entries") == 0 and scene.chunks == []
    start = scene.bench.now
    scene.send(col=6, n=1)
    scene.settle()
    assert scene.chunks == [(start + 7, 0, 1)] and len(scene.tiles) == 2
    assert scene.get("overflowed", "peak_entries") == [1, 2] and scene.errors() == []


def test_a_marked_row_takes_even_whole_tiles_by_chunk():
    scene = live(expected=LINES + 1)
    fill_set(scene)
    scene.send(col=4, n=1)
    scene.send(col=6, n=LINES)
    scene.settle()
    assert scene.tiles == [] and len(scene.chunks) == 1


def test_marks_are_per_row_and_per_descriptor():
    scene = Scene()
    scene.load(slot=0, descriptor=1, row1=2)
    scene.load(slot=1, descriptor=7, row0=2)
    fill_set(scene)
    scene.send(row=0, col=4, n=1)  # marks row 0 of bank 0 for descriptor 1
    scene.send(row=0, col=0, n=LINES - 1)
    scene.send(row=2, col=4, n=1)  # same row, another descriptor: the freed way
    scene.send(row=1, col=1, n=1)  # bank 0, row 1
    scene.settle()
    assert scene.get("entries", "overflowed") == [3, 1]
    scene.send(row=1, col=1, n=LINES - 1)
    scene.send(row=2, col=4, n=LINES - 1)
    scene.settle()
    assert [tile[1:4] for tile in scene.tiles] == [(0, 0, 0), (0, 1, 1), (1, 2, 4)]


def test_overflow_flag_includes_the_event_that_completes():
    scene = live(expected=1)
    fill_set(scene)
    scene.send(col=4, n=1)
    scene.settle()
    assert [chunk[1:] for chunk in scene.chunks] == [(0, 1)]


def test_a_slot_is_used_again():
    scene = live(expected=LINES, descriptor=0)
    fill_set(scene)
    for col in (4, 6):
        scene.send(col=col, n=LINES // 2)
    scene.settle()
    assert [chunk[1:] for chunk in scene.chunks] == [(0, 1)]
    scene.load(expected=LINES, descriptor=1)
    scene.send(row=1, n=LINES)
    scene.settle()
    assert [chunk[1:] for chunk in scene.chunks] == [(0, 1), (0, 0)] and scene.bench.get("overflowed") == 1
    assert scene.errors() == []


def test_a_load_in_the_cycle_of_an_event_wins_the_total():
    scene = live(expected=2 * LINES)
    scene.send(n=LINES)
    scene.tick(5)
    scene.load(expected=LINES)  # the event is counted in this cycle (t+6)
    assert [tile[0] for tile in scene.tiles] == [scene.bench.now], "the pulse is not lost"
    assert scene.chunks == []
    scene.send(row=2, n=LINES)
    scene.settle()
    assert len(scene.chunks) == 1 and scene.errors() == []


def test_slot_63_and_descriptor_63_use_the_top_bit():
    scene = Scene(preset("small", descriptors=64, chunk_window=64))
    scene.load(slot=63, descriptor=63, expected=3)
    fill_set(scene)
    scene.send(col=4, n=2)
    scene.send(col=6, n=1)
    scene.settle()
    assert [chunk[1:] for chunk in scene.chunks] == [(63, 1)] and scene.errors() == []
