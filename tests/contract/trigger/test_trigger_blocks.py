"""The trigger: one command per block, when, and what it says; which tiles count."""

from dataclasses import replace
from itertools import pairwise

import pytest
from t3hdl.interface.layouts import ChunkKind, Dtype, Op
from t3hdl.trigger.trigger import Trigger

from tests.contract.trigger.scene import COLUMN, FOUR_BLOCKS, ONE, QUICK, Chunk, Scene

BACKWARD = pytest.param("backward", marks=pytest.mark.long)


def test_latency_from_the_last_tile_to_the_command(backend):
    d = Scene(backend)
    d.make_live(FOUR_BLOCKS)
    last = 0
    for row, col, wf in FOUR_BLOCKS.tiles():
        if row < 2 and col < 2:
            assert not d["command.valid"]
            last = d.tile(0, row, col, wf)
    d.settle()
    assert d.since(last) == [Trigger(config=d.config).latency] == [7]


def test_a_command_says_what_descriptor_and_block_say(backend):
    d = Scene(backend)
    chunk = Chunk(rows=3, cols=5, row0=6, col0=8, row_shift=1, col_shift=2, context=1)
    given = {
        "context": 1, "epoch": 2, "peer": 200, "op": Op.ADD, "dtype": Dtype.BF16,
        "pitch": 0xABCD, "base": 0x1234567890, "peer_base": 0x7FFFFFFFFF,
        "tile_rows": 1024, "wavefront_rows": 2047, "tile_lines": 8,
    }  # fmt: skip
    ends = {"last_rows": 1000, "last_lines": 15, "bottom": 1, "right": 1}
    d.describe(replace(ONE, context=1))
    d.describe(chunk, first=1, **given, **ends)
    d.arm(2, context=1)
    d.until_true(lambda: d["live"] == 2)
    d.all_tiles(1, chunk)
    d.settle()
    common = given | {"descriptor": 1, "by_chunk": 0, "reserved": 0, "reserved2": 0, "reserved3": 0}
    places = [(6, 8, 2, 4), (6, 12, 2, 1), (8, 8, 1, 4), (8, 12, 1, 1)]
    rows = [{"last_rows": 1024, "bottom": 0}, {"last_rows": 1000, "bottom": 1}]
    cols = [{"last_lines": 8, "right": 0}, {"last_lines": 15, "right": 1}]
    assert [command for _, command in d.commands] == [
        common | dict(zip(("row", "col", "rows", "cols"), place, strict=True)) | rows[i // 2] | cols[i % 2]
        for i, place in enumerate(places)
    ]


def shaped(d: Scene, chunk: Chunk, order: str) -> None:
    """Each block's command follows its last tile."""
    d.make_live(chunk)
    tiles, ready = list(chunk.tiles()), []
    missing = dict.fromkeys(chunk.blocks(), 0)
    for row, col, _ in tiles:
        missing[chunk.block_of(row, col)] += 1
    for row, col, wf in tiles if order == "forward" else reversed(tiles):
        d.tile(0, row, col, wf)
        block = chunk.block_of(row, col)
        missing[block] -= 1
        if not missing[block]:
            ready.append(block)
        d.settle()
        assert d.blocks(0) == ready
    assert len(ready) == len(missing)
    assert not any(command["by_chunk"] for _, command in d.commands)


@pytest.mark.parametrize("chunk", [
    ONE, QUICK, Chunk(rows=1, cols=4), Chunk(rows=3, cols=3, row0=8, col0=16, row_shift=1, col_shift=1),
    Chunk(rows=2, cols=3, row_shift=2, col_shift=2), Chunk(rows=5, cols=6, row_shift=15, col_shift=15),
])  # fmt: skip
@pytest.mark.parametrize("order", ["forward", BACKWARD])
def test_block_shapes_from_one_tile_to_the_chunk(backend, chunk, order):
    shaped(Scene(backend), chunk, order)


@pytest.mark.own_size
@pytest.mark.parametrize("chunk", [
    Chunk(rows=4, cols=4), Chunk(rows=3, cols=4), Chunk(rows=8, cols=2, row0=8), Chunk(rows=5, cols=3, row_shift=1),
    Chunk(rows=5, cols=7, row_shift=1, col_shift=1, row0=3, col0=9), Chunk(rows=8, cols=9, row_shift=3, col_shift=1),
])  # fmt: skip
@pytest.mark.parametrize("order", ["forward", BACKWARD])
def test_shapes_of_chunks_with_many_blocks(backend, chunk, order):
    shaped(Scene(backend, blocks=16), chunk, order)


def test_commands_follow_each_other_every_third_cycle(backend):
    d = Scene(backend)
    d.make_live(QUICK)
    start = d.now
    for row in (3, 0, 2, 1):
        d.tile(0, row)
    d.settle()
    assert d.since(start) == [7, 10, 13, 16]
    assert d.of_commands("row") == [(3,), (0,), (2,), (1,)]


def test_commands_leave_oldest_first_after_a_stall(backend):
    d = Scene(backend)
    d.make_live(COLUMN, COLUMN)
    order = [(0, 2), (1, 3), (0, 0), (1, 1), (1, 0), (0, 3)]
    d.accept["command"] = 0
    for descriptor, row in order:
        d.rows(descriptor, row)
    d.step(20)
    assert d["idle"], "waiting for the command to be taken"
    d.accept["command"], start = 1, d.now
    d.settle()
    assert d.of_commands("descriptor", "row") == order
    times = d.since(start)
    assert times[0] == 0
    assert [b - a for a, b in pairwise(times)] == [1, 3, 3, 3, 3], "one is built while another waits"


def test_a_block_gives_one_command_however_many_tiles_it_has(backend):
    d = Scene(backend, wavefronts=8)
    d.make_live(COLUMN)
    for wf in range(6):
        d.tile(0, 3, wf=wf)
    d.settle()
    assert d.of_commands("row", "by_chunk") == [(3, 0)]
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert d.of_commands("row", "by_chunk") == [(3, 0), (0, 1), (1, 1), (2, 1)]


def test_a_block_that_expects_no_tiles_becomes_a_command_by_its_chunk_only(backend):
    d = Scene(backend)
    d.make_live(ONE, tiles_corner=0)
    d.tile(0, 0)
    d.settle()
    assert d.commands == []
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert d.of_commands("by_chunk") == [(1,)]


def test_a_block_that_is_ready_by_its_chunk_is_not_so_by_its_tiles_again(backend):
    d = Scene(backend)
    d.accept["command"] = 0
    chunk = Chunk(rows=2, cols=1)
    d.make_live(chunk)
    d.chunk_done(0, overflowed=1)
    d.step(20)
    d.all_tiles(0, chunk)
    d.accept["command"] = 1
    d.settle()
    assert d.blocks(0) == [(0, 0, 1, 1), (1, 0, 1, 1)]


def test_local_chunks_count_but_never_trigger(backend):
    d = Scene(backend)
    chunk = Chunk(rows=2, cols=2, kind=ChunkKind.LOCAL)
    d.make_live(chunk)
    d.all_tiles(0, chunk)
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert (d.commands, d["chunks_done"], d["done_mask"]) == ([], 1, 1)


def test_a_chunk_counts_once_as_done(backend):
    d = Scene(backend)
    d.make_live(*(Chunk(rows=1, cols=1, kind=kind) for kind in (ChunkKind.NONE, ChunkKind.DMA, ChunkKind.LOCAL)))
    for descriptor, mask, count in ((2, 0b100, 1), (1, 0b110, 2), (1, 0b110, 2)):
        d.chunk_done(descriptor)
        assert d.values("done_mask", "chunks_done") == (mask, count)


def test_pulses_of_slots_that_are_not_in_use_are_ignored(backend):
    d = Scene(backend)
    d.make_live(ONE)
    for slot in (1, 3, 4, 63):
        d.step(tile_done={"slot": slot})
        d.step(chunk_done={"slot": slot, "overflowed": 1})
        d.poison(slot)
    d.settle()
    assert d.values("chunks_done", "done_mask", "poisoned") == (0, 0, 0)
    d.tile(0, 0)
    d.settle()
    assert d.commands == [], "no tile was counted for another slot"
    d.tile(0, 0, wf=1)
    d.settle()
    assert len(d.commands) == 1


def test_tiles_outside_the_chunk_never_make_a_block_ready(backend):
    d = Scene(backend)
    chunk = Chunk(rows=3, cols=2, row0=8, col0=16, row_shift=1, col_shift=1)  # block numbers 0 and 1 of 4
    tiles = dict.fromkeys(("tiles_inner", "tiles_bottom", "tiles_right", "tiles_corner"), 1)
    d.make_live(chunk, **tiles)
    for row, col in ((8, 18), (12, 16), (14, 18), (7, 16)):  # to the right, below, both, above
        d.tile(0, row, col)
    d.settle()
    assert (d.commands, d.context().ready, d.context().slots) == ([], 0, 1)
    for row in (8, 10):
        d.tile(0, row, 16)
    d.chunk_done(0)
    d.settle()
    assert d.of_commands("row", "col") == [(8, 16), (10, 16)] and d.context().complete


def test_a_chunk_that_claims_too_many_blocks_is_never_retired(backend):
    d = Scene(backend)
    d.make_live(ONE, last_block_row=42, last_block_col=2)  # 129 blocks
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert (len(d.commands), d.context().slots, d.context().ready) == (3, 1, 0)


@pytest.mark.long  # 64 slots in Amaranth's simulator
@pytest.mark.own_size
def test_all_64_slots_and_descriptors(backend):
    d = Scene(backend, descriptors=64, chunk_window=64, blocks=1, tracker_banks=1, tile_marks=1024)
    for number in range(64):
        d.describe(Chunk(rows=3, cols=3, row_shift=15, col_shift=15), first=number, tiles_corner=1, peer=number)
    d.arm(64)
    d.settle()
    assert [(load["slot"], load["descriptor"]) for _, load in d.loads] == [(n, n) for n in range(64)]
    d.tile(63, 1, 1)
    d.chunk_done(63)
    d.settle()
    assert d.of_commands("descriptor", "peer", "rows", "cols") == [(63, 63, 3, 3)]
    assert d.values("chunks_done", "done_mask", "live") == (1, 1 << 63, 64)
    d.chunk_done(0, overflowed=1)
    d.settle()
    assert d.of_commands("descriptor", "by_chunk")[1:] == [(0, 1)] and d["done_mask"] == 1 << 63 | 1
