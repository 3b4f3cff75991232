"""The trigger with several contexts: turns, quotas of slots and credits, status and masks of each, counters."""

from dataclasses import replace
from itertools import pairwise

import pytest
from t3hdl.interface.layouts import ChunkKind

from tests.contract.trigger.scene import COLUMN, LOAD_AFTER_ARM, LOAD_AFTER_WAIT, ONE, OTHER, QUICK, Scene

OTHER_ONE = replace(ONE, context=1)
OTHER_QUICK = replace(QUICK, context=1)


def test_status_from_arm_to_complete(backend):
    def status() -> tuple[int, ...]:
        c = d.context(1)
        return c.armed, c.complete, c.following, c.end, c.slots, c.ready, c.outstanding

    d = Scene(backend)
    chunk = replace(QUICK, context=1)
    d.describe(chunk, chunk, replace(chunk, kind=ChunkKind.REMOTE), first=4)
    assert status() == (0,) * 7
    start = d.arm(3, first=4, context=1)
    assert status() == (1, 0, 4, 7, 0, 0, 0) and d.values("armed", "context.0") == (1, 0)
    d.until_cycle(start + LOAD_AFTER_ARM)
    assert status() == (1, 0, 5, 7, 1, 0, 0)
    d.settle()
    assert status() == (1, 0, 7, 7, 2, 0, 0)
    d.finish(4, chunk)
    d.finish(5, chunk)
    d.settle()
    assert status() == (1, 1, 7, 7, 0, 0, 8)
    assert d.values("done_mask", "triggers", "chunks_done", "live") == (0b110000, 8, 2, 3)


def test_an_arm_begins_the_masks_of_its_window_anew_and_keeps_the_others(backend):
    d = Scene(backend)
    d.make_live(ONE, ONE, first=2)
    d.make_live(OTHER_ONE, OTHER_ONE, first=4)
    for descriptor in (2, 3, 4, 5):
        d.finish(descriptor, ONE)
    d.settle()
    assert d.values("done_mask", "chunks_done", "live") == (0b111100, 4, 4)
    d.arm(1, first=2)
    assert d.values("done_mask", "chunks_done", "live") == (0b111000, 4, 4)
    d.until_true(lambda: d["live"] == 5)
    d.finish(2, ONE)
    d.settle()
    assert d.values("done_mask", "chunks_done") == (0b111100, 5) and len(d.commands) == 5


@pytest.mark.parametrize("first", [0, 1])
def test_descriptors_of_two_contexts_become_live_in_turns(backend, first):
    """The context that is alone when the first one is chosen, then the other."""
    d = Scene(backend)
    d.describe(ONE, ONE, first=5)
    d.describe(OTHER_ONE, OTHER_ONE, first=2)
    for context in (first, 1 - first):
        d.arm(2, first=(5, 2)[context], context=context)
    d.until_true(lambda: d["live"] == 4)
    turns = [(0, 5), (1, 2), (0, 6), (1, 3)] if first == 0 else [(1, 2), (0, 5), (1, 3), (0, 6)]
    assert [(load["context"], load["descriptor"]) for _, load in d.loads] == turns
    assert [load["slot"] for _, load in d.loads] == [0, 1, 2, 3]
    assert [b - a for (a, _), (b, _) in pairwise(d.loads)] == [LOAD_AFTER_WAIT] * 3


def test_a_descriptor_of_another_context_is_skipped(backend):
    d = Scene(backend)
    d.describe(OTHER_ONE, ONE, replace(ONE, context=14))
    start = d.arm(3)
    d.settle()
    assert [(cycle - start, load["descriptor"]) for cycle, load in d.loads] == [(9 + LOAD_AFTER_ARM, 1)]
    assert (d["live"], d.context().following, d.context().end, d.context().slots) == (3, 3, 3, 1)


def test_commands_of_two_contexts_leave_in_turns_each_oldest_first(backend):
    d = Scene(backend)
    d.make_live(COLUMN)
    d.make_live(OTHER, first=4)
    d.accept["command"] = 0
    d.rows(0, 3, 1, 0, 2)
    d.rows(4, 2, 0, 1)
    d.step(10)
    # One is the command, one is built, both of context 0: it alone had a block then.
    assert [(d.context(c).ready, d.context(c).outstanding) for c in range(2)] == [(2, 1), (3, 0)]
    assert d.values("peak_ready", "backlog") == (5, 6)
    d.accept["command"] = 1
    d.settle()
    assert d.of_commands("context", "row") == [(0, 3), (0, 1), (1, 2), (0, 0), (1, 0), (0, 2), (1, 1)]
    assert [d.context(c).outstanding for c in range(2)] == [4, 3] and d["backlog"] == 7
    assert [b - a for (a, _), (b, _) in pairwise(d.commands)] == [1, 3, 3, 3, 3, 3]


def test_counters_of_commands(backend):
    d = Scene(backend)
    d.make_live(QUICK)
    d.accept["command"], start = 0, d.now
    d.all_tiles(0, QUICK)
    # Pushes at t+3 to t+6 show one cycle later; the first is taken at t+4, so the sum is 1, 1, 2, 3, then 2.
    d.until_cycle(start + 7)
    assert (d.context().ready, d["peak_ready"]) == (3, 2)
    d.step()
    assert d["peak_ready"] == 3
    d.until_cycle(start + 20)
    assert d.values("triggers", "command_stall") == (0, 0)
    d.accept["command"] = 1
    d.settle()
    # Written at t+6 and transferred at t+20: 13 cycles; the next one is written at t+20 and does not wait.
    assert d.since(start) == [20, 21, 24, 27]
    assert d.values("triggers", "command_stall", "peak_ready", "backlog") == (4, 13, 3, 4)
    d.control(disarm=1)
    assert d.values("triggers", "command_stall", "peak_ready", "backlog") == (0, 0, 0, 0)


def test_quota_of_one_slot(backend):
    d = Scene(backend)
    d.quota(0, slots=1)
    d.make_live(*[ONE] * 3, live=1)
    d.step(60)
    assert (d["live"], d["idle"], d.context().slots) == (1, 1, 1)
    d.make_live(OTHER_ONE, OTHER_ONE, first=4)
    assert d.context(1).slots == 2, "the quota is that of one context"
    for descriptor in range(3):
        d.until_true(lambda n=descriptor: n in d.slot_of)
        assert (d.context().slots, d.context().following) == (1, descriptor + 1)
        d.finish(descriptor, ONE)
    d.settle()
    assert (d.context().slots, d.context().complete, d.context(1).complete) == (0, 1, 0)


def test_following_passes_a_chunk_in_the_cycle_that_makes_it_live(backend):
    """Six chunks in a window of four: who holds an early update looks at the output and need not poll a register."""
    d, first, chunks = Scene(backend), 2, 6
    d.describe(*[ONE] * (first + chunks))
    d.arm(chunks, first=first)
    for finished in range(3):
        for _ in range(100):
            assert d.context().following == first + len(d.loads) + d["load_valid"]
            d.step()
        assert len(d.loads) == d.config.chunk_window + finished, "as many as there are slots"
        if len(d.loads) < chunks:
            d.finish(first + finished, ONE)
    assert d.context().following == d.context().end == first + chunks


def test_quota_of_no_slots_loads_nothing_until_it_is_raised(backend):
    d = Scene(backend)
    d.quota(0, slots=0)
    d.describe(ONE)
    d.arm(1)
    d.step(50)
    assert (d["live"], d["idle"], d.context().armed, d.context().complete) == (0, 1, 1, 0)
    d.quota(0, slots=1)
    d.until_true(lambda: d["live"] == 1)


@pytest.mark.parametrize("credits", [1, 2])
def test_credits_limit_the_commands_that_are_not_done(backend, credits):
    d = Scene(backend)
    d.quota(0, credits=credits)
    d.make_live(QUICK)
    d.finish(0, QUICK)
    d.step(40)
    for given in range(credits, 4):
        assert (len(d.commands), d.context().outstanding, d.context().ready) == (given, credits, 4 - given)
        assert d["idle"]
        start = d.now
        d.step(command_done=0)
        d.step(20)
        # FETCH at t+1, then LOOKUP and BUILD.
        assert d.since(start)[given:] == [4]
    assert d.context().complete, "commands that are not done do not hold the context"
    for left in [*range(credits, 0, -1), 0, 0]:
        assert d.context().outstanding == left
        d.step(command_done=0)


def test_no_credits_give_no_commands_and_hold_no_other_context(backend):
    d = Scene(backend)
    d.quota(0, credits=0)
    d.make_live(ONE)
    d.make_live(OTHER_ONE, first=4)
    for descriptor in (0, 4):
        d.finish(descriptor, ONE)
    d.step(30)
    assert d.of_commands("context") == [(1,)]
    assert (d.context().ready, d["idle"]) == (1, 1)
    d.quota(0, credits=1)
    d.settle()
    assert d.of_commands("context") == [(1,), (0,)]


def test_a_credit_before_its_command_and_of_no_context_is_ignored(backend):
    d = Scene(backend)
    d.make_live(QUICK)
    for context in (0, 1, 2, 15):
        d.step(command_done=context)
    d.all_tiles(0, QUICK)
    for _ in range(2):
        d.step(command_done=0)  # before the first command is written
    d.settle()
    for context in (1, 2, 15):
        d.step(command_done=context)
    assert [d.context(c).outstanding for c in range(2)] == [4, 0]


def test_a_credit_in_the_cycle_of_an_issue(backend):
    d = Scene(backend)
    d.make_live(QUICK)
    start = d.now
    d.all_tiles(0, QUICK)  # BUILD at t+6, t+9
    d.until_cycle(start + 7)
    assert d.context().outstanding == 1
    d.until_cycle(start + 9)
    d.step(command_done=0)
    assert (d["command.valid"], d.context().outstanding) == (1, 1)


def test_quiesce_holds_chunks_and_commands_and_counts_on(backend):
    d = Scene(backend)
    d.describe(QUICK, QUICK)
    start = d.arm(2)
    d.until_cycle(start + LOAD_AFTER_ARM - 1)  # LOAD
    d.control(quiesce=1)
    assert d.values("quiesced", "load_valid", "quiet") == (1, 1, 0)
    d.step()
    assert d.values("load_valid", "quiet") == (0, 1)
    d.step(30)
    assert len(d.loads) == 1
    d.finish(0, QUICK)
    d.step(20)
    assert (d.commands, d.context().ready) == ([], 4)
    assert d.values("chunks_done", "done_mask", "quiet") == (1, 1, 1)
    resumed = d.control(resume=1)
    assert d.values("quiesced", "quiet") == (0, 0)
    d.settle()
    assert d.since(resumed) == [4, 7, 10, 13]
    assert d.loads[1][0] - resumed == 1 + LOAD_AFTER_WAIT
    d.finish(1, QUICK)
    d.settle()
    assert d.context().complete


def test_what_is_under_way_ends_before_quiet(backend):
    d = Scene(backend)
    d.describe(COLUMN, COLUMN)
    d.accept["command"] = 0
    d.arm(2)
    d.until_true(lambda: d["live"] == 1)
    d.rows(0, 0, 1, 2)
    d.step(8)  # one command waits, one is built, one block is in the list; a descriptor is being loaded
    d.control(quiesce=1)
    assert d.values("quiesced", "quiet") == (1, 0)
    d.step(40)
    assert d.values("live", "quiet", "command.valid") == (2, 0, 1), "the load ends, the commands do not"
    d.accept["command"] = 1
    d.step(30)
    assert (len(d.commands), d.context().ready, d.context().outstanding) == (2, 1, 2)
    for _ in range(2):
        assert not d["quiet"]
        d.step(command_done=0)
    assert d.values("quiet", "idle", "backlog") == (1, 0, 2)
    d.step()
    assert d.values("quiet", "idle", "backlog") == (1, 1, 1), "the block in the list"


def test_a_disarm_ends_quiesce_and_keeps_quotas_and_descriptors(backend):
    d = Scene(backend)
    d.describe(OTHER_QUICK, OTHER_QUICK)
    d.quota(1, slots=1, credits=1)
    d.arm(2, context=1)
    d.until_true(lambda: d["live"] == 1)
    d.control(quiesce=1)
    d.all_tiles(0, QUICK)
    d.chunk_done(0)
    d.step(40)
    assert d.values("live", "quiet") == (1, 1)
    d.control(disarm=1)
    assert d.values("quiesced", "quiet", "armed", "context.0", "context.1") == (0,) * 5
    d.arm(2, context=1)
    d.step(60)
    assert (d["live"], d.context(1).slots, d.context(0).armed) == (1, 1, 0)
    d.all_tiles(0, QUICK)
    d.settle()
    assert len(d.commands) == 1
