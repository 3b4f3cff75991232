"""Pictures: one GPU's timeline (does communication hide behind the GEMM?), and policies side by side."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray
from t3hdl.interface.layouts import LINE_BYTES

from t3sim.common.units import BYTES, RATES, TIMES, Unit, unit_of, with_unit

from .request import CAUSE_TITLES, CAUSES, IntervalKind, Timeline
from .result import Result

# Okabe and Ito's colours, distinct for colour-blind readers; writes are the lighter shade of their reads.
COLOURS = {
    "gemm_read": "#0072B2",
    "gemm_write": "#7FB8D8",
    "rs_read": "#D55E00",
    "rs_write": "#F0B27A",
    "ag_read": "#009E73",
    "ag_write": "#80CEB9",
}
GEMM, REDUCE_SCATTER, ALL_GATHER = COLOURS["gemm_read"], COLOURS["rs_read"], COLOURS["ag_read"]
EXPOSED = "#CC79A7"
MAX_BINS = 400
"""Bins in a picture; more would show single bursts instead of bandwidth, so they are summed."""


def draw_timeline(record: Result, timeline: Timeline, path: Path, gpu: int = 0) -> None:
    """Writes the timeline of ``gpu`` as a PNG: lanes of activity above, DRAM traffic by cause below."""
    figure = Figure(figsize=(13, 8), layout="constrained")
    lanes, traffic = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    end = timeline.cu_busy.shape[1] * timeline.bin_ns
    unit = unit_of(TIMES, [end])
    _draw_lanes(lanes, timeline, gpu, unit)
    _draw_traffic(traffic, timeline, gpu, unit)
    for axes in (lanes, traffic):
        for start, length in _spans(timeline, gpu, "exposed", unit):
            axes.axvspan(start, start + length, color=EXPOSED, alpha=0.13, linewidth=0, zorder=0)
    time = record.time_ns
    figure.suptitle(
        f"{_title(record)}, {record.policy}, GPU {gpu}: {unit.text(time.total)} {unit.name}, "
        f"of which {unit.text(time.exposed_communication)} {unit.name} exposed communication"
    )
    traffic.set_xlabel(unit.title("time since GEMM launch"))
    traffic.set_xlim(0, end / unit.size)
    save_png(figure, path)


def _draw_lanes(axes: Axes, timeline: Timeline, gpu: int, unit: Unit) -> None:
    """One lane for each kind of activity; areas are scaled to their own peak, which is written beside them."""
    areas = (
        ("CUs computing", timeline.cu_busy[gpu], GEMM),
        ("local updates", timeline.local_updates[gpu] * LINE_BYTES, COLOURS["gemm_write"]),
        ("incoming updates", timeline.updates[gpu] * LINE_BYTES, COLOURS["rs_write"]),
        ("RS reads (DMA)", timeline.bytes["rs_read"][gpu], REDUCE_SCATTER),
        ("link out", timeline.link_bytes[gpu], "#555555"),
    )
    names = ["GEMM stages", *(name for name, *_ in areas), "DMA triggers", "reduce-scatter", "all-gather"]
    base = {name: len(names) - 1 - index for index, name in enumerate(names)}
    _draw_stages(axes, _spans(timeline, gpu, "stage", unit), base["GEMM stages"])
    for name, values, colour in areas:
        _draw_area(axes, timeline.bin_ns, values, base[name], colour, unit, fraction=name == "CUs computing")
    times = [event.time_ns / unit.size for event in timeline.triggers if event.gpu == gpu]
    axes.vlines(times, base["DMA triggers"] + 0.1, base["DMA triggers"] + 0.85, color=REDUCE_SCATTER, linewidth=0.9)
    bars: dict[str, tuple[IntervalKind, str]] = {
        "reduce-scatter": ("reduce_scatter", REDUCE_SCATTER),
        "all-gather": ("all_gather", ALL_GATHER),
    }
    for name, (kind, colour) in bars.items():
        axes.broken_barh(_spans(timeline, gpu, kind, unit), (base[name] + 0.15, 0.7), color=colour, linewidth=0)
    axes.set_yticks([value + 0.45 for value in base.values()], list(base))
    axes.set_ylim(0, len(names))
    axes.hlines(range(len(names)), 0, 1, transform=axes.get_yaxis_transform(), color="#DDDDDD", linewidth=0.6, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(
        handles=[Patch(color=EXPOSED, alpha=0.3, label="exposed communication")],
        loc="upper right",
        frameon=True,
        fontsize="small",
    )


def _draw_stages(axes: Axes, stages: list[tuple[float, float]], base: int) -> None:
    """Stages in two rows by turns, because each begins before the last workgroups of the one before it end."""
    for row, colour in ((0, GEMM), (1, COLOURS["gemm_write"])):
        where = (base + 0.5 - 0.38 * row, 0.35)
        axes.broken_barh(stages[row::2], where, facecolor=colour, edgecolor="white", linewidth=0.6)
    if stages:
        _label(axes, f"{len(stages)} stage{'s' * (len(stages) > 1)}", base)


def _draw_area(
    axes: Axes, bin_ns: float, values: NDArray[np.float64], base: int, colour: str, unit: Unit, *, fraction: bool
) -> None:
    """Fills one lane; ``values`` are fractions of one, or bytes per bin."""
    values, width = _coarse(values, bin_ns)
    values = values * bin_ns / width if fraction else values / width  # bytes per ns are GB/s
    if not values.any():
        return
    peak = 1.0 if fraction else values.max()
    edges = np.arange(len(values) + 1) * width / unit.size
    axes.stairs(base + 0.05 + 0.85 * values / peak, edges, baseline=base + 0.05, fill=True, color=colour, linewidth=0)
    mean = values[: np.flatnonzero(values)[-1] + 1].mean()
    _label(axes, f"mean {mean:.0%}" if fraction else f"peak {with_unit(RATES, peak)}", base)


def _label(axes: Axes, text: str, base: int) -> None:
    """What is written beside a lane."""
    axes.annotate(text, (1, base + 0.45), xycoords=axes.get_yaxis_transform(), xytext=(4, 0),
                  textcoords="offset points", fontsize="small", color="#444444", va="center")  # fmt: skip


def _draw_traffic(axes: Axes, timeline: Timeline, gpu: int, unit: Unit) -> None:
    """DRAM bandwidth by cause, stacked."""
    rates = {cause: _coarse(timeline.bytes[cause][gpu], timeline.bin_ns) for cause in CAUSES}
    width = rates["gemm_read"][1]
    floor = np.zeros(len(rates["gemm_read"][0]))
    edges = np.arange(len(floor) + 1) * width / unit.size
    rate = unit_of(RATES, np.sum([values for values, _ in rates.values()], axis=0) / width)
    for cause, (values, _) in rates.items():
        top = floor + values / width / rate.size
        axes.stairs(top, edges, baseline=floor, fill=True, color=COLOURS[cause], label=CAUSE_TITLES[cause], linewidth=0)
        floor = top
    axes.set_ylabel(rate.title("DRAM traffic"))
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(CAUSES), fontsize="small", frameon=False)


def draw_comparison(records: Sequence[Result], speedups: Sequence[float | None], path: Path) -> None:
    """Writes a PNG with the time of each policy, split by what the GPU waits for, and its traffic by cause."""
    figure = Figure(figsize=(12, 1.6 + 0.75 * len(records)), layout="constrained")
    times, traffic = figure.subplots(1, 2, sharey=True, width_ratios=[1.15, 1])
    names = [record.policy for record in records]
    unit = unit_of(TIMES, (record.time_ns.total for record in records))
    moved = unit_of(BYTES, (record.traffic_bytes_per_gpu.total for record in records))
    spent = [(time.gemm, time.exposed_communication, time.total) for time in (record.time_ns for record in records)]
    _stack(
        times,
        names,
        {
            "GEMM": (GEMM, [gemm / unit.size for gemm, _, _ in spent]),
            "exposed communication": (EXPOSED, [exposed / unit.size for _, exposed, _ in spent]),
            "other": ("#BBBBBB", [max(total - gemm - exposed, 0) / unit.size for gemm, exposed, total in spent]),
        },
    )
    for index, ((_, _, total), speedup) in enumerate(zip(spent, speedups, strict=True)):
        text = f"{unit.text(total)} {unit.name}" + ("" if speedup is None else f"  ({speedup:.2f}x)")
        times.annotate(text, (total / unit.size, index), xytext=(5, 0), textcoords="offset points", va="center")
    times.set_xlim(0, max(total for *_, total in spent) / unit.size * 1.25)
    compared = any(speedup is not None for speedup in speedups)
    times.set_xlabel(unit.title("time") + (", and speedup over sequential" if compared else ""))
    times.invert_yaxis()
    _stack(traffic, names, {
        CAUSE_TITLES[cause]: (COLOURS[cause], [getattr(record.traffic_bytes_per_gpu, cause) / moved.size
                                               for record in records])
        for cause in CAUSES
    })  # fmt: skip
    traffic.set_xlabel(moved.title("DRAM traffic per GPU"))
    figure.suptitle(_title(records[0]))
    save_png(figure, path)


def _stack(axes: Axes, names: list[str], parts: dict[str, tuple[str, list[float]]]) -> None:
    """Horizontal stacked bars; parts that are zero everywhere are left out."""
    left = np.zeros(len(names))
    for label, (colour, values) in parts.items():
        if any(values):
            axes.barh(names, values, left=left, color=colour, label=label, height=0.62)
            left += values
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small", frameon=False)


def _title(record: Result) -> str:
    work = record.workload
    name = work.model if work.model == work.sublayer else f"{work.model} {work.sublayer}"
    return f"{name} TP {work.tp} ({work.m} x {work.n} x {work.k_total})"


def _spans(timeline: Timeline, gpu: int, kind: IntervalKind, unit: Unit) -> list[tuple[float, float]]:
    """Start and length, in ``unit``, of the intervals of ``kind``, in order."""
    return sorted(
        (item.start_ns / unit.size, (item.end_ns - item.start_ns) / unit.size)
        for item in timeline.intervals
        if item.gpu == gpu and item.kind == kind
    )


def _coarse(values: NDArray[np.float64], bin_ns: float) -> tuple[NDArray[np.float64], float]:
    """Sums neighbouring bins until at most MAX_BINS are left; returns them with their width in ns."""
    factor = -(-len(values) // MAX_BINS) or 1
    padded = np.pad(np.asarray(values, dtype=float), (0, -len(values) % factor))
    return padded.reshape(-1, factor).sum(axis=1), bin_ns * factor


def save_png(figure: Figure, path: Path) -> None:
    """Writes ``path``; the same figure gives the same bytes."""
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Matplotlib's: a layout that does not fit is a defect
        canvas.print_png(path, metadata={"Software": "OpenT3"})
