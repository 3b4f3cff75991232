"""The golden Trigger against scenarios worked out from docs/hardware.md: abort, poison, watchdog."""

import pytest
from golden_bench import pack
from golden_trigger_scene import BLOCKS, CONTEXT, LOAD_AFTER_ARM, Scene, live
from t3hdl.interface.layouts import NEVER, ChunkDone

ONE_TILE = {"tiles_inner": 1, "tiles_bottom": 1, "tiles_right": 1}
"""Every block fires with its first tile."""
ALL_STATUS = ("armed", "complete", "following", "end", "slots", "ready")


def fire(scene: Scene, slot: int = 0) -> None:
    """All four blocks of a slot fire, one per cycle."""
    for row, col in ((8, 16), (10, 16), (8, 18), (10, 18)):
        scene.tile(row, col, slot)


def test_an_abort_drops_everything_of_its_context_only():
    scene = Scene(ready=0)
    for number in range(4):
        scene.describe(number, context=number // 2, **ONE_TILE)
    for context in (0, 1):
        scene.arm(2, 2 * context, context)
    scene.settle()
    fire(scene, 0)  # of context 0
    fire(scene, 1)  # of context 1
    scene.chunk(1)
    scene.settle()
    before = scene.status("slots", "ready", "outstanding", context=0)
    scene.abort(1)
    assert scene.status(*ALL_STATUS, context=1) == [0] * 6
    assert scene.status("slots", "ready", "outstanding", context=0) == before
    assert scene.get("chunks_done", "done_mask", "live", "armed") == [1, 0b100, 4, 1]
    scene.ready = 1
    scene.settle()
    assert scene.places("context") == [(0,)] * 4
    scene.loads.clear()
    scene.arm(1, 3, 1)
    scene.settle()
    assert scene.loads[0][1]["slot"] == 1, "the slots are free"
    scene.tile(8, 16, 1)
    scene.settle()
    assert scene.places("context", "descriptor")[4:] == [(1, 3)], "counts were cleared"


@pytest.mark.parametrize("cycle", range(1, LOAD_AFTER_ARM + 1))
def test_an_abort_in_any_state_of_the_loader(cycle):
    scene = Scene()
    scene.describe(0, context=1)
    scene.describe(1, context=0)
    scene.arm(1, 0, 1)
    scene.until(scene.bench.now - 1 + cycle)
    stands = cycle == LOAD_AFTER_ARM  # the load pulse is in the cycle of the abort
    assert scene.bench.get("load_valid") == stands
    scene.abort(1)
    assert scene.get("load_valid", "live", "armed") == [0, int(stands), 0]
    scene.settle()
    assert len(scene.loads) == stands and scene.status(*ALL_STATUS) == [0] * 6
    start = scene.arm(1, 1, 0)
    scene.settle()
    assert scene.loads[-1][0] - start == LOAD_AFTER_ARM and scene.loads[-1][1]["slot"] == 0


def test_a_clear_that_walks_goes_on_after_an_abort():
    scene = Scene()
    scene.describe(0, context=1)
    scene.describe(1, context=0)
    start = scene.arm(1, 0, 1)
    scene.until(start + 10)  # the walker is at block 0
    armed = scene.control(abort=1, context=1)
    assert armed == start + 10
    for _ in range(BLOCKS - 1):
        assert scene.bench.get("idle") == 0
        scene.tick()
    scene.settle()
    assert scene.loads == []


def test_a_skip_in_the_cycle_of_an_abort_is_none():
    scene = Scene()
    scene.describe(0, context=0)
    start = scene.arm(1)
    scene.until(start + 9)
    scene.abort()
    assert scene.bench.get("live") == 0


def test_the_loader_waits_for_the_end_of_an_abort():
    scene = Scene()
    scene.describe(0)
    scene.bench.tick(0, abort_busy=1)
    scene.arm(1)
    scene.tick(30)
    assert scene.loads == [] and scene.bench.get("idle") == 1
    start = scene.bench.now
    scene.tick(abort_busy=0)
    scene.settle()
    assert scene.loads[0][0] - start == LOAD_AFTER_ARM - 1


@pytest.mark.parametrize(("cycle", "commands"), [(2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 1)])
def test_an_abort_in_any_state_of_the_issuer(cycle, commands):
    scene = live({"tiles_corner": 1})
    start = scene.bench.now
    scene.tile(10, 18)  # push at t+3, FETCH t+4, LOOKUP t+5, BUILD t+6, valid t+7
    scene.until(start + cycle)
    scene.abort()
    scene.settle()
    assert len(scene.commands) == commands and scene.status("ready", "outstanding") == [0, commands]
    scene.credit()
    assert scene.status("outstanding") == [0]


def test_pulses_in_the_cycle_of_an_abort_change_nothing():
    scene = live({})
    control = scene.bench
    control.tick(0, chunk_done=pack(ChunkDone, slot=0), poison_valid=1, poison_slot=0)
    scene.abort()
    control.tick(0, chunk_done_valid=0, poison_valid=0)
    assert scene.get("chunks_done", "done_mask", "poisoned") == [0, 0, 0]


def test_a_poisoned_slot_gives_no_command_and_is_kept():
    scene = live(ONE_TILE, ONE_TILE)
    scene.poison(1)
    assert scene.get("poisoned", "done_mask") == [0b10, 0]
    fire(scene, 1)
    fire(scene, 0)
    scene.chunk(1, overflowed=1)
    scene.chunk(0)
    scene.settle()
    assert scene.places("descriptor") == [(0,)] * 4
    assert scene.status("complete", "slots", "ready") == [0, 1, 0]
    assert scene.get("poisoned", "done_mask", "chunks_done") == [0b10, 0b11, 2]
    scene.poison(0)
    assert scene.bench.get("poisoned") == 0b10, "the slot is free"
    scene.abort()
    assert scene.bench.get("poisoned") == 0b10
    scene.loads.clear()
    scene.arm(2)
    assert scene.bench.get("poisoned") == 0
    scene.settle()
    fire(scene, 1)
    scene.settle()
    assert scene.places("descriptor")[4:] == [(1,)] * 4, "the slot is as new"


def test_poison_stops_blocks_that_wait():
    scene = live(ONE_TILE, ready=0)
    fire(scene)
    scene.settle()  # one in the register, one in BUILD, two in the list
    scene.poison()
    scene.settle()
    assert scene.status("ready", "outstanding") == [0, 1] and scene.bench.get("idle")
    scene.ready = 1
    scene.settle()
    assert len(scene.commands) == 1, "a command that was given stands"


def test_the_watchdog_finds_the_first_block_that_waits():
    scene = live({}, {"tiles_bottom": 3})
    scene.tile(8, 16)
    for row, col in ((8, 16), (8, 17), (9, 16), (9, 17), (10, 16), (10, 17)):
        scene.tile(row, col, slot=1)
    scene.poison(0)
    scene.settle()
    scene.watchdog(40)
    assert scene.bench.get("idle") and scene.bench.get("wake_at") < NEVER
    asked = scene.bench.get("wake_at")
    # taken at `asked`, blocks 0 to 3 enter in the next four cycles, the last is in stage C three later
    scene.until(asked + BLOCKS + 3)
    assert scene.stuck()["valid"] == 0
    scene.tick()
    found = {"valid": 1, "descriptor": 1, "context": CONTEXT, "block": 1, "expected": 3, "seen": 2}
    assert scene.stuck() == found and scene.get("wake_at") == [NEVER]
    scene.tick(200)
    assert scene.stuck() == found, "it is kept"
    scene.watchdog(40)
    assert scene.stuck()["valid"] == 0
    scene.tick(BLOCKS + 5)
    assert scene.stuck() == found, "it is found again"
    scene.control(disarm=1)
    assert scene.stuck()["valid"] == 0


def test_the_watchdog_counts_from_the_last_progress():
    scene = live({})
    scene.watchdog(50)
    for event in (lambda: scene.tile(8, 16), lambda: scene.control(resume=1), lambda: scene.arm(1, 1, 0)):
        scene.tick(30)
        event()
        assert scene.bench.get("wake_at") == scene.bench.now - 1 + 50 or not scene.bench.get("idle")
        assert scene.stuck()["valid"] == 0
    scene.tile(8, 16, slot=3)  # of a slot that is not used: no progress
    scene.chunk()
    scene.tick(200)
    assert scene.stuck()["valid"] == 0, "the chunk is done"


def test_the_watchdog_sleeps_while_quiesced_and_when_off():
    scene = live({})
    scene.control(quiesce=1)
    scene.watchdog(5)
    scene.tick(50)
    assert scene.stuck()["valid"] == 0
    scene.watchdog(0)
    scene.control(resume=1)
    scene.tick(50)
    assert scene.stuck()["valid"] == 0
    scene.watchdog(5)
    scene.tick(20)
    assert scene.stuck()["valid"] == 1


def test_a_scan_is_dropped_when_the_watchdog_is_written():
    scene = live({})
    scene.watchdog(1)  # asks at once
    scene.tick(3)
    scene.watchdog(1000)
    scene.tick(50)
    assert scene.stuck()["valid"] == 0


def test_a_chunk_whose_blocks_have_all_fired_is_reported_without_a_block():
    scene = live(ONE_TILE)
    fire(scene)
    scene.settle()
    scene.watchdog(1)
    scene.tick(20)
    assert scene.stuck() == {"valid": 1, "descriptor": 0, "context": CONTEXT, "block": 0, "expected": 0, "seen": 0}


def test_a_slot_that_is_aborted_while_it_is_scanned_is_reported():
    scene = live({})
    scene.watchdog(1)
    scene.tick(5)  # block 0 is in stage C
    scene.abort()
    scene.tick(20)
    assert scene.stuck() == {"valid": 1, "descriptor": 0, "context": CONTEXT, "block": 0, "expected": 4, "seen": 0}


def test_an_abort_in_the_cycle_of_a_retirement_leaves_no_flush():
    scene = Scene()
    scene.describe(0)
    scene.describe(1, context=0)
    scene.quota(0, credits=0)
    scene.arm(1)
    scene.settle()
    scene.arm(1, 1, 0)
    scene.settle()
    for row, col in ((8, 16), (10, 16), (8, 18), (10, 18)):
        for _ in range(4):
            scene.tile(row, col)
    scene.settle()
    assert len(scene.commands) == BLOCKS
    scene.chunk(1, overflowed=1)  # the walker is busy with this one
    scene.chunk(0, overflowed=1)  # all issued: the slot is retired in the next cycle
    scene.abort()
    scene.tick(BLOCKS + 4)
    assert scene.bench.get("idle") == 1, "no walk for the retired slot"
    assert scene.status("ready", context=0) == [BLOCKS]
