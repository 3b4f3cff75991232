"""Made-up results, shaped like the engine's, for tests of what reads and shows them."""

import numpy as np
from t3sim.inputs.workload import Workload, model_workload
from t3sim.run.events import Queue
from t3sim.run.provenance import Provenance
from t3sim.run.request import CAUSES, Interval, Policy, RunResult, Timeline, TriggerEvent
from t3sim.run.result import (
    BlocksRecord,
    Contention,
    DataCheck,
    DramUse,
    GemmRecord,
    Result,
    RtlRecord,
    StageWaits,
    StreamContention,
    TimeNs,
    TrackerRecord,
    TrafficBytes,
    Waits,
    WallSeconds,
    WorkloadRecord,
)

PROVENANCE = Provenance(settings={"link.gb_s": 100.0}, machine="0" * 32, hardware="1" * 32, sources="2" * 32)
IDENTITIES = (
    "gemm_write_closed_form", "rs_read_closed_form", "rs_write_closed_form", "ag_read_closed_form",
    "ag_write_closed_form", "wall_is_compute_exposed_idle", "requests_all_answered", "dram_lines_match_bytes",
)  # fmt: skip
TRACKED_IDENTITIES = (
    "updates_counted_are_updates_sent",
    "tiles_counted_are_tiles_mapped",
    "triggers_are_blocks_mapped",
    "dma_reads_see_all_counted_updates",
    "no_hardware_error",
)
T_NLG = model_workload("t-nlg", "fc2", 8)
TOTAL_US = {
    "sequential": 2250.0, "sequential-pipelined": 2230.0, "sequential-nmc": 2220.0, "t3": 1800.0, "t3-mca": 1650.0,
    "ideal-overlap": 1600.0, "ideal-overlap-nmc": 1590.0,
}  # fmt: skip


def sample_result(policy: Policy, workload: Workload = T_NLG) -> Result:
    """A record with every field that ``policy`` has."""
    total = TOTAL_US[policy] * 1e3
    tracked = policy in ("t3", "t3-mca")
    stream = StreamContention(
        lines=2_000_000, bursts=500_000, update_bursts=250_000 if tracked else 0, mean_wait_ns=20.5,
        p99_wait_ns=300.0, blocked_by_other_stream_cycles=10,
        blocked_by_threshold_cycles=20, blocked_by_full_queue_cycles=30, blocked_by_tracker_cycles=40,
    )  # fmt: skip
    conflicts = {"gemm_read": {"gemm_read": 20, "rs_write": 60}, "rs_write": {"gemm_read": 10}}
    dram = DramUse(
        bus_use=0.31, row_hits=900, row_misses=10, row_conflicts=90, turnarounds=40, conflicts=conflicts
    )  # fmt: skip
    return Result(
        policy=policy, hardware="rtl", machine="paper", provenance=PROVENANCE, mirror=False, seed=0,
        gpus_simulated=workload.tp,
        workload=WorkloadRecord.of(workload),
        gemm=GemmRecord(tile_rows=128, tile_cols=128, workgroups=2176, waves=28, predicted_ns=1.39e6),
        time_ns=TimeNs(
            total=total, gemm=1.3e6, reduce_scatter=0.5e6, all_gather=0.45e6, exposed_communication=total - 1.3e6
        ),
        traffic_bytes_per_gpu=TrafficBytes(
            gemm_read=3e8, gemm_write=6.1e7, rs_read=5.2e7, rs_write=6.1e7, ag_read=6.1e7, ag_write=6.1e7,
            init_write=6.9e7, total=5.96e8,
        ),
        tracker=TrackerRecord(updates=2_000_000, tiles=17408, triggers=816, peak_entries=900, overflowed_chunks=0)
        if tracked else None,
        blocks=BlocksRecord(by_tile=816, by_chunk=0) if tracked else None,
        rtl=RtlRecord(
            cycles=200_000_000, cycles_evaluated=30_000_000, cycles_skipped=170_000_000, evaluated_by_part={
                "slice": 20_000_000, "leaf": 4_000_000, "root": 3_000_000, "tracker": 2_500_000, "trigger": 500_000,
            },
        ) if policy != "ideal-overlap" else None,
        data_check=DataCheck(elements=1 << 20, mismatches=0) if tracked else None,
        contention=Contention(
            compute=stream, communication=stream, dram=dram, cu_stall_ns={"loads": 1e4, "stores": 2e4},
            link_busy_ns=4e5, link_idle_ns=1.2e6, window_stall_ns=0.0, stages=[
                StageWaits(first_stage=stage, start_ns=4e4 * stage, compute=half, communication=half)
                for stage, half in enumerate((
                    Waits(other_stream=10, threshold=0, full_queue=10, tracker=40),
                    Waits(other_stream=0, threshold=20, full_queue=20, tracker=0),
                ))
            ],
        ) if policy != "ideal-overlap" else None,
        identities=dict.fromkeys((*IDENTITIES, *(TRACKED_IDENTITIES if tracked else ())), True),
    )  # fmt: skip


def sample_timeline(policy: Policy, gpus: int = 8, bins: int = 400, chunks: int = 8) -> Timeline:
    """A timeline with the shape of ``policy``: staged GEMM, reduce-scatter after or under it, all-gather."""
    total = TOTAL_US[policy] * 1e3
    bin_ns = total / bins
    time = (np.arange(bins) + 0.5) * bin_ns
    gemm_end, stages = 1.3e6, 27
    overlapped = policy in ("t3", "t3-mca")
    rs_start, rs_end = (0.05 * gemm_end, gemm_end + 5e4) if overlapped else (gemm_end, gemm_end + 5e5)
    stage_ns = gemm_end / stages
    in_gemm, in_rs, in_ag = time < gemm_end, (time > rs_start) & (time < rs_end), time > rs_end
    phase = time % stage_ns / stage_ns
    peak = bin_ns * 1024

    def all_gpus(row: np.ndarray) -> np.ndarray:
        return np.tile(row, (gpus, 1))

    by_cause = {
        "gemm_read": peak * 0.22 * in_gemm * (0.6 + 0.8 * (phase < 0.5)),
        "gemm_write": peak * 0.3 * in_gemm * (phase > 0.85),
        "rs_read": peak * 0.15 * in_rs * (phase < 0.3),
        "rs_write": peak * 0.14 * in_rs,
        "ag_read": peak * 0.14 * in_ag,
        "ag_write": peak * 0.14 * in_ag,
    }
    waiting: dict[Queue, np.ndarray] = {
        "dram_mean": 20.25 * in_gemm * (1 + (phase > 0.85)),
        "dram_largest": 30.0 * in_gemm * (1 + (phase > 0.85)),
        "compute_bursts": 40.0 * in_gemm + 900 * in_gemm * (phase > 0.85),
        "communication_bursts": 200.0 * in_rs + 60 * in_ag,
        "held_bursts": 0.0 * time,
        "tokens": 5.0 * in_gemm * (phase > 0.85) * overlapped,
        "dma_blocks": np.floor(7 * phase) * in_rs * overlapped,
        "link_bytes": 1e6 * in_rs * (phase < 0.5),
    }
    intervals = []
    for gpu in range(gpus):
        intervals.append(Interval(gpu=gpu, kind="gemm", start_ns=0, end_ns=gemm_end))
        intervals += [
            Interval(gpu=gpu, kind="stage", start_ns=i * stage_ns, end_ns=(i + 1) * stage_ns) for i in range(stages)
        ]
        intervals.append(Interval(gpu=gpu, kind="reduce_scatter", start_ns=rs_start, end_ns=rs_end))
        intervals.append(Interval(gpu=gpu, kind="all_gather", start_ns=rs_end, end_ns=total))
        intervals.append(Interval(gpu=gpu, kind="exposed", start_ns=gemm_end, end_ns=total))
    triggers = [
        TriggerEvent(gpu=gpu, chunk=chunk, time_ns=(chunk + block / 5) * gemm_end / chunks)
        for gpu in range(gpus)
        for chunk in range(1, chunks - 1)
        for block in range(5)
        if overlapped
    ]
    return Timeline(
        bin_ns=bin_ns,
        cu_busy=all_gpus(in_gemm * (0.97 - 0.3 * (phase > 0.9))),
        bytes={cause: all_gpus(by_cause[cause]) for cause in CAUSES},
        link_bytes=all_gpus(bin_ns * 150 * (in_rs * 0.8 + in_ag * 0.98)),
        updates=all_gpus(bin_ns * 4 * in_rs * overlapped),
        local_updates=all_gpus(by_cause["gemm_write"] / 32 * overlapped),
        queues={queue: all_gpus(row) for queue, row in waiting.items()},
        intervals=intervals,
        triggers=triggers,
    )


def sample_run(policy: Policy, workload: Workload = T_NLG) -> RunResult:
    """A finished run."""
    return RunResult(
        record=sample_result(policy, workload),
        timeline=sample_timeline(policy, gpus=workload.tp),
        wall=WallSeconds(build=12.0, simulate=40.0),
    )
