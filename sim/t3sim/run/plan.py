"""From a request to what every GPU simulates: shapes and addresses, and the constants of its models."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from t3hdl.config import T3Config
from t3hdl.interface.layouts import LINE_BYTES

from t3sim.collective.arbitration import Arbitration, arbitration_of
from t3sim.collective.backlog import MOST_BACKLOG, PATIENCE_CYCLES, Backlog
from t3sim.collective.carried import Carried, choose_lines, max_lines, no_lines
from t3sim.common.ratio import CLOCK_LARGEST, LINK_LARGEST, decimal, ratio
from t3sim.engine import state
from t3sim.inputs.geometry import ELEMENT_BYTES, Blocks, Chunk, Grid, Partition, ceil_div
from t3sim.inputs.limits import ADDENDS, LONGEST_CYCLES
from t3sim.inputs.machine.hbm import HbmSection
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

    @cached_property
    def config(self) -> T3Config:
        """Parameters of the T3 hardware."""
        return self.request.machine.hardware.config()

    @property
    def hbm(self) -> HbmSection:
        """Parameters of the DRAM, whose times are memory clocks already."""
        return self.request.machine.hbm

    @property
    def queue_lines(self) -> int:
        """Most lines that can wait in the DRAM queue of a channel."""
        return self.hbm.queue_slots

    @property
    def line_cycles(self) -> int:
        """Memory clocks that a line takes on the data bus of a channel."""
        return self.hbm.nBL

    @property
    def entry_lines(self) -> int:
        """Lines of an LLC line."""
        return self.request.machine.llc.line_bytes // LINE_BYTES

    @property
    def receive_lines(self) -> int:
        """Room of the buffer of a link's receiver, in lines."""
        return self.request.machine.link.receive_lines

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
        return ceil_div(ceil_div(elements * ELEMENT_BYTES, LINE_BYTES), self.entry_lines) * self.entry_lines

    def cycles(self, nanoseconds: float) -> int:
        """Memory cycles of a time, rounded up."""
        return ceil(decimal(nanoseconds) * self.hbm.clock_mhz / 1000)

    def ns(self, cycles: float) -> float:
        """Time of memory cycles."""
        return float(cycles) * 1000 / self.hbm.clock_mhz

    def blocks(self, chunk: Chunk) -> Blocks:
        """The blocks that the DMA engine sends of a chunk."""
        return self.partition.blocks(chunk, self.request.machine.dma.block, self.config)

    @cached_property
    def estimated_cycles(self) -> int:
        """What the run would take without contention, for the timeline's bins."""
        machine, workload = self.request.machine, self.request.workload
        flop = 2 * workload.m * workload.n * workload.k_range[1]
        gemm = flop / (machine.gpu.cus * machine.gpu.flop_per_clock_per_cu * machine.gpu.clock_mhz) * 1000
        ring = self.ring_ns
        return self.cycles(gemm + ring + ring if self.sequential else max(gemm, ring) + ring)

    @cached_property
    def line_ns(self) -> float:
        """Time that the link takes for a line of the output, with its share of the packets' headers."""
        link, grid = self.request.machine.link, self.grid
        return (LINE_BYTES + link.header_bytes * grid.bursts / grid.lines) / link.gb_s

    @property
    def ring_ns(self) -> float:
        """Time that the link takes for what a GPU sends in one collective."""
        return self.grid.lines * (self.gpus - 1) / self.gpus * self.line_ns

    @property
    def compute_first(self) -> bool:
        """Whether the arbiter lets compute go first: under ``t3-mca``.

        By the rule of the backlog only where communication has time to wait.
        """
        request = self.request
        if request.policy != "t3-mca":
            return False
        return request.machine.arbiter.mca == "paper" or self.backlog.communication_may_wait

    @property
    def arbitration(self) -> Arbitration:
        """How the unit arbitrates between the streams."""
        machine, (backlog, patience) = self.request.machine, self.backlog_limits
        return arbitration_of(
            machine.arbiter, compute_first=self.compute_first, backlog=backlog, patience=patience,
            queue_lines=self.queue_lines,
        )  # fmt: skip

    @property
    def backlog(self) -> Backlog:
        """What the rule of the backlog is worked out from."""
        gpu, grid, chunk = self.request.machine.gpu, self.grid, self.partition.chunks[0]
        places = gpu.cus * gpu.workgroups_per_cu
        count = self.blocks(chunk).count
        return Backlog(
            gpus=self.gpus,
            gemm_ns=self.request.tiling.predicted_ns,
            stages=self.request.tiling.waves,
            ring_ns=self.ring_ns,
            block_ns=grid.chunk_lines(chunk) / count * self.line_ns,
            stage_ns=places * grid.tile_rows * grid.tile_lines * self.line_ns,
            stage_blocks=ceil_div(places * count, chunk.tiles),
        )

    @property
    def backlog_limits(self) -> tuple[int, int]:
        """DMA blocks, and PATIENCE_CYCLES, from which communication is behind: the machine's, or those of the rule."""
        given, rule = self.request.machine.arbiter, self.backlog
        cycles = self.cycles(given.backlog_patience_ns or rule.patience_ns)
        limits = (given.backlog_blocks or rule.blocks, ceil_div(cycles, PATIENCE_CYCLES))
        return min(limits[0], MOST_BACKLOG), min(limits[1], MOST_BACKLOG)


def constants(plan: RunPlan, gpu: int) -> dict[str, dict[str, int]]:
    """The constants of one GPU's models, by their records in :class:`~t3sim.engine.gpu_state.GpuState`.

    Here, and in :func:`movers`, the machine's units become the engine's: memory clocks, CU clocks, lines.
    """
    machine, config = plan.request.machine, plan.config
    own = plan.grid.chunk_lines(plan.partition.chunks[gpu])
    return {
        "output": _output(plan),
        "gemm": _gemm(plan, gpu),
        "llc": _llc(plan),
        "fabric": {
            "channels": config.slices,
            "request_cycles": plan.cycles(machine.fabric.request_ns),
            "response_cycles": plan.cycles(machine.fabric.response_ns),
        },
        "egress": {"ports": config.egress_ports, "buffer_lines": _lines(machine.link.egress_buffer_kib)},
        "link": _link(plan, gpu),
        "kernel": {"overhead_cycles": plan.cycles(machine.kernel.step_overhead_ns)},
        "own": {"update_lines": ADDENDS * own, "output_bytes": plan.grid.output_bytes},
        "unit": {
            "leaves": config.nodes,
            "leaf_inputs": config.node_inputs,
            "leaf_bits": config.node_inputs.bit_length() - 1,
            "roots": config.roots,
            "tracker_banks": config.tracker_banks,
            "mca": plan.compute_first,
        },
        "contention": {"observed": plan.request.contention},
        "time": {"bin_cycles": max(1, min(plan.estimated_cycles, LONGEST_CYCLES) // (state.BINS // 8))},
    }


def movers(plan: RunPlan, gpu: int) -> tuple[dict[str, int], dict[str, int]]:
    """The constants of the DMA engine and of the kernels of one GPU as movers of lines."""
    dma, kernel = plan.request.machine.dma, plan.request.machine.kernel
    lines_per_cycle = kernel.cus * kernel.bytes_per_clock_per_cu * _cu_clocks(plan, gpu) / LINE_BYTES
    return (
        _mover(_lines(dma.buffer_kib), Fraction(dma.lines_per_cycle)),
        _mover(kernel.cus * kernel.outstanding_lines_per_cu, lines_per_cycle),
    )


def _mover(buffer_lines: int, lines_per_cycle: Fraction) -> dict[str, int]:
    return {
        "buffer_lines": buffer_lines,
        "lines_per_cycle_num": lines_per_cycle.numerator,
        "lines_per_cycle_den": lines_per_cycle.denominator,
    }


def _lines(kib: int) -> int:
    return kib * 1024 // LINE_BYTES


def _cu_clocks(plan: RunPlan, gpu: int) -> Fraction:
    """CU clocks of a GPU in a memory clock."""
    machine = plan.request.machine
    scale = machine.variation.clock_scale[gpu] if machine.variation.clock_scale else 1.0
    return ratio(decimal(scale) * machine.gpu.clock_mhz / plan.hbm.clock_mhz, CLOCK_LARGEST)


def _output(plan: RunPlan) -> dict[str, int]:
    grid = plan.grid
    return {
        "m": grid.m, "n": grid.n, "tile_rows": grid.tile_rows, "tile_cols": grid.tile_cols,
        "wavefront_rows": grid.wavefront_rows, "rows": grid.rows, "cols": grid.cols, "tiles": grid.tiles,
        "pitch_lines": grid.pitch, "tile_lines": grid.tile_lines, "slack_bytes": grid.slack_bytes,
        "line": plan.bases["out"], "receive_line": plan.bases["temp"],
        "cached": plan.sequential, "tracked": not plan.sequential,
    }  # fmt: skip


def _gemm(plan: RunPlan, gpu: int) -> dict[str, int]:
    machine, grid, k = plan.request.machine, plan.grid, plan.request.workload.k_of(gpu)
    slab_k, tile = min(machine.gpu.slab_k, k), (grid.tile_rows, grid.tile_cols)
    slabs, clocks = ceil_div(k, slab_k), _cu_clocks(plan, gpu)
    skew = machine.variation.start_skew_ns[gpu] if machine.variation.start_skew_ns else 0.0
    return {
        "cus": machine.gpu.cus, "places": machine.gpu.cus * machine.gpu.workgroups_per_cu,
        "clock_num": clocks.numerator, "clock_den": clocks.denominator,
        "k": k, "slab_k": slab_k, "slabs": slabs, "slab_clocks": slab_clocks(machine.gpu, tile, slab_k),
        "last_slab_clocks": slab_clocks(machine.gpu, tile, k - (slabs - 1) * slab_k),
        "prefetch_slabs": machine.gpu.prefetch_slabs, "slots": machine.gpu.prefetch_slabs + 1,
        "stage_barrier": machine.gpu.dispatch == "stage", "hold_store": machine.gpu.store_release == "performed",
        "store_bytes_per_clock": machine.gpu.store_bytes_per_clock,
        "a_line": plan.bases["a"], "b_line": plan.bases["b"],
        "a_pitch_lines": plan.input_pitch(grid.m), "b_pitch_lines": plan.input_pitch(grid.n),
        "launch_cycle": plan.cycles(machine.gpu.kernel_launch_ns + skew),
    }  # fmt: skip


def _llc(plan: RunPlan) -> dict[str, int]:
    llc = plan.request.machine.llc
    sets = llc.capacity_kib * 1024 // (llc.ways * llc.line_bytes)
    return {
        "sets": sets, "set_mask": sets - 1 if sets & (sets - 1) == 0 else -1, "ways": llc.ways,
        "entry_lines": plan.entry_lines, "latency_cycles": plan.cycles(llc.latency_ns),
        "random": llc.replacement == "random", "bytes_per_clock": llc.bytes_per_clock_per_cu,
        "most_write_backs": plan.config.slices * llc.write_backs_per_channel,
    }  # fmt: skip


def _link(plan: RunPlan, gpu: int) -> dict[str, int]:
    machine, link = plan.request.machine, plan.request.machine.link
    gb_s = machine.variation.link_gb_s[gpu] if machine.variation.link_gb_s else link.gb_s
    byte_ps = ratio(1000 / decimal(gb_s), LINK_LARGEST)
    return {
        "gpu": gpu, "gpus": plan.gpus, "memory_mhz": plan.hbm.clock_mhz,
        "byte_ps_num": byte_ps.numerator, "byte_ps_den": byte_ps.denominator,
        "latency_cycles": plan.cycles(link.latency_ns), "header_bytes": link.header_bytes,
        "receive_lines": plan.receive_lines, "posted_lines": plan.receive_lines if plan.near_memory else 0,
        "mirror": plan.request.mirror, "retry": link.retry,
        "retry_timeout_cycles": plan.cycles(link.retry_timeout_ns),
    }  # fmt: skip
