"""The data that a run carries: which lines, each GPU's partial products for them, and the reduction they must end in.

Inputs are multiples of 2**-10 in [-1, 1), hashed from (seed, GPU, matrix, position), so any element can be made alone.
A partial product is the sum over k in order, in FP32, rounded once to FP16.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t3sim.common.compiled import njit
from t3sim.inputs.geometry import ELEMENT_BYTES, Chunk, Grid, Partition

from .ring import ring_order

ALL_BELOW_ELEMENTS = 1 << 20
"""Outputs with fewer elements carry data in every line."""
SAMPLE_LINES = 2048
"""Lines that carry data in a larger output, spread over all chunks and tile classes."""
LINE_ELEMENTS = 32 // ELEMENT_BYTES


@dataclass(frozen=True)
class Carried:
    """``lines``: output line numbers that carry data, sorted; ``number_of``: line -> place in ``lines``, or -1."""

    lines: NDArray[np.int64]
    number_of: NDArray[np.int32]


def no_lines() -> Carried:
    """Nothing carries data."""
    return Carried(np.zeros(0, np.int64), np.zeros(1, np.int32) - 1)


def choose_lines(grid: Grid, partition: Partition, seed: int, wanted: int | None) -> Carried:
    """All lines of a small output, else ``wanted`` (default 2048) lines: as many from every (chunk, tile class)."""
    if wanted == 0:
        return no_lines()
    if wanted is None and grid.m * grid.n < ALL_BELOW_ELEMENTS or wanted is not None and wanted >= grid.lines:
        lines = np.arange(grid.lines)
    else:
        lines = _sample(grid, partition, np.random.default_rng(seed), wanted or SAMPLE_LINES)
    number_of = np.full(grid.lines, -1, np.int32)
    number_of[lines] = np.arange(len(lines), dtype=np.int32)
    return Carried(lines, number_of)


def max_lines(grid: Grid, chunks: int, wanted: int | None) -> int:
    """What the number of lines that :func:`choose_lines` returns does not exceed; reckoned without making a list."""
    if wanted is None:
        wanted = grid.lines if grid.m * grid.n < ALL_BELOW_ELEMENTS else SAMPLE_LINES
    rectangles = 4 * chunks  # each may have a line more than its share
    return min(grid.lines, wanted + rectangles) if wanted else 0


def _sample(grid: Grid, partition: Partition, random: np.random.Generator, wanted: int) -> NDArray[np.int64]:
    rectangles = []  # output rows [r0, r1) x lines [l0, l1) of every tile class in every chunk
    last_row, last_line = (grid.rows - 1) * grid.tile_rows, (grid.cols - 1) * grid.tile_lines
    for chunk in partition.chunks:
        rows = (chunk.row0 * grid.tile_rows, min(chunk.row1 * grid.tile_rows, grid.m))
        lines = (chunk.col0 * grid.tile_lines, min(chunk.col1 * grid.tile_lines, grid.pitch))
        for r0, r1 in _split(rows, last_row):
            rectangles += [(r0, r1, l0, l1) for l0, l1 in _split(lines, last_line)]
    share = -(-wanted // len(rectangles))
    chosen = [
        random.integers(r0, r1, share) * grid.pitch + random.integers(l0, l1, share) for r0, r1, l0, l1 in rectangles
    ]
    return np.unique(np.concatenate(chosen))


def _split(interval: tuple[int, int], at: int) -> list[tuple[int, int]]:
    low, high = interval
    return [(a, b) for a, b in ((low, min(high, at)), (max(low, at), high)) if a < b]


@njit(cache=True, nogil=True)
def _hash(seed, matrix, position):
    """SplitMix64 of (seed, matrix, position), as a multiple of 2**-10 in [-1, 1)."""
    z = (seed + matrix * np.uint64(0xD1B54A32D192ED03) + position) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float32(np.int64(z >> np.uint64(53)) - 1024) * np.float32(1 / 1024)


@njit(cache=True, nogil=True)
def _products(seed, gpu, lines, pitch, m, n, k):
    """FP32 partial products [lines, 16] of GPU ``gpu``."""
    result = np.zeros((len(lines), LINE_ELEMENTS), np.float32)
    a, b = np.uint64(2 * gpu), np.uint64(2 * gpu + 1)
    for i in range(len(lines)):
        row, first = lines[i] // pitch, lines[i] % pitch * LINE_ELEMENTS
        count = min(LINE_ELEMENTS, n - first)
        for inner in range(k):
            left = _hash(seed, a, np.uint64(inner * m + row))
            for e in range(count):
                result[i, e] += left * _hash(seed, b, np.uint64(inner * n + first + e))
    return result


def partial_products(carried: Carried, grid: Grid, seed: int, gpu: int, k: int) -> NDArray[np.float16]:
    """FP16 partial products [carried lines, 16] of one GPU whose inner dimension is ``k``."""
    products = _products(np.uint64(seed), gpu, carried.lines, grid.pitch, grid.m, grid.n, k)
    return products.astype(np.float16)


def owners(carried: Carried, grid: Grid, partition: Partition) -> NDArray[np.int64]:
    """The chunk, and so the owner, of each carried line."""
    tile_row = carried.lines // grid.pitch // grid.tile_rows
    tile_col = carried.lines % grid.pitch // grid.tile_lines
    return tile_map(grid, partition.chunks)[tile_row, tile_col]


def carried_elements(carried: Carried, grid: Grid) -> int:
    """Elements of the output in the carried lines: a row may end within its last line, whose rest is padding."""
    last_lines = int(np.count_nonzero(carried.lines % grid.pitch == grid.pitch - 1))
    return LINE_ELEMENTS * len(carried.lines) - last_lines * (grid.slack_bytes // ELEMENT_BYTES)


def tile_map(grid: Grid, rectangles: Sequence[Chunk]) -> NDArray[np.int64]:
    """The number of the rectangle that each tile is in, [tile rows, tile columns]."""
    result = np.zeros((grid.rows, grid.cols), np.int64)
    for number, part in enumerate(rectangles):
        result[part.row0 : part.row1, part.col0 : part.col1] = number
    return result


def ring_reference(partials: list[NDArray[np.float16]], owner: NDArray[np.int64]) -> NDArray[np.float16]:
    """What the ring must leave: on every GPU a cleared location takes its own and the incoming addend, in FP16.

    Chunk c starts as GPU c - 1's partial (nothing is added to it there) and visits c - 2, c - 3, ... c.
    """
    gpus = len(partials)
    result = np.zeros_like(partials[0])
    zero = np.float16(0)
    for chunk in range(gpus):
        mine = owner == chunk
        # GPU g produces chunk c at place (c - g - 1) of its order; the ring visits the GPUs from place 0 on.
        path = sorted(range(gpus), key=lambda gpu: ring_order(gpu, gpus).index(chunk))
        value = partials[path[0]][mine]
        for gpu in path[1:]:
            value = (zero + partials[gpu][mine]) + value
        result[mine] = value
    return result


def to_words(values: NDArray[np.float16]) -> NDArray[np.int64]:
    """[lines, 16] FP16 as [lines, 4] 64-bit words, element 0 lowest."""
    return np.ascontiguousarray(values).view(np.int64).reshape(len(values), LINE_ELEMENTS * ELEMENT_BYTES // 8)
