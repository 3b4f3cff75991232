"""The trigger: what the walker does, a flush after an overflow and a clear before a load, and in which order."""

import pytest

from tests.contract.trigger.scene import BLOCKS, COLUMN, LOAD_AFTER_ARM, LOAD_AFTER_WAIT, ONE, QUICK, Chunk, Scene

START = LOAD_AFTER_ARM + 8
"""Cycles from the arm pulse until the loader is in START for the second descriptor."""
UNDISTURBED = LOAD_AFTER_ARM + LOAD_AFTER_WAIT
"""Cycles from the arm pulse to the load pulse of the second descriptor."""
COMMAND = 7
"""Cycles from a tile, or a block of a flush, in the pipeline to its command."""


def test_an_overflowed_chunk_gives_what_is_left_once(backend):
    d = Scene(backend)
    d.make_live(Chunk(rows=4, cols=2, row0=4, row_shift=1))
    d.rows(0, 6, 7)
    d.tile(0, 4)
    d.settle()
    assert d.blocks(0) == [(6, 0, 2, 1)]
    done = d.chunk_done(0, overflowed=1)
    assert d.values("chunks_done", "done_mask") == (1, 1)
    d.settle()
    # Block row inside block column. `pending` at t+1, the walker is at block 0 at t+2.
    assert d.blocks(0)[1:] == [(4, 0, 2, 1), (4, 1, 2, 1), (6, 1, 2, 1)]
    assert d.since(done)[1:] == [2 + COMMAND, 5 + COMMAND, 8 + COMMAND]
    assert d.of_commands("by_chunk") == [(0,), (1,), (1,), (1,)]


def test_no_flush_without_overflow(backend):
    d = Scene(backend)
    d.make_live(COLUMN)
    d.chunk_done(0)
    d.settle()
    assert d.commands == [] and d["chunks_done"] == 1


@pytest.mark.parametrize(
    ("chunk", "log"),
    [
        (Chunk(rows=3, cols=1), 2),
        (Chunk(rows=1, cols=2), 1),
    ],
)
def test_a_flush_stays_inside_the_chunk(backend, chunk, log):
    """Of the four numbers, 0 to 2 are blocks, or 0 and 2."""
    d = Scene(backend)
    d.make_live(chunk, row_blocks_log=log)
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert d.blocks(0) == sorted(chunk.blocks())


@pytest.mark.parametrize("delay", range(8))
def test_a_tile_in_the_way_of_a_flush_delays_it_only(backend, delay):
    d = Scene(backend)
    d.make_live(COLUMN, COLUMN)
    d.chunk_done(0, overflowed=1)
    d.step(delay)
    d.tile(1, 0)
    d.settle()
    assert d.blocks(0) == [(row, 0, 1, 1) for row in range(4)]


def armed(d: Scene, *chunks: Chunk) -> int:
    """Describes and arms the chunks; returns the cycle of the pulse. Their slots are their numbers."""
    d.describe(*chunks)
    d.slot_of = {number: number for number in range(len(chunks))}
    return d.arm(len(chunks))


@pytest.mark.parametrize(
    ("cycles", "slot", "lost"),
    [
        (range(START + 1, START + 4), 0, 3),  # while CLEAR walks
        (range(START + 1, START + 4), 1, 0),  # the slot that is being cleared is not in use: ignored
        (range(START - 3, START + 1), 0, 0),  # before the walk
        (range(START + 4, START + 7), 0, 3),  # with the last block
    ],
)
def test_a_tile_takes_the_cycle_of_the_walker(backend, cycles, slot, lost):
    d = Scene(backend)
    start = armed(d, COLUMN, ONE)
    for cycle in cycles:
        d.until_cycle(start + cycle)
        d.tile(slot, 3 * (1 - slot))
    d.settle()
    assert d.loads[1][0] - start == UNDISTURBED + lost
    d.commands.clear()
    d.tile(1, 0)
    d.settle()
    assert d.commands == [], "no tile before the load counts"
    d.tile(1, 0, wf=1)
    d.settle()
    assert d.blocks(1) == [(0, 0, 1, 1)]


def test_a_flush_goes_before_a_clear_that_has_not_begun(backend):
    d = Scene(backend)
    start = armed(d, COLUMN, COLUMN)
    d.until_cycle(start + START - 1)
    done = d.chunk_done(0, overflowed=1)  # pending in START
    d.settle()
    assert d.since(done)[0] == 2 + COMMAND
    assert d.loads[1][0] - start == UNDISTURBED + BLOCKS + 1


def test_a_clear_that_has_begun_ends_before_a_flush(backend):
    d = Scene(backend)
    start = armed(d, COLUMN, COLUMN)
    d.until_cycle(start + START)
    done = d.chunk_done(0, overflowed=1)  # pending when CLEAR walks
    d.settle()
    assert d.loads[1][0] - start == UNDISTURBED
    # The walker is idle at START + BLOCKS + 1 and is at block 0 one cycle later.
    assert d.since(done)[0] == BLOCKS + 2 + COMMAND


def test_the_lowest_slot_is_flushed_first(backend):
    d = Scene(backend)
    start = armed(d, COLUMN, COLUMN, COLUMN)
    d.until_cycle(start + START + LOAD_AFTER_WAIT + 1)  # CLEAR of the third walks
    d.chunk_done(1, overflowed=1)
    d.chunk_done(0, overflowed=1)
    d.tile(1, 0)
    d.settle()
    assert d.of_commands("descriptor") == [(0,)] * 4 + [(1,)] * 4
    assert d.values("done_mask", "live") == (3, 3)


def test_a_clear_goes_on_after_an_abort(backend):
    d = Scene(backend)
    d.make_live(COLUMN)
    d.describe(Chunk(rows=4, cols=1, context=1), first=4)
    start = d.arm(1, first=4, context=1)
    d.until_cycle(start + 10)  # the walker is at block 0
    d.abort(1)
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert d.since(start)[0] == 10 + BLOCKS + 1 + COMMAND and len(d.loads) == 1


def test_a_slot_is_cleared_before_each_use(backend):
    d = Scene(backend)
    d.make_live(QUICK, COLUMN)
    d.all_tiles(0, QUICK)
    for row in range(4):
        d.tile(1, row)
    d.abort()
    d.settle()
    d.commands.clear()
    d.works(QUICK)
    assert d.slot_of[0] == 0
    d.works(COLUMN, first=1)
