"""The policies that are computed rather than simulated."""

from .request import RunResult
from .result import Result


def ideal_overlap(sequential: RunResult) -> RunResult:
    """Overlap without contention: max(GEMM, reduce-scatter) + all-gather, with the times of a sequential run."""
    base = sequential.record
    time = base.time_ns
    total = max(time.gemm, time.reduce_scatter) + time.all_gather
    record = Result(
        **{name: getattr(base, name) for name in ("machine", "mirror", "seed", "gpus_simulated", "workload")},
        policy="ideal-overlap",
        hardware=base.hardware,
        time_ns=time.model_copy(update={"total": total, "exposed_communication": total - time.gemm}),
        traffic_bytes_per_gpu=base.traffic_bytes_per_gpu,
        tracker=None,
        blocks=None,
        rtl=None,
        data_check=None,
        contention=None,
        identities={},
    )
    return RunResult(record=record, timeline=None, wall=sequential.wall)
