"""The arrays of one simulated GPU, sized so that no legal machine can exhaust a pool."""

import numpy as np
from numpy.typing import DTypeLike, NDArray
from t3hdl.interface.layouts import BURST_LINES

from t3sim.collective.carried import tile_map, to_words
from t3sim.collective.ring import ring_maps, ring_order
from t3sim.dram.hbm import new_hbm_state
from t3sim.engine import state
from t3sim.engine.egress import FLIGHT_WORDS
from t3sim.engine.llc import WAITER_WORDS
from t3sim.engine.nmc import UPDATE_WORDS
from t3sim.engine.ports import fault_words, places, shown
from t3sim.engine.unit import PARTS
from t3sim.engine.words import place
from t3sim.hardware.abi import LoadedHardware
from t3sim.inputs.geometry import ceil_div

from .collective_kernels import transfers
from .plan import RunPlan
from .sizes import SLACK, Sizes, record_of

COMMAND_QUEUE = 64
"""Commands that wait in the DMA engine [A]."""
DESCRIPTORS = 64
"""Descriptors that a register of the hardware can name."""
Arrays = dict[str, NDArray]


def new_gpu(plan: RunPlan, gpu: int, hardware: LoadedHardware, partial: NDArray[np.float16] | None) -> state.GpuState:
    """One GPU before the run. ``rx`` and ``grants`` are empty until the system links the ring.

    The caller has seen to it that the plan fits into memory (:func:`~.sizes.check_fits`).
    """
    steps = transfers(plan, gpu)
    p = record_of(plan, gpu, len(steps))
    sizes = Sizes(plan, hardware.config, p[0])
    return state.GpuState(
        p=p,
        s=_scalars(sizes),
        **_request_arrays(sizes),
        **_compute_arrays(sizes, gpu),
        **_egress_arrays(sizes),
        **_link_arrays(sizes, steps),
        **_map_arrays(sizes, gpu),
        **_hardware_arrays(sizes, hardware),
        **_data_arrays(sizes, partial),
        **_observation_arrays(sizes),
    )


def _record(dtype: np.dtype, values: dict[str, int]) -> NDArray[np.void]:
    array = np.zeros(1, dtype)
    for name, value in values.items():
        array[name] = value
    return array


def _chain(array: NDArray, field: str | None = None) -> NDArray:
    """Link all entries of a pool into its free list."""
    following = np.append(np.arange(1, len(array)), -1)
    if field is None:
        array[:, -1] = following
    else:
        array[field] = following
    return array


def _zeros(*shape: int, dtype: DTypeLike = np.int64) -> NDArray:
    return np.zeros(shape, dtype)


def _full(value: int, *shape: int, dtype: DTypeLike = np.int64) -> NDArray:
    return np.full(shape, value, dtype)


def _scalars(sizes: Sizes) -> NDArray:
    return _record(state.SCALARS, {
        "mshr_free": sizes.llc_entries, "egress_free": sizes.egress_lines,
        "tx_credit": sizes.rx_lines - int(sizes.p["posted_lines"]),
        "cu_next": state.NEVER_CYCLE, "link_wake": state.NEVER_CYCLE, "kernel_wake": state.NEVER_CYCLE,
        "rs_first": state.NEVER_CYCLE,
        "ag_first": state.NEVER_CYCLE, "resend_at": state.NEVER_CYCLE, "gemm_start": -1, "gemm_end": -1, "finish": -1,
        "threshold": -1, "measure": -1, "state": 2,
    })  # fmt: skip


def _request_arrays(sizes: Sizes) -> Arrays:
    channels = sizes.config.slices
    return {
        "channel": new_hbm_state(sizes.plan.request.machine.hbm.parameters(), channels).channel,
        "bursts": _chain(_zeros(sizes.bursts, dtype=state.BURST), "next"),
        "head": _full(-1, 4, channels),
        "tail": _full(-1, 4, channels),
        "rows": _chain(_zeros(sizes.rows, dtype=state.ROW), "next"),
        "row_data": _zeros(sizes.rows if len(sizes.plan.carried.lines) else 1, BURST_LINES, 4),
    }


def _compute_arrays(sizes: Sizes, gpu: int) -> Arrays:
    plan, count = sizes.plan, int(sizes.p["workgroups"])
    workgroups = _zeros(count, dtype=state.WORKGROUP)
    workgroups["event"] = state.NEVER_CYCLE
    # Behind the sets: spare entries for misses that find every way waiting, chained through llc_used.
    spare = sizes.misses + 16
    entries = sizes.llc_entries + spare
    used = _zeros(entries)
    used[sizes.llc_entries :] = np.append(np.arange(sizes.llc_entries + 1, entries), -1)
    return {
        "order": np.array(plan.partition.dispatch_order(ring_order(gpu, plan.gpus)), np.int64),
        "cus": _zeros(int(sizes.p["cus"]), dtype=state.CU),
        "workgroups": workgroups,
        "slab_left": _zeros(count, sizes.slots),
        "slab_ready": _zeros(count, sizes.slots),
        "llc_tag": _full(-1, entries, dtype=np.int32),
        "llc_used": used,
        "llc_fill": _zeros(entries),
        "llc_left": _zeros(entries, dtype=np.int32),
        "llc_dirty": _zeros(entries, dtype=np.int32),
        "llc_waiter": _full(-1, entries, dtype=np.int32),
        "waiters": _chain(_zeros(sizes.misses + SLACK, WAITER_WORDS)),
    }


def _egress_arrays(sizes: Sizes) -> Arrays:
    ports = sizes.config.egress_ports
    return {
        "store_workgroups": _zeros(ports, int(sizes.p["workgroups"]) + 1),
        "store_count": _zeros(ports),
        "store_next": _zeros(ports),
        "flight": _zeros(ports, 8, FLIGHT_WORDS),
        "flight_count": _zeros(ports),
        "port_wake": _full(state.NEVER_CYCLE, ports),
    }


def _link_arrays(sizes: Sizes, steps: list[dict[str, int]]) -> Arrays:
    machine = sizes.plan.request.machine
    movers = _zeros(2, dtype=state.MOVER)
    movers["wake"] = state.NEVER_CYCLE
    movers["limit"] = sizes.dma_lines, sizes.kernel_lines
    movers["rate"] = machine.dma.lines_per_cycle, sizes.kernel_rate.numerator
    movers["line_cost"] = 1, sizes.kernel_rate.denominator
    return {
        "movers": movers,
        "current": _zeros(2, dtype=state.TRANSFER),
        "commands": _zeros(COMMAND_QUEUE, dtype=state.TRANSFER),
        "command_rows": _zeros(64 * 64 + 1),  # at most 64 blocks in each of 64 descriptors, each sent once
        "transfers": np.concatenate([_record(state.TRANSFER, step) for step in steps]),
        "tx": _zeros(1 << sizes.rows.bit_length()),
        "out": _zeros(sizes.packets, dtype=state.PACKET),
        "rx": _zeros(0, dtype=state.PACKET),
        "replay": _zeros(sizes.packets if machine.link.retry else 0, dtype=state.PACKET),
        "credits": _zeros(sizes.credits, dtype=state.CREDIT),
        "grants": _zeros(0, dtype=state.CREDIT),
        "received": _zeros(2, sum(len(parts) for parts in sizes.plan.parts)),
    }


def _map_arrays(sizes: Sizes, gpu: int) -> Arrays:
    plan = sizes.plan
    descriptor_of, addends = _zeros(plan.gpus), _zeros(plan.gpus)
    for descriptor, entry in enumerate(ring_maps(gpu, plan.gpus)):
        descriptor_of[entry.chunk], addends[entry.chunk] = descriptor, entry.addends
    first, start, rows = _reflection(plan)
    parts = [part for parts in plan.parts for part in parts]
    return {
        "part_lines": np.array([plan.grid.chunk_lines(part) for part in parts], np.int64),
        "part_chunk": np.repeat(np.arange(plan.gpus), [len(parts) for parts in plan.parts]),
        "part_at": tile_map(plan.grid, parts),
        "descriptor_of": descriptor_of,
        "chunk_addends": addends,
        "performed": _zeros(0 if plan.sequential else plan.grid.lines, dtype=np.uint8),
        "chunk_at": tile_map(plan.grid, plan.partition.chunks),
        "held_head": _full(-1, DESCRIPTORS),
        "held_tail": _full(-1, DESCRIPTORS),
        "reflect_first": first,
        "reflect_start": start,
        "reflect_rows": rows,
    }


def _hardware_arrays(sizes: Sizes, hardware: LoadedHardware) -> Arrays:
    channels = sizes.config.slices
    words, handles = place(hardware)
    return {
        "words": words,
        "handles": handles,
        "at": places(hardware),
        "shown": shown(hardware, words),
        "fault_words": fault_words(hardware, words),
        "channel_wake": _zeros(channels),
        "slice_wake": _zeros(channels),
        "hbm_wake": _zeros(channels),
        "occupancy": _zeros(channels),
        "visited": _zeros(channels),
        "inside": _zeros(2, channels),
        "block_reason": _full(-1, 2, channels),
        "token_take": _zeros(channels, dtype=np.bool_),
        "leaf_tokens": _zeros(sizes.config.nodes),
        "part_wake": _zeros(PARTS),
        "part_active": _zeros(PARTS, dtype=np.bool_),
        "evaluated": _zeros(len(hardware.parts)),
    }


def _data_arrays(sizes: Sizes, partial: NDArray[np.float16] | None) -> Arrays:
    carried = max(1, len(sizes.plan.carried.lines))
    return {
        "carry_of": sizes.plan.carried.number_of,
        "partial": _zeros(1, 4) if partial is None or not len(partial) else to_words(partial),
        "memory": _zeros(carried, 4),
        "updates": _zeros(2 * sizes.config.slices, UPDATE_WORDS),
    }


def _observation_arrays(sizes: Sizes) -> Arrays:
    stages = _zeros(ceil_div(sizes.plan.grid.tiles, int(sizes.p["workgroups"])), 2)
    stages[:, 0] = state.NEVER_CYCLE
    return {
        "bytes_by_cause": _zeros(state.CAUSES),
        "bins": _zeros(state.BIN_ROWS, state.BINS),
        "wait": _zeros(2, state.WAIT_BINS),
        "blocked": _zeros(2, 4),
        "stages": stages,
        "exposed": _zeros(4096, 2),
        "fired": _zeros(sizes.plan.gpus * sizes.config.blocks, 2),
    }


def _reflection(plan: RunPlan) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
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
