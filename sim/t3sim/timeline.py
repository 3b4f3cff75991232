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

from .request import CAUSE_TITLES, CAUSES, IntervalKind, Timeline
from .result import Result

# Okabe and Ito's colours, distinct for colour-blind readers; writes are the lighter shade of their reads.
COLOURS = {
    "gemm_read": "#0072B2", "gemm_write": "#7FB8D8", "rs_read": "#D55E00", "rs_write": "#F0B27A",
    "ag_read": "#009E73", "ag_write": "#80CEB9",
}  # fmt: skip
GEMM, REDUCE_SCATTER, ALL_GATHER = COLOURS["gemm_read"], COLOURS["rs_read"], COLOURS["ag_read"]
EXPOSED = "#CC79A7"
LINE_BYTES = 32
MAX_BINS = 400
"""Bins in a picture; more would show single bursts instead of bandwidth, so they are summed."""


def draw_timeline(record: Result, timeline: Timeline, path: Path, gpu: int = 0) -> None:
    """Writes the timeline of ``gpu`` as a PNG: lanes of activity above, DRAM traffic by cause below."""
    figure = Figure(figsize=(13, 8), layout="constrained")
    lanes, traffic = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    _draw_lanes(lanes, timeline, gpu)
    _draw_traffic(traffic, timeline, gpu)
    for axes in (lanes, traffic):
        for start, end in _spans(timeline, gpu, "exposed"):
            axes.axvspan(start, end, color=EXPOSED, alpha=0.13, linewidth=0, zorder=0)
    time = record.time_ns
    figure.suptitle(
        f"{_title(record)}, {record.policy}, GPU {gpu}: {time.total / 1e3:.0f} us, "
        f"of which {time.exposed_communication / 1e3:.0f} us exposed communication"
    )
    traffic.set_xlabel("time since GEMM launch (us)")
    traffic.set_xlim(0, timeline.cu_busy.shape[1] * timeline.bin_ns / 1e3)
    _save(figure, path)


def _draw_lanes(axes: Axes, timeline: Timeline, gpu: int) -> None:
    """One lane for each kind of activity; areas are scaled to their own peak, which is written beside them."""
    areas = (
        ("CUs computing", timeline.cu_busy[gpu], "", GEMM),
        ("local updates", timeline.local_updates[gpu] * LINE_BYTES, "GB/s", COLOURS["gemm_write"]),
        ("incoming updates", timeline.updates[gpu] * LINE_BYTES, "GB/s", COLOURS["rs_write"]),
        ("RS reads (DMA)", timeline.bytes["rs_read"][gpu], "GB/s", REDUCE_SCATTER),
        ("link out", timeline.link_bytes[gpu], "GB/s", "#555555"),
    )
    names = ["GEMM stages", *(name for name, *_ in areas), "DMA triggers", "reduce-scatter", "all-gather"]
    base = {name: len(names) - 1 - index for index, name in enumerate(names)}
    for index, (start, end) in enumerate(_spans(timeline, gpu, "stage")):
        shade = 0.85 if index % 2 == 0 else 0.55
        axes.broken_barh(
            [(start, end - start)], (base["GEMM stages"] + 0.15, 0.7), color=GEMM, alpha=shade, linewidth=0
        )
    for name, values, unit, colour in areas:
        _draw_area(axes, timeline.bin_ns, values, unit, base[name], colour)
    times = [event.time_ns / 1e3 for event in timeline.triggers if event.gpu == gpu]
    axes.vlines(times, base["DMA triggers"] + 0.1, base["DMA triggers"] + 0.85, color=REDUCE_SCATTER, linewidth=0.9)
    bars: dict[str, tuple[IntervalKind, str]] = {
        "reduce-scatter": ("reduce_scatter", REDUCE_SCATTER), "all-gather": ("all_gather", ALL_GATHER)
    }  # fmt: skip
    for name, (kind, colour) in bars.items():
        for start, end in _spans(timeline, gpu, kind):
            axes.broken_barh([(start, end - start)], (base[name] + 0.15, 0.7), color=colour, linewidth=0)
    axes.set_yticks([value + 0.45 for value in base.values()], list(base))
    axes.set_ylim(0, len(names))
    axes.hlines(range(len(names)), 0, 1, transform=axes.get_yaxis_transform(), color="#DDDDDD", linewidth=0.6, zorder=0)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(handles=[Patch(color=EXPOSED, alpha=0.3, label="exposed communication")], loc="upper right",
                frameon=True, fontsize="small")  # fmt: skip


def _draw_area(axes: Axes, bin_ns: float, values: NDArray[np.float64], unit: str, base: int, colour: str) -> None:
    """Fills one lane; ``unit`` GB/s means that ``values`` are bytes per bin, else they are fractions of one."""
    values, width = _coarse(values, bin_ns)
    values = values / width if unit else values * bin_ns / width  # bytes per ns are GB/s
    if not values.any():
        return
    peak = values.max() if unit else 1.0
    edges = np.arange(len(values) + 1) * width / 1e3
    axes.stairs(base + 0.05 + 0.85 * values / peak, edges, baseline=base + 0.05, fill=True, color=colour, linewidth=0)
    label = f"peak {peak:.0f} {unit}" if unit else f"mean {values[: np.flatnonzero(values)[-1] + 1].mean():.0%}"
    axes.annotate(label, (1, base + 0.45), xycoords=axes.get_yaxis_transform(), xytext=(4, 0),
                  textcoords="offset points", fontsize="small", color="#444444", va="center")  # fmt: skip


def _draw_traffic(axes: Axes, timeline: Timeline, gpu: int) -> None:
    """DRAM bandwidth by cause, stacked."""
    floor: NDArray[np.float64] | None = None
    for cause in CAUSES:
        values, width = _coarse(timeline.bytes[cause][gpu], timeline.bin_ns)
        floor = np.zeros(len(values)) if floor is None else floor
        top = floor + values / width
        edges = np.arange(len(values) + 1) * width / 1e3
        axes.stairs(top, edges, baseline=floor, fill=True, color=COLOURS[cause], label=CAUSE_TITLES[cause], linewidth=0)
        floor = top
    axes.set_ylabel("DRAM traffic (GB/s)")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(CAUSES), fontsize="small", frameon=False)


def draw_comparison(records: Sequence[Result], speedups: Sequence[float | None], path: Path) -> None:
    """Writes a PNG with the time of each policy, split by what the GPU waits for, and its traffic by cause."""
    figure = Figure(figsize=(12, 1.6 + 0.75 * len(records)), layout="constrained")
    times, traffic = figure.subplots(1, 2, sharey=True, width_ratios=[1.15, 1])
    names = [record.policy for record in records]
    _stack(times, names, {
        "GEMM": (GEMM, [record.time_ns.gemm / 1e3 for record in records]),
        "exposed communication": (EXPOSED, [record.time_ns.exposed_communication / 1e3 for record in records]),
        "other": ("#BBBBBB", [max(record.time_ns.total - record.time_ns.gemm - record.time_ns.exposed_communication, 0)
                              / 1e3 for record in records]),
    })  # fmt: skip
    for index, (record, speedup) in enumerate(zip(records, speedups, strict=True)):
        text = f"{record.time_ns.total / 1e3:.0f} us" + ("" if speedup is None else f"  ({speedup:.2f}x)")
        times.annotate(
            text, (record.time_ns.total / 1e3, index), xytext=(5, 0), textcoords="offset points", va="center"
        )
    times.set_xlim(0, max(record.time_ns.total for record in records) / 1e3 * 1.22)
    times.set_xlabel("time (us), and speedup over sequential")
    times.invert_yaxis()
    _stack(traffic, names, {
        CAUSE_TITLES[cause]: (COLOURS[cause], [getattr(item.traffic_bytes_per_gpu, cause) / 1e6 for item in records])
        for cause in CAUSES
    })  # fmt: skip
    traffic.set_xlabel("DRAM traffic per GPU (MB)")
    figure.suptitle(_title(records[0]))
    _save(figure, path)


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
    return f"{name} TP={work.tp} ({work.m} x {work.n} x {work.k_total})"


def _spans(timeline: Timeline, gpu: int, kind: IntervalKind) -> list[tuple[float, float]]:
    """Start and end in us of the intervals of ``kind``, in order."""
    return sorted(
        (item.start_ns / 1e3, item.end_ns / 1e3) for item in timeline.intervals if item.gpu == gpu and item.kind == kind
    )


def _coarse(values: NDArray[np.float64], bin_ns: float) -> tuple[NDArray[np.float64], float]:
    """Sums neighbouring bins until at most MAX_BINS are left; returns them with their width in ns."""
    factor = -(-len(values) // MAX_BINS) or 1
    padded = np.pad(np.asarray(values, dtype=float), (0, -len(values) % factor))
    return padded.reshape(-1, factor).sum(axis=1), bin_ns * factor


def _save(figure: Figure, path: Path) -> None:
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that does not fit is a defect, not a remark on stderr
        canvas.print_png(path, metadata={"Software": "OpenT3"})
