"""The tracker under random traffic: whatever the interleaving, every chunk completes once, every tile at most once."""

from collections import Counter
from typing import Any

import pytest
from tracker_driver import LINES, Driver, check


@pytest.mark.parametrize(("seed", "overrides"), [
    (201, {}),
    pytest.param(202, {"tracker_ways": 1}, marks=pytest.mark.long),
    (203, {"tracker_banks": 1, "tracker_ways": 1, "event_queue": 3}),
    pytest.param(
        204, {"tracker_sets": 16, "tracker_banks": 4, "row_index_bits": 2, "event_queue": 3, "blocks": 16},
        marks=pytest.mark.long,
    ),
    pytest.param(
        205, {"tracker_sets": 1, "tracker_banks": 1, "row_index_bits": 0, "tracker_ways": 3}, marks=pytest.mark.long
    ),
])  # fmt: skip
def test_random_traffic_against_a_bag_of_counts(seed: int, overrides: dict[str, int]) -> None:
    async def scenario(d: Driver) -> None:
        rng = d.bench.random
        await d.start()
        for phase in range(3):
            if phase == 2:  # a descriptor is live once between disarms
                await d.control(disarm=1)
                await d.start()
            await _random_phase(d, rng, phase)
        assert d.bench.idle_checks > 20

    check(scenario, seed=seed, **overrides)


async def _random_phase(d: Driver, rng: Any, phase: int) -> None:
    """Four chunks side by side get all their tokens in random order; each completes once, each tile at most once."""
    threshold = {
        (row, col, wf): 2 * LINES[row == 3, col % 4 == 3] for row in range(4) for col in range(16) for wf in (0, 1)
    }
    for slot in range(4):
        lines = sum(n for (_, col, _), n in threshold.items() if col // 4 == slot)
        await d.load(
            slot=slot, row1=4, col0=4 * slot, col1=4 * slot + 4, addends=2, expected=lines, epoch=phase,
            descriptor=(4 * phase + slot) % 8,
        )  # fmt: skip
    tokens = []
    for tile, left in threshold.items():
        while left:
            n = rng.randint(1, left)
            tokens.append((tile, n))
            left -= n
    # Mostly tile by tile, so that some tiles get an entry and others do not.
    place = {tile: rng.randrange(64) for tile in threshold}
    tokens.sort(key=lambda token: place[token[0]] + rng.randrange(40))
    tiles_before, chunks_before, overflowed_before = len(d.tiles), len(d.chunks), d["overflowed"]
    d.bench.gap = rng.choice([0.0, 0.3])
    half = len(tokens) // 2
    for part in (tokens[:half], tokens[half:]):
        for (row, col, wf), n in part:
            d.send(row=row, col=col, wf=wf, n=n, epoch=phase, bottom=row == 3, right=col % 4 == 3)
        await d.settle()
        await d.step(5)  # idle with partial counts

    done, chunks = d.done_tiles[tiles_before:], [chunk for _, chunk in d.chunks[chunks_before:]]
    assert d.errors == []
    assert d["entries"] == 0
    assert max(Counter(done).values()) == 1, "no tile twice"
    assert all(slot == col // 4 and (row, col, wf) in threshold for slot, row, col, wf in done)
    assert sorted(chunk["slot"] for chunk in chunks) == [0, 1, 2, 3]
    for chunk in chunks:
        whole = sum(slot == chunk["slot"] for slot, *_ in done) == 32
        assert chunk["overflowed"] == (not whole)
        last_tile = max((t for t, tile in d.tiles[tiles_before:] if tile["slot"] == chunk["slot"]), default=0)
        assert last_tile <= next(t for t, c in d.chunks[chunks_before:] if c == chunk)
    assert d["overflowed"] - overflowed_before == sum(chunk["overflowed"] for chunk in chunks)
    assert 0 < d["peak_entries"]
