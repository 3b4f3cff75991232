"""Tiles, chunks and blocks of an output: nothing twice, nothing missing, also where sizes divide nothing."""

import pytest
from t3hdl.config import preset
from t3sim.inputs.geometry import Blocks, Chunk, Grid, Partition, ceil_div, ceil_log2

SIZES = ((256, 200), (200, 136), (33, 17), (20, 333), (197, 131), (1, 1), (5, 250), (128, 128), (65, 64), (8192, 4256))
COUNTS = (2, 3, 4, 5, 7, 8)


def toy(m: int, n: int) -> Grid:
    return Grid(m=m, n=n, tile_rows=32, tile_cols=32, wavefronts=2)


PARTITIONS = [
    pytest.param(Partition(grid=toy(m, n), count=count, swizzle_rows=swizzle), id=f"{m}x{n}/{count}/{swizzle}")
    for m, n in SIZES
    for count in COUNTS
    if toy(m, n).tiles >= count
    for swizzle in (1, 3, 8)
]
"""Every size with every count of chunks that it has tiles for, with low and high swizzle groups."""
EVERY_FOURTH_QUICKLY = [
    pytest.param(*case.values, id=case.id, marks=[] if number % 4 == 0 else [pytest.mark.long])
    for number, case in enumerate(PARTITIONS)
]
"""All of them, and one of four in ``make test``."""


def cells(chunk: Chunk) -> set[tuple[int, int]]:
    return {(row, col) for row in range(chunk.row0, chunk.row1) for col in range(chunk.col0, chunk.col1)}


def lines_of_tile(grid: Grid, row: int, col: int) -> list[int]:
    """Lines of each wavefront of a tile, counted element by element of its first column."""
    width = len({e // 16 for e in range(col * grid.tile_cols, min(grid.n, (col + 1) * grid.tile_cols))})
    heights = [0] * grid.wavefronts
    for r in range(row * grid.tile_rows, min(grid.m, (row + 1) * grid.tile_rows)):
        heights[(r - row * grid.tile_rows) // (grid.tile_rows // grid.wavefronts)] += 1
    return [height * width for height in heights]


def test_ceil():
    for value in range(1, 70):
        assert 2 ** ceil_log2(value) >= value and (value == 1 or 2 ** (ceil_log2(value) - 1) < value)
        assert [ceil_div(value, b) for b in (1, 2, 3, 64)] == [len(range(0, value, b)) for b in (1, 2, 3, 64)]


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_grid_adds_up(m, n):
    grid = toy(m, n)
    assert (
        grid.lines
        == m * grid.pitch
        == sum(sum(lines_of_tile(grid, row, col)) for row in range(grid.rows) for col in range(grid.cols))
    )
    assert grid.output_bytes == 2 * m * n == 32 * grid.lines - m * grid.slack_bytes
    assert 0 <= grid.slack_bytes < 32


@pytest.mark.parametrize(("m", "n"), [*SIZES[:-1], (37, 4256)])
def test_bursts_are_the_aligned_blocks_of_each_row_of_a_tile(m, n):
    """Element by element: tile column, and block of 256 bytes that its address is in."""
    grid = toy(m, n)
    touched = {(r, e // 32, (r * grid.pitch * 32 + 2 * e) // 256) for r in range(m) for e in range(n)}
    assert grid.bursts == len(touched)


@pytest.mark.parametrize(("m", "n"), SIZES[:-1])
def test_profile_is_the_lines_of_every_wavefront_tile(m, n):
    grid = toy(m, n)
    for row in range(grid.rows):
        for col in range(grid.cols):
            lines = lines_of_tile(grid, row, col)
            bottom, right = row == grid.rows - 1, col == grid.cols - 1
            assert [grid.profile(bottom, right, wf) for wf in range(grid.wavefronts)] == lines
            assert grid.wavefront_tiles(bottom) == sum(count > 0 for count in lines)


def test_output_lower_than_a_wavefront_has_one_wavefront_tile():
    grid = toy(5, 250)
    assert [grid.profile(True, False, wf) for wf in (0, 1)] == [5 * 2, 0]
    # 250 elements: the last tile has 26 of them, in 2 lines
    assert [grid.profile(True, True, wf) for wf in (0, 1)] == [5 * 2, 0]
    assert grid.wavefront_tiles(bottom=True) == 1 and grid.wavefront_tiles(bottom=False) == 2


@pytest.mark.parametrize("partition", PARTITIONS)
def test_chunks_tile_the_output(partition):
    grid, chunks = partition.grid, partition.chunks
    assert len(chunks) == partition.count
    seen = [cell for chunk in chunks for cell in cells(chunk)]
    assert len(seen) == len(set(seen)) == grid.tiles == sum(chunk.tiles for chunk in chunks)
    assert all(chunk.tiles == chunk.rows * chunk.cols >= 1 for chunk in chunks)
    assert sum(grid.chunk_lines(chunk) for chunk in chunks) == grid.lines
    assert sum(grid.chunk_bytes(chunk) for chunk in chunks) == grid.output_bytes
    assert sum(grid.chunk_rows(chunk) * chunk.cols for chunk in chunks) == grid.m * grid.cols


@pytest.mark.parametrize("partition", PARTITIONS)
def test_chunks_are_the_rules_best(partition):
    """Among the cuts with bands of near-equal height, no other has a smaller largest chunk or fewer bands."""
    grid, count = partition.grid, partition.count
    fewest = min(ceil_div(grid.rows, partition.swizzle_rows), count, grid.rows)
    largest = {}
    for bands in range(fewest, min(grid.rows, count) + 1):
        heights = [(b + 1) * grid.rows // bands - b * grid.rows // bands for b in range(bands)]
        shares = [(b + 1) * count // bands - b * count // bands for b in range(bands)]
        if max(shares) <= grid.cols:
            largest[bands] = max(
                height * ceil_div(grid.cols, share) for height, share in zip(heights, shares, strict=True)
            )
    best = min(largest.values())
    chunks = partition.chunks
    assert max(chunk.tiles for chunk in chunks) == best
    bands = {(chunk.row0, chunk.row1) for chunk in chunks}
    assert len(bands) == min(number for number, tiles in largest.items() if tiles == best)
    assert max(r1 - r0 for r0, r1 in bands) - min(r1 - r0 for r0, r1 in bands) <= 1
    for band in bands:
        widths = [chunk.cols for chunk in chunks if (chunk.row0, chunk.row1) == band]
        assert max(widths) - min(widths) <= 1


def test_chunks_of_a_known_shape():
    """8 x 7 tiles in 4 chunks: one band has chunks of 8 x 2 tiles, two bands of 4 x 4, four bands of 2 x 7."""
    partition = Partition(grid=toy(256, 200), count=4, swizzle_rows=8)
    assert partition.chunks == tuple(Chunk(2 * i, 2 * i + 2, 0, 7) for i in range(4))


def test_equal_chunks_where_tiles_divide():
    partition = Partition(grid=toy(256, 256), count=4, swizzle_rows=8)
    assert {chunk.tiles for chunk in partition.chunks} == {16}


def test_more_chunks_than_tiles_is_an_error():
    Partition(grid=toy(64, 64), count=4, swizzle_rows=8)
    with pytest.raises(
        ValueError,
        match=r"^TP must be at most the number of workgroup tiles \(4 for a 64 x 64 output\), not 5; 5 needs an output "
        r"of at least 64 x 65$",
    ):
        Partition(grid=toy(64, 64), count=5, swizzle_rows=8)
    assert toy(64, 65).tiles >= 5


def check_blocks(partition: Partition, chunk: Chunk, unit: str, available: int) -> None:
    grid, blocks = partition.grid, partition.blocks(chunk, unit, preset("small", blocks=available, tracker_banks=1))
    assert blocks.count == blocks.row_blocks * blocks.col_blocks
    assert blocks.row_blocks == ceil_div(chunk.rows, 1 << blocks.row_shift)
    assert blocks.col_blocks == ceil_div(chunk.cols, 1 << blocks.col_shift)
    places = [(row, col) for row in range(blocks.row_blocks) for col in range(blocks.col_blocks)]
    numbers = {col << blocks.row_blocks_log | row for row, col in places}
    assert len(numbers) == blocks.count and max(numbers) < available
    in_blocks = sum(grid.block_tiles(chunk, blocks, row, col) for row, col in places)
    assert in_blocks == sum(grid.wavefront_tiles(row == grid.rows - 1) for row, _ in cells(chunk))
    if unit == "chunk" or available == 1:
        assert blocks.count == 1


@pytest.mark.parametrize("partition", EVERY_FOURTH_QUICKLY)
def test_blocks_tile_the_chunk(partition):
    for unit in ("tile", "column", "chunk"):
        for available in (1, 2, 4, 64):
            for chunk in set(partition.chunks):
                check_blocks(partition, chunk, unit, available)


def test_block_units_when_the_hardware_has_enough():
    partition = Partition(grid=toy(256, 200), count=2, swizzle_rows=8)
    chunk = Chunk(0, 8, 0, 4)
    assert partition.blocks(chunk, "tile", preset("paper")) == Blocks(0, 0, 8, 4)
    assert partition.blocks(chunk, "column", preset("paper")) == Blocks(3, 0, 1, 4)
    assert partition.blocks(chunk, "chunk", preset("paper")) == Blocks(3, 2, 1, 1)


def test_blocks_grow_downwards_first():
    partition = Partition(grid=toy(256, 200), count=2, swizzle_rows=8)
    assert partition.blocks(Chunk(0, 8, 0, 4), "tile", preset("small", blocks=16)) == Blocks(1, 0, 4, 4)
    assert partition.blocks(Chunk(0, 8, 0, 4), "tile", preset("small", blocks=2, tracker_banks=1)) == Blocks(3, 1, 1, 2)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_dispatch_covers_every_tile_once_in_chunk_order(partition):
    order = list(range(1, partition.count)) + [0]
    tiles = partition.dispatch_order(order)
    assert len(tiles) == len(set(tiles)) == partition.grid.tiles
    place = 0
    for number in order:
        chunk = partition.chunks[number]
        assert set(tiles[place : place + chunk.tiles]) == cells(chunk)
        place += chunk.tiles


def test_dispatch_goes_down_a_group_then_right():
    whole = Partition(grid=toy(5 * 32, 2 * 32), count=1, swizzle_rows=2).dispatch_order([0])
    assert whole[:4] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert whole[-2:] == [(4, 0), (4, 1)]


def test_grid_refuses_tiles_that_split_badly():
    with pytest.raises(ValueError, match=r"^rows of a tile must be a multiple of gpu.wavefronts \(3\), not 32$"):
        Grid(m=64, n=64, tile_rows=32, tile_cols=32, wavefronts=3)
    with pytest.raises(ValueError, match=r"^columns of a tile must be a multiple of 16 \(whole lines\), not 24$"):
        Grid(m=64, n=64, tile_rows=32, tile_cols=24, wavefronts=2)


@pytest.mark.parametrize("tiles", [1, 2, 3, 5, 8, 12, 40, 1000])
def test_slices_of_a_chunk_cover_it_in_order(tiles):
    for rows, cols in ((1, 1), (8, 5), (5, 8), (1, 13), (9, 1), (3, 7)):
        chunk = Chunk(2, 2 + rows, 4, 4 + cols)
        slices = chunk.cut(tiles)
        covered = [
            (row, col) for part in slices for row in range(part.row0, part.row1) for col in range(part.col0, part.col1)
        ]
        assert sorted(covered) == [(row, col) for row in range(2, 2 + rows) for col in range(4, 4 + cols)]
        assert all(0 < part.tiles <= tiles for part in slices)
        if tiles >= cols:
            assert all(part.cols == cols for part in slices)
