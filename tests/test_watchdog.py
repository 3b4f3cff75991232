"""The watchdog of the trigger: which block it names, when it looks, what drops what it found."""

from typing import Any

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER, ChunkKind, Stuck
from trigger_driver import WAVEFRONTS, Chunk, Driver, check

_COLUMN = Chunk(rows=3, cols=1)
_PATIENCE = 40
# Asked at t: walking from t+1, four blocks, three stages.
_SCAN = 1 + 4 + 3


def _stuck(d: Driver) -> Any:
    return Stuck.from_bits(d["stuck"])


async def _waiting(d: Driver, chunk: Chunk = _COLUMN, *, first: int = 0) -> int:
    """Chunk ``first`` is live, block 0 of it is ready, block 1 has one tile. Returns the cycle of the last tile."""
    await d.arm([chunk], first=first)
    for wf in range(WAVEFRONTS):
        await d.tile(first, 0, 0, wf)
    await d.settle()
    since = d.now
    await d.tile(first, 1, 0)
    return since


def test_the_first_block_that_waits_is_named_when_patience_is_over() -> None:
    async def scenario(d: Driver) -> None:
        chunk = Chunk(rows=3, cols=1, context=1)
        await d.set(regs.WATCHDOG, _PATIENCE)
        since = await _waiting(d, chunk, first=5)
        await d.step(5)
        assert (d["idle"], d["wake_at"]) == (1, since + _PATIENCE)
        await d.until(lambda: d["stuck"])
        assert d.now == since + _PATIENCE + _SCAN
        expected = {"valid": 1, "descriptor": 5, "block": 1, "context": 1, "expected": WAVEFRONTS, "seen": 1}
        assert {field: _stuck(d)[field] for field in Stuck.members} == expected
        await d.step(3 * _PATIENCE)
        assert (d["idle"], d["wake_at"]) == (1, NEVER), "it looks once"
        await d.tile(5, 1, 0, 1)
        await d.settle()
        assert (d.blocks(5), _stuck(d).seen) == ([(0, 0, 1, 1), (1, 0, 1, 1)], 1)

    check(scenario)


@pytest.mark.parametrize("chunk", [Chunk(rows=1, cols=1), Chunk(rows=1, cols=1, kind=ChunkKind.LOCAL)])
def test_a_chunk_whose_blocks_are_all_ready_but_whose_end_does_not_come(chunk: Chunk) -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([chunk], first=3)
        for tile in chunk.tiles():
            await d.tile(3, *tile)
        await d.set(regs.WATCHDOG, _PATIENCE)
        await d.until(lambda: d["stuck"])
        stuck = _stuck(d)
        assert (stuck.descriptor, stuck.block, stuck.expected, stuck.seen) == (3, 0, 0, 0)

    check(scenario)


def test_one_block_in_a_table_of_one() -> None:
    async def scenario(d: Driver) -> None:
        await d.set(regs.WATCHDOG, _PATIENCE)
        await d.arm([Chunk(rows=1, cols=1)])
        since = d.now
        await d.tile(0, 0, 0)
        await d.until(lambda: d["stuck"])
        assert (d.now, _stuck(d).seen) == (since + _PATIENCE + 1 + 1 + 3, 1)

    check(scenario, blocks=1, event_queue=3)


def test_what_counts_as_progress() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_COLUMN] * 2)
        await d.set(regs.WATCHDOG, _PATIENCE)
        await d.step(**d.chunk_done(1))
        last = 0
        for action in (
            lambda: d.tile(0, 0, 0), lambda: d.step(**d.chunk_done(1)), lambda: d.control(resume=1),
            lambda: d.control(arm=1, context=1, first=6, descriptors=1),  # the LOAD is the last progress
        ):  # fmt: skip
            await d.step(_PATIENCE - 20)
            assert not d["stuck"]
            last = d.now
            await action()
        await d.until(lambda: d["load_valid"] or d["live"] == 3)
        last = d.loads[-1][0] - 1 if not d["load_valid"] else d.now - 1
        # What is ignored is no progress.
        await d.step(tile_done_valid=1, tile_done={"slot": 3})
        await d.step(chunk_done_valid=1, chunk_done={"slot": 63})
        await d.step(command_done_valid=1, command_done=0)
        await d.until(lambda: d["stuck"])
        assert d.now == last + _PATIENCE + _SCAN

    async def with_a_third(d: Driver) -> None:
        await d.write([Chunk(rows=1, cols=1, context=1)], first=6)
        await scenario(d)

    check(with_a_third)


@pytest.mark.parametrize("reason", ["off", "done", "poisoned", "quiesced", "not live"])
def test_when_it_does_not_look(reason: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.set(regs.WATCHDOG, 0 if reason == "off" else 10)
        if reason != "not live":
            await d.arm([_COLUMN])
        if reason == "done":
            await d.step(**d.chunk_done(0))
        if reason == "poisoned":
            await d.step(poison_valid=1, poison_slot=0)
        if reason == "quiesced":
            await d.control(quiesce=1)
        await d.step(60)
        assert (d["stuck"], d["wake_at"]) == (0, NEVER)
        if reason == "quiesced":
            await d.control(resume=1)
            await d.until(lambda: d["stuck"])

    check(scenario)


def test_done_and_poisoned_chunks_are_passed_over() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_COLUMN] * 3)
        await d.step(poison_valid=1, poison_slot=d.slot_of[0])
        await d.step(**d.chunk_done(1))
        await d.set(regs.WATCHDOG, 10)
        await d.until(lambda: d["stuck"])
        assert (_stuck(d).descriptor, _stuck(d).expected, _stuck(d).seen) == (2, WAVEFRONTS, 0)

    check(scenario)


@pytest.mark.parametrize("delay", range(_SCAN + 1))
def test_a_write_drops_a_scan_and_what_it_found(delay: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.set(regs.WATCHDOG, _PATIENCE)
        since = await _waiting(d)
        await d.until(lambda: d.now == since + _PATIENCE + delay)
        assert bool(d["stuck"]) == (delay == _SCAN)
        written = d.now
        await d.set(regs.WATCHDOG, _PATIENCE)
        seen = []
        while d.now < written + 3 * _SCAN:
            if d["stuck"]:
                seen.append(d.now)
            await d.step()
        # Patience is over already: it looks again at once, after the walk that has no effect any more.
        again = written + 1 if delay >= 5 else since + _PATIENCE + 5
        assert seen[0] == again + _SCAN
        assert (_stuck(d).block, _stuck(d).seen) == (1, 1)

    check(scenario)


def test_tiles_delay_a_scan_and_are_seen_by_it() -> None:
    async def scenario(d: Driver) -> None:
        await d.set(regs.WATCHDOG, _PATIENCE)
        since = await _waiting(d)
        await d.until(lambda: d.now == since + _PATIENCE + 1)
        await d.tile(0, 1, 0, 1)
        await d.tile(0, 2, 0, 1)
        await d.until(lambda: d["stuck"])
        assert d.now == since + _PATIENCE + _SCAN + 2
        assert (_stuck(d).block, _stuck(d).expected, _stuck(d).seen) == (2, WAVEFRONTS, 1)

    check(scenario)


def test_an_abort_during_a_scan_leaves_what_it_has_found() -> None:
    async def scenario(d: Driver) -> None:
        await d.set(regs.WATCHDOG, _PATIENCE)
        since = await _waiting(d)
        await d.until(lambda: d.now == since + _PATIENCE + _SCAN - 2)  # block 1 has been in stage C
        await d.control(abort=1)
        await d.until(lambda: d["stuck"])
        assert d.now == since + _PATIENCE + _SCAN
        assert (_stuck(d).descriptor, _stuck(d).block, _stuck(d).seen) == (0, 1, 1)
        await d.control(disarm=1)
        assert d["stuck"] == 0

    check(scenario)


def test_a_flush_goes_before_a_scan() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([_COLUMN] * 2)
        done = d.now
        write = {"address": regs.WATCHDOG, "data": 1}
        await d.step(config_valid=1, config=write, **d.chunk_done(1, overflowed=1))
        await d.until(lambda: d["stuck"])
        assert d.now == done + 1 + (4 + 1) + _SCAN
        await d.settle()
        assert len(d.blocks(1)) == 3

    check(scenario)
