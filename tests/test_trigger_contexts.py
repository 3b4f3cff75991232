"""The trigger with several contexts: turns, quotas of slots and credits, status and masks of each."""

from itertools import pairwise

import pytest
from t3hdl.interface.layouts import ChunkKind
from trigger_driver import WAVEFRONTS, Chunk, Driver, check


def test_descriptors_of_two_contexts_become_live_in_turns() -> None:
    chunks = [[Chunk(rows=1, cols=1, context=c)] * 2 for c in range(2)]

    async def scenario(d: Driver) -> None:
        await d.write(chunks[1], first=2)
        await d.write(chunks[0], first=5)
        await d.control(arm=1, context=1, first=2, descriptors=2)
        await d.control(arm=1, context=0, first=5, descriptors=2)
        await d.until(lambda: d["live"] == 4)
        # Context 1 was alone when the first one was chosen; then the turn is with 0.
        assert [(load["context"], load["descriptor"], load["slot"]) for _, load in d.loads] == [
            (1, 2, 0), (0, 5, 1), (1, 3, 2), (0, 6, 3),
        ]  # fmt: skip

    check(scenario)


def test_commands_of_two_contexts_leave_in_turns_each_oldest_first() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([Chunk(rows=4, cols=1)])
        await d.arm([Chunk(rows=4, cols=1, context=1)], first=4)
        d.bench.accept["command"] = 0
        for descriptor, rows in ((0, (3, 1, 0, 2)), (4, (2, 0, 1))):
            for row in rows:
                for wf in range(WAVEFRONTS):
                    await d.tile(descriptor, row, 0, wf)
        await d.step(10)
        assert [d.context(c).ready for c in range(2)] == [2, 3], "one is the command, one is built"
        assert d["peak_ready"] == 5
        d.bench.accept["command"] = 1
        await d.settle()
        assert [(c["context"], c["row"]) for _, c in d.commands] == [
            (0, 3), (0, 1), (1, 2), (0, 0), (1, 0), (0, 2), (1, 1),
        ]  # fmt: skip
        assert [b - a for (a, _), (b, _) in pairwise(d.commands)] == [1, 3, 3, 3, 3, 3]

    check(scenario)


def test_counters_of_commands() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([Chunk(rows=3, cols=1)])
        d.bench.accept["command"] = 0
        for tile in Chunk(rows=1, cols=1).tiles():
            await d.tile(0, *tile)
        await d.until(lambda: d["command.valid"])
        await d.step(7)
        d.bench.accept["command"] = 1
        await d.step(5)
        assert (d["triggers"], d["command_stall"]) == (1, 7)
        for row in (1, 2):
            for wf in range(WAVEFRONTS):
                await d.tile(0, row, 0, wf)
        await d.settle()
        assert (d["triggers"], d["command_stall"], d["peak_ready"]) == (3, 7, 1)
        await d.control(disarm=1)
        assert (d["triggers"], d["command_stall"], d["peak_ready"]) == (0, 0, 0)

    check(scenario)


def test_quota_of_one_slot() -> None:
    async def scenario(d: Driver) -> None:
        await d.quota(0, slots=1)
        chunk, other = Chunk(rows=1, cols=1), Chunk(rows=1, cols=1, context=1)
        await d.arm([chunk] * 3, live=1)
        await d.step(60)
        assert (d["live"], d["idle"], d.context(0).slots) == (1, 1, 1)
        await d.arm([other] * 2, first=4)
        assert d.context(1).slots == 2, "the quota is that of one context"
        for descriptor in range(3):
            await d.until(lambda n=descriptor: n in d.slot_of)
            assert d.context(0).slots == 1
            await d.finish(descriptor, chunk)
        await d.settle()
        assert (d.context(0).slots, d.context(0).complete, d.context(1).complete) == (0, 1, 0)

    check(scenario)


def test_quota_of_no_slots_loads_nothing_until_it_is_raised() -> None:
    async def scenario(d: Driver) -> None:
        await d.quota(0, slots=0)
        await d.write([Chunk(rows=1, cols=1)])
        await d.control(arm=1, descriptors=1)
        await d.step(50)
        assert (d["live"], d["idle"], d.context(0).armed, d.context(0).complete) == (0, 1, 1, 0)
        await d.quota(0, slots=1)
        await d.until(lambda: d["live"] == 1)

    check(scenario)


@pytest.mark.parametrize("credits", [1, 2])
def test_credits_limit_the_commands_that_are_not_done(credits: int) -> None:
    chunk = Chunk(rows=4, cols=1)

    async def scenario(d: Driver) -> None:
        await d.quota(0, credits=credits)
        await d.arm([chunk])
        await d.finish(0, chunk)
        await d.step(40)
        for given in range(credits, 4):
            assert (len(d.commands), d.context(0).outstanding, d["idle"]) == (given, credits, 1)
            assert d.context(0).ready == 4 - given
            await d.step(command_done_valid=1, command_done=0)
            await d.step(20)
        assert len(d.commands) == 4
        assert d.context(0).complete, "commands that are not done do not hold the context"
        for left in range(credits, 0, -1):
            assert d.context(0).outstanding == left
            await d.step(command_done_valid=1, command_done=0)
        await d.step(command_done_valid=1, command_done=0)
        assert d.context(0).outstanding == 0, "none is left"

    check(scenario)


def test_no_credits_give_no_commands_and_hold_no_other_context() -> None:
    async def scenario(d: Driver) -> None:
        await d.quota(0, credits=0)
        await d.arm([Chunk(rows=1, cols=1)])
        await d.arm([Chunk(rows=1, cols=1, context=1)], first=4)
        for descriptor in (0, 4):
            await d.finish(descriptor, Chunk(rows=1, cols=1))
        await d.step(30)
        assert [c["context"] for _, c in d.commands] == [1]
        assert (d.context(0).ready, d["idle"]) == (1, 1)
        await d.quota(0, credits=1)
        await d.settle()
        assert [c["context"] for _, c in d.commands] == [1, 0]

    check(scenario)


def test_a_credit_back_in_the_cycle_of_an_issue_and_of_a_stray_context() -> None:
    chunk = Chunk(rows=2, cols=1)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk])
        for wf in range(WAVEFRONTS):
            await d.tile(0, 0, 0, wf)
        await d.settle()
        assert d.context(0).outstanding == 1
        await d.tile(0, 1, 0, 0)
        await d.tile(0, 1, 0, 1)
        await d.step(5)
        await d.step(command_done_valid=1, command_done=0)  # BUILD
        assert (d["command.valid"], d.context(0).outstanding) == (1, 1)
        for context in (1, 2, 15):
            await d.step(command_done_valid=1, command_done=context)
        assert [d.context(c).outstanding for c in range(2)] == [1, 0]

    check(scenario)


def test_a_descriptor_of_another_context_is_skipped() -> None:
    chunks = [Chunk(rows=1, cols=1, context=1), Chunk(rows=1, cols=1), Chunk(rows=1, cols=1, context=14)]

    async def scenario(d: Driver) -> None:
        await d.write(chunks)
        await d.control(arm=1, descriptors=3)
        await d.until(lambda: d["live"] == 3)
        assert [load["descriptor"] for _, load in d.loads] == [1]
        assert (d.context(0).following, d.context(0).end, d.context(0).slots) == (3, 3, 1)

    check(scenario)


def test_a_context_is_complete_when_all_is_skipped_or_retired() -> None:
    async def scenario(d: Driver) -> None:
        chunk = Chunk(rows=1, cols=1)
        await d.write([chunk, Chunk(rows=1, cols=1, kind=ChunkKind.REMOTE)], first=3)
        await d.control(arm=1, descriptors=2, first=3)
        assert (d["armed"], d.context(0).armed, d.context(0).following, d.context(0).end) == (1, 1, 3, 5)
        await d.until(lambda: d["live"] == 2)
        assert not d.context(0).complete
        await d.finish(3, chunk)
        await d.settle()
        assert (d.context(0).complete, d.context(0).armed, d["done_mask"]) == (1, 1, 8)
        assert (d.context(0).ready, d.context(0).slots) == (0, 0)

    check(scenario)


def test_an_arm_begins_the_masks_of_its_window_anew_and_keeps_the_others() -> None:
    chunk = Chunk(rows=1, cols=1)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk] * 2, first=2)
        await d.arm([Chunk(rows=1, cols=1, context=1)] * 2, first=4)
        for descriptor in (2, 3, 4, 5):
            await d.finish(descriptor, chunk)
        await d.settle()
        assert (d["done_mask"], d["chunks_done"], d["live"]) == (0b111100, 4, 4)
        await d.control(arm=1, first=2, descriptors=1)
        assert (d["done_mask"], d["chunks_done"], d["live"]) == (0b111000, 4, 4)
        await d.until(lambda: d["live"] == 5)
        await d.finish(2, chunk)
        await d.settle()
        assert (d["done_mask"], d["chunks_done"], len(d.commands)) == (0b111100, 5, 5)

    check(scenario)


def test_quotas_and_descriptors_outlive_a_disarm() -> None:
    async def scenario(d: Driver) -> None:
        await d.quota(1, slots=1)
        await d.write([Chunk(rows=1, cols=1, context=1)] * 2)
        await d.control(disarm=1)
        await d.control(arm=1, context=1, descriptors=2)
        await d.step(60)
        assert (d["live"], d.context(1).slots, d.context(0).armed) == (1, 1, 0)

    check(scenario)
