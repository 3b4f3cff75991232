"""The golden Tracker and several jobs: arm and abort, what they clear and when; one test per rule of the contract."""

import pytest
from golden_bench import pack
from golden_tracker_scene import LINES, Scene, control, fill_set, live
from t3hdl.config import preset
from t3hdl.interface import register_map
from t3hdl.interface.layouts import NEVER, ConfigWrite, SlotLoad

SMALL = preset("small")
ROWS = SMALL.sets_per_bank
REQUESTS = [{"abort": 1}, {"arm": 1, "first": 2, "descriptors": 1}]
ABORT_0 = control(abort=1, context=0)


@pytest.mark.parametrize("fields", REQUESTS)
def test_length_of_a_sweep_over_empty_pipelines(fields):
    scene = live()
    assert scene.bench.get("maintenance") == 0
    scene.control(context=1, **fields)  # at t; now t + 1, which is the drained cycle d
    assert scene.over() == ROWS + 2
    assert not scene.errors()


def test_tokens_wait_while_rows_are_swept():
    scene = live()
    scene.control(abort=1, context=1)
    start = scene.bench.now  # d
    scene.send(n=LINES)
    scene.settle()
    [(cycle, *_)] = scene.tiles
    assert cycle == start + 2 + ROWS + 6, "M takes it in d + 2 + rows, 6 cycles before its pulse"


def test_a_token_that_m_takes_with_the_request_delays_the_drained_cycle():
    scene = live()
    scene.send(n=LINES)
    scene.control(abort=1, context=1)
    assert scene.over() == 2 + ROWS + 2  # in M, in R, then d
    assert len(scene.tiles) == 1


@pytest.mark.parametrize("fields", REQUESTS)
def test_a_sweep_frees_the_entries_of_its_context(fields):
    scene = live()
    scene.load(slot=1, context=1)
    for tile in ({"row": 0}, {"row": 0, "context": 1}, {"row": 1}, {"row": 1, "col": 1}):
        scene.send(**tile)
    scene.settle()
    assert scene.bench.get("entries") == 4
    scene.control(context=0, **fields)
    entries = [scene.bench.get("entries")]
    while scene.bench.get("maintenance"):
        scene.tick()
        entries.append(scene.bench.get("entries"))
    scene.tick()
    entries.append(scene.bench.get("entries"))
    assert entries == [4, 4, 4, 4, 2, 1], "rows 0 of both banks are written in d + 2, rows 1 in d + 3"
    assert scene.bench.get("peak_entries") == 4
    scene.tick(SMALL.drain_cycles)
    scene.load()
    scene.send(n=1)
    scene.settle()
    assert scene.bench.get("entries") == 2, "a way that was freed"


def marked() -> Scene:
    """A scene where descriptor 3 is marked in the row of column 4, and ways are free again there."""
    scene = live(descriptor=3)
    fill_set(scene)
    scene.send(col=4)
    scene.settle()
    assert scene.get("overflowed", "entries") == [1, 2]
    for col in (0, 2):
        scene.send(col=col, n=LINES - 1)
    scene.settle()
    return scene


@pytest.mark.parametrize(
    ("fields", "cleared"),
    [
        ({"arm": 1, "first": 3, "descriptors": 1}, True),
        ({"arm": 1, "first": 0, "descriptors": 8}, True),
        ({"arm": 1, "first": 0, "descriptors": 3}, False),
        ({"arm": 1, "first": 4, "descriptors": 4}, False),
        ({"abort": 1}, False),
    ],
)
def test_an_arm_clears_the_marks_of_its_window(fields, cleared):
    scene = marked()
    scene.control(context=1, **fields)
    scene.over()
    scene.send(col=4)
    scene.settle()
    assert scene.bench.get("entries") == cleared


def test_all_64_descriptors_are_one_window():
    scene = Scene(preset("small", descriptors=64))
    scene.load(descriptor=63)
    fill_set(scene)
    scene.send(col=4)
    scene.settle()
    scene.control(arm=1, context=0, first=0, descriptors=64)
    scene.over()
    scene.load(descriptor=63)
    scene.send(col=4)
    scene.settle()
    assert scene.get("overflowed", "entries") == [1, 1]


@pytest.mark.parametrize("fields", REQUESTS)
def test_slots_of_the_context_become_invalid_and_others_stay(fields):
    scene = live(context=0)
    scene.load(slot=1, context=1)
    scene.control(context=1, **fields)
    scene.over()
    scene.tick(SMALL.drain_cycles)
    scene.send(n=LINES)
    scene.send(n=LINES, context=1)
    scene.settle()
    assert [tile[1] for tile in scene.tiles] == [0] and scene.errors() == ["unmatched"]


@pytest.mark.parametrize(("slot", "context", "found"), [(1, 0, []), (0, 0, []), (0, 1, [0])])
@pytest.mark.parametrize("fields", REQUESTS)
def test_a_load_beside_the_request(fields, slot, context, found):
    """A load of the named context is lost; one of another context has the slot, whoever had it before."""
    scene = live(slot=0, context=0)
    load = pack(SlotLoad, slot=slot, context=context, row1=9, col1=9, addends=1, expected=99, valid=1)
    scene.tick(config=control(context=0, **fields), load=load)
    scene.over()
    scene.tick(SMALL.drain_cycles)
    scene.send(n=LINES, context=context)
    scene.settle()
    assert [tile[1] for tile in scene.tiles] == found
    assert scene.errors() == ([] if found else ["unmatched"])


def test_abort_is_busy_until_its_time_is_over():
    scene = live()
    start = scene.bench.now
    scene.control(abort=1)
    assert scene.get("maintenance", "abort_busy") == [1, 1]
    scene.over()
    assert scene.get("idle", "wake_at") == [1, start + SMALL.drain_cycles]
    while scene.bench.get("abort_busy"):
        scene.tick()
    assert scene.bench.now == start + SMALL.drain_cycles + 1
    assert scene.get("idle", "wake_at") == [1, NEVER]


def test_abort_is_busy_at_least_as_long_as_its_maintenance():
    config = preset("small", tracker_sets=512, slices=2, node_inputs=2)
    scene = Scene(config)
    scene.control(abort=1)
    scene.bench.now += config.drain_cycles
    scene.over()
    assert scene.bench.get("abort_busy") == 1
    scene.tick()
    assert scene.bench.get("abort_busy") == 0


def test_tokens_of_the_aborted_context_leave_no_trace():
    scene = live(context=0)
    scene.load(slot=1, context=1)
    scene.send(n=1)
    scene.tick(config=ABORT_0)  # M takes the token in this cycle
    scene.send(n=1)
    scene.send(n=1, context=1)
    scene.over()
    scene.load(slot=2, context=0)  # even where a slot would match
    scene.send(n=2)
    scene.settle()
    assert scene.bench.get("abort_busy") == 1
    assert scene.errors() == [] and scene.get("entries", "updates") == [1, 1]
    scene.tick(SMALL.drain_cycles)
    scene.send(n=2)
    scene.settle()
    assert scene.get("entries", "updates") == [2, 3], "the abort is over"


def test_a_token_that_m_took_before_the_abort_is_counted():
    scene = live(context=0)
    scene.send(n=LINES)
    scene.tick()
    scene.tick(config=ABORT_0)
    scene.tick(5)
    assert len(scene.tiles) == 1 and scene.errors() == []


def test_an_arm_does_not_drop_tokens():
    scene = live(context=0)
    scene.send(n=LINES)
    scene.control(arm=1, context=0, descriptors=1)  # M takes it with the old slots
    scene.over()
    assert scene.get("abort_busy", "tiles") == [0, 1] and scene.errors() == []


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("request_", [ABORT_0, pack(ConfigWrite, address=register_map.DEBUG_SELECT, data=0)])
def test_disarm_ends_maintenance_and_abort(request_, after):
    scene = live()
    scene.send(n=1)
    scene.tick(config=request_)
    scene.tick(after)
    scene.control(disarm=1)
    assert scene.get("maintenance", "abort_busy", "debug_data", "entries") == [0, 0, 0, 0]
    scene.tick(ROWS)
    assert scene.get("wake_at", "idle", "init_done") == [NEVER, 1, 1]
    scene.load()
    scene.send(n=LINES)
    scene.settle()
    assert len(scene.tiles) == 1


def test_quiesce_and_resume_do_nothing_here():
    scene = live()
    before = scene.bench.state.copy()
    scene.control(quiesce=1)
    scene.control(resume=1)
    assert (scene.bench.state == before).all()


def test_events_are_drained_during_maintenance():
    scene = live(expected=2 * LINES)
    for _ in range(2):
        scene.send(n=LINES)
    scene.tick()
    scene.control(abort=1, context=1)
    scene.over()
    assert [unpacked[1:] for unpacked in scene.chunks] == [(0, 0)] and scene.bench.get("tiles") == 2
