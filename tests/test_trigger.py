"""The trigger: one command per block, latency, flush after an overflow, what is ignored."""

from itertools import pairwise

import pytest
from stream_checks import run
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind
from t3hdl.trigger.trigger import Trigger
from trigger_driver import WAVEFRONTS, Chunk, Driver, check

_FOUR_BLOCKS = Chunk(rows=4, cols=4, row_shift=1, col_shift=1)


def test_latency_from_the_last_tile_to_the_command() -> None:
    trigger = Trigger(config=preset("small"))

    async def scenario(bench) -> None:
        d = Driver(bench)
        await d.arm([_FOUR_BLOCKS])
        last = 0
        for row, col, wf in _FOUR_BLOCKS.tiles():
            if row < 2 and col < 2:
                assert not d["command.valid"]
                last = d.now
                await d.tile(0, row, col, wf)
        await d.settle()
        assert [t for t, _ in d.commands] == [last + trigger.latency]

    run(trigger, scenario)


def test_a_command_says_what_descriptor_and_block_say() -> None:
    chunk = Chunk(rows=3, cols=5, row0=6, col0=8, row_shift=1, col_shift=2, peer=200)

    async def scenario(d: Driver) -> None:
        await d.arm([Chunk(rows=1, cols=1), chunk])
        for tile in chunk.tiles():
            await d.tile(1, *tile)
        await d.settle()
        common = {
            "descriptor": 1, "context": 0, "epoch": 1, "peer": 200, "op": 2, "dtype": 1, "by_chunk": 0,
            "pitch": 71, "base": 1001, "peer_base": 2001, "reserved": 0, "reserved2": 0, "reserved3": 0,
        }  # fmt: skip
        places = [(6, 8, 2, 4), (6, 12, 2, 1), (8, 8, 1, 4), (8, 12, 1, 1)]
        assert [command for _, command in d.commands] == [
            common | dict(zip(("row", "col", "rows", "cols"), place, strict=True)) for place in places
        ]

    check(scenario)


@pytest.mark.parametrize("chunk", [
    Chunk(rows=1, cols=1), Chunk(rows=4, cols=4), Chunk(rows=3, cols=4), Chunk(rows=8, cols=2, row0=8),
    Chunk(rows=5, cols=3, row_shift=1), Chunk(rows=5, cols=7, row_shift=1, col_shift=1, row0=3, col0=9),
    Chunk(rows=8, cols=9, row_shift=3, col_shift=1), Chunk(rows=2, cols=3, row_shift=2, col_shift=2),
    Chunk(rows=5, cols=6, row_shift=15, col_shift=15),
])  # fmt: skip
@pytest.mark.parametrize("order", ["forward", pytest.param("backward", marks=pytest.mark.long)])
def test_block_shapes_from_one_tile_to_the_chunk(chunk: Chunk, order: str) -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([chunk])
        missing = {block: 0 for block in chunk.blocks()}
        for row, col, _ in chunk.tiles():
            missing[chunk.block_of(row, col)] += 1
        tiles = list(chunk.tiles())
        ready = []
        for row, col, wf in tiles if order == "forward" else reversed(tiles):
            await d.tile(0, row, col, wf)
            missing[chunk.block_of(row, col)] -= 1
            if not missing[chunk.block_of(row, col)]:
                ready.append(chunk.block_of(row, col))
            await d.settle()
            assert d.blocks(0) == ready, "a block's command follows its last tile"
        assert len(ready) == len(chunk.blocks())
        assert not any(command["by_chunk"] for _, command in d.commands)

    check(scenario, blocks=16)


def test_commands_leave_oldest_first_and_every_third_cycle() -> None:
    chunk = Chunk(rows=4, cols=1)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk, chunk])
        order = [(0, 2), (1, 3), (0, 0), (1, 1), (1, 0), (0, 3)]
        d.bench.accept["command"] = 0
        for descriptor, row in order:
            for wf in range(WAVEFRONTS):
                await d.tile(descriptor, row, 0, wf)
        await d.step(20)
        assert d["idle"], "waiting for the command to be taken"
        d.bench.accept["command"] = 1
        await d.settle()
        assert [(c["descriptor"], c["row"]) for _, c in d.commands] == order
        times = [t for t, _ in d.commands]
        assert [b - a for a, b in pairwise(times)] == [1, 3, 3, 3, 3], "one is built while another waits"

    check(scenario)


def test_more_tiles_than_a_block_has_give_no_second_command() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([Chunk(rows=1, cols=1)])
        for _ in range(3 * WAVEFRONTS):
            await d.tile(0, 0, 0)
        await d.settle()
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.settle()
        assert len(d.commands) == 1

    check(scenario)


def test_a_block_that_its_chunk_fired_is_not_fired_by_its_tiles() -> None:
    chunk = Chunk(rows=2, cols=1)

    async def scenario(d: Driver) -> None:
        d.bench.accept["command"] = 0
        await d.arm([chunk])
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.step(20)
        for tile in chunk.tiles():
            await d.tile(0, *tile)
        d.bench.accept["command"] = 1
        await d.settle()
        assert d.blocks(0) == [(0, 0, 1, 1), (1, 0, 1, 1)]

    check(scenario)


def test_local_chunks_count_but_never_trigger() -> None:
    chunk = Chunk(rows=2, cols=2, kind=ChunkKind.LOCAL)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk])
        for tile in chunk.tiles():
            await d.tile(0, *tile)
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.settle()
        assert (d.commands, d["chunks_done"], d["done_mask"]) == ([], 1, 1)

    check(scenario)


def test_progress_registers() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([Chunk(rows=1, cols=1, kind=kind) for kind in (ChunkKind.NONE, ChunkKind.DMA, ChunkKind.LOCAL)])
        assert d["init_done"]
        for descriptor, mask in ((2, 4), (1, 6)):
            await d.step(**d.chunk_done(descriptor))
            assert d["done_mask"] == mask
        assert d["chunks_done"] == 2
        await d.step(**d.chunk_done(1))  # done already
        assert d["chunks_done"] == 2

    check(scenario)


def test_an_overflowed_chunk_fires_what_is_left_once() -> None:
    chunk = Chunk(rows=4, cols=2, row0=4, row_shift=1)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk])
        for row in (6, 7):
            for wf in range(WAVEFRONTS):
                await d.tile(0, row, 0, wf)
        await d.tile(0, 4, 0)
        await d.settle()
        assert d.blocks(0) == [(6, 0, 2, 1)]
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.settle()
        # Block row inside block column.
        assert d.blocks(0) == [(6, 0, 2, 1), (4, 0, 2, 1), (4, 1, 2, 1), (6, 1, 2, 1)]
        assert [command["by_chunk"] for _, command in d.commands] == [0, 1, 1, 1]

    check(scenario)


def test_a_flush_stays_inside_the_chunk() -> None:
    chunk = Chunk(rows=3, cols=2)  # three rows of blocks take four numbers per column

    async def scenario(d: Driver) -> None:
        await d.arm([chunk])
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.settle()
        assert d.blocks(0) == [(row, col, 1, 1) for col in range(2) for row in range(3)]

    check(scenario, blocks=16)


def test_a_flush_goes_before_a_clear_and_tiles_before_both() -> None:
    chunk = Chunk(rows=4, cols=1)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk, chunk, chunk], live=2)
        # Descriptor 2 is being read; two chunks overflow meanwhile, and tiles keep the pipeline busy.
        await d.step(**d.chunk_done(1, overflowed=1))
        await d.step(**d.chunk_done(0, overflowed=1))
        for _ in range(12):
            await d.tile(1, 0, 0)
        assert len(d.loads) == 2
        await d.settle()
        flushed = [command["descriptor"] for _, command in d.commands if command["by_chunk"]]
        assert flushed in ([1] * 4 + [0] * 4, [1] * 3 + [0] * 4)
        assert len(d.loads) == 3

    check(scenario)


@pytest.mark.parametrize("delay", range(8))
def test_a_tile_in_the_way_of_the_walker_delays_it_only(delay: int) -> None:
    chunk = Chunk(rows=4, cols=1)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk, chunk])
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.step(delay)
        await d.tile(1, 0, 0)
        await d.settle()
        assert d.blocks(0) == [(row, 0, 1, 1) for row in range(4)]

    check(scenario)


def test_tiles_of_a_slot_that_is_being_cleared_are_ignored() -> None:
    chunk = Chunk(rows=1, cols=1)

    async def scenario(d: Driver) -> None:
        await d.arm([chunk] * 3, live=2)
        for wf in range(WAVEFRONTS):
            await d.tile(0, 0, 0, wf)
        await d.step(**d.chunk_done(0))
        while not d["command.valid"]:
            await d.step()
        await d.step(4)
        for _ in range(60):  # they do not hold the walker either
            if len(d.loads) == 3 or d["load_valid"]:
                break
            await d.tile(0, 0, 0)
        await d.step(5)
        assert d.slot_of[2] == d.slot_of[0]
        await d.tile(2, 0, 0)
        await d.settle()
        assert d.blocks(2) == []
        await d.tile(2, 0, 0, 1)
        await d.settle()
        assert len(d.blocks(2)) == 1

    check(scenario, chunk_window=2)


def test_pulses_of_slots_that_are_not_in_use_are_ignored() -> None:
    async def scenario(d: Driver) -> None:
        await d.arm([Chunk(rows=1, cols=1)])
        for slot in (1, 3, 4, 63):
            await d.step(tile_done_valid=1, tile_done={"slot": slot})
            await d.step(chunk_done_valid=1, chunk_done={"slot": slot, "overflowed": 1})
        await d.settle()
        assert (d.commands, d["chunks_done"], d["done_mask"]) == ([], 0, 0)

    check(scenario)


def test_tiles_outside_the_chunk_never_push_a_block() -> None:
    chunk = Chunk(rows=2, cols=1)  # block numbers 0 and 1 of 4

    async def scenario(d: Driver) -> None:
        await d.arm([chunk])
        for wf in range(WAVEFRONTS):
            await d.tile(0, 0, 1, wf)  # number 2
            await d.tile(0, 2, 0, wf)  # number 2 again
            await d.tile(0, 3, 1, wf)  # number 3
        await d.settle()
        assert (d.commands, d.context(0).ready) == ([], 0)
        await d.finish(0, chunk)
        await d.settle()
        assert (sorted(d.blocks(0)), d.context(0).complete) == (sorted(chunk.blocks()), 1)

    check(scenario)


def test_a_chunk_that_claims_too_many_blocks_is_never_retired() -> None:
    async def scenario(d: Driver) -> None:
        await d.write([Chunk(rows=1, cols=4)])
        claim = regs.DESCRIPTOR_LAYOUTS[5].const({"last_block_row": 42, "last_block_col": 2})  # 129 blocks
        await d.set(regs.DESCRIPTOR + 40, claim.as_bits())
        await d.control(arm=1, descriptors=1)
        await d.until(lambda: d["live"] == 1)
        await d.step(**d.chunk_done(0, overflowed=1))
        await d.settle()
        assert (len(d.commands), d.context(0).slots, d.context(0).ready) == (3, 1, 0)

    check(scenario)
