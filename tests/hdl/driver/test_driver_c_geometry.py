"""The C driver's arithmetic against the co-simulator's geometry: every block of random chunks, without hardware."""

import ctypes
import random

import pytest
from t3hdl.interface import register_map as regs
from t3sim.inputs import geometry

from tests.hdl.driver.c_driver import ENODEV, ERANGE, OK, READ, WRITE, Bus, Chunk, COutput, Device, Job, compiled

BLOCKS = 64
CAPABILITY = regs.Capability.const(
    {"ranges": 2, "contexts": 4, "descriptors": 64, "chunk_window": 64, "blocks": BLOCKS, "wavefronts": 8}
)
TRACKER = regs.CapabilityTracker.const({"tile_count_bits": 16, "chunk_count_bits": 32, "tile_marks_log": 14})
FIRST = 5
"""The first descriptor of the job."""


class Registers:
    """A bus with registers that keep what is written, and a driver that has found them."""

    def __init__(self, library, major=regs.HARDWARE_VERSION["major"]):
        self.words = {
            regs.ID: regs.ID_VALUE,
            regs.VERSION: regs.Version.const({"major": major}).as_bits(),
            regs.STATUS: 1,
            regs.CAPABILITY: CAPABILITY.as_bits(),
            regs.CAPABILITY_TRACKER: TRACKER.as_bits(),
        }

        def read(_, address, value):
            value[0] = self.words.get(address, 0)
            return 0

        def write(_, address, value):
            self.words[address] = value
            return 0

        self.bus, self.device, self.job, self.library = (
            Bus(READ(read), WRITE(write), None),
            Device(),
            Job(),
            library,
        )
        self.opened = library.t3_open(ctypes.byref(self.device), ctypes.byref(self.bus), ctypes.c_ulong(1))

    def map_output(self, grid, base):
        element = geometry.ELEMENT_BYTES
        output = COutput(
            base=32 * base, rows=grid.m, columns_bytes=element * grid.n, pitch_bytes=32 * grid.pitch,
            tile_rows=grid.tile_rows, tile_bytes=element * grid.tile_cols, wavefront_rows=grid.wavefront_rows,
            range=1, context=2, epoch=3, op=2, dtype=0,
        )  # fmt: skip
        job, device = ctypes.byref(self.job), ctypes.byref(self.device)
        return self.library.t3_map_output(job, device, ctypes.byref(output), FIRST)

    def dma_map(self, chunk, row_shift, col_shift, addends):
        rectangle = Chunk(chunk.row0, chunk.row1, chunk.col0, chunk.col1)
        return self.library.t3_dma_map(
            ctypes.byref(self.job), ctypes.byref(rectangle), 7, 256, addends, row_shift, col_shift
        )

    def descriptor(self):
        address = regs.DESCRIPTOR + FIRST * regs.DESCRIPTOR_STRIDE
        return [layout.from_bits(self.words[address + 8 * w]) for w, layout in enumerate(regs.DESCRIPTOR_LAYOUTS)]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("driver"))


def some_grid(rng):
    wavefronts, height = rng.choice((1, 2, 4, 8)), rng.choice((1, 8, 16))
    rows, cols = wavefronts * height, 16 * rng.choice((1, 2, 4, 8))
    m, n = rng.randint(1, 9 * rows), rng.randint(1, 20 * cols)
    return geometry.Grid(m=m, n=n, tile_rows=rows, tile_cols=cols, wavefronts=wavefronts)


def some_chunk(rng, grid):
    row0, col0 = rng.randrange(grid.rows), rng.randrange(grid.cols)
    return geometry.Chunk(row0, rng.randint(row0 + 1, grid.rows), col0, rng.randint(col0 + 1, grid.cols))


def check_profile(words, grid):
    for bottom in (0, 1) if grid.rows > 1 else (1,):
        for right in (0, 1) if grid.cols > 1 else (1,):
            for wf in range(grid.wavefronts):
                entry = regs.PROFILE + 8 * (bottom * 32 + right * 16 + wf)
                assert words[entry] == grid.profile(bool(bottom), bool(right), wf)


def check_descriptor(unit, grid, chunk, blocks, addends):
    place, amount, _, target, tiles, last = unit.descriptor()
    assert (place.row0, place.row1, place.col0, place.col1) == (chunk.row0, chunk.row1, chunk.col0, chunk.col1)
    assert (amount.expected, amount.addends) == (grid.chunk_lines(chunk) * addends, addends)
    assert (amount.context, amount.epoch, place.peer, target.peer_base) == (2, 3, 7, 8)
    assert (last.last_block_row, last.last_block_col) == (blocks.row_blocks - 1, blocks.col_blocks - 1)
    assert target.row_blocks_log == blocks.row_blocks_log
    assert {name: getattr(last, name) for name in grid.tile_sizes(chunk)} == grid.tile_sizes(chunk)
    counts = tiles.tiles_inner, tiles.tiles_bottom, tiles.tiles_right, tiles.tiles_corner
    for row in range(blocks.row_blocks):
        for col in range(blocks.col_blocks):
            edge = (row == last.last_block_row) + 2 * (col == last.last_block_col)
            assert counts[edge] == grid.block_tiles(chunk, blocks, row, col)


@pytest.mark.parametrize("seed", range(3))
def test_profile_and_descriptors_are_those_of_the_geometry(library, seed):
    print(f"seed {seed}")
    rng, unit, mapped = random.Random(seed), Registers(library), 0
    assert unit.opened == OK
    for _ in range(400):
        grid, base = some_grid(rng), 8 * rng.randrange(1 << 35)
        assert unit.map_output(grid, base) == OK
        check_profile(unit.words, grid)
        assert unit.words[regs.RANGE + regs.RANGE_STRIDE + 8] == base + grid.lines
        chunk, shifts, addends = some_chunk(rng, grid), (rng.randrange(5), rng.randrange(5)), rng.randint(1, 3)
        row_blocks, col_blocks = (
            geometry.ceil_div(size, 1 << shift) for size, shift in zip((chunk.rows, chunk.cols), shifts, strict=True)
        )
        blocks = geometry.Blocks(*shifts, row_blocks, col_blocks)
        fits = col_blocks << blocks.row_blocks_log <= BLOCKS
        assert unit.dma_map(chunk, *shifts, addends) == (OK if fits else ERANGE)
        if fits:
            mapped += 1
            assert unit.job.marks_log == chunk.marks_log
            check_descriptor(unit, grid, chunk, blocks, addends)
    assert mapped > 100


def test_another_major_version_is_not_the_drivers(library):
    for other in (-1, 1):
        assert Registers(library, major=regs.HARDWARE_VERSION["major"] + other).opened == ENODEV
