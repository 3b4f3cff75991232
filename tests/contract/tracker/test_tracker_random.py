"""The tracker under random traffic: whatever the interleaving, every chunk completes once, every tile at most once."""

from collections import Counter

import pytest

from tests.contract.tracker.scene import EDGES, MANY_SETS, ONE_SET, SHORT_QUEUES, Scene


def test_random_traffic_against_a_bag_of_counts(backend):
    _check_random_traffic(Scene(backend, seed=201))


@pytest.mark.long
@pytest.mark.own_size
@pytest.mark.parametrize(("seed", "sizes"), [(203, SHORT_QUEUES), (204, MANY_SETS), (205, ONE_SET)])
def test_random_traffic_in_other_sizes(backend, seed, sizes):
    _check_random_traffic(Scene(backend, seed=seed, **sizes))


def _check_random_traffic(scene: Scene) -> None:
    whole = 0
    for phase, spread in enumerate((40, 4, 1)):
        if phase == 2:  # a descriptor is live once between disarms
            scene.control(disarm=1)
            scene.settle()
        whole += _random_phase(scene, phase, spread)
    assert 4 <= whole < 12, "some chunks have overflowed; tile by tile none does"
    assert scene.backend.state() is None or scene.idle_checks > 20


def _random_phase(scene: Scene, phase: int, spread: int) -> int:
    """Four chunks side by side get all their tokens in random order; returns how many have not overflowed.

    The larger ``spread``, the more tiles are counted at the same time; with 1, one tile after the other in each bank.
    """
    rng = scene.random
    threshold = {
        (row, col, wf): 2 * EDGES[row == 3, col % 4 == 3] for row in range(4) for col in range(16) for wf in (0, 1)
    }
    for slot in range(4):
        lines = sum(n for (_, col, _), n in threshold.items() if col // 4 == slot)
        scene.load(
            slot=slot, row1=4, col0=4 * slot, col1=4 * slot + 4, addends=2, expected=lines, epoch=phase,
            descriptor=(4 * phase + slot) % 8,
        )  # fmt: skip
    tokens = []
    for tile, left in threshold.items():
        while left:
            n = rng.randint(1, left)
            tokens.append((tile, n))
            left -= n
    place = {tile: rng.randrange(64) for tile in threshold}
    tokens.sort(key=lambda token: place[token[0]] + rng.randrange(spread))
    tiles_before, chunks_before, overflowed_before = len(scene.tiles), len(scene.chunks), scene["overflowed"]
    scene.gap = rng.choice([0.0, 0.3])
    half = len(tokens) // 2
    for part in (tokens[:half], tokens[half:]):
        for (row, col, wf), n in part:
            scene.offer(row=row, col=col, wf=wf, n=n, epoch=phase, bottom=row == 3, right=col % 4 == 3)
        scene.settle()
        scene.step(5)  # idle with partial counts

    done, chunks = scene.done_tiles[tiles_before:], scene.chunks[chunks_before:]
    assert scene.errors == [] and scene["entries"] == 0 and scene["peak_entries"] > 0
    assert max(Counter(done).values()) == 1, "no tile twice"
    assert all(slot == col // 4 and (row, col, wf) in threshold for slot, row, col, wf in done)
    assert sorted(slot for _, slot, _ in chunks) == [0, 1, 2, 3]
    for cycle, slot, overflowed in chunks:
        assert overflowed == (sum(tile[0] == slot for tile in done) < 32)
        assert cycle >= max((tile[0] for tile in scene.tiles[tiles_before:] if tile[1] == slot), default=0)
    overflowed = sum(overflowed for *_, overflowed in chunks)
    assert scene["overflowed"] - overflowed_before == overflowed
    return 4 - overflowed
