"""The tracker: a chunk that is complete while one of its tiles has an entry got more lines than it expects."""

import random
from itertools import pairwise

import pytest

from tests.contract.tracker.scene import LINES, Scene, live


def test_one_line_more_for_a_complete_tile_is_an_error_when_its_chunk_is_complete(backend):
    scene = live(backend, slot=2, expected=2 * LINES)
    scene.count(row=0, n=LINES)
    scene.count(row=0)
    assert scene["entries"] == 1 and scene.errors == []
    scene.count(row=1, n=LINES)
    (pulse,) = scene.chunks
    assert scene.errors == ["over_total"] and pulse[1:] == (2, 0)


def test_the_error_is_there_in_the_cycle_after_the_pulse(backend):
    scene = live(backend, expected=2 * LINES)
    for lines in (LINES, 1):
        scene.count(row=0, n=lines)
    scene.deliver(row=1, n=LINES)
    scene.step(6)
    assert scene["chunk_done_valid"] and scene.errors == []
    scene.step()
    assert scene.errors == ["over_total"]


def test_a_line_that_comes_twice_is_an_error_also_if_it_completes_its_tile_early(backend):
    """As many lines as the tile has come with the one that is repeated; its own last line is the one too many."""
    scene = live(backend, expected=2 * LINES)
    for lines in (LINES - 2, 1, 1):  # the second one twice
        scene.count(row=0, n=lines)
    assert len(scene.tiles) == 1
    scene.count(row=0)
    assert scene.errors == []
    scene.count(row=1, n=LINES)
    assert len(scene.chunks) == 1 and scene.errors == ["over_total"]


@pytest.mark.parametrize("after", range(1, 8))
def test_a_line_that_comes_as_the_chunk_completes_is_an_error_in_any_cycle(backend, after):
    """The last tile transfers at 0, the pulse is at 7; a line for it, too few to be a tile, transfers ``after`` it."""
    scene = live(backend, expected=LINES)
    scene.deliver(n=LINES)
    scene.step(after - 1)
    scene.deliver()
    scene.settle()
    assert len(scene.chunks) == 1
    assert scene.errors == (["over_total"] if after < 7 else ["unmatched"])


def test_tiles_that_open_and_close_in_any_order_leave_none(backend):
    """Two chunks, both banks in the same cycles, and a slot that is used again."""
    scene = live(backend, slot=0, expected=2 * LINES, row1=1)
    scene.load(slot=1, expected=2 * LINES, row0=1, descriptor=1)
    for lines in (1, LINES - 1):
        for row in (0, 1):
            for col in (0, 1):
                scene.offer(row=row, col=col, n=lines)
    scene.settle()
    assert scene.done_chunks in ([(0, 0), (1, 0)], [(1, 0), (0, 0)]) and scene.errors == []
    scene.load(slot=0, expected=LINES, descriptor=2)
    for lines in (LINES - 1, 1):
        scene.count(row=3, n=lines)
    assert len(scene.chunks) == 3 and scene.errors == [] and scene["entries"] == 0


def test_what_a_chunk_left_open_is_not_told_of_the_next_one_in_its_slot(backend):
    scene = live(backend, expected=2 * LINES)
    scene.count(row=0)
    scene.load(expected=LINES, descriptor=1)
    scene.count(row=1, n=LINES)
    assert scene.done_chunks == [(0, 0)] and scene.errors == []


@pytest.mark.parametrize("command", ["abort", "arm"])
def test_a_chunk_that_is_gone_is_not_complete(backend, command):
    """The tile that makes all is counted at 6; its context is aborted or armed anew at 5, when another one is open."""
    scene = Scene(backend)
    scene.load(expected=LINES)
    scene.deliver(row=2)
    scene.deliver(row=0, n=LINES)
    scene.step(4)
    scene.control(**{command: 1, "descriptors": 1})
    scene.until("maintenance")
    scene.ends("maintenance")
    scene.settle()
    assert scene.done_chunks == [(0, 0)] and scene.errors == []


@pytest.mark.parametrize("seed", range(12))
def test_a_token_that_comes_twice_is_an_error_whichever_it_is(backend, seed):
    """Two chunks of more tiles than there are entries, their tokens in any order, and one of them again."""
    print(f"seed {seed}")
    choose = random.Random(seed)
    for repeats in (0, 1):
        scene = Scene(backend, seed=seed)
        tiles = [(row, col, wf) for row in range(4) for col in range(choose.choice((3, 6))) for wf in range(2)]
        for slot in range(2):
            mine = [tile for tile in tiles if tile[0] // 2 == slot]
            scene.load(slot=slot, row0=2 * slot, row1=2 * slot + 2, descriptor=slot, expected=LINES * len(mine))
        tokens = []
        for row, col, wf in tiles:
            cuts = sorted({0, LINES, *(choose.randrange(LINES) for _ in range(choose.randrange(4)))})
            parts = [end - begin for begin, end in pairwise(cuts)]
            tokens += [{"row": row, "col": col, "wf": wf, "n": n} for n in parts]
        tokens += choose.sample(tokens, repeats)
        choose.shuffle(tokens)
        for token in tokens:
            scene.offer(**token)
        scene.settle()
        assert bool(scene.errors) == bool(repeats), tokens
        if not repeats:
            assert len(scene.chunks) == 2 and scene["entries"] == 0
