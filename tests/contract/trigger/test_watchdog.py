"""The watchdog of the trigger: which block it names, when it looks, what drops what it found."""

from dataclasses import replace

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER, ChunkKind

from tests.contract.trigger.scene import BLOCKS, LOAD_AFTER_ARM, ONE, Chunk, Scene

COLUMN = Chunk(rows=3, cols=1)
PATIENCE = 40
SCAN = 1 + BLOCKS + 3
"""Asked at t: walking from t+1, all blocks, three stages."""


def found(d: Scene, *names: str) -> tuple[int, ...]:
    """Fields of what the watchdog found."""
    return tuple(d.fields("stuck")[name] for name in names)


def waiting(d: Scene, chunk: Chunk = COLUMN, *, first: int = 0) -> int:
    """Chunk ``first`` is live, block 0 of it is ready, block 1 has one tile. Returns the cycle of the last tile."""
    d.make_live(chunk, first=first)
    d.rows(first, 0)
    d.settle()
    return d.tile(first, 1)


def test_the_first_block_that_waits_is_named_when_patience_is_over(backend):
    d = Scene(backend)
    chunk = Chunk(rows=3, cols=1, context=1)
    d.patience(PATIENCE)
    since = waiting(d, chunk, first=5)
    d.step(5)
    assert (d["idle"], d["wake_at"]) == (1, since + PATIENCE)
    d.until("stuck", 300)
    assert d.now == since + PATIENCE + SCAN
    what = {"valid": 1, "descriptor": 5, "block": 1, "context": 1, "expected": 2, "seen": 1}
    assert d.fields("stuck") == what
    d.step(3 * PATIENCE)
    assert (d["idle"], d["wake_at"]) == (1, NEVER), "it looks once"
    d.patience(PATIENCE)
    assert d["stuck"] == 0
    d.step(SCAN)
    assert d.fields("stuck") == what, "patience is over already"
    d.tile(5, 1, 0, 1)
    d.settle()
    assert d.blocks(5) == [(0, 0, 1, 1), (1, 0, 1, 1)] and d.fields("stuck") == what


@pytest.mark.parametrize("chunk", [ONE, replace(ONE, kind=ChunkKind.LOCAL)])
def test_a_chunk_whose_blocks_are_all_ready_but_whose_end_does_not_come(backend, chunk):
    d = Scene(backend)
    d.make_live(chunk, first=3)
    d.all_tiles(3, chunk)
    d.patience(PATIENCE)
    d.until("stuck", 300)
    assert found(d, "descriptor", "block", "expected", "seen") == (3, 0, 0, 0)


@pytest.mark.own_size
def test_one_block_in_a_table_of_one(backend):
    d = Scene(backend, blocks=1, tracker_banks=1)
    d.patience(PATIENCE)
    d.make_live(ONE)
    since = d.tile(0, 0)
    d.until("stuck", 300)
    assert d.now == since + PATIENCE + 1 + 1 + 3 and found(d, "seen") == (1,)


def test_what_counts_as_progress(backend):
    d = Scene(backend)
    d.describe(replace(ONE, context=1), first=6)
    d.make_live(COLUMN, COLUMN)
    d.patience(PATIENCE)
    d.chunk_done(1)
    for action in (
        lambda: d.tile(0, 0),
        lambda: d.chunk_done(1),
        lambda: d.control(resume=1),
        lambda: d.arm(1, first=6, context=1),
    ):
        d.step(PATIENCE - 20)
        assert not d["stuck"]
        last = action() or d.now - 1
    assert d["wake_at"] == last + PATIENCE
    last += LOAD_AFTER_ARM - 1  # LOAD
    d.until_cycle(last + 3)
    assert d["live"] == 3
    # What is ignored is no progress.
    d.step(tile_done={"slot": 3})
    d.step(chunk_done={"slot": 63})
    d.step(command_done=0)
    d.until("stuck")
    assert d.now == last + PATIENCE + SCAN


@pytest.mark.parametrize("reason", ["off", "done", "poisoned", "quiesced", "not live"])
def test_when_it_does_not_look(backend, reason):
    d = Scene(backend)
    d.patience(0 if reason == "off" else 10)
    if reason != "not live":
        d.make_live(COLUMN)
    if reason == "done":
        d.chunk_done(0)
    if reason == "poisoned":
        d.poison(0)
    if reason == "quiesced":
        d.control(quiesce=1)
    d.step(60)
    assert (d["stuck"], d["wake_at"]) == (0, NEVER)
    if reason == "quiesced":
        resumed = d.control(resume=1)
        d.until("stuck")
        assert d.now == resumed + 10 + SCAN


def test_done_and_poisoned_chunks_are_passed_over(backend):
    d = Scene(backend)
    d.make_live(*[COLUMN] * 3)
    d.poison(0)
    d.chunk_done(1)
    d.patience(10)
    d.until("stuck", 300)
    assert found(d, "descriptor", "expected", "seen") == (2, 2, 0)


@pytest.mark.parametrize("delay", range(SCAN + 1))
def test_a_write_drops_a_scan_and_what_it_found(backend, delay):
    d = Scene(backend)
    d.patience(PATIENCE)
    since = waiting(d)
    d.until_cycle(since + PATIENCE + delay)
    assert bool(d["stuck"]) == (delay == SCAN)
    written = d.now
    d.patience(PATIENCE)
    seen = []
    while d.now < written + 3 * SCAN:
        if d["stuck"]:
            seen.append(d.now)
        d.step()
    # Patience is over already: it looks again at once, after the walk that has no effect any more.
    again = written + 1 if delay >= 5 else since + PATIENCE + 5
    assert seen[0] == again + SCAN
    assert found(d, "block", "seen") == (1, 1)


def test_tiles_delay_a_scan_and_are_seen_by_it(backend):
    d = Scene(backend)
    d.patience(PATIENCE)
    since = waiting(d)
    d.until_cycle(since + PATIENCE + 1)
    d.tile(0, 1, 0, 1)
    d.tile(0, 2, 0, 1)
    d.until("stuck", 300)
    assert d.now == since + PATIENCE + SCAN + 2
    assert found(d, "block", "expected", "seen") == (2, 2, 1)


def test_an_abort_during_a_scan_leaves_what_it_has_found(backend):
    d = Scene(backend)
    d.patience(PATIENCE)
    since = waiting(d)
    d.until_cycle(since + PATIENCE + SCAN - 2)  # block 1 has been in stage C
    d.abort()
    d.until("stuck", 300)
    assert d.now == since + PATIENCE + SCAN
    assert found(d, "descriptor", "block", "seen") == (0, 1, 1)
    d.control(disarm=1)
    assert d["stuck"] == 0


def test_a_flush_goes_before_a_scan(backend):
    d = Scene(backend)
    d.make_live(COLUMN, COLUMN)
    done = d.chunk_done(1, overflowed=1, config={"address": regs.WATCHDOG, "data": 1})
    d.until("stuck", 300)
    assert d.now == done + 1 + (BLOCKS + 1) + SCAN
    d.settle()
    assert len(d.blocks(1)) == 3
