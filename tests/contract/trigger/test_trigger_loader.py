"""The trigger: chunks become live in order, slots are used again, disarm, reset."""

import numpy as np
import pytest
from amaranth.hdl import Signal
from t3hdl.interface.layouts import NEVER, ChunkKind

from tests.contract.trigger.scene import (
    BLOCKS,
    FOUR_BLOCKS,
    LOAD_AFTER_ARM,
    LOAD_AFTER_WAIT,
    ONE,
    QUICK,
    Chunk,
    Scene,
)

CLEARED = ("command.valid", "load_valid", "armed", "live", "chunks_done", "done_mask", "poisoned", "stuck")
"""Outputs that are 0 after reset and disarm."""
LOCAL = Chunk(rows=1, cols=1, kind=ChunkKind.LOCAL)


def test_after_reset(backend):
    d = Scene(backend)
    assert d.values(*CLEARED, "context.0", "context.1", "quiesced", "quiet") == (0,) * (len(CLEARED) + 4)
    assert d.values("triggers", "command_stall", "peak_ready") == (0, 0, 0)
    d.step(2)
    assert d.values("init_done", "idle", "wake_at") == (1, 1, NEVER)


def loader_cycles(d: Scene, blocks: int) -> None:
    d.describe(*(Chunk(rows=1, cols=1, kind=kind) for kind in (
        ChunkKind.DMA, ChunkKind.REMOTE, ChunkKind.NONE, ChunkKind.LOCAL, ChunkKind.DMA,
    )))  # fmt: skip
    armed = d.arm(4)
    assert d["armed"]
    seen: dict[int, int] = {}
    while d.now < armed + 2 * (11 + blocks) + 2 * 9 + 40:
        seen.setdefault(d["live"], d.now - armed)
        d.step()
    first = 11 + blocks
    second = first + 2 * 9 + 10 + blocks
    assert [(cycle - armed, load["descriptor"], load["slot"]) for cycle, load in d.loads] == [
        (first, 0, 0),
        (second, 3, 1),
    ]
    assert seen == {0: 1, 1: first + 1, 2: first + 9, 3: first + 18, 4: second + 1}, "the fifth is not armed"


def test_the_loader_takes_the_cycles_of_the_contract(backend):
    loader_cycles(Scene(backend), BLOCKS)


@pytest.mark.own_size
@pytest.mark.parametrize("blocks", [1, 16])
def test_the_loader_clears_as_many_blocks_as_there_are(backend, blocks):
    loader_cycles(Scene(backend, blocks=blocks, **({"tracker_banks": 1} if blocks == 1 else {})), blocks)


def test_nothing_is_loaded_without_an_arm(backend):
    d = Scene(backend)
    d.describe(ONE, ONE)
    d.step(50)
    assert d.loads == [] and d["live"] == 0


def test_a_load_says_what_the_descriptor_says(backend):
    d = Scene(backend)
    d.describe(Chunk(rows=1, cols=1, kind=ChunkKind.NONE))
    chunk = Chunk(rows=3, cols=5, row0=4090, col0=2, context=1)
    d.describe(chunk, first=1, context=0, expected=654321, epoch=3, addends=7)
    d.arm(2)
    d.settle()
    assert [load for _, load in d.loads] == [{
        "row0": 4090, "row1": 4093, "col0": 2, "col1": 7, "addends": 7, "slot": 0, "valid": 1, "reserved": 0,
        "expected": 654321, "context": 0, "epoch": 3, "descriptor": 1,
    }]  # fmt: skip
    assert d.values("armed", "live") == (1, 2)


def test_a_local_slot_is_free_two_cycles_after_its_chunk(backend):
    d = Scene(backend)
    d.make_live(*[LOCAL] * 5, live=4)
    d.settle()
    assert d["live"] == 4
    done = d.chunk_done(2)
    d.settle()
    # `done` t+1, free and WAIT t+2.
    cycle, load = d.loads[-1]
    assert (cycle - done, load["slot"], load["descriptor"]) == (2 + LOAD_AFTER_WAIT, 2, 4)
    d.chunk_done(4)
    d.settle()
    assert d.values("live", "chunks_done", "done_mask") == (5, 2, 0b10100)


def test_a_skip_waits_for_a_free_slot_and_the_lowest_is_taken(backend):
    d = Scene(backend)
    d.make_live(*[LOCAL] * 4, Chunk(rows=1, cols=1, kind=ChunkKind.REMOTE), ONE, live=4)
    d.step(30)
    assert d.values("live", "idle") == (4, 1)
    for slot in (3, 1):
        d.chunk_done(slot)
    d.settle()
    assert d["live"] == 6 and d.loads[-1][1]["slot"] == 1


def test_a_dma_slot_is_kept_until_its_commands_are_issued(backend):
    d = Scene(backend)
    d.accept["command"] = 0
    d.make_live(*[QUICK] * 5, live=4)
    d.finish(0, QUICK)
    d.step(30)
    assert d.values("live", "idle") == (4, 1)
    d.accept["command"], start = 1, d.now
    d.settle()
    # The second waits in BUILD; BUILD of the last at t+6, all issued t+7, free and WAIT t+8.
    assert d.since(start) == [0, 1, 4, 7]
    assert (d.loads[-1][0] - start, d.slot_of[4]) == (8 + LOAD_AFTER_WAIT, 0)
    d.tile(4, 0)
    d.settle()
    assert d.of_commands("descriptor", "row")[4:] == [(4, 0)], "nothing of the chunk before is left"


def test_a_slot_is_kept_until_its_chunk_is_done(backend):
    d = Scene(backend)
    d.make_live(QUICK)
    d.all_tiles(0, QUICK)
    d.settle()
    assert (len(d.commands), d.context().slots) == (4, 1)
    d.chunk_done(0)
    assert (d["chunks_done"], d.context().slots) == (1, 1)
    d.step()
    assert d.context().slots == 0


def test_disarm_clears_all_but_the_descriptors(backend):
    d = Scene(backend)
    d.accept["command"] = 0
    d.make_live(FOUR_BLOCKS, FOUR_BLOCKS)
    tiles = list(FOUR_BLOCKS.tiles())
    for tile in tiles[:-1]:
        d.tile(0, *tile)
    d.chunk_done(1, overflowed=1)
    d.poison(1)
    d.step(4)
    assert d["command.valid"]
    d.control(disarm=1)
    assert d.values(*CLEARED, "context.0") == (0,) * (len(CLEARED) + 1) and d["init_done"]
    d.accept["command"] = 1
    d.step(30)
    assert d.commands == [] and d["idle"]
    d.loads.clear()
    start = d.arm(1)
    d.settle()
    assert [cycle - start for cycle, _ in d.loads] == [LOAD_AFTER_ARM] and d["live"] == 1
    for tile in tiles[:4]:
        d.tile(0, *tile)
    d.settle()
    assert d.blocks(0) == [], "no tile before the disarm counts"
    for tile in tiles[4:]:
        d.tile(0, *tile)
    d.settle()
    assert sorted(d.blocks(0)) == sorted(FOUR_BLOCKS.blocks())


@pytest.mark.parametrize("cycle", [3, 6, 9, 12, 14, 15, 18, 21, 24])
def test_disarm_in_every_state_of_the_loader(backend, cycle):
    d = Scene(backend)
    d.describe(ONE, ONE)
    start = d.arm(2)
    d.until_cycle(start + cycle)  # LOAD is at 14
    d.control(disarm=1)
    d.step(30)
    assert d["live"] == 0 and len(d.loads) == (cycle >= LOAD_AFTER_ARM)
    d.loads.clear()
    d.arm(2)
    d.settle()
    assert [(load["descriptor"], load["slot"]) for _, load in d.loads] == [(0, 0), (1, 1)]


def fill_tables(d: Scene) -> None:
    """Random bits in the block tables, which a reset does not touch, and in Amaranth's simulator in all tables."""
    if d.backend.state() is None:
        return
    if hasattr(d.backend, "memory"):
        size = 2 * BLOCKS * d.config.chunk_window
        d.backend.memory[-size:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, size)
        return
    for place in d.backend.registers:
        if not isinstance(place, Signal):
            d.backend.context.set(place, d.random.getrandbits(len(place)))


def test_reset_in_any_state_and_tables_of_any_content(backend):
    """Each reset is followed by the same."""
    d = Scene(backend)
    fresh = d.values(*d._outputs)
    seen = []
    for _ in range(2):
        fill_tables(d)
        d.make_live(FOUR_BLOCKS, FOUR_BLOCKS)
        d.all_tiles(1, FOUR_BLOCKS)
        d.settle()
        assert sorted(d.blocks(1)) == sorted(FOUR_BLOCKS.blocks()) and d.blocks(0) == []
        seen.append((d.loads[:], d.commands[:], d.values(*d._outputs)))
        d.accept["command"] = 0
        d.chunk_done(0, overflowed=1)
        d.quota(0, slots=1, credits=1)
        d.poison(1)
        d.step(9)
        d.reset()
        assert d.values(*d._outputs) == fresh
        d.loads.clear()
        d.commands.clear()
        d.accept["command"], d.now = 1, 0
    assert seen[0] == seen[1]
