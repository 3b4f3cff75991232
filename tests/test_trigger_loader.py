"""The trigger: chunks become live in order, slots are used again, disarm."""

import pytest
from t3hdl.interface.layouts import ChunkKind
from table_garbage import fill_tables
from trigger_driver import Chunk, Driver, check

_FOUR_BLOCKS = Chunk(rows=4, cols=4, row_shift=1, col_shift=1)


@pytest.mark.parametrize("blocks", [1, 4, 16])
def test_the_loader_takes_the_cycles_of_the_contract(blocks: int) -> None:
    async def scenario(d: Driver) -> None:
        chunks = [
            Chunk(rows=1, cols=1, kind=kind)
            for kind in (ChunkKind.DMA, ChunkKind.REMOTE, ChunkKind.NONE, ChunkKind.LOCAL)
        ]
        await d.write(chunks)
        armed = d.now
        await d.control(arm=1, descriptors=4)
        assert d["armed"]
        live = []
        for _ in range(2 * (11 + blocks) + 2 * 9 + 5):
            live.append(d["live"])
            await d.step()
        # Counted from the arm pulse (the first entry of `live` is one cycle after it).
        first = 11 + blocks
        second = first + 2 * 9 + 10 + blocks
        assert [t - armed for t, _ in d.loads] == [first, second]
        assert [live.index(n) + 1 for n in range(1, 5)] == [first + 1, first + 9, first + 18, second + 1]

    check(scenario, blocks=blocks, event_queue=3)


def test_a_load_says_what_the_descriptor_says() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([Chunk(rows=1, cols=1, kind=ChunkKind.NONE), Chunk(rows=3, cols=5, row0=7, col0=2, expected=77)])
        assert [load for _, load in d.loads] == [{
            "row0": 7, "row1": 10, "col0": 2, "col1": 7, "addends": 2, "slot": 0, "valid": 1, "reserved": 0,
            "expected": 77, "context": 0, "epoch": 1, "descriptor": 1,
        }]  # fmt: skip

    check(scenario)


def test_tables_may_hold_anything_before_reset() -> None:
    async def scenario(d: Driver) -> None:
        fill_tables(d.bench)
        await d.arm([_FOUR_BLOCKS, _FOUR_BLOCKS])
        for tile in _FOUR_BLOCKS.tiles():
            await d.tile(1, *tile)
        await d.settle()
        assert sorted(d.blocks(1)) == sorted(_FOUR_BLOCKS.blocks())
        assert d.blocks(0) == []

    check(scenario)


def test_slots_are_used_again_when_done_and_issued() -> None:
    chunks = [Chunk(rows=1, cols=2, kind=kind) for kind in (
        ChunkKind.DMA, ChunkKind.LOCAL, ChunkKind.REMOTE, ChunkKind.DMA, ChunkKind.DMA, ChunkKind.DMA,
    )]  # fmt: skip

    async def finish(d: Driver, descriptor: int) -> None:
        for tile in chunks[descriptor].tiles():
            await d.tile(descriptor, *tile)
        await d.step(**d.chunk_done(descriptor))
        await d.step(60)

    async def scenario(d: Driver) -> None:
        await d.arm(chunks, live=2)
        await d.step(60)
        assert (d["live"], d["idle"]) == (2, 1), "a skipped descriptor waits for a free slot, too"
        d.bench.accept["command"] = 0
        await finish(d, 0)
        assert d["live"] == 2, "its second block is not issued yet"
        d.bench.accept["command"] = 1
        await d.step(60)
        assert (d["live"], d.slot_of[3]) == (4, 0)
        await finish(d, 1)
        assert (d["live"], d.slot_of[4]) == (5, 1)
        await finish(d, 4)
        assert (d["live"], d.slot_of[5]) == (6, 1)
        await finish(d, 5)
        await finish(d, 3)
        assert (d["chunks_done"], d["done_mask"]) == (5, 0b111011)
        for descriptor in (0, 3, 4, 5):
            assert sorted(d.blocks(descriptor)) == [(0, 0, 1, 1), (0, 1, 1, 1)]

    check(scenario, chunk_window=2)


def test_disarm_clears_all_but_the_descriptors() -> None:
    async def scenario(d: Driver) -> None:
        d.bench.accept["command"] = 0
        await d.arm([_FOUR_BLOCKS, _FOUR_BLOCKS])
        tiles = list(_FOUR_BLOCKS.tiles())
        for tile in tiles[:-1]:
            await d.tile(0, *tile)
        await d.step(**d.chunk_done(1, overflowed=1))
        await d.step(4)
        await d.control(disarm=1)
        assert (d["armed"], d["live"], d["chunks_done"], d["done_mask"], d["command.valid"]) == (0, 0, 0, 0, 0)
        assert d["idle"]
        d.bench.accept["command"] = 1
        await d.step(30)
        assert d.commands == []
        await d.control(arm=1, descriptors=1)
        await d.step(40)
        assert (d["live"], len(d.loads)) == (1, 3)
        for tile in tiles[:4]:
            await d.tile(0, *tile)
        await d.settle()
        assert d.blocks(0) == [], "tiles of before do not count"
        for tile in tiles[4:]:
            await d.tile(0, *tile)
        await d.settle()
        assert sorted(d.blocks(0)) == sorted(_FOUR_BLOCKS.blocks())

    check(scenario)


@pytest.mark.parametrize("point", range(2, 24, 3))
def test_disarm_in_every_state_of_the_loader(point: int) -> None:
    async def scenario(d: Driver) -> None:
        chunk = Chunk(rows=1, cols=1)
        await d.write([chunk, chunk])
        await d.control(arm=1, descriptors=2)
        await d.step(point)
        await d.control(disarm=1)
        await d.step(30)
        assert d["live"] == 0
        d.loads.clear()
        await d.control(arm=1, descriptors=2)
        await d.step(40)
        assert [(load["descriptor"], load["slot"]) for _, load in d.loads] == [(0, 0), (1, 1)]

    check(scenario)
