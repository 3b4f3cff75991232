"""The charts of ``t3 reproduce``, in the forms that the paper uses."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from t3sim.common.units import RATES, TIMES, unit_of
from t3sim.run.request import CAUSE_TITLES, CAUSES, Cause, Policy
from t3sim.run.timeline import COLOURS

from .drawing import (
    SPLIT_COLOURS,
    bar_offset,
    label_groups,
    legend_above,
    positions,
    save,
    speedup_bars,
    stacked_bars,
    value_rows,
)
from .evaluation import Evaluation, geomean
from .layer.operators import PHASES
from .published import published
from .reproduction import model_pairs
from .suite import FIGURE_17, OVERLAPPED, TP_8_16, TP_32, TP_64, Point, Variant

Drawer = Callable[[Evaluation], Figure]
GEOMEAN = "geo-\nmean"
WAIT_COLOURS = {"for loads": COLOURS["gemm_read"], "for stores": COLOURS["gemm_write"]}


def _names(points: Sequence[Point]) -> tuple[list[str], list[str]]:
    """Labels of the bars, and the group of each."""
    return [point.sublayer for point in points], [f"{point.model}, TP {point.tp}" for point in points]


def _figure(width: float, height: float, title: str) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    return figure


def _width(points: Sequence[Point], series: int) -> float:
    return 2.5 + len(points) * max(0.42, 0.16 * series)


def _split(points: Sequence[Point]) -> Drawer:
    """GEMM, reduce-scatter and all-gather of the sequential policy, as parts of its time."""

    def draw(e: Evaluation) -> Figure:
        labels, groups = _names(points)
        times = [e.record(point, "sequential").time_ns for point in points]
        sums = np.array([time.gemm + time.reduce_scatter + time.all_gather for time in times])
        parts = {
            "GEMM": np.array([time.gemm for time in times]) / sums,
            "reduce-scatter": np.array([time.reduce_scatter for time in times]) / sums,
            "all-gather": np.array([time.all_gather for time in times]) / sums,
        }
        figure = _figure(_width(points, 2), 3.6, "Sequential: where the time of a sublayer goes")
        axes = figure.subplots()
        where = positions(groups)
        stacked_bars(axes, where, parts, SPLIT_COLOURS)
        label_groups(axes, where, labels, groups)
        axes.set_ylabel("part of the time")
        axes.set_ylim(0, 1)
        legend_above(axes, 3)
        return figure

    return draw


def _speedups(
    points: Sequence[Point],
    policies: Sequence[Policy],
    title: str,
    lines: Mapping[str, Policy],
    variant: Variant = "base",
) -> Drawer:
    """Speedups of policies at every point and their geometric means; ``lines``: published figure -> its policy."""

    def draw(e: Evaluation) -> Figure:
        labels, groups = _names(points)
        gains = {policy: e.speedups(points, policy, variant) for policy in policies}
        where = positions([*groups, "all"])
        figure = _figure(_width(points, len(policies)), 4.6, title)
        axes = figure.subplots()
        shown = {policy: [*values, geomean(values)] for policy, values in gains.items()}
        speedup_bars(axes, where, shown, "speedup over sequential")
        label_groups(axes, where, [*labels, GEOMEAN], [*groups, ""])
        value_rows(axes, where, shown)
        _mark_published(axes, where[-1], lines, list(policies))
        legend_above(axes, len(policies) + 1)
        return figure

    return draw


def _mark_published(axes: Axes, x: float, lines: Mapping[str, Policy], policies: list[Policy]) -> None:
    """A diamond on the bar of each policy, or above it, at the published geometric mean."""
    if lines:
        at = [x + bar_offset(policies.index(policy), len(policies)) for policy in lines.values()]
        axes.plot(at, [published()[name].value for name in lines], linestyle="", marker="D", markersize=6,
                  markerfacecolor="white", markeredgecolor="black", label="published geomean", zorder=3)  # fmt: skip


def _timeline(e: Evaluation) -> Figure:
    """DRAM traffic over time of one sublayer under three policies: the paper's Figure 17."""
    policies: tuple[Policy, ...] = ("sequential", *OVERLAPPED)
    figure = _figure(11, 7.5, f"DRAM traffic of GPU 0 over time, {FIGURE_17.title}")
    traffic = {policy: _rates(e, policy) for policy in policies}
    unit = unit_of(TIMES, (e.record(FIGURE_17, policy).time_ns.total for policy in policies))
    rate = unit_of(RATES, (np.sum(list(rates.values()), axis=0).max() for _, rates in traffic.values()))
    rows = figure.subplots(len(policies), 1, sharex=True, sharey=True)
    for axes, (policy, (edges, rates)) in zip(rows, traffic.items(), strict=True):
        floor = np.zeros(len(edges) - 1)
        for cause, values in rates.items():
            top = floor + values / rate.size
            axes.stairs(top, edges / unit.size, baseline=floor, fill=True, color=COLOURS[cause], linewidth=0,
                        label=CAUSE_TITLES[cause])  # fmt: skip
            floor = top
        axes.set_ylabel(f"{policy}\n{rate.name}")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    legend_above(rows[0], len(CAUSES))
    rows[-1].set_xlabel(unit.title("time since GEMM launch"))
    rows[-1].set_xlim(0, max(e.record(FIGURE_17, policy).time_ns.total for policy in policies) / unit.size)
    return figure


def _rates(e: Evaluation, policy: Policy) -> tuple[np.ndarray, dict[Cause, np.ndarray]]:
    """Edges of the bins in ns, and bytes per ns by cause in each bin."""
    bins = e.outcome(FIGURE_17, policy).traffic
    assert bins is not None
    edges = np.arange(len(bins.bytes["gemm_read"]) + 1) * bins.bin_ns
    return edges, {cause: np.array(bins.bytes[cause]) / bins.bin_ns for cause in CAUSES}


def _mca(e: Evaluation) -> Figure:
    """How long a CU waits in the GEMM, by cause, under each policy: what contention costs, and what MCA saves."""
    labels, groups = _names(TP_8_16)
    where = positions(groups)
    title = "Mean time that a CU waits, as part of the sequential GEMM (from left: sequential, t3, t3-mca)"
    figure = _figure(_width(TP_8_16, 3), 4.0, title)
    axes = figure.subplots()
    bases = np.array([e.record(point, "sequential").time_ns.gemm for point in TP_8_16])
    policies: tuple[Policy, ...] = ("sequential", *OVERLAPPED)
    for policy, offset in zip(policies, (-0.27, 0.0, 0.27), strict=True):
        causes: dict[str, list[float]] = {"for loads": [], "for stores": []}
        for point in TP_8_16:
            contention = e.record(point, policy).contention
            assert contention is not None
            for name, values in causes.items():
                values.append(contention.cu_stall_ns[name.removeprefix("for ")])
        parts = {name: np.array(values) / bases for name, values in causes.items()}
        stacked_bars(axes, where + offset, parts, WAIT_COLOURS, 0.24, labelled=policy == "sequential")
    label_groups(axes, where, labels, groups)
    axes.set_ylabel("waiting, sequential GEMM = 1")
    legend_above(axes, 2)
    return figure


def _traffic(e: Evaluation) -> Figure:
    """Bytes by cause of sequential and t3-mca, as parts of sequential's."""
    labels, groups = _names(TP_8_16)
    where = positions(groups)
    title = "DRAM data movement by cause, relative to sequential (left: sequential, right: t3-mca)"
    figure = _figure(_width(TP_8_16, 3), 4.0, title)
    axes = figure.subplots()
    bases = np.array([e.record(point, "sequential").traffic_bytes_per_gpu.total for point in TP_8_16])
    policies: tuple[Policy, ...] = ("sequential", "t3-mca")
    for policy, offset in zip(policies, (-0.2, 0.2), strict=True):
        traffic = [e.record(point, policy).traffic_bytes_per_gpu for point in TP_8_16]
        parts = {cause: np.array([getattr(item, cause) for item in traffic]) / bases for cause in CAUSES}
        named = {CAUSE_TITLES[cause]: values for cause, values in parts.items()}
        colours = {CAUSE_TITLES[cause]: COLOURS[cause] for cause in CAUSES}
        stacked_bars(axes, where + offset, named, colours, 0.36, labelled=policy == "sequential")
    label_groups(axes, where, labels, groups)
    axes.set_ylabel("bytes, sequential = 1")
    legend_above(axes, len(CAUSES))
    return figure


def _end_to_end(e: Evaluation) -> Figure:
    """Speedups of whole models, training above and the prompt phase below."""
    pairs = model_pairs(e)
    figure = _figure(2.5 + 0.9 * len(pairs), 7.0, "Whole models: speedup over sequential")
    for axes, phase in zip(figure.subplots(2, 1), PHASES, strict=True):
        times = [e.model_time(model, tp, phase) for model, tp in pairs]
        where = positions(["all"] * len(pairs))
        shown = {policy: [time.speedup(policy) for time in times] for policy in OVERLAPPED}
        speedup_bars(axes, where, shown, phase)
        label_groups(axes, where, [f"{model}\nTP {tp}" for model, tp in pairs], [""] * len(pairs))
        value_rows(axes, where, shown, 3, above=2)
        compared = [x for x, (_, tp) in zip(where, pairs, strict=True) if tp in (8, 16)]
        for policy, style in zip(OVERLAPPED, (":", "--"), strict=True):
            value = 1 + published()[f"{phase}-{policy}-geomean"].value / 100
            axes.hlines(value, compared[0] - 0.5, compared[-1] + 0.5, color="black", linestyle=style, linewidth=1.5,
                        label=f"published geomean, {policy}", zorder=3)  # fmt: skip
    legend_above(figure.axes[0], 4)
    return figure


def _cus(e: Evaluation) -> Figure:
    """Geometric means and every sublayer on the base machine and on one with twice the CUs."""
    policies: tuple[Policy, ...] = ("ideal-overlap", *OVERLAPPED)
    labels, groups = _names(TP_8_16)
    where = positions([*groups, "all"])
    figure = _figure(_width(TP_8_16, 3), 7.5, "A GPU with twice the CUs: speedup over sequential on the same GPU")
    variants: tuple[Variant, ...] = ("base", "cus")
    rows = figure.subplots(2, 1, sharey=True)
    for axes, variant in zip(rows, variants, strict=True):
        gains = {policy: e.speedups(TP_8_16, policy, variant) for policy in policies}
        shown = {policy: [*values, geomean(values)] for policy, values in gains.items()}
        speedup_bars(axes, where, shown, f"{e.suite.machine_of(variant).gpu.cus} CUs")
        label_groups(axes, where, [*labels, GEOMEAN], [*groups, ""])
        value_rows(axes, where, shown)
    legend_above(rows[0], 3)
    return figure


IDEALS: tuple[Policy, ...] = ("ideal-overlap", "ideal-overlap-nmc", *OVERLAPPED)
PUBLISHED_LINES: dict[str, Policy] = {"ideal-geomean": "ideal-overlap", "t3-geomean": "t3", "t3-mca-geomean": "t3-mca"}
LARGE: tuple[Policy, ...] = ("ideal-overlap", *OVERLAPPED)
CHARTS: Mapping[str, Mapping[str, Drawer]] = MappingProxyType(
    {
        "sublayers": {
            "time-split": _split(TP_8_16),
            "speedups": _speedups(TP_8_16, IDEALS, "Speedup of sublayers at TP 8 and 16", PUBLISHED_LINES),
        },
        "mca": {"waiting": _mca},
        "timeline": {"dram-traffic-over-time": _timeline},
        "traffic": {"data-movement": _traffic},
        "tp32": {
            "tp32-time-split": _split(TP_32),
            "tp32-speedups": _speedups(TP_32, LARGE, "Speedup of sublayers at TP 32", {"tp32-geomean": "t3-mca"}),
        },
        "tp64": {"tp64-speedups": _speedups(TP_64, LARGE, "Speedup of sublayers at TP 64", {})},
        "cus": {"twice-the-cus": _cus},
        "end-to-end": {"end-to-end": _end_to_end},
    }
)
"""Table -> file name -> what draws it."""


def draw_charts(evaluation: Evaluation, tables: Sequence[str], folder: Path) -> None:
    """Writes the charts of ``tables`` as PNG and SVG."""
    for table in tables:
        for name, draw in CHARTS.get(table, {}).items():
            save(draw(evaluation), folder / name)
