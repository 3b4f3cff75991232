"""From a request to what every GPU simulates: shapes, addresses, maps and arrays."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from t3hdl.layouts import LINE_BYTES, Op

from .abi import Hardware
from .carried import Carried, choose_lines, chunk_map, no_lines, to_words
from .collective import ring_maps, ring_order
from .engine import state
from .engine.unit import PARTS
from .engine.words import place
from .geometry import ELEMENT_BYTES, Grid, Partition, ceil_div
from .hbm import HbmParameters, new_hbm
from .request import RunRequest

ALIGNMENT = (1 << 20) // LINE_BYTES
"""Lines to which buffers are aligned: 1 MiB."""
COMMAND_QUEUE = 64
"""Commands that wait in the DMA engine [A]."""


def _align(lines: int) -> int:
    return ceil_div(lines, ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Plan:
    """What is the same for all GPUs of a run. Raises ValueError for hardware that the machine cannot drive."""

    request: RunRequest

    def __post_init__(self) -> None:
        count_on = self.request.machine.hardware.config().count_on
        if count_on != "accepted":
            raise ValueError(
                f"the simulated memory does not report performed updates to the T3 hardware: hardware count_on must be "
                f"'accepted', not {count_on!r}"
            )

    @property
    def sequential(self) -> bool:
        return self.request.policy == "sequential"

    @property
    def gpus(self) -> int:
        """GPUs of the ring."""
        return self.request.workload.tp

    @property
    def simulated(self) -> int:
        """GPUs that are simulated: one in mirror mode."""
        return 1 if self.request.mirror else self.gpus

    @cached_property
    def grid(self) -> Grid:
        gpu, workload = self.request.machine.gpu, self.request.workload
        return Grid(
            m=workload.m, n=workload.n, tile_rows=gpu.tile_rows, tile_cols=gpu.tile_cols, wavefronts=gpu.wavefronts
        )

    @cached_property
    def partition(self) -> Partition:
        return Partition(grid=self.grid, count=self.gpus, swizzle_rows=self.request.machine.gpu.swizzle_rows)

    @cached_property
    def carried(self) -> Carried:
        """Lines with data: none without T3 hardware in use or in mirror mode, where the neighbour has no data."""
        if self.sequential or self.request.mirror:
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
        return int(np.ceil(nanoseconds * self.request.machine.hbm.clock_mhz / 1000))

    @cached_property
    def estimated_cycles(self) -> int:
        """What the run would take without contention, for the progress bar and the timeline's bins."""
        machine, workload = self.request.machine, self.request.workload
        flop = 2 * workload.m * workload.n * workload.k_range[1]
        gemm = flop / (machine.gpu.cus * machine.gpu.flop_per_clock_per_cu * machine.gpu.clock_mhz) * 1000
        ring = self.grid.output_bytes * (self.gpus - 1) / self.gpus / machine.link.gb_s
        return self.cycles(gemm + ring + ring if self.sequential else max(gemm, ring) + ring)


def hbm_parameters(request: RunRequest) -> HbmParameters:
    """The HBM model's parameters of a machine."""
    hbm = request.machine.hbm
    names = {field.name for field in fields(HbmParameters)}
    return HbmParameters(**{name: value for name, value in hbm.model_dump().items() if name in names})


def _constants(plan: Plan, gpu: int, hardware: Hardware) -> dict[str, int]:
    """The PLAN record of one GPU."""
    request, grid = plan.request, plan.grid
    machine, workload, config = request.machine, request.workload, hardware.config
    variation = machine.variation
    k = workload.k_of(gpu)
    slab_flop = 2 * machine.gpu.tile_rows * machine.gpu.tile_cols
    slabs = ceil_div(k, machine.gpu.slab_k)
    own = plan.partition.chunks[gpu]
    llc_sets = machine.llc.capacity_kib * 1024 // (machine.llc.ways * machine.llc.line_bytes)
    scale = variation.clock_scale[gpu] if variation.clock_scale else 1.0
    link = variation.link_gb_s[gpu] if variation.link_gb_s else machine.link.gb_s
    skew = variation.start_skew_ns[gpu] if variation.start_skew_ns else 0.0
    return {
        "gpu": gpu, "gpus": plan.gpus, "channels": config.slices, "cus": machine.gpu.cus,
        "clock_khz": round(machine.gpu.clock_mhz * 1000 * scale), "memory_mhz": machine.hbm.clock_mhz,
        "m": grid.m, "n": grid.n, "k": k, "tile_rows": grid.tile_rows, "tile_cols": grid.tile_cols,
        "wavefront_rows": grid.wavefront_rows, "rows": grid.rows, "cols": grid.cols, "pitch": grid.pitch,
        "tile_lines": grid.tile_lines, "slack": grid.slack_bytes,
        "slab_k": machine.gpu.slab_k, "slabs": slabs,
        "slab_clocks": ceil_div(slab_flop * machine.gpu.slab_k, machine.gpu.flop_per_clock_per_cu),
        "last_slab_clocks": ceil_div(
            slab_flop * (k - (slabs - 1) * machine.gpu.slab_k), machine.gpu.flop_per_clock_per_cu
        ),
        "prefetch": machine.gpu.prefetch_slabs, "stage_barrier": machine.gpu.dispatch == "stage",
        "hold_store": machine.gpu.store_release == "performed",
        "store_bytes_per_clock": machine.gpu.store_bytes_per_clock,
        "a_base": plan.bases["a"], "b_base": plan.bases["b"], "a_pitch": plan.input_pitch(grid.m),
        "b_pitch": plan.input_pitch(grid.n), "out_base": plan.bases["out"], "temp_base": plan.bases["temp"],
        "tiles": grid.tiles, "cached_output": plan.sequential,
        "start": plan.cycles(machine.gpu.kernel_launch_ns + skew),
        "llc_sets": llc_sets, "llc_mask": llc_sets - 1 if llc_sets & (llc_sets - 1) == 0 else -1,
        "llc_ways": machine.llc.ways, "llc_line": machine.llc.line_bytes // LINE_BYTES,
        "llc_latency": plan.cycles(machine.llc.latency_ns), "request": plan.cycles(machine.fabric.request_ns),
        "response": plan.cycles(machine.fabric.response_ns),
        "link_mb_s": round(link * 1000), "link_latency": plan.cycles(machine.link.latency_ns),
        "header_bytes": machine.link.header_bytes, "mirror": request.mirror,
        "nodes_per_tree": config.nodes, "leaf_inputs": config.node_inputs,
        "leaf_bits": config.node_inputs.bit_length() - 1, "banks": config.tracker_banks,
        "ports": config.egress_ports, "mca": request.policy == "t3-mca", "jobs": len(moves(plan, gpu)),
        "own_lines": 2 * grid.chunk_lines(own), "own_bytes": grid.output_bytes,
        "bin_cycles": max(1, plan.estimated_cycles // (state.BINS // 8)),
        "kernel_overhead": plan.cycles(machine.kernel.step_overhead_ns),
    }  # fmt: skip


def moves(plan: Plan, gpu: int) -> list[dict[str, int]]:
    """The rectangles that the collective kernels of one GPU send, in order (T3.md section 5, closed forms).

    ``sequential``: a step-synchronous ring of N - 1 sends (the first chunk as it is, the others with what was received
    added), then the reduction of the owned chunk in place; then, as with T3, N - 1 sends of the all-gather.
    """
    order, own = ring_order(gpu, plan.gpus), gpu
    out, temp = plan.bases["out"], plan.bases["temp"]
    result = []
    if plan.sequential:
        for step, chunk in enumerate(order):
            last = chunk == own
            result.append(_move(
                plan, chunk, source=out, source2=temp if step else -1, target=out if last else temp, link=int(not last),
                read_cause=state.RS_READ, write_cause=state.RS_WRITE, need=1 if step else 0,
            ))  # fmt: skip
    for step in range(plan.gpus - 1):
        result.append(_move(
            plan, (own + step) % plan.gpus, source=out, source2=-1, target=out, link=1,
            read_cause=state.AG_READ, write_cause=state.AG_WRITE, need=2 if step else 0,
        ))  # fmt: skip
    return result


def _move(plan: Plan, chunk: int, **values: int) -> dict[str, int]:
    """A MOVE record; ``need``: 0, or the collective (1 RS, 2 AG) whose incoming ``chunk`` must be complete first."""
    tiles = plan.partition.chunks[chunk]
    bounds = {"row0": tiles.row0, "row1": tiles.row1, "col0": tiles.col0, "col1": tiles.col1}
    return bounds | values | {"pitch": plan.grid.pitch, "op": Op.STORE, "chunk": chunk, "need_chunk": chunk}


def _record(dtype: np.dtype, values: dict[str, int]) -> NDArray[np.void]:
    array = np.zeros(1, dtype)
    for name, value in values.items():
        array[name] = value
    return array


def _chain(array: NDArray, field: str | None = None) -> None:
    """Link all entries of a pool into its free list."""
    following = np.arange(1, len(array) + 1)
    following[-1] = -1
    if field is None:
        array[:, -1] = following
    else:
        array[field] = following


def new_gpu(plan: Plan, gpu: int, hardware: Hardware, partial: NDArray[np.float16] | None) -> state.Gpu:
    """The arrays of one GPU before the run. ``rx`` and ``grants`` are its own until the system links the ring."""
    request, grid, config = plan.request, plan.grid, hardware.config
    machine = request.machine
    p = _record(state.PLAN, _constants(plan, gpu, hardware))
    constants = p[0]
    slab_lines = machine.gpu.slab_k * int(
        2 + ceil_div(grid.tile_rows * 2, machine.llc.line_bytes) + ceil_div(grid.tile_cols * 2, machine.llc.line_bytes)
    )
    slots = machine.gpu.prefetch_slabs + 1
    misses = machine.gpu.cus * slots * slab_lines
    dma_lines, kernel_lines = machine.dma.buffer_kib * 1024 // LINE_BYTES, machine.kernel.outstanding_lines
    egress_lines, rx_lines = (
        kib * 1024 // LINE_BYTES for kib in (machine.link.egress_buffer_kib, machine.link.rx_buffer_kib)
    )
    llc_entries = constants["llc_sets"] * constants["llc_ways"]
    tile_lines = grid.tile_rows * grid.tile_lines
    node_count = (
        misses * int(constants["llc_line"]) + machine.gpu.cus * tile_lines + dma_lines + 2 * kernel_lines + 2 * rx_lines
        + (llc_entries * int(constants["llc_line"]) if plan.sequential else 0) + 1024
    )  # fmt: skip
    row_count = dma_lines + kernel_lines + egress_lines + (2 * rx_lines if len(plan.carried.lines) else 0) + 1024
    packets = (
        1 << int(4 * constants["link_latency"] * constants["link_mb_s"] // (1000 * LINE_BYTES) + 1024).bit_length()
    )
    credits = 1 << int(4 * constants["link_latency"] + 64).bit_length()
    words, handles = place(hardware)
    nodes, rows = np.zeros(node_count, state.NODE), np.zeros(row_count, state.ROW)
    waiters = np.zeros((misses + 1024, 3), np.int64)
    extra = misses + 16
    llc_used = np.zeros(llc_entries + extra, np.int32)
    llc_used[llc_entries:] = np.append(np.arange(llc_entries + 1, llc_entries + extra), -1)
    for pool, field_name in ((nodes, "next"), (rows, "next"), (waiters, None)):
        _chain(pool, field_name)
    order = ring_order(gpu, plan.gpus)
    descriptor_of = np.zeros(plan.gpus, np.int64)
    descriptor_of[[entry.chunk for entry in ring_maps(gpu, plan.gpus)]] = np.arange(plan.gpus)
    jobs = moves(plan, gpu)
    move_records = np.concatenate([_record(state.MOVE, move) for move in jobs])
    cus = np.zeros(machine.gpu.cus, state.CU)
    cus["event"] = state.FAR
    movers = np.zeros(2, state.MOVER)
    movers["wake"] = state.FAR
    movers["limit"] = dma_lines, kernel_lines
    movers["rate"] = machine.dma.lines_per_cycle, machine.kernel.lines_per_cycle
    stages = np.zeros((ceil_div(grid.tiles, machine.gpu.cus), 2), np.int64)
    stages[:, 0] = state.FAR
    carried = len(plan.carried.lines)
    first, start, reflected = _reflection(plan)
    scalars = _record(state.SCALARS, {
        "extra_free": llc_entries, "cu_next": state.FAR, "gemm_end": -1, "gemm_start": -1, "egress_free": egress_lines,
        "tx_credit": rx_lines, "link_wake": state.FAR, "kernel_wake": state.FAR, "threshold": -1, "measure": -1,
        "rs_first": state.FAR, "ag_first": state.FAR, "finish": -1, "state": 2,
    })  # fmt: skip
    channels = config.slices
    return state.Gpu(
        p=p, s=scalars, channel=new_hbm(hbm_parameters(request), channels).channel,
        nodes=nodes, head=np.full((4, channels), -1, np.int64), tail=np.full((4, channels), -1, np.int64),
        rows=rows, row_data=np.zeros((row_count if carried else 1, state.SEGMENT, 4), np.int64),
        order=np.array(plan.partition.dispatch_order(order), np.int64), cus=cus,
        slab_left=np.zeros((machine.gpu.cus, slots), np.int64), slab_ready=np.zeros((machine.gpu.cus, slots), np.int64),
        llc_tag=np.full(llc_entries + extra, -1, np.int32), llc_used=llc_used,
        llc_fill=np.zeros(llc_entries + extra, np.int64), llc_left=np.zeros(llc_entries + extra, np.int32),
        llc_dirty=np.zeros(llc_entries + extra, np.int32), llc_waiter=np.full(llc_entries + extra, -1, np.int32),
        waiters=waiters,
        jobs_cu=np.zeros((config.egress_ports, machine.gpu.cus + 1), np.int64),
        jobs_count=np.zeros(config.egress_ports, np.int64), jobs_next=np.zeros(config.egress_ports, np.int64),
        flight=np.zeros((config.egress_ports, 8, 2), np.int64), flight_count=np.zeros(config.egress_ports, np.int64),
        port_wake=np.full(config.egress_ports, state.FAR, np.int64),
        movers=movers, current=np.zeros(2, state.MOVE), commands=np.zeros(COMMAND_QUEUE, state.MOVE),
        moves=move_records, tx=np.zeros(1 << row_count.bit_length(), np.int64),
        out=np.zeros(packets, state.PACKET), rx=np.zeros(0, state.PACKET),
        credits=np.zeros(credits, state.CREDIT), grants=np.zeros(0, state.CREDIT),
        received=np.zeros((2, plan.gpus), np.int64),
        chunk_lines=np.array([grid.chunk_lines(chunk) for chunk in plan.partition.chunks], np.int64),
        descriptor_of=descriptor_of, chunk_at=chunk_map(grid, plan.partition),
        held_head=np.full(plan.gpus, -1, np.int64), held_tail=np.full(plan.gpus, -1, np.int64),
        reflect_first=first, reflect_start=start, reflect_rows=reflected,
        words=words, handles=handles, channel_wake=np.zeros(channels, np.int64),
        slice_wake=np.zeros(channels, np.int64), hbm_wake=np.zeros(channels, np.int64),
        occupancy=np.zeros(channels, np.int64), visited=np.zeros(channels, np.int64),
        inside=np.zeros((2, channels), np.int64), block_reason=np.full((2, channels), -1, np.int64),
        token_take=np.zeros(channels, np.bool_), leaf_tokens=np.zeros(config.nodes, np.int64),
        part_wake=np.zeros(PARTS, np.int64), part_active=np.zeros(PARTS, np.bool_),
        carry_of=plan.carried.number_of,
        partial=np.zeros((1, 4), np.int64) if partial is None or not len(partial) else to_words(partial),
        memory=np.zeros((max(1, carried), 4), np.int64), addends=np.zeros(max(1, carried), np.int64),
        updates=np.zeros((2 * channels, 6), np.int64),
        evaluated=np.zeros(9, np.int64), bytes_by_cause=np.zeros(state.CAUSES, np.int64),
        bins=np.zeros((state.CAUSES + 4, state.BINS), np.int64),
        wait=np.zeros((2, state.WAIT_BINS), np.int64), blocked=np.zeros((2, 3), np.int64), stages=stages,
        exposed=np.zeros((4096, 2), np.int64), fired=np.zeros((plan.gpus * config.blocks, 2), np.int64),
    )  # fmt: skip


def _reflection(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Mirror mode's tables.

    Number of each tile's first output row within its chunk, start of each chunk's list, and the list of
    (tile number * tile_rows + row in tile) of all chunks in their own order.
    """
    grid = plan.grid
    first, starts = np.zeros((grid.rows, grid.cols), np.int64), [0]
    rows: list[int] = []
    if plan.request.mirror:
        for chunk in plan.partition.chunks:
            for col in range(chunk.col0, chunk.col1):
                for row in range(chunk.row0, chunk.row1):
                    first[row, col] = len(rows) - starts[-1]
                    height = min(grid.tile_rows, grid.m - row * grid.tile_rows)
                    rows += [(row * grid.cols + col) * grid.tile_rows + i for i in range(height)]
            starts.append(len(rows))
    return first, np.array(starts, np.int64), np.array(rows or [0], np.int64)
