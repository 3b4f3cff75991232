"""From a request to what every GPU simulates: shapes, addresses, maps and arrays."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from t3hdl.interface.layouts import LINE_BYTES

from t3sim.collective.carried import Carried, choose_lines, max_lines, no_lines
from t3sim.common.ratio import CLOCK_LARGEST, LINK_LARGEST, decimal, ratio
from t3sim.engine import state
from t3sim.inputs.geometry import ELEMENT_BYTES, Chunk, Grid, Partition, ceil_div
from t3sim.inputs.limits import LONGEST_CYCLES
from t3sim.inputs.tiling import slab_clocks

from .request import TRACKED, RunRequest

ALIGNMENT = (1 << 20) // LINE_BYTES
"""Lines to which buffers are aligned: 1 MiB."""


def _align(lines: int) -> int:
    return ceil_div(lines, ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class RunPlan:
    """What is the same for all GPUs of a run."""

    request: RunRequest

    @property
    def sequential(self) -> bool:
        """Whether the collectives are kernels after the GEMM, and the T3 hardware stays out of use."""
        return self.request.policy not in TRACKED

    @property
    def pipelined(self) -> bool:
        """Whether the rings forward slices of a chunk as they arrive."""
        return self.request.policy == "sequential-pipelined"

    @property
    def near_memory(self) -> bool:
        """Whether the reduce-scatter kernel sends updates."""
        return self.request.policy == "sequential-nmc"

    @property
    def gpus(self) -> int:
        """GPUs of the ring."""
        return self.request.workload.tp

    @property
    def simulated(self) -> int:
        """GPUs that are simulated: one in mirror mode."""
        return 1 if self.request.mirror else self.gpus

    @property
    def grid(self) -> Grid:
        """The output in workgroup tiles."""
        return self.request.grid

    @cached_property
    def partition(self) -> Partition:
        return Partition(grid=self.grid, count=self.gpus, swizzle_rows=self.request.machine.gpu.swizzle_rows)

    @cached_property
    def parts(self) -> tuple[tuple[Chunk, ...], ...]:
        """For each chunk the rectangles whose arrival a GPU waits for: the chunk, or the slices that a ring forwards.

        Parts are numbered chunk after chunk.
        """
        chunks = self.partition.chunks
        if not self.pipelined:
            return tuple((chunk,) for chunk in chunks)
        tile_bytes = self.grid.tile_rows * self.grid.tile_lines * LINE_BYTES
        tiles = self.request.machine.kernel.slice_kib * 1024 // tile_bytes
        return tuple(chunk.cut(max(1, tiles)) for chunk in chunks)

    @property
    def has_data(self) -> bool:
        """Whether lines may carry data: where memory reduces, but not in mirror mode: the neighbour has no data."""
        return not self.request.mirror and (self.near_memory or not self.sequential)

    @property
    def max_carried_lines(self) -> int:
        """What the number of lines with data does not exceed, known before any is chosen."""
        return max_lines(self.grid, self.gpus, self.request.data_lines) if self.has_data else 0

    @cached_property
    def carried(self) -> Carried:
        """Lines with data."""
        if not self.has_data:
            return no_lines()
        return choose_lines(self.grid, self.partition, self.request.seed, self.request.data_lines)

    @cached_property
    def bases(self) -> dict[str, int]:
        """First lines of the buffers: output, the reduce-scatter's receive buffer, and the inputs."""
        k = self.request.workload.k_range[1]
        sizes = {"out": self.grid.lines, "temp": self.grid.lines, "a": k * self.input_pitch(self.grid.m), "b": 0}
        bases, used = {}, ALIGNMENT
        for name, lines in sizes.items():
            bases[name] = used
            used += _align(lines)
        return bases

    def input_pitch(self, elements: int) -> int:
        """Lines from one row of an input to the next: padded to whole LLC lines."""
        per_line = self.request.machine.llc.line_bytes // LINE_BYTES
        return ceil_div(ceil_div(elements * ELEMENT_BYTES, LINE_BYTES), per_line) * per_line

    def cycles(self, nanoseconds: float) -> int:
        """Memory cycles of a time, rounded up."""
        return ceil(decimal(nanoseconds) * self.request.machine.hbm.clock_mhz / 1000)

    @cached_property
    def estimated_cycles(self) -> int:
        """What the run would take without contention, for the timeline's bins."""
        machine, workload = self.request.machine, self.request.workload
        flop = 2 * workload.m * workload.n * workload.k_range[1]
        gemm = flop / (machine.gpu.cus * machine.gpu.flop_per_clock_per_cu * machine.gpu.clock_mhz) * 1000
        ring = self.grid.output_bytes * (self.gpus - 1) / self.gpus / machine.link.gb_s
        return self.cycles(gemm + ring + ring if self.sequential else max(gemm, ring) + ring)


def constants(plan: RunPlan, gpu: int) -> dict[str, int]:
    """The CONSTANTS record of one GPU."""
    request, grid = plan.request, plan.grid
    machine, workload, config = request.machine, request.workload, plan.request.machine.hardware.config()
    variation = machine.variation
    k = workload.k_of(gpu)
    slab_k, tile = min(machine.gpu.slab_k, k), (grid.tile_rows, grid.tile_cols)
    slabs = ceil_div(k, slab_k)
    own = plan.partition.chunks[gpu]
    llc_sets = machine.llc.capacity_kib * 1024 // (machine.llc.ways * machine.llc.line_bytes)
    scale = variation.clock_scale[gpu] if variation.clock_scale else 1.0
    link = variation.link_gb_s[gpu] if variation.link_gb_s else machine.link.gb_s
    skew = variation.start_skew_ns[gpu] if variation.start_skew_ns else 0.0
    clock = ratio(decimal(scale) * machine.gpu.clock_mhz / machine.hbm.clock_mhz, CLOCK_LARGEST)
    byte_ps = ratio(1000 / decimal(link), LINK_LARGEST)
    return {
        "gpu": gpu, "gpus": plan.gpus, "channels": config.slices, "cus": machine.gpu.cus,
        "workgroups": machine.gpu.cus * machine.gpu.workgroups_per_cu,
        "memory_mhz": machine.hbm.clock_mhz, "clock_num": clock.numerator, "clock_den": clock.denominator,
        "m": grid.m, "n": grid.n, "k": k, "tile_rows": grid.tile_rows, "tile_cols": grid.tile_cols,
        "wavefront_rows": grid.wavefront_rows, "rows": grid.rows, "cols": grid.cols, "pitch": grid.pitch,
        "tile_lines": grid.tile_lines, "slack": grid.slack_bytes,
        "slab_k": slab_k, "slabs": slabs, "slab_clocks": slab_clocks(machine.gpu, tile, slab_k),
        "last_slab_clocks": slab_clocks(machine.gpu, tile, k - (slabs - 1) * slab_k),
        "prefetch": machine.gpu.prefetch_slabs, "stage_barrier": machine.gpu.dispatch == "stage",
        "hold_store": machine.gpu.store_release == "performed",
        "store_bytes_per_clock": machine.gpu.store_bytes_per_clock,
        "a_base": plan.bases["a"], "b_base": plan.bases["b"], "a_pitch": plan.input_pitch(grid.m),
        "b_pitch": plan.input_pitch(grid.n), "out_base": plan.bases["out"], "temp_base": plan.bases["temp"],
        "tiles": grid.tiles, "cached_output": plan.sequential, "tracked": not plan.sequential,
        "start": plan.cycles(machine.gpu.kernel_launch_ns + skew),
        "llc_sets": llc_sets, "llc_mask": llc_sets - 1 if llc_sets & (llc_sets - 1) == 0 else -1,
        "llc_ways": machine.llc.ways, "llc_line": machine.llc.line_bytes // LINE_BYTES,
        "llc_latency": plan.cycles(machine.llc.latency_ns), "llc_random": machine.llc.replacement == "random",
        "write_backs": config.slices * machine.llc.write_backs_per_channel,
        "llc_bytes_per_clock": machine.llc.bytes_per_clock_per_cu, "request": plan.cycles(machine.fabric.request_ns),
        "response": plan.cycles(machine.fabric.response_ns),
        "link_num": byte_ps.numerator, "link_den": byte_ps.denominator,
        "link_latency": plan.cycles(machine.link.latency_ns), "header_bytes": machine.link.header_bytes,
        "mirror": request.mirror, "retry": machine.link.retry,
        "retry_timeout": plan.cycles(machine.link.retry_timeout_ns),
        "token_nodes_per_tree": config.nodes, "leaf_inputs": config.node_inputs, "contexts": config.contexts,
        "leaf_bits": config.node_inputs.bit_length() - 1, "banks": config.tracker_banks,
        "ports": config.egress_ports, "mca": request.policy == "t3-mca",
        "own_lines": 2 * grid.chunk_lines(own), "own_bytes": grid.output_bytes,
        "posted_lines": machine.link.rx_buffer_kib * 1024 // LINE_BYTES if plan.near_memory else 0,
        "bin_cycles": max(1, min(plan.estimated_cycles, LONGEST_CYCLES) // (state.BINS // 8)),
        "kernel_overhead": plan.cycles(machine.kernel.step_overhead_ns),
    }  # fmt: skip
