"""The trigger: abort of a context in every state, quiesce and resume, poisoned chunks."""

from typing import Any

import pytest
from t3hdl.interface.layouts import ChunkKind
from trigger_driver import WAVEFRONTS, Chunk, Driver, check

_COLUMN = Chunk(rows=4, cols=1)
_OTHER = Chunk(rows=4, cols=1, context=1)


async def _works(d: Driver, *, context: int, first: int, chunk: Chunk = _COLUMN) -> None:
    """The context can be armed again and gives the commands of ``chunk``, once each."""
    chunk = Chunk(rows=chunk.rows, cols=chunk.cols, context=context)
    before = len(d.blocks(first))
    await d.arm([chunk], first=first)
    await d.finish(first, chunk)
    await d.settle()
    assert sorted(d.blocks(first)[before:]) == sorted(chunk.blocks())
    assert (d.context(context).complete, d.context(context).slots, d.context(context).ready) == (1, 0, 0)


# WAIT, READ, START and CLEAR, LOAD, the load pulse, and after it.
@pytest.mark.parametrize("point", [0, 1, 7, 8, 9, 12, 13, 14, 15])
def test_abort_in_every_state_of_the_loader(point: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_OTHER], first=6)
        await d.write([_COLUMN])
        await d.control(arm=1, descriptors=1)
        await d.step(point)
        loaded = point >= 14  # the arm pulse is at t, LOAD at t+14
        await d.control(abort=1)
        assert not d["load_valid"]
        status = d.context(0)
        assert (status.armed, status.following, status.end, status.slots, status.complete) == (0, 0, 0, 0, 0)
        await d.step(30)
        assert (d["live"], len(d.loads)) == (1 + loaded, 1 + loaded)
        assert (d.context(1).armed, d.context(1).slots, d["armed"]) == (1, 1, 1)
        await _works(d, context=0, first=0)
        await d.finish(6, _OTHER)
        await d.settle()
        assert d.context(1).complete

    check(scenario)


@pytest.mark.parametrize("point", range(0, 11, 2))
def test_abort_in_the_state_skip_and_around_it(point: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.write([Chunk(rows=1, cols=1, kind=ChunkKind.NONE)] * 2)
        await d.control(arm=1, descriptors=1)
        await d.step(point)
        await d.control(abort=1)
        await d.step(20)
        assert (d["live"], d.context(0).following) == (point > 8, 0)  # SKIP is in the ninth cycle

    check(scenario)


# With the last tile at t: in the list at t+4 (FETCH), LOOKUP, BUILD, command valid at t+7.
@pytest.mark.parametrize("point", range(9))
def test_abort_in_every_state_of_the_issuer(point: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_COLUMN])
        await d.arm([_OTHER], first=4)
        await d.tile(0, 0, 0, 0)
        await d.tile(0, 0, 0, 1)
        await d.step(point)
        await d.control(abort=1)  # point + 1 cycles after the last tile
        await d.step(20)
        given = point + 1 > 6
        assert (len(d.commands), d["triggers"], d.context(0).outstanding) == (given, given, given)
        await d.finish(4, _OTHER)
        await d.settle()
        assert (d.blocks(4), d.context(1).complete) == ([(row, 0, 1, 1) for row in range(4)], 1)
        await _works(d, context=0, first=0)

    check(scenario)


@pytest.mark.parametrize("aborted", [0, 1])
def test_abort_with_a_command_that_waits_on_a_stalled_stream(aborted: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_COLUMN])
        await d.arm([_OTHER], first=4)
        d.bench.accept["command"] = 0
        for descriptor, row in ((0, 0), (0, 1), (4, 0), (4, 1), (0, 2)):
            for wf in range(WAVEFRONTS):
                await d.tile(descriptor, row, 0, wf)
        await d.step(20)  # (0, 0) is the command, (4, 0) is built, the others wait
        await d.control(abort=1, context=aborted)
        await d.step(5)
        assert (d["command.valid"], d.context(aborted).ready, d.context(0).outstanding) == (1, 0, 1)
        d.bench.accept["command"] = 1
        await d.settle()
        left = [(0, 0), (4, 0), (4, 1)] if aborted == 0 else [(0, 0), (0, 1), (0, 2)]
        assert [(c["descriptor"], c["row"]) for _, c in d.commands] == left
        assert [d.context(c).outstanding for c in range(2)] == ([1, 2] if aborted == 0 else [3, 0])
        await _works(d, context=aborted, first=4 * aborted)

    check(scenario)


@pytest.mark.parametrize("delay", range(7))
def test_abort_during_a_flush(delay: int) -> None:
    async def scenario(d: Driver) -> None:
        d.bench.accept["command"] = 0
        await d.arm([_COLUMN])
        await d.arm([_OTHER], first=4)
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.step(delay)
        await d.control(abort=1)
        before = d["done_mask"]
        await d.step(10)
        assert (d["done_mask"], d["chunks_done"], d.context(0).ready) == (before, 1, 0)
        assert before == 1
        d.bench.accept["command"] = 1
        await d.settle()
        assert len(d.commands) <= 1
        await _works(d, context=0, first=0)
        await d.finish(4, _OTHER)
        await d.settle()
        assert (len(d.blocks(4)), d.context(1).complete) == (4, 1)

    check(scenario)


def test_an_abort_wins_over_pulses_of_its_cycle() -> None:
    async def scenario(d: Driver) -> None:
        for pulse in ({"chunk_done_valid": 1}, {"poison_valid": 1}, {"tile_done_valid": 1}):
            await d.arm([_COLUMN])
            slot = d.slot_of[0]
            pulse |= {"chunk_done": {"slot": slot}, "poison_slot": slot, "tile_done": {"slot": slot}}
            await d.step(**pulse, **d.controlling(abort=1))
            assert (d["done_mask"], d["chunks_done"], d["poisoned"]) == (0, 0, 0)
        await _works(d, context=0, first=0)

    check(scenario)


def test_no_chunk_becomes_live_while_the_tracker_is_busy_with_an_abort() -> None:
    async def scenario(d: Driver) -> None:
        await d.write([_OTHER] * 2)
        await d.control(arm=1, context=1, descriptors=2)
        await d.step(3)
        await d.step(abort_busy=1)
        await d.step(40)
        assert d["live"] == 1, "the one that was on its way"
        await d.step(abort_busy=0)
        await d.until(lambda: d["live"] == 2)

    check(scenario)


async def _fill_pipes(d: Driver) -> None:
    """One command waits, one is built, one block is in the list; a descriptor is being loaded."""
    await d.write([_COLUMN] * 2)
    d.bench.accept["command"] = 0
    await d.control(arm=1, descriptors=2)
    await d.until(lambda: d["live"] == 1)
    for row in range(3):
        for wf in range(WAVEFRONTS):
            await d.tile(0, row, 0, wf)
    await d.step(8)


def test_quiesce_in_the_middle_loses_nothing() -> None:
    async def scenario(d: Driver) -> None:
        await _fill_pipes(d)
        await d.control(quiesce=1)
        assert (d["quiesced"], d["quiet"]) == (1, 0)
        await d.step(40)
        assert (d["live"], d["quiet"]) == (2, 0), "the load that was on its way ends, the commands do not"
        d.bench.accept["command"] = 1
        await d.step(30)
        given = len(d.commands)
        assert given == 2
        for _ in range(given):
            assert not d["quiet"]
            await d.step(command_done_valid=1, command_done=0)
        assert (d["quiet"], d["idle"]) == (1, 1)
        for wf in range(WAVEFRONTS):
            await d.tile(0, 3, 0, wf)
        await d.step(**d.chunk_done(0))
        await d.step(20)
        assert (len(d.commands), d.context(0).ready, d["done_mask"], d["quiet"]) == (given, 4 - given, 1, 1)
        await d.control(resume=1)
        assert (d["quiesced"], d["quiet"]) == (0, 0)
        await d.settle()
        assert sorted(d.blocks(0)) == sorted(_COLUMN.blocks())
        await d.finish(1, _COLUMN)
        await d.settle()
        assert d.context(0).complete

    check(scenario)


def test_no_new_chunk_begins_while_quiesced_and_a_disarm_ends_it() -> None:
    async def scenario(d: Driver) -> None:
        await d.write([_COLUMN] * 3)
        await d.quota(0, slots=1)
        await d.control(arm=1, descriptors=3)
        await d.until(lambda: d["live"] == 1)
        await d.control(quiesce=1)
        await d.finish(0, _COLUMN)
        await d.step(40)
        assert (d["live"], d["quiet"]) == (1, 1)
        await d.control(disarm=1)
        assert (d["quiesced"], d["quiet"]) == (0, 0)
        await _works(d, context=0, first=0)

    check(scenario)


async def _poison(d: Driver, descriptor: int, **inputs: Any) -> None:
    await d.step(poison_valid=1, poison_slot=d.slot_of[descriptor], **inputs)


def test_a_poisoned_chunk_gives_no_command_and_never_ends() -> None:
    async def scenario(d: Driver) -> None:
        d.bench.accept["command"] = 0
        await d.arm([_COLUMN] * 2)
        for descriptor, row in ((1, 0), (0, 0), (0, 1), (1, 1)):
            for wf in range(WAVEFRONTS):
                await d.tile(descriptor, row, 0, wf)
        await d.step(20)
        assert d.context(0).ready == 2
        await _poison(d, 0)
        assert d["poisoned"] == 1
        d.bench.accept["command"] = 1
        for row in (2, 3):
            for wf in range(WAVEFRONTS):
                await d.tile(0, row, 0, wf)
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.settle()
        # The block of chunk 0 that was built, and those in the list, are dropped.
        assert [(c["descriptor"], c["row"]) for _, c in d.commands] == [(1, 0), (1, 1)]
        assert (d["done_mask"], d["chunks_done"], d.context(0).slots, d.context(0).ready) == (1, 1, 2, 0)
        for row in (2, 3):
            for wf in range(WAVEFRONTS):
                await d.tile(1, row, 0, wf)
        await d.step(**d.chunk_done(1))
        await d.settle()
        assert (len(d.commands), d.context(0).slots, d.context(0).complete) == (4, 1, 0)
        await d.control(abort=1)
        assert (d["poisoned"], d.context(0).slots) == (1, 0), "the bit stays until the next arm"
        await _works(d, context=0, first=0)
        assert d["poisoned"] == 0

    check(scenario)


@pytest.mark.parametrize("delay", range(8))
def test_poison_at_any_time_after_the_last_tile(delay: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_COLUMN])
        await d.tile(0, 0, 0, 0)
        await d.tile(0, 0, 0, 1)
        await d.step(delay)
        await _poison(d, 0)  # delay + 1 cycles after the last tile; BUILD is at 6
        await d.settle()
        assert len(d.commands) == (delay + 1 >= 6)
        assert (d.context(0).ready, d.context(0).outstanding) == (0, len(d.commands))

    check(scenario)


def test_a_poison_of_a_slot_that_is_not_in_use_is_ignored() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_COLUMN])
        for slot in (1, 3, 4, 63):
            await d.step(poison_valid=1, poison_slot=slot)
        assert d["poisoned"] == 0
        await _works(d, context=1, first=1)

    check(scenario)


def test_an_abort_in_the_cycle_of_a_retirement_leaves_no_flush() -> None:
    async def scenario(d: Driver) -> None:
        chunk = Chunk(rows=1, cols=1)
        await d.quota(1, credits=0)
        await d.arm([chunk])
        await d.arm([_OTHER], first=4)
        for tile in chunk.tiles():
            await d.tile(0, *tile)
        await d.settle()
        await d.step(**d.chunk_done(4, overflowed=1))  # the walker is busy with this one
        await d.step(**d.chunk_done(0, overflowed=1))  # all issued: the slot is retired in the next cycle
        await d.control(abort=1)
        await d.step(7)
        assert (d["idle"], d.context(1).ready) == (1, 4), "no walk for the retired slot"

    check(scenario)
