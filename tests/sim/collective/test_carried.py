"""Carried data: the hash and the partial products in plain Python, the ring's reduction step by step, the sample."""

import numpy as np
import pytest
from t3sim.collective.carried import (
    Carried,
    carried_elements,
    choose_lines,
    no_lines,
    owners,
    partial_products,
    ring_reference,
    tile_map,
    to_words,
)
from t3sim.collective.ring import ring_next, ring_order
from t3sim.inputs.geometry import Grid, Partition

MASK = (1 << 64) - 1


def grid_of(m: int, n: int) -> Grid:
    return Grid(m=m, n=n, tile_rows=32, tile_cols=32, wavefronts=2)


def hashed(seed: int, matrix: int, position: int) -> np.float32:
    """SplitMix64 in Python's integers; the top 11 bits as a multiple of 2**-10 in [-1, 1)."""
    z = ((seed + matrix * 0xD1B54A32D192ED03 + position) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return np.float32(((z >> 53) - 1024) / 1024)


def whole_product(grid: Grid, seed: int, gpu: int, k: int) -> np.ndarray:
    """The FP16 output of a GPU's GEMM, [m, n], summed over k in order in FP32."""
    a = np.array([[hashed(seed, 2 * gpu, i * grid.m + row) for row in range(grid.m)] for i in range(k)])
    b = np.array([[hashed(seed, 2 * gpu + 1, i * grid.n + col) for col in range(grid.n)] for i in range(k)])
    total = np.zeros((grid.m, grid.n), np.float32)
    for i in range(k):
        total += np.outer(a[i], b[i])
    return total.astype(np.float16)


@pytest.mark.parametrize(("seed", "gpu", "k"), [(0, 0, 1), (7, 1, 9), ((1 << 64) - 1, 5, 4)])
def test_partial_products(seed, gpu, k):
    grid = grid_of(37, 41)
    carried = choose_lines(grid, Partition(grid=grid, count=2, swizzle_rows=8), seed, None)
    assert list(carried.lines) == list(range(grid.lines))
    got = partial_products(carried, grid, seed, gpu, k).view(np.uint16)
    whole = np.zeros((grid.m, grid.pitch * 16), np.float16)
    whole[:, : grid.n] = whole_product(grid, seed, gpu, k)
    assert np.array_equal(got, whole.reshape(-1, 16).view(np.uint16))
    assert len(np.unique(got)) > 100


def test_gpus_and_seeds_have_other_data():
    grid = grid_of(32, 32)
    carried = Carried(np.arange(grid.lines), np.arange(grid.lines, dtype=np.int32))
    made = [partial_products(carried, grid, seed, gpu, 8) for seed, gpu in ((0, 0), (0, 1), (1, 0))]
    for i in range(3):
        assert np.count_nonzero(made[i] == made[i - 1]) < made[i].size / 4


@pytest.mark.parametrize("gpus", [2, 3, 4, 8])
def test_ring_reference_is_the_ring_step_by_step(gpus):
    """Every GPU clears its copy, adds its own partial, then what comes, and sends the copy on; each rounds."""
    rng = np.random.default_rng(gpus)
    lines = 4 * gpus
    owner = np.arange(lines) % gpus
    # Sums of such magnitudes round, so another order of additions gives other bits.
    partials = [(rng.standard_normal((lines, 16)) * 100).astype(np.float16) for _ in range(gpus)]
    expected = np.zeros((lines, 16), np.float16)
    for chunk in range(gpus):
        mine = owner == chunk
        gpu = next(gpu for gpu in range(gpus) if ring_order(gpu, gpus)[0] == chunk)
        travelling = partials[gpu][mine]
        while gpu != chunk:
            gpu = ring_next(gpu, gpus)
            copy = np.zeros_like(travelling)
            copy = (copy.astype(np.float64) + partials[gpu][mine]).astype(np.float16)
            copy = (copy.astype(np.float64) + travelling).astype(np.float16)
            travelling = copy
        expected[mine] = travelling
    assert np.array_equal(ring_reference(partials, owner).view(np.uint16), expected.view(np.uint16))
    if gpus > 2:
        other = ring_reference(partials, (owner + 1) % gpus)
        assert np.count_nonzero(other.view(np.uint16) != expected.view(np.uint16))


def test_negative_zero_of_a_cleared_location():
    """0 + (-0) is 0: an updated location never shows the -0 that a plain store would leave."""
    minus = np.full((1, 16), -0.0, np.float16)
    result = ring_reference([minus, minus], np.zeros(1, np.int64))
    assert not np.signbit(result).any()


def classes(grid: Grid, lines: np.ndarray) -> set[tuple[int, int, bool, bool]]:
    """(tile row band, tile column, bottom, right) of lines, as their tile's place."""
    rows, cols = lines // grid.pitch // grid.tile_rows, lines % grid.pitch // grid.tile_lines
    return {(int(r), int(c), bool(r == grid.rows - 1), bool(c == grid.cols - 1)) for r, c in zip(rows, cols)}


@pytest.mark.parametrize(("m", "n", "count"), [(2000, 1000, 8), (1500, 2001, 5), (4096, 300, 3)])
def test_sample_covers_every_chunk_and_tile_class(m, n, count):
    grid = grid_of(m, n)
    assert m * n >= 1 << 20
    partition = Partition(grid=grid, count=count, swizzle_rows=8)
    carried = choose_lines(grid, partition, 3, None)
    assert 1500 < len(carried.lines) < 4096
    assert np.all(np.diff(carried.lines) > 0) and 0 <= carried.lines[0] and carried.lines[-1] < grid.lines
    assert np.array_equal(np.flatnonzero(carried.number_of >= 0), carried.lines)
    assert np.array_equal(carried.number_of[carried.lines], np.arange(len(carried.lines)))
    chunk_of = tile_map(grid, partition.chunks)
    wanted, got = set(), set()
    for row in range(grid.rows):
        for col in range(grid.cols):
            wanted.add((int(chunk_of[row, col]), row == grid.rows - 1, col == grid.cols - 1))
    for row, col, bottom, right in classes(grid, carried.lines):
        got.add((int(chunk_of[row, col]), bottom, right))
    assert got == wanted
    assert set(owners(carried, grid, partition)) == set(range(count))


def test_sample_depends_on_the_seed_alone():
    grid = grid_of(2000, 1000)
    partition = Partition(grid=grid, count=4, swizzle_rows=8)
    first, again, other = (choose_lines(grid, partition, seed, 100).lines for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert len(first) <= 200


def test_none_and_all_lines():
    grid = grid_of(64, 64)
    partition = Partition(grid=grid, count=2, swizzle_rows=8)
    for nothing in (choose_lines(grid, partition, 0, 0), no_lines()):
        assert len(nothing.lines) == 0 and not (nothing.number_of >= 0).any()
    assert len(choose_lines(grid, partition, 0, grid.lines).lines) == grid.lines
    assert len(choose_lines(grid, partition, 0, None).lines) == grid.lines


@pytest.mark.parametrize("wanted", [None, 300])
@pytest.mark.parametrize(("m", "n"), [(64, 64), (200, 136), (70, 100), (33, 33)])
def test_padding_is_no_element(m, n, wanted):
    grid = grid_of(m, n)
    carried = choose_lines(grid, Partition(grid=grid, count=2, swizzle_rows=8), 0, wanted)
    columns = [range(16 * (line % grid.pitch), 16 * (line % grid.pitch) + 16) for line in carried.lines]
    assert carried_elements(carried, grid) == sum(column < n for line in columns for column in line)
    if wanted is None:
        assert carried_elements(carried, grid) == m * n
    assert carried_elements(no_lines(), grid) == 0


def test_owners_are_the_chunks_that_hold_the_lines():
    grid = grid_of(70, 100)
    partition = Partition(grid=grid, count=3, swizzle_rows=8)
    carried = choose_lines(grid, partition, 0, None)
    for line, owner in zip(carried.lines, owners(carried, grid, partition), strict=True):
        chunk = partition.chunks[owner]
        assert chunk.row0 <= line // grid.pitch // 32 < chunk.row1
        assert chunk.col0 <= line % grid.pitch // 2 < chunk.col1


def test_words_hold_element_0_lowest():
    values = np.arange(32, dtype=np.float16).reshape(2, 16)
    words = to_words(values)
    assert words.shape == (2, 4)
    for line in range(2):
        for element in range(16):
            bits = int(words[line, element // 4]) >> (16 * (element % 4)) & 0xFFFF
            assert np.uint16(bits).view(np.float16) == values[line, element]
