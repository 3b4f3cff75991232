"""The trigger under random arrival of tiles and chunks: every block is issued once, and never early."""

from random import Random

import pytest
from t3hdl.interface.layouts import ChunkKind

from tests.contract.trigger.scene import Chunk, Scene


class Arrival:
    """What is still to be reported to the trigger, and what it may have issued by now."""

    def __init__(self, scene: Scene, chunks: list[Chunk], rng: Random) -> None:
        self.scene, self.chunks, self.rng = scene, chunks, rng
        self.left: dict[int, list[tuple[int, int, int]]] = {}
        self.overflowed: dict[int, bool] = {}
        self.done: set[int] = set()
        self.missing: dict[tuple[int, ...], int] = {}

    def block(self, descriptor: int, row: int, col: int) -> tuple[int, ...]:
        """Names the block of a tile."""
        return descriptor, *self.chunks[descriptor].block_of(row, col)

    def begin(self) -> None:
        """Chunks that have become live: their tiles come in random order, some only as overflow."""
        for descriptor in sorted(set(self.scene.slot_of) - set(self.left)):
            tiles = list(self.chunks[descriptor].tiles())
            self.rng.shuffle(tiles)
            lost = self.rng.choice([0, 0, 1, len(tiles)])
            self.left[descriptor], self.overflowed[descriptor] = tiles[lost:], lost > 0
            for row, col, _ in tiles:
                block = self.block(descriptor, row, col)
                self.missing[block] = self.missing.get(block, 0) + 1

    def report(self) -> None:
        """The next tile of a random chunk, or its end, or nothing for a while."""
        waiting = sorted(set(self.left) - self.done)
        if not waiting or self.rng.random() < 0.2:
            self.scene.step(self.rng.randint(1, 40))
            return
        descriptor = self.rng.choice(waiting)
        if self.left[descriptor]:
            row, col, wf = self.left[descriptor].pop()
            self.missing[self.block(descriptor, row, col)] -= 1
            self.scene.tile(descriptor, row, col, wf)
        else:
            self.done.add(descriptor)
            self.scene.chunk_done(descriptor, overflowed=self.overflowed[descriptor])

    def check_commands(self) -> None:
        """By tile: no tile is missing. By chunk: some tile never came, and the chunk is done."""
        for _, command in self.scene.commands:
            block = tuple(command[field] for field in ("descriptor", "row", "col", "rows", "cols"))
            assert (self.missing[block] > 0) == bool(command["by_chunk"])
            assert not command["by_chunk"] or block[0] in self.done


def random_chunk(rng: Random, blocks: int) -> Chunk:
    """A chunk of at most ``blocks`` block numbers."""
    while True:
        chunk = Chunk(
            rows=rng.randint(1, 6), cols=rng.randint(1, 6), row0=rng.randrange(50), col0=rng.randrange(50),
            row_shift=rng.randint(0, 3), col_shift=rng.randint(0, 3), kind=ChunkKind(rng.choice([1, 2, 2, 2, 3])),
            wavefronts=rng.choice([1, 1, 2]),
        )  # fmt: skip
        if chunk.last_block_col + 1 << chunk.last_block_row.bit_length() <= blocks:
            return chunk


def arrive(d: Scene) -> None:
    """Chunks of random shapes with tiles in random order, overflows and stalls."""
    rng = d.random
    chunks = [random_chunk(rng, d.config.blocks) for _ in range(8)]
    counted = sum(chunk.kind in (ChunkKind.DMA, ChunkKind.LOCAL) for chunk in chunks)
    d.describe(*chunks)
    d.arm(8)
    arrival = Arrival(d, chunks, rng)
    while len(arrival.done) < counted:
        # A blocked command may keep the slots in use, and then nothing arrives.
        if rng.random() < 0.1 or set(arrival.left) == arrival.done:
            d.accept["command"] = rng.choice([0.0, 0.3, 1.0])
        arrival.begin()
        arrival.report()
        arrival.check_commands()
        assert d.now < 20000
    d.accept["command"] = 1.0
    d.settle()
    d.step(10)
    arrival.check_commands()
    for descriptor, chunk in enumerate(chunks):
        expected = chunk.blocks() if chunk.kind == ChunkKind.DMA else set()
        assert sorted(d.blocks(descriptor)) == sorted(expected)
    assert (d["live"], d["chunks_done"]) == (8, counted)
    assert d.backend.state() is None or d.idle_checks > 20


@pytest.mark.parametrize("seed", [301, 304, 305])
def test_random_arrival_gives_every_block_once_and_never_early(backend, seed):
    arrive(Scene(backend, seed=seed))


@pytest.mark.own_size
@pytest.mark.parametrize(
    ("seed", "overrides"),
    [
        (302, {"chunk_window": 2, "blocks": 16}),
        (303, {"chunk_window": 3, "blocks": 8}),
    ],
)
def test_random_arrival_in_other_sizes(backend, seed, overrides):
    arrive(Scene(backend, seed=seed, **overrides))
