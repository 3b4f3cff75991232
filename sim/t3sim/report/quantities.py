"""Where time and bytes of runs go: stacked bars with their tables, and the bounds of what overlap can gain."""

from collections.abc import Sequence

from t3sim.common.units import BYTES, TIMES, unit_of
from t3sim.run.ideal import COMPUTED, overlapped_ns
from t3sim.run.request import CAUSE_TITLES
from t3sim.run.result import Result

from .checks import Labelled
from .figures import CAUSE_COLOURS, SPLIT_COLOURS, bars, stacked
from .parts import DASH, Chart, Table


def time_chart(results: Labelled, caption: str = "Where the time goes", *, parts_of: bool = False) -> Chart:
    """GEMM, exposed communication and the rest; the table also has the collectives' own times. ``parts_of``: bars show
    parts of each run's time, for runs of very different length."""
    times = [result.time_ns for _, result in results]
    unit = unit_of(TIMES, (time.total for time in times))
    sizes = [time.total if parts_of else unit.size for time in times]
    split = [(time.gemm, time.exposed_communication, max(time.total - time.gemm - time.exposed_communication, 0))
             for time in times]  # fmt: skip
    parts = {
        name: [values[index] / size for values, size in zip(split, sizes, strict=True)]
        for index, name in enumerate(SPLIT_COLOURS)
    }
    totals = [f"{unit.text(time.total)} {unit.name}" for time in times]
    names = [name for name, _ in results]
    return Chart(
        title=caption,
        summary="Time of each run, split into the GEMM, communication that no computation hides, and the rest: "
        + "; ".join(f"{name} {total}" for name, total in zip(names, totals, strict=True)) + ".",
        figure=stacked(names, parts, SPLIT_COLOURS, "part of the time" if parts_of else unit.title("time"), totals),
        table=Table(
            caption=f"{caption}, of the GPU that finishes last",
            head=("run", *(unit.title(name) for name in
                           ("total", "GEMM", "reduce-scatter", "all-gather", "exposed communication"))),
            rows=[
                (name, *(unit.text(value) for value in (time.total, time.gemm, time.reduce_scatter, time.all_gather,
                                                        time.exposed_communication)))
                for name, time in zip(names, times, strict=True)
            ],
        ),
    )  # fmt: skip


def traffic_chart(
    results: Labelled, caption: str = "DRAM traffic by cause", bases: Sequence[float] | None = None
) -> Chart:
    """Bytes that a GPU and its DRAM exchange; with ``bases`` (bytes, one for each run) as parts of these."""
    traffic = [result.traffic_bytes_per_gpu for _, result in results]
    unit = unit_of(BYTES, (item.total for item in traffic))
    names = [name for name, _ in results]
    totals = [f"{unit.text(item.total)} {unit.name}" for item in traffic]
    sizes = bases or [unit.size] * len(traffic)
    axis = "DRAM traffic, sequential = 1" if bases else unit.title("DRAM traffic per GPU")
    parts = {
        title: [getattr(item, cause) / size for item, size in zip(traffic, sizes, strict=True)]
        for cause, title in CAUSE_TITLES.items()
    }  # fmt: skip
    return Chart(
        title=caption,
        summary="Mean DRAM bytes of one GPU, by cause: "
        + "; ".join(f"{name} {total}" for name, total in zip(names, totals, strict=True)) + ".",
        figure=stacked(names, parts, CAUSE_COLOURS, axis, totals),
        table=Table(
            caption=f"{caption}, {unit.name} per GPU",
            head=("run", *CAUSE_TITLES.values(), "total", "cleared before the launch"),
            rows=[
                (name, *(unit.text(getattr(item, cause)) for cause in CAUSE_TITLES), unit.text(item.total),
                 unit.text(item.init_write))
                for name, item in zip(names, traffic, strict=True)
            ],
        ),
    )  # fmt: skip


def ideal_times(results: Sequence[Result]) -> dict[str, float]:
    """Computed policy -> its total in ns, as far as ``results`` have the runs that it is computed from."""
    times = {result.policy: result.time_ns for result in results}
    return {
        policy: overlapped_ns(times[base], times[reduction])
        for policy, (base, reduction) in COMPUTED.items()
        if base in times and reduction in times
    }


def speedup_chart(results: Sequence[Result], speedups: Sequence[float | None]) -> Chart:
    """Speedups over the sequential run, between no overlap and overlap without contention.

    ``results`` hold one GEMM under several policies, the sequential one among them.
    """
    base = next(result.time_ns for result in results if result.policy == "sequential")
    bounds = {policy: base.total / total for policy, total in ideal_times(results).items()}
    measured = {
        result.policy: gain
        for result, gain in zip(results, speedups, strict=True)
        if gain is not None and result.policy not in COMPUTED
    }
    unit = unit_of(TIMES, [base.total])
    rows = [
        (result.policy, unit.text(result.time_ns.total), DASH if gain is None else f"{gain:.3f}",
         *(f"{(gain - 1) / (bound - 1):.0%}" if gain is not None and bound > 1 else DASH for bound in bounds.values()))
        for result, gain in zip(results, speedups, strict=True)
    ]  # fmt: skip
    return Chart(
        title="Speedup over sequential, with its bounds",
        summary="Speedups over sequential: "
        + ", ".join(f"{name} {gain:.3f}" for name, gain in measured.items())
        + ". Bounds: 1 without overlap"
        + "".join(f", {name} {bound:.3f}" for name, bound in bounds.items()) + ".",
        figure=bars(measured, "speedup over sequential", bounds),
        table=Table(
            caption="Times, speedups, and what part of each ideal gain they are",
            head=("policy", unit.title("time"), "speedup", *(f"of the gain of {name}" for name in bounds)),
            rows=rows,
        ),
    )  # fmt: skip


BOUNDS = (
    "No overlap is the sequential run itself, GEMM + reduce-scatter + all-gather. `ideal-overlap` is max(GEMM, "
    "reduce-scatter) + all-gather of the sequential run, without contention; `ideal-overlap-nmc` has the "
    "reduce-scatter of `sequential-nmc`, which reduces near memory. T3 also reduces near memory, and moves fewer bytes "
    "than the sequential run, so that it can pass `ideal-overlap`."
)
"""What the bounds are."""
