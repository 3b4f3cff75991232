"""The golden Trigger against scenarios from docs/hardware.md: contexts in turns, quotas, credits, quiesce."""

import pytest
from golden_trigger_scene import BLOCKS, LOAD_AFTER_ARM, Scene, live
from t3hdl.interface.layouts import ChunkKind

ROWS_AND_COLS = ((8, 16), (10, 16), (8, 18), (10, 18))
"""The first tile of each block of the usual chunk."""
ONE_TILE = {"tiles_inner": 1, "tiles_bottom": 1, "tiles_right": 1}
"""Every block fires with its first tile."""
LOAD = 10 + BLOCKS
"""Cycles from WAIT to the load pulse, in which the loader waits again."""


def two_jobs(ready: int = 1, **quotas: int) -> Scene:
    """Contexts 0 and 1 with two chunks each: descriptors 0, 1 and 2, 3. Quotas apply to both."""
    scene = Scene(ready=ready)
    for number in range(4):
        scene.describe(number, context=number // 2, **ONE_TILE)
    for context in (0, 1):
        scene.quota(context, **quotas)
        scene.arm(2, 2 * context, context)
    scene.settle()
    return scene


def fire(scene: Scene, slot: int) -> None:
    """All four blocks of a slot fire, one per cycle."""
    for row, col in ROWS_AND_COLS:
        scene.tile(row, col, slot)


def test_status_from_arm_to_complete():
    scene = Scene()
    for number in (4, 5):
        scene.describe(number, **ONE_TILE)
    names = ("armed", "complete", "following", "end", "slots", "ready", "outstanding")
    assert scene.status(*names) == [0] * 7
    start = scene.arm(2, first=4)
    assert scene.status(*names) == [1, 0, 4, 6, 0, 0, 0] and scene.get("armed", "context.0") == [1, 0]
    scene.until(start + LOAD_AFTER_ARM)
    assert scene.status("following", "slots") == [5, 1]
    scene.settle()
    for slot in (0, 1):
        fire(scene, slot)
        scene.chunk(slot)
    scene.settle()
    assert scene.status(*names) == [1, 1, 6, 6, 0, 0, 8]
    assert scene.get("done_mask", "triggers", "chunks_done", "live") == [0b110000, 8, 2, 2]
    scene.arm(1, first=5)
    assert scene.status(*names) == [1, 0, 5, 6, 0, 0, 8]
    assert scene.get("done_mask", "chunks_done", "live") == [0b010000, 2, 2], "only the bits of the window are cleared"


def test_a_descriptor_of_another_context_is_skipped():
    scene = Scene()
    scene.describe(0, context=0)
    scene.describe(1, kind=ChunkKind.LOCAL)
    start = scene.arm(2)
    scene.settle()
    assert [(cycle - start, load["descriptor"]) for cycle, load in scene.loads] == [(9 + LOAD_AFTER_ARM, 1)]
    assert scene.status("following", "end", "slots") == [2, 2, 1] and scene.bench.get("live") == 2


def test_the_loader_takes_contexts_in_turns():
    scene = two_jobs()
    assert [(load["context"], load["descriptor"], load["slot"]) for _, load in scene.loads] == [
        (0, 0, 0), (1, 2, 1), (0, 1, 2), (1, 3, 3),
    ]  # fmt: skip
    first, *later = (cycle for cycle, _ in scene.loads)
    assert [cycle - first for cycle in later] == [LOAD, 2 * LOAD, 3 * LOAD]


def test_the_quota_of_slots():
    scene = two_jobs(slots=1)
    assert [load["descriptor"] for _, load in scene.loads] == [0, 2]
    assert [scene.status("following", "slots", context=context) for context in (0, 1)] == [[1, 1], [3, 1]]
    fire(scene, 1)
    scene.chunk(1)
    scene.settle()
    assert [load["descriptor"] for _, load in scene.loads] == [0, 2, 3]


@pytest.mark.parametrize("quota", [{"slots": 0}, {"credits": 0}])
def test_a_quota_of_nothing(quota):
    scene = two_jobs(**quota)
    if "credits" in quota:
        fire(scene, 0)
    scene.settle()
    assert scene.commands == [] and len(scene.loads) == (4 if "credits" in quota else 0)


def test_commands_take_contexts_in_turns_oldest_first():
    scene = two_jobs(ready=0)
    fire(scene, 0)
    fire(scene, 1)
    scene.tick(8)
    # one command in the register and one in BUILD, both of context 0: the only one with a block at those times
    assert [scene.status("ready", "outstanding", context=context) for context in (0, 1)] == [[2, 1], [4, 0]]
    scene.ready = 1
    scene.settle()
    assert scene.places("context", "row", "col") == [
        (0, 8, 16), (0, 10, 16), (1, 8, 16), (0, 8, 18), (1, 10, 16), (0, 10, 18), (1, 8, 18), (1, 10, 18),
    ]  # fmt: skip


def test_credits_limit_the_commands_that_are_not_done():
    scene = two_jobs(credits=1)
    fire(scene, 0)
    fire(scene, 1)
    scene.settle()
    assert scene.places("context") == [(0,), (1,)]
    assert [scene.status("ready", "outstanding", context=context) for context in (0, 1)] == [[3, 1], [3, 1]]
    start = scene.bench.now
    scene.credit(1)
    scene.settle()
    # outstanding 0 and FETCH at t+1, LOOKUP, BUILD, valid at t+4
    assert [(cycle - start, command["context"]) for cycle, command in scene.commands[2:]] == [(4, 1)]


def test_credits_beyond_those_given_and_of_no_context_are_ignored():
    scene = live(ONE_TILE)
    for context in (0, 1, 2, 15):
        scene.credit(context)
    fire(scene, 0)
    for _ in range(2):
        scene.credit()  # before the first command is written: ignored
    scene.settle()
    assert scene.status("outstanding") == [4]
    scene.tile(8, 16)
    for left in (3, 2, 1, 0, 0):
        scene.credit()
        assert scene.status("outstanding") == [left]


def test_a_credit_in_the_cycle_of_an_issue():
    scene = live(ONE_TILE)
    start = scene.bench.now
    fire(scene, 0)  # BUILD at t+6, t+9
    scene.until(start + 7)
    assert scene.status("outstanding") == [1]
    scene.until(start + 9)
    scene.credit()
    assert scene.status("outstanding") == [1]


def test_counters():
    scene = live(ONE_TILE, ready=0)
    start = scene.bench.now
    fire(scene, 0)
    # pushes at t+3 to t+6 show one cycle later; the first is fetched at t+4, so the sum is 1, 1, 2, 3, then 2
    scene.until(start + 7)
    assert scene.status("ready") == [3] and scene.bench.get("peak_ready") == 2
    scene.tick()
    assert scene.bench.get("peak_ready") == 3
    scene.until(start + 20)
    assert scene.get("triggers", "command_stall") == [0, 0]
    scene.ready = 1
    scene.settle()
    # written at t+6 and transferred at t+20: 13 cycles; the next one is written at t+20 and does not wait
    assert [cycle - start for cycle, _ in scene.commands] == [20, 21, 24, 27]
    assert scene.get("triggers", "command_stall", "peak_ready") == [4, 13, 3]
    scene.control(disarm=1)
    assert scene.get("triggers", "command_stall", "peak_ready") == [0, 0, 0]


def test_quiesce_holds_chunks_and_commands_and_counts_on():
    scene = Scene()
    for number in (0, 1):
        scene.describe(number, **ONE_TILE)
    start = scene.arm(2)
    scene.until(start + LOAD_AFTER_ARM - 1)  # LOAD
    scene.control(quiesce=1)
    assert scene.get("quiesced", "load_valid", "quiet") == [1, 1, 0]
    scene.tick()
    assert scene.get("load_valid", "quiet") == [0, 1]
    scene.settle()
    assert len(scene.loads) == 1
    fire(scene, 0)
    scene.chunk()
    scene.settle()
    assert scene.commands == [] and scene.status("ready") == [4] and scene.get("chunks_done", "quiet") == [1, 1]
    resumed = scene.control(resume=1)
    assert scene.get("quiesced", "quiet") == [0, 0]
    scene.settle()
    assert [cycle - resumed for cycle, _ in scene.commands] == [4, 7, 10, 13]
    assert scene.loads[1][0] - resumed == 1 + LOAD


def test_a_chunk_that_was_begun_becomes_live_before_quiet():
    scene = Scene()
    scene.describe(0)
    scene.arm(1)
    scene.tick(3)  # READ
    scene.control(quiesce=1)
    scene.settle()
    assert len(scene.loads) == 1 and scene.get("quiet", "live") == [1, 1]


def test_a_command_under_way_ends_before_quiet():
    scene = live(ONE_TILE, ready=0)
    fire(scene, 0)
    scene.tick(4)  # one in the register, one in BUILD
    scene.control(quiesce=1)
    scene.tick(10)
    assert scene.get("quiet", "command.valid") == [0, 1]
    scene.ready = 1
    scene.settle()
    assert len(scene.commands) == 2 and scene.status("ready", "outstanding") == [2, 2] and not scene.bench.get("quiet")
    scene.credit()
    assert scene.bench.get("quiet") == 0
    scene.credit()
    assert scene.bench.get("quiet") == 1


def test_a_disarm_keeps_quotas_and_ends_quiesce():
    scene = two_jobs(slots=1, credits=1)
    fire(scene, 0)
    scene.settle()
    scene.control(quiesce=1)
    scene.control(disarm=1)
    assert scene.get("quiesced", "armed", "context.0", "context.1") == [0, 0, 0, 0]
    scene.loads.clear()
    scene.commands.clear()
    scene.arm(2, 0, 0)
    scene.settle()
    fire(scene, 0)
    scene.settle()
    assert (len(scene.loads), len(scene.commands)) == (1, 1)
