"""What a finished system shows: contention between the streams, and the timeline for pictures."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from t3sim.dram.state import STATISTICS, HbmState, statistics
from t3sim.engine import state
from t3sim.engine.channel import WAIT_BINS
from t3sim.engine.front import COMMUNICATION, COMPUTE
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.observed.queues import DRAM_LINES
from t3sim.inputs.geometry import ceil_div

from .events import QUEUES, Queue
from .request import CAUSES, Interval, IntervalKind, Timeline, TriggerEvent
from .result import Contention, DramUse, StageWaits, StreamContention, Waits
from .system import System

MOST_STAGES = 64
"""Rows of waits by stage that a record has at most, but for the one after the GEMM."""


def dram_totals(gpu: GpuState) -> dict[str, int]:
    """Counts of the HBM model summed over one GPU's channels (see hbm_state.STATISTICS)."""
    channels = [statistics(HbmState(gpu.channel), channel) for channel in range(int(gpu.fabric["channels"]))]
    return {name: sum(channel[name] for channel in channels) for name in STATISTICS}


def contention(system: System) -> Contention:
    """Waits, blocked cycles, DRAM and link use, summed or averaged over the simulated GPUs."""
    gpus = system.gpus
    totals = {name: sum(dram_totals(gpu)[name] for gpu in gpus) for name in STATISTICS}
    channel_cycles = sum(int(gpu.fabric["channels"]) * int(gpu.time["finish_cycle"]) for gpu in gpus)
    cus = sum(int(gpu.gemm["cus"]) for gpu in gpus)
    busy = max(int(gpu.link["busy_ps"]) for gpu in gpus) / 1000
    total = system.plan.ns(max(int(gpu.time["finish_cycle"]) for gpu in gpus))
    return Contention(
        compute=_stream(system, COMPUTE),
        communication=_stream(system, COMMUNICATION),
        dram=DramUse(
            bus_use=totals["bus_cycles"] / channel_cycles,
            row_hits=totals["row_hits"],
            row_misses=totals["row_misses"],
            row_conflicts=totals["row_conflicts"],
            turnarounds=totals["turnarounds"],
            atomic_reads=totals["atomic_reads"],
            mode_switches=totals["mode_switches"],
            conflicts=_conflicts(gpus),
        ),
        stages=_stages(system),
        cu_stall_ns={
            "loads": system.plan.ns(sum(int(gpu.gemm["load_stall_cycles"]) for gpu in gpus) / cus),
            "stores": system.plan.ns(sum(int(gpu.gemm["store_stall_cycles"]) for gpu in gpus) / cus),
        },
        link_busy_ns=busy,
        link_idle_ns=total - busy,
        window_stall_ns=system.plan.ns(max(int(gpu.fabric["held_cycles"]) for gpu in gpus)),
        compute_first=system.plan.compute_first,
    )


def _stages(system: System) -> list[StageWaits]:
    """Waits of both streams by stage of the GEMM, of neighbouring ones together if they are many, and after it."""
    gpus = system.gpus
    blocked = sum(gpu.blocked_cycles for gpu in gpus)
    starts = np.min([gpu.stages[:, 0] for gpu in gpus], axis=0)
    end = max(int(gpu.gemm["end_cycle"]) for gpu in gpus)
    each = ceil_div(len(starts), MOST_STAGES)
    rows = [
        (first, int(starts[first]), blocked[first : first + each].sum(axis=0)) for first in range(0, len(starts), each)
    ]
    rows.append((len(starts), end, blocked[-1]))
    return [
        StageWaits(
            first_stage=first,
            start_ns=system.plan.ns(start),
            compute=_waits(waits[COMPUTE]),
            communication=_waits(waits[COMMUNICATION]),
        )
        for first, start, waits in rows
    ]


def _waits(cycles: NDArray[np.int64]) -> Waits:
    return Waits(**{name: int(value) for name, value in zip(Waits.model_fields, cycles, strict=True)})


def _conflicts(gpus: list[GpuState]) -> dict[str, dict[str, int]]:
    """Row conflicts of all GPUs, by the causes of the line that came and of the row that was open."""
    counts = sum(gpu.channel["conflicts"].sum(axis=0) for gpu in gpus)
    found: dict[str, dict[str, int]] = {}
    for i, j in zip(*np.nonzero(counts), strict=True):
        found.setdefault(CAUSES[i], {})[CAUSES[j]] = int(counts[i, j])
    return found


def _stream(system: System, stream: int) -> StreamContention:
    histogram = sum(gpu.wait[stream] for gpu in system.gpus)
    blocked = [int(cycles) for cycles in sum(gpu.blocked_cycles[:, stream].sum(axis=0) for gpu in system.gpus)]
    lines = int(histogram.sum())
    bursts, updates = (int(count) for count in sum(gpu.accepted[stream] for gpu in system.gpus))
    waits = np.arange(WAIT_BINS)
    mean = float((histogram * waits).sum() / lines) if lines else 0.0
    p99 = int(np.searchsorted(np.cumsum(histogram), 0.99 * lines)) if lines else 0
    return StreamContention(
        lines=lines,
        bursts=bursts,
        update_bursts=updates,
        mean_wait_ns=system.plan.ns(mean),
        p99_wait_ns=system.plan.ns(p99),
        blocked_by_other_stream_cycles=blocked[0],
        blocked_by_threshold_cycles=blocked[1],
        blocked_by_full_queue_cycles=blocked[2],
        blocked_by_tracker_cycles=blocked[3],
    )


def timeline(system: System) -> Timeline:
    """Rates over time in bins, intervals and triggers of every simulated GPU."""
    gpus = system.gpus
    bin_cycles = int(gpus[0].time["bin_cycles"])
    last = max(int(gpu.time["finish_cycle"]) for gpu in gpus)
    used = min(state.BINS, -(-last // bin_cycles))
    bins = np.stack([gpu.bins[:, :used] for gpu in gpus]).astype(np.float64)
    # CU clocks per bin, as a fraction of what all CUs of the GPU could do in it: its clock may be slower than others'.
    possible = [bin_cycles * gpu.gemm["clock_num"] / gpu.gemm["clock_den"] * gpu.gemm["cus"] for gpu in gpus]
    waiting = [queues(gpu, used) for gpu in gpus]
    return Timeline(
        bin_ns=system.plan.ns(bin_cycles),
        cu_busy=np.minimum(1.0, bins[:, state.CU_CLOCKS] / np.array(possible)[:, None]),
        bytes={cause: bins[:, i] for i, cause in enumerate(CAUSES)},
        link_bytes=bins[:, state.LINK_BYTES],
        updates=bins[:, state.INCOMING_UPDATES],
        local_updates=bins[:, state.LOCAL_UPDATES],
        queues={name: np.stack([found[name] for found in waiting]) for name in QUEUES},
        intervals=[interval for number, gpu in enumerate(gpus) for interval in _intervals(system, number, gpu)],
        triggers=[
            TriggerEvent(gpu=number, chunk=int(chunk), time_ns=system.plan.ns(int(cycle)))
            for number, gpu in enumerate(gpus)
            for chunk, cycle in gpu.fired[: int(gpu.dma["triggers"])]
        ],
    )


def queues(gpu: GpuState, bins: int) -> dict[Queue, NDArray[np.float64]]:
    """What waits on a GPU when each of its first ``bins`` bins begins."""
    rows = gpu.queued[:, :bins].astype(np.float64)
    found = dict(zip(QUEUES, rows, strict=True))
    found["dram_mean"] = rows[DRAM_LINES] / int(gpu.fabric["channels"])
    return found


def _intervals(system: System, number: int, gpu: GpuState) -> list[Interval]:
    gemm, comm = gpu.gemm, gpu.comm
    spans: list[tuple[str, int, int]] = [
        ("gemm", gemm["start_cycle"], gemm["end_cycle"]),
        ("reduce_scatter", comm["rs_first_cycle"], comm["rs_last_cycle"]),
        ("all_gather", comm["ag_first_cycle"], comm["ag_last_cycle"]),
        *(("stage", start, end) for start, end in gpu.stages),
        *(("exposed", start, end) for start, end in gpu.exposed[: int(gpu.time["exposed_count"])]),
    ]
    return [
        Interval(
            gpu=number,
            kind=cast(IntervalKind, kind),
            start_ns=system.plan.ns(int(start)),
            end_ns=system.plan.ns(int(end)),
        )
        for kind, start, end in spans
        if end > start
    ]
