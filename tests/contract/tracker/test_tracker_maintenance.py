"""What the tracker does to its tables between tokens: arm and abort sweeps, the end of an abort, debug reads."""

import pytest
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER

from tests.contract.tracker.scene import LINES, MANY_SETS, MANY_SLOTS, ONE_SET, Scene, chunk, live

SMALL = preset("small")
ROWS = SMALL.sets_per_bank
ABORT, ARM = {"abort": 1}, {"arm": 1, "first": 2, "descriptors": 1}


@pytest.mark.parametrize("request_", [ABORT, ARM])
def test_a_sweep_takes_a_cycle_per_row_and_tokens_wait(backend, request_):
    scene = live(backend)
    assert scene["maintenance"] == 0
    scene.control(context=1, **request_)  # at t; now t + 1, which is the drained cycle d
    start = scene.now
    for col in range(6):
        scene.offer(col=col, n=LINES)
    assert scene.ends("maintenance") == ROWS + 2
    assert scene["updates"] == 0 and [len(sent) for sent in scene.sent.values()] == [2, 2], "input queues are full"
    scene.settle()
    assert scene.tiles[0][0] == start + 2 + ROWS + 6, "M takes it in d + 2 + rows, 6 cycles before its pulse"
    assert len(scene.tiles) == 6 and scene["updates"] == 6 * LINES and scene.errors == []


def test_a_sweep_waits_for_tokens_in_the_pipeline(backend):
    scene = live(backend)
    for k in range(4):
        scene.offer(col=2 * k)
    scene.step(2)  # M and the input queue hold a token each
    scene.control(arm=1, context=1, descriptors=1)  # M takes another token
    assert scene.ends("maintenance") == 2 + 2 + ROWS  # in M, in R, then d
    assert scene["updates"] == len(scene.sent["token.0"]) - 2 == 2
    scene.settle()
    assert scene["updates"] == 4


@pytest.mark.parametrize("request_", [ABORT, ARM])
def test_a_sweep_frees_the_entries_of_its_context_row_by_row(backend, request_):
    scene = live(backend)
    scene.load(slot=1, context=1)
    for context in range(2):
        for row, col in ((0, 0), (0, 1), (1, 0), (1, 1)):
            scene.offer(context=context, row=row, col=col)
    scene.settle()
    assert scene.get("entries", "peak_entries") == [8, 8]
    scene.control(context=1, **request_)
    entries = [scene["entries"]]
    for _ in range(5):
        scene.step()
        entries.append(scene["entries"])
    assert entries == [8, 8, 8, 8, 6, 4], "rows 0 of both banks are written in d + 2, rows 1 in d + 3"
    scene.ends("abort_busy")
    scene.load(slot=1, context=1)
    scene.count(context=1, n=5)
    assert scene.get("entries", "peak_entries", "overflowed") == [5, 8, 0], "a way is free again, no count is left"
    scene.count(n=LINES - 1)
    assert scene.done_tiles == [(0, 0, 0, 0)] and scene.errors == [], "another context's entry counts on"


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
def test_an_arm_clears_the_marks_of_its_window(backend, fields, cleared):
    """Descriptor 3 is marked in the row of column 4, where ways are free again."""
    scene = live(backend, descriptor=3)
    scene.fill_set()
    scene.count(col=4)
    assert scene.get("overflowed", "entries") == [1, 2]
    for col in (0, 2):
        scene.count(col=col, n=LINES - 1)
    scene.control(context=1, **fields)
    scene.ends("maintenance")
    scene.count(col=4)
    assert scene["entries"] == cleared


@pytest.mark.own_size
def test_all_64_descriptors_are_one_window(backend):
    scene = Scene(backend, **MANY_SLOTS)
    scene.load(descriptor=63)
    scene.fill_set()
    scene.count(col=4)
    scene.control(arm=1, context=0, first=0, descriptors=64)
    scene.ends("maintenance")
    scene.load(descriptor=63)
    scene.count(col=4)
    assert scene.get("overflowed", "entries") == [1, 1]


@pytest.mark.parametrize("request_", [ABORT, ARM])
def test_slots_of_the_context_become_invalid_and_others_stay(backend, request_):
    scene = live(backend, context=0)
    scene.load(slot=1, context=1)
    scene.control(context=1, **request_)
    scene.ends("maintenance")
    scene.ends("abort_busy")
    scene.count(n=LINES)
    assert scene.done_tiles == [(0, 0, 0, 0)] and scene.errors == []
    scene.count(n=LINES, context=1)
    assert len(scene.tiles) == 1 and scene.errors == ["unmatched"]


@pytest.mark.parametrize(("slot", "context", "found"), [(1, 0, False), (0, 0, False), (0, 1, True)])
@pytest.mark.parametrize("request_", [ABORT, ARM])
def test_a_load_beside_the_request(backend, request_, slot, context, found):
    """A load of the named context is lost; one of another context has the slot, whoever had it before."""
    scene = live(backend, expected=2 * LINES)
    scene.count(n=LINES)
    scene.set("load", chunk(slot=slot, context=context, expected=LINES))
    scene.set("load_valid", 1)
    scene.control(context=0, **request_)
    scene.set("load_valid", 0)
    scene.ends("maintenance")
    scene.ends("abort_busy")
    scene.count(n=LINES, context=context)
    assert scene.done_tiles[1:] == found * [(0, 0, 0, 0)] and scene.done_chunks == found * [(0, 0)]
    assert scene.errors == ([] if found else ["unmatched"])


def test_an_abort_is_busy_until_its_time_is_over(backend):
    scene = live(backend)
    asked = scene.control(abort=1)
    assert scene.get("maintenance", "abort_busy") == [1, 1]
    scene.ends("maintenance")
    scene.step(4)
    assert scene.get("idle", "wake_at") == [1, asked + SMALL.drain_cycles]
    scene.ends("abort_busy")
    assert scene.now == asked + SMALL.drain_cycles + 1
    scene.step(4)
    assert scene.get("idle", "wake_at") == [1, NEVER]


def test_an_abort_is_busy_at_least_as_long_as_its_maintenance(backend):
    scene = Scene(backend)
    scene.control(abort=1)
    scene.now += SMALL.drain_cycles
    assert scene.ends("maintenance") == 2 + ROWS
    assert scene["abort_busy"] == 1
    scene.step()
    assert scene["abort_busy"] == 0


def test_tokens_of_the_aborted_context_leave_no_trace(backend):
    scene = live(backend, context=0)
    scene.load(slot=1, context=1)
    scene.deliver(n=1)
    scene.control(abort=1, context=0)  # M takes the token in this cycle
    for n in (1, 1, LINES):
        scene.offer(n=n)
        scene.offer(context=1, n=1)
    scene.ends("maintenance")
    scene.load(slot=2, context=0)  # even where a slot would match
    scene.offer(col=1, n=LINES)
    scene.settle()
    assert scene["abort_busy"] == 1
    assert scene.errors == [] and scene.tiles == [] and scene.get("entries", "updates") == [1, 3]
    scene.ends("abort_busy")
    scene.count(n=2)
    assert scene.get("entries", "updates") == [2, 5], "the abort is over"
    scene.load(slot=2, valid=0)
    scene.count(n=2)
    assert scene.errors == ["unmatched"]


@pytest.mark.parametrize("cycle", range(6))
@pytest.mark.parametrize("request_", [ABORT, ARM])
def test_a_request_while_tokens_are_in_flight(backend, request_, cycle):
    """M takes them at 1: with the slots of before an arm, and dropped beside an abort. Entries are freed afterwards."""
    scene = live(backend)
    scene.offer(n=2)
    scene.offer(col=1, n=LINES)
    scene.step(cycle)
    scene.control(context=0, **request_)
    scene.ends("maintenance")
    scene.ends("abort_busy")
    scene.settle()
    counted = cycle > 1 or (cycle == 1 and request_ == ARM)
    assert scene.get("entries", "updates", "tiles") == ([0, 2 + LINES, 1] if counted else [0, 0, 0])
    assert scene.errors == (["unmatched"] if cycle == 0 and request_ == ARM else [])


@pytest.mark.parametrize("cycles", range(6))
@pytest.mark.parametrize("address", [regs.CONTROL, regs.DEBUG_SELECT])
def test_disarm_ends_maintenance_and_abort(backend, address, cycles):
    scene = live(backend)
    scene.count(n=LINES)
    assert scene.look()["ready"] == 1
    scene.deliver(n=1)
    if address == regs.CONTROL:
        scene.control(abort=1)
    else:
        scene.write(address, 0)
    scene.step(cycles)
    scene.control(disarm=1)
    names = ("maintenance", "abort_busy", "debug_data", "entries", "updates", "tiles", "init_done")
    assert scene.get(*names) == [0] * len(names)
    scene.step(ROWS)
    assert scene.get("wake_at", "init_done") == [NEVER, 1]
    scene.load()
    scene.count(n=LINES)
    assert scene.get("updates", "tiles") == [LINES, 1] and scene.errors == []


def test_quiesce_and_resume_do_nothing_here(backend):
    scene = live(backend)
    scene.count(n=1)
    before = scene.backend.state()
    scene.control(quiesce=1)
    scene.control(resume=1)
    assert scene.backend.state() == before and scene["maintenance"] == 0


def test_events_are_counted_during_maintenance(backend):
    scene = live(backend, expected=2 * LINES)
    for _ in range(2):
        scene.deliver(n=LINES)
    scene.step()
    scene.control(abort=1, context=1)
    scene.ends("maintenance")
    assert scene.done_chunks == [(0, 0)] and scene["tiles"] == 2


# Debug read

TILE = {"context": 1, "epoch": 2, "row": 0x5A5, "col": 0x35A, "wf": 1}


def _check_debug_read(scene: Scene) -> None:
    config = scene.config
    scene.load(context=1, epoch=2)
    scene.count(**TILE, n=LINES - 1)
    bank = (TILE["row"] ^ TILE["col"] ^ TILE["wf"]) % config.tracker_banks
    row_index = TILE["row"] % (1 << config.row_index_bits)
    column_index = TILE["col"] % (1 << config.column_index_bits)
    row = column_index | (row_index >> config.bank_bits) << config.column_index_bits
    several = config.sets_per_bank > 1
    if several:  # in the next row of the bank's table: it must not show where the row has no more ways
        scene.count(**TILE | {"row": TILE["row"] ^ 1, "col": TILE["col"] ^ 1})
        assert scene.look(bank=bank, row=row + 1)["col"] == TILE["col"] ^ 1
    asked = scene.now
    entry = scene.look(bank=bank, row=row, way=0)
    assert entry == {**TILE, "valid": 1, "count": LINES - 1, "ready": 1}
    assert scene.now == asked + 1 + 3, "maintenance ends with the answer"
    assert scene.look(bank=bank + config.tracker_banks & 7, row=row) == entry, "bank modulo banks"
    nothing = {**dict.fromkeys(entry, 0), "ready": 1}
    places = [{"way": way} for way in (1, config.tracker_ways, 15)]
    places += [{"row": other} for other in (row + config.sets_per_bank, 4095)]
    for place in places:
        assert scene.look(**({"bank": bank, "row": row} | place)) == nothing
    assert scene["entries"] == 1 + several
    scene.count(**TILE, n=1)
    assert scene.look(bank=bank, row=row) == nothing, "the entry is free"


def test_a_debug_read_shows_an_entry(backend):
    _check_debug_read(Scene(backend))


@pytest.mark.own_size
@pytest.mark.parametrize("sizes", [ONE_SET, MANY_SETS])
def test_a_debug_read_of_other_sizes(backend, sizes):
    _check_debug_read(Scene(backend, **sizes))


def test_time_of_a_debug_read(backend):
    scene = live(backend)
    scene.write(regs.DEBUG_SELECT, 0)  # at t; now t + 1, which is the drained cycle d
    for _ in range(3):
        assert scene.get("maintenance", "debug_data") == [1, 0]
        scene.step()
    assert scene.get("maintenance", "debug_data") == [0, 1 << 63]
    scene.write(regs.DEBUG_SELECT, 0)
    start = scene.now
    scene.count(n=LINES)
    assert [cycle for cycle, *_ in scene.tiles] == [start + 3 + 6], "M takes it in d + 3, 6 cycles before its pulse"


def test_a_debug_read_waits_for_the_pipeline(backend):
    scene = live(backend)
    for _ in range(4):
        scene.offer(n=1)
    scene.step(3)
    assert 0 < scene.look(row=0)["count"] == scene["updates"] < 4
    scene.settle()
    assert scene["updates"] == 4
