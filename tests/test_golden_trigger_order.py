"""The golden Trigger against scenarios worked out from docs/hardware.md: free slots, flushes, disarm."""

import pytest
from golden_bench import pack
from golden_trigger_scene import BLOCKS, CHUNK, LOAD_AFTER_ARM, Scene, live
from t3hdl.interface.layouts import ChunkDone, ChunkKind, TileDone


def test_a_local_slot_is_free_two_cycles_after_its_chunk():
    scene = Scene()
    for number in range(5):  # small has 4 slots
        scene.describe(number, kind=ChunkKind.LOCAL)
    scene.arm(5)
    scene.settle()
    assert scene.bench.get("live") == 4
    start = scene.bench.now
    scene.chunk(slot=2)
    scene.settle()
    # done t+1, free and WAIT t+2, READ t+3..t+9, START, CLEAR, LOAD, pulse
    cycle, load = scene.loads[-1]
    assert (cycle - start, load["slot"], load["descriptor"]) == (12 + BLOCKS, 2, 4)
    scene.chunk(slot=2)
    scene.settle()
    assert scene.get("live", "chunks_done", "done_mask") == [5, 2, 0b10100]


def test_a_skip_waits_for_a_free_slot_and_the_lowest_is_taken():
    scene = Scene()
    for number in range(4):
        scene.describe(number, kind=ChunkKind.LOCAL)
    scene.describe(4, kind=ChunkKind.REMOTE)
    scene.describe(5)
    scene.arm(6)
    scene.settle()
    assert scene.bench.get("live") == 4
    for slot in (3, 1):
        scene.chunk(slot)
    scene.settle()
    assert scene.bench.get("live") == 6 and scene.loads[-1][1]["slot"] == 1


def test_a_dma_slot_is_kept_until_its_commands_are_issued():
    scene = Scene(ready=0)
    for number in range(5):
        scene.describe(number, tiles_inner=1, tiles_bottom=1, tiles_right=1)
    scene.arm(5)
    scene.settle()
    for row, col in ((8, 16), (10, 16), (8, 18), (10, 18)):
        scene.tile(row, col)
    scene.chunk()
    scene.settle()
    assert scene.bench.get("live") == 4 and scene.bench.get("idle")
    scene.ready, start = 1, scene.bench.now
    scene.settle()
    # One transfers at t, the second (waiting in BUILD) is written at t, valid t+1; the others 3 cycles apart: BUILD of
    # the last at t+6; all issued t+7; free and WAIT t+8; pulse 10 + blocks later.
    assert [cycle - start for cycle, _ in scene.commands] == [0, 1, 4, 7]
    assert scene.loads[-1][0] - start == 8 + 10 + BLOCKS and scene.loads[-1][1]["slot"] == 0
    scene.tile(8, 16)
    scene.settle()
    assert scene.places("descriptor", "row")[-1] == (4, 8), "counts and fired bits were cleared"


def test_all_blocks_issued_before_the_chunk_is_done_keeps_the_slot():
    scene = live({"tiles_inner": 1, "tiles_bottom": 1, "tiles_right": 1}, {}, {}, {})
    for row, col in ((8, 16), (10, 16), (8, 18), (10, 18)):
        scene.tile(row, col)
    scene.settle()
    assert len(scene.commands) == 4
    scene.chunk()
    assert scene.bench.get("chunks_done") == 1, "still used when the chunk was done"


def second_load(scene: Scene, pulses: dict[int, dict[str, int]]) -> int:
    """Arm two descriptors, give the pulses at these cycles after the arm, return the cycle of the second load pulse."""
    start = scene.arm(2)
    for cycle, pulse in pulses.items():
        scene.until(start + cycle)
        scene.tick(**pulse)
    scene.settle()
    return scene.loads[1][0] - start


START_CYCLE = LOAD_AFTER_ARM + 8
"""Cycle after the arm in which the loader is in START for the second descriptor."""
UNDISTURBED = START_CYCLE + BLOCKS + 2


@pytest.mark.parametrize(
    ("cycles", "slot", "lost"),
    [
        (range(START_CYCLE + 1, START_CYCLE + 4), 0, 3),  # while CLEAR walks
        (range(START_CYCLE + 1, START_CYCLE + 4), 1, 0),  # the slot that is being cleared is not used: ignored
        (range(START_CYCLE - 3, START_CYCLE + 1), 0, 0),  # before the walk
        (range(START_CYCLE + 4, START_CYCLE + 7), 0, 3),  # with the last block
    ],
)
def test_a_tile_takes_the_cycle_of_the_walker(cycles, slot, lost):
    scene = Scene()
    scene.describe(0, tiles_inner=100)
    scene.describe(1)
    tile = {"tile_done": pack(TileDone, slot=slot, row=8, col=16)}
    assert second_load(scene, dict.fromkeys(cycles, tile)) == UNDISTURBED + lost


def test_flush_goes_before_a_clear_that_has_not_started():
    scene = Scene()
    scene.describe(0)
    scene.describe(1)
    done = {"chunk_done": pack(ChunkDone, slot=0, overflowed=1)}
    load = second_load(scene, {START_CYCLE - 1: done})  # pending in START
    assert load == UNDISTURBED + BLOCKS + 1
    assert scene.commands[0][0] == scene.loads[0][0] - LOAD_AFTER_ARM + START_CYCLE - 1 + 9


def test_a_running_clear_finishes_first():
    scene = Scene()
    scene.describe(0)
    scene.describe(1)
    done = {"chunk_done": pack(ChunkDone, slot=0, overflowed=1)}
    load = second_load(scene, {START_CYCLE: done})  # pending when CLEAR walks
    assert load == UNDISTURBED
    # walker idle at START + 5, enters block 0 one cycle later, command valid seven later
    assert scene.commands[0][0] == scene.loads[0][0] - LOAD_AFTER_ARM + START_CYCLE + BLOCKS + 1 + 1 + 7


def test_lowest_pending_slot_is_flushed_first():
    scene = Scene()
    for number in range(3):
        scene.describe(number)
    start = scene.arm(3)
    scene.until(start + LOAD_AFTER_ARM + 2 * (10 + BLOCKS) - BLOCKS)  # CLEAR of the third walks
    scene.chunk(slot=1, overflowed=1)
    scene.chunk(slot=0, overflowed=1)
    scene.settle()
    assert [descriptor for (descriptor,) in scene.places("descriptor")] == [0] * 4 + [1] * 4
    assert scene.get("done_mask", "live") == [3, 3]


def test_disarm_clears_all_but_the_descriptors():
    scene = live({"tiles_inner": 2, "tiles_bottom": 1}, {}, ready=0)
    scene.tile(8, 16)
    scene.tile(10, 16)
    scene.chunk(slot=1, overflowed=1)
    scene.tick(9)
    assert scene.bench.item("command") is not None
    scene.control(disarm=1)
    names = ("command.valid", "load_valid", "armed", "live", "chunks_done", "done_mask")
    assert scene.get(*names) == [0] * len(names) and scene.get("init_done", "idle") == [1, 1]
    scene.ready = 1
    scene.tick(40)
    assert scene.commands == []
    scene.loads.clear()
    start = scene.arm(1)
    scene.settle()
    assert scene.loads[0][0] - start == LOAD_AFTER_ARM and scene.loads[0][1]["expected"] == CHUNK["expected"]
    scene.tile(8, 16)
    scene.settle()
    assert scene.commands == [], "the tile before the disarm does not count"
    scene.tile(8, 16)
    scene.settle()
    assert scene.places("row", "col") == [(8, 16)]


def test_disarm_wins_in_its_cycle():
    scene = Scene()
    scene.describe(0)
    start = scene.arm(1)
    scene.until(start + LOAD_AFTER_ARM - 1)  # LOAD
    scene.control(disarm=1)
    assert scene.get("load_valid", "live", "idle") == [0, 0, 1]


def test_reset_does_not_depend_on_what_was_before():
    used = live({}, {}, ready=0)
    used.tile(10, 18)
    used.chunk(overflowed=1)
    used.bench.state[-20:] = -1  # tables
    used.bench.instance.reset()
    used.loads.clear()
    fresh = Scene()
    for scene in (used, fresh):
        scene.ready = 1
        scene.describe(0)
        scene.bench.now = 0
        scene.arm(1)
        scene.settle()
        scene.tile(10, 18)
        scene.tile(10, 16)
        scene.tile(10, 16)
        scene.settle()
    assert used.loads == fresh.loads and used.commands == fresh.commands and len(fresh.commands) == 2


def test_tiles_outside_the_chunk_never_push_a_block():
    chunk = {"col1": 18, "last_block_col": 0}  # block numbers 0 and 1 of 4
    scene = live(chunk | dict.fromkeys(("tiles_inner", "tiles_bottom", "tiles_right", "tiles_corner"), 1))
    for row, col in ((8, 18), (12, 16), (14, 18), (7, 16)):  # to the right, below, both, above
        scene.tile(row, col)
    scene.settle()
    assert scene.commands == [] and scene.status("ready", "slots") == [0, 1]
    for row in (8, 10):
        scene.tile(row, 16)
    scene.chunk()
    scene.settle()
    assert scene.places("row", "col") == [(8, 16), (10, 16)] and scene.status("complete") == [1]


def test_a_chunk_that_claims_too_many_blocks_is_never_retired():
    scene = live({"last_block_row": 42, "last_block_col": 2, "row_blocks_log": 0})  # 129 blocks
    scene.chunk(overflowed=1)
    scene.settle()
    assert len(scene.commands) == 3 and scene.status("slots", "ready") == [1, 0]
