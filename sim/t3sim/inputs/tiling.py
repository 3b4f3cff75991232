"""Which workgroup tile the GEMM kernel uses: chosen from a menu by predicted time, as a BLAS library does.

The rule knows the shape of the GEMM and the machine, nothing else. A tile's time is the sum of its stages: a stage is
as many workgroups as the GPU holds at once, and takes a prologue (the first slab comes from DRAM), its slabs, and the
stores of a tile. A slab takes what limits it: the CU's matrix unit and its path to the cache, which the workgroups of
the CU share, or the loads of a workgroup, as far as prefetching does not hide their latency. Among the tiles whose
time is near the best, the largest is taken, because it reads its inputs least often. Not in the prediction: waiting
for DRAM, and the overlap of stages.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from .geometry import ELEMENT_BYTES, ceil_div
from .machine.gpu import GpuSection, Tile
from .machine.machine import Machine
from .workload import Workload

Shape = tuple[int, int, int]
"""Rows, columns and inner dimension of a GEMM."""


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """A workgroup tile of ``rows`` x ``cols``, and what follows for one GEMM: how many workgroups there are, in how
    many stages (``waves``) they run, and the predicted time of the kernel."""

    rows: int
    cols: int
    workgroups: int
    waves: int
    predicted_ns: float


def slab_clocks(gpu: GpuSection, tile: Tile, depth: int) -> int:
    """CU clocks in which the matrix unit multiplies ``depth`` columns of a tile's inputs."""
    rows, cols = tile
    return ceil_div(2 * rows * cols * depth, gpu.flop_per_clock_per_cu)


def choose_tiling(workload: Workload, machine: Machine) -> Tiling:
    """The tiling of a sublayer's GEMM, for the largest inner dimension that a GPU has.

    A tile that gives fewer workgroups than GPUs is left out; raises ValueError if that leaves none.
    """
    workload.check_tiles(machine.gpu.tiles)
    return best_tiling((workload.m, workload.n, workload.k_range[1]), machine, least=workload.tp)


def best_tiling(shape: Shape, machine: Machine, *, count: int = 1, least: int = 0) -> Tiling:
    """The largest tile of the menu (by area, then by rows) predicted to be within ``gpu.tile_margin`` of the fastest.

    The kernel computes ``count`` GEMMs of ``shape``. Tiles that give fewer than ``least`` workgroups are left out.
    """
    options = [predict(shape, machine, tile, count) for tile in machine.gpu.tiles]
    options = [option for option in options if option.workgroups >= least]
    limit = (1 + machine.gpu.tile_margin) * min(option.predicted_ns for option in options)
    near = [option for option in options if option.predicted_ns <= limit]
    return max(near, key=lambda option: (option.rows * option.cols, option.rows))


def predict(shape: Shape, machine: Machine, tile: Tile, count: int = 1) -> Tiling:
    """What ``tile`` means for ``count`` GEMMs of ``shape``."""
    gpu, (rows, cols), (m, n, k) = machine.gpu, tile, shape
    workgroups = count * ceil_div(m, rows) * ceil_div(n, cols)
    waves = ceil_div(workgroups, gpu.cus * gpu.workgroups_per_cu)
    left = workgroups - (waves - 1) * gpu.cus * gpu.workgroups_per_cu
    clocks = (waves - 1) * _stage_clocks(k, machine, tile, gpu.workgroups_per_cu)
    clocks += _stage_clocks(k, machine, tile, ceil_div(left, gpu.cus))
    return Tiling(rows=rows, cols=cols, workgroups=workgroups, waves=waves, predicted_ns=clocks * 1000 / gpu.clock_mhz)


def _stage_clocks(k: int, machine: Machine, tile: Tile, sharing: int) -> int:
    """CU clocks of a stage in which ``sharing`` workgroups share the busiest CU."""
    gpu, (rows, cols) = machine.gpu, tile
    depth = min(gpu.slab_k, k)
    slabs = ceil_div(k, depth)
    matrix = slab_clocks(gpu, tile, depth)
    load = ceil_div(ELEMENT_BYTES * (rows + cols) * depth, machine.llc.bytes_per_clock_per_cu)
    first = _load_latency(machine) + load
    alone = ceil_div(first, gpu.prefetch_slabs) if gpu.prefetch_slabs else first + matrix
    store = ceil_div(rows * cols * ELEMENT_BYTES, gpu.store_bytes_per_clock)
    return slabs * max(sharing * matrix, sharing * load, alone) + first + store


def _load_latency(machine: Machine) -> int:
    """CU clocks of a load that misses the cache and opens a row of an idle DRAM."""
    hbm = machine.hbm
    dram_ns = Fraction((hbm.nRCDRD + hbm.nCL + hbm.nBL) * 1000, hbm.clock_mhz)
    total_ns = machine.fabric.request_ns + machine.llc.latency_ns + dram_ns + machine.fabric.response_ns
    return ceil(total_ns * machine.gpu.clock_mhz / 1000)
