"""The arrays of one simulated GPU, sized so that no legal machine can exhaust a pool."""

import numpy as np
from numpy.typing import DTypeLike, NDArray
from t3hdl.interface.layouts import BURST_LINES

from t3sim.collective.carried import tile_map, to_words
from t3sim.collective.ring import ring_maps, ring_order
from t3sim.dram.hbm import new_hbm_state
from t3sim.engine import state
from t3sim.engine.channel import WAIT_BINS
from t3sim.engine.compute import CU, SLAB, WORKGROUP
from t3sim.engine.egress import FLIGHT_WORDS
from t3sim.engine.front import FRONT
from t3sim.engine.gpu import IDLE_STATE
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.link import CREDIT, PACKET
from t3sim.engine.llc import LLC_ENTRY
from t3sim.engine.mover import MOVER, TRANSFER
from t3sim.engine.observed.contention import CAUSES_OF_WAIT, NOTHING
from t3sim.engine.observed.queues import QUEUE_ROWS
from t3sim.engine.requests import BURST
from t3sim.engine.row_segments import ROW
from t3sim.engine.t3unit.ports import fault_words, places, shown
from t3sim.engine.t3unit.unit import PARTS
from t3sim.engine.t3unit.words import place
from t3sim.engine.wakes import FILLED_WORDS, WHEEL_CYCLES
from t3sim.hardware.abi import LoadedHardware
from t3sim.inputs.geometry import ceil_div

from .collective_kernels import transfers
from .plan import RunPlan
from .sizes import Sizes

COMMAND_QUEUE = 64
"""Commands that wait in the DMA engine [A]."""
DESCRIPTORS = 64
"""Descriptors that a register of the hardware can name."""
Arrays = dict[str, NDArray]


def new_gpu(plan: RunPlan, gpu: int, hardware: LoadedHardware, partial: NDArray[np.float16] | None) -> GpuState:
    """One GPU before the run. ``rx`` and ``grants`` are empty until the system links the ring.

    The caller has seen to it that the plan fits into memory (:func:`~.sizes.check_fits`).
    """
    steps = transfers(plan, gpu)
    sizes = Sizes.of(plan, gpu)
    return GpuState(
        **_request_arrays(sizes),
        **_compute_arrays(sizes, gpu),
        **_egress_arrays(sizes),
        **_mover_arrays(sizes, steps),
        **_link_arrays(sizes),
        **_map_arrays(sizes, gpu),
        **_hardware_arrays(sizes, hardware),
        **_data_arrays(sizes, partial),
        **_observation_arrays(sizes),
    )


def _one(sizes: Sizes, model: str, **values: int) -> Arrays:
    """The record of a model: its constants, and ``values``, with which its state begins where that is not 0."""
    return {model: _record(GpuState.FIELDS[model][0], sizes.constants.get(model, {}) | values)}


def _record(dtype: np.dtype, values: dict[str, int]) -> NDArray[np.void]:
    array = np.zeros((), dtype)
    for name, value in values.items():
        array[name] = value
    return array


def _chain(array: NDArray) -> NDArray:
    """Link all entries of a pool into its free list."""
    array["next"] = np.append(np.arange(1, len(array)), -1)
    return array


def _zeros(*shape: int, dtype: DTypeLike = np.int64) -> NDArray:
    return np.zeros(shape, dtype)


def _full(value: int, *shape: int, dtype: DTypeLike = np.int64) -> NDArray:
    return np.full(shape, value, dtype)


def _request_arrays(sizes: Sizes) -> Arrays:
    channels = sizes.config.slices
    return {
        **_one(sizes, "fabric"),
        "channel": new_hbm_state(sizes.plan.hbm, channels).channel,
        "bursts": _chain(_zeros(sizes.bursts, dtype=BURST)),
        "rows": _chain(_zeros(sizes.rows, dtype=ROW)),
        "row_data": _zeros(sizes.rows if len(sizes.plan.carried.lines) else 1, BURST_LINES, 4),
    }


def _compute_arrays(sizes: Sizes, gpu: int) -> Arrays:
    plan, count = sizes.plan, sizes.constants["gemm"]["places"]
    workgroups = _zeros(count, dtype=WORKGROUP)
    workgroups["event_cycle"] = state.NEVER_CYCLE
    # Behind the sets: spare entries for misses that find every way waiting.
    spare = sizes.misses + 16
    entries = sizes.llc_entries + spare
    llc = _zeros(entries, dtype=LLC_ENTRY)
    llc["tag"] = llc["waiter"] = -1
    llc["next_spare"][sizes.llc_entries :] = np.append(np.arange(sizes.llc_entries + 1, entries), -1)
    return {
        **_one(sizes, "output"),
        **_one(sizes, "gemm", wake_cycle=state.NEVER_CYCLE, start_cycle=-1, end_cycle=-1),
        **_one(sizes, "llc", spare_free=sizes.llc_entries),
        "order": np.array(plan.partition.dispatch_order(ring_order(gpu, plan.gpus)), np.int64),
        "cus": _zeros(sizes.constants["gemm"]["cus"], dtype=CU),
        "workgroups": workgroups,
        "slabs": _zeros(count * sizes.constants["gemm"]["slots"], dtype=SLAB),
        "llc_entries": llc,
        "llc_used": _zeros(sizes.llc_entries),
        "llc_place": _zeros(sizes.llc_lines, dtype=np.int32),
        "waiters": _zeros(count * sizes.constants["gemm"]["slots"], sizes.slab_lines, dtype=np.int32),
    }


def _egress_arrays(sizes: Sizes) -> Arrays:
    ports = sizes.config.egress_ports
    return {
        **_one(sizes, "egress", free_lines=sizes.constants["egress"]["buffer_lines"]),
        "store_workgroups": _zeros(ports, sizes.constants["gemm"]["places"] + 1),
        "store_count": _zeros(ports),
        "store_next": _zeros(ports),
        "flight": _zeros(ports, 8, FLIGHT_WORDS),
        "flight_count": _zeros(ports),
        "port_wake": _full(state.NEVER_CYCLE, ports),
    }


def _mover_arrays(sizes: Sizes, steps: list[dict[str, int]]) -> Arrays:
    never = state.NEVER_CYCLE
    return {
        **_one(sizes, "dma"),
        **_one(sizes, "kernel", steps=len(steps), wake_cycle=never),
        **_one(sizes, "comm", rs_first_cycle=never, ag_first_cycle=never),
        "movers": np.stack([_record(MOVER, values | {"wake_cycle": never}) for values in sizes.movers]),
        "current": _zeros(2, dtype=TRANSFER),
        "commands": _zeros(COMMAND_QUEUE, dtype=TRANSFER),
        "command_rows": _zeros(64 * 64 + 1),  # at most 64 blocks in each of 64 descriptors, each sent once
        "transfers": np.stack([_record(TRANSFER, step) for step in steps]),
        "received": _zeros(2, sum(len(parts) for parts in sizes.plan.parts)),
    }


def _link_arrays(sizes: Sizes) -> Arrays:
    link, never = sizes.constants["link"], state.NEVER_CYCLE
    credit = link["receive_lines"] - link["posted_lines"]
    return {
        **_one(sizes, "link", credit_lines=credit, wake_cycle=never, resend_cycle=never),
        "tx": _zeros(1 << sizes.rows.bit_length()),
        "out": _zeros(sizes.packets, dtype=PACKET),
        "rx": _zeros(0, dtype=PACKET),
        "replay": _zeros(sizes.packets if link["retry"] else 0, dtype=PACKET),
        "credits": _zeros(sizes.credits, dtype=CREDIT),
        "grants": _zeros(0, dtype=CREDIT),
    }


def _map_arrays(sizes: Sizes, gpu: int) -> Arrays:
    plan = sizes.plan
    descriptor_of, addends = _zeros(plan.gpus), _zeros(plan.gpus)
    for descriptor, entry in enumerate(ring_maps(gpu, plan.gpus)):
        descriptor_of[entry.chunk], addends[entry.chunk] = descriptor, entry.addends
    first, start, rows = _reflection(plan)
    parts = [part for parts in plan.parts for part in parts]
    return {
        **_one(sizes, "own"),
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
    fronts = _zeros(channels, dtype=FRONT)
    fronts["head"] = fronts["tail"] = -1
    fronts["ended_cycle"] = state.NEVER_CYCLE
    fronts["blocked_by"] = NOTHING
    fronts["usable_cycle"] = state.NEVER_CYCLE
    return {
        **_one(sizes, "unit", threshold_lines=-1, measure=-1, behind=-1),
        "words": words,
        "handles": handles,
        "at": places(hardware),
        "shown": shown(hardware, words),
        "fault_words": fault_words(hardware, words),
        "fronts": fronts,
        **_wake_arrays(sizes, channels),
        "leaf_tokens": _zeros(sizes.config.nodes),
        "leaf_shown": _zeros(sizes.config.nodes),
        "part_wake": _zeros(PARTS),
        "part_active": _zeros(PARTS, dtype=np.bool_),
        "evaluated": _zeros(len(hardware.parts)),
    }


def _wake_arrays(sizes: Sizes, channels: int) -> Arrays:
    """Every channel is looked at in the first cycle."""
    wheel, filled = _zeros(WHEEL_CYCLES), _zeros(FILLED_WORDS)
    wheel[0], filled[0] = -1 if channels == 64 else (1 << channels) - 1, 1
    return {
        **_one(sizes, "wakes", outside_cycle=state.NEVER_CYCLE),
        "channel_wake": _zeros(channels),
        "wheel": wheel,
        "wheel_filled": filled,
    }


def _data_arrays(sizes: Sizes, partial: NDArray[np.float16] | None) -> Arrays:
    carried = max(1, len(sizes.plan.carried.lines))
    return {
        "carry_of": sizes.plan.carried.number_of,
        "partial": _zeros(1, 4) if partial is None or not len(partial) else to_words(partial),
        "memory": _zeros(carried, 4),
    }


def _observation_arrays(sizes: Sizes) -> Arrays:
    stages = _zeros(ceil_div(sizes.plan.grid.tiles, sizes.constants["gemm"]["places"]), 2)
    stages[:, 0] = state.NEVER_CYCLE
    return {
        **_one(sizes, "time", state=IDLE_STATE, finish_cycle=-1),
        "bytes_by_cause": _zeros(state.CAUSES),
        "bins": _zeros(state.BIN_ROWS, state.BINS),
        "queued": _zeros(QUEUE_ROWS, state.BINS),
        "queued_bins": _zeros(1),
        "wait": _zeros(state.STREAMS, WAIT_BINS),
        "accepted": _zeros(state.STREAMS, 2),
        **_one(sizes, "contention"),
        "blocked_cycles": _zeros(len(stages) + 1, state.STREAMS, len(CAUSES_OF_WAIT)),
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
