"""The policies that are computed rather than simulated."""

from .request import Policy, RunResult
from .result import Result, TimeNs, WallSeconds

COMPUTED: dict[Policy, tuple[Policy, Policy]] = {
    "ideal-overlap": ("sequential", "sequential"),
    "ideal-overlap-nmc": ("sequential", "sequential-nmc"),
}
"""Computed policy -> the simulated ones that it takes GEMM and all-gather from, and the reduce-scatter."""
COMMON = ("machine", "provenance", "mirror", "seed", "gpus_simulated", "workload", "gemm")
"""Fields of the record that a computed policy has from the one with its GEMM."""


def overlapped_ns(gemm: TimeNs, reduction: TimeNs) -> float:
    """Overlap without contention: max(GEMM, reduce-scatter) + all-gather, the reduce-scatter that of ``reduction``."""
    return max(gemm.gemm, reduction.reduce_scatter) + gemm.all_gather


def ideal_overlap(policy: Policy, base: RunResult, reduction: RunResult) -> RunResult:
    """The run whose time is :func:`overlapped_ns`.

    GEMM and all-gather are those of ``base``, the reduce-scatter is that of ``reduction``; both may be one run.
    """
    gemm, scatter = base.record, reduction.record
    time = gemm.time_ns.model_copy(update={"reduce_scatter": scatter.time_ns.reduce_scatter})
    total = overlapped_ns(time, time)
    bytes_of = gemm.traffic_bytes_per_gpu.model_dump(exclude={"total", "init_write"})
    bytes_of |= scatter.traffic_bytes_per_gpu.model_dump(include={"rs_read", "rs_write"})
    record = Result(
        **{name: getattr(gemm, name) for name in COMMON},
        policy=policy,
        hardware=gemm.hardware,
        time_ns=time.model_copy(update={"total": total, "exposed_communication": total - time.gemm}),
        traffic_bytes_per_gpu=gemm.traffic_bytes_per_gpu.model_copy(
            update=bytes_of | {"total": sum(bytes_of.values())}
        ),
        tracker=None,
        blocks=None,
        rtl=None,
        data_check=None,
        contention=None,
        identities={},
    )
    runs = [base] if base is reduction else [base, reduction]
    wall = WallSeconds(build=sum(run.wall.build for run in runs), simulate=sum(run.wall.simulate for run in runs))
    return RunResult(record=record, timeline=None, wall=wall)
