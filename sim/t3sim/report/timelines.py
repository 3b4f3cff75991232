"""Timelines: lanes of several GPUs or policies over one time axis, and all activity of one GPU."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from t3hdl.interface.layouts import LINE_BYTES

from t3sim.common.units import BYTES, RATES, TIMES, Unit, digits, unit_of, with_unit
from t3sim.inputs.geometry import ceil_div
from t3sim.run.request import CAUSE_TITLES, CAUSES, IntervalKind
from t3sim.run.timeline import COLOURS, EXPOSED
from t3sim.run.timeline_record import GpuTimeline, TimelineRecord

from .figures import OTHER, finished, plain
from .parts import DASH, Chart, Table, count
from .queues import queue_tracks

LANES: dict[str, tuple[IntervalKind, str]] = {
    "GEMM stages": ("stage", COLOURS["gemm_read"]),
    "reduce-scatter": ("reduce_scatter", COLOURS["rs_read"]),
    "all-gather": ("all_gather", COLOURS["ag_read"]),
    "exposed communication": ("exposed", EXPOSED),
}
"""Lane -> interval that it shows, and its colour."""
TRIGGERS, TRIGGER_COLOUR = "DMA triggers", COLOURS["rs_read"]
SECOND_STAGE = COLOURS["gemm_write"]
"""Stages have two colours by turns, so that each one can be seen."""
MAX_ROWS = 20
"""Rows of a table over time: it says what the chart shows, not every bin."""
MAX_TRIGGERS = 4000
"""Marks in a lane: more than there are pixels."""
IN_FRONT, BEHIND = {"width": 0.22, "opacity": 1}, {"width": 0.92, "opacity": 0.25}
"""Bars of a lane, and of what a whole row is in."""
GPU_ROWS = (200, 140, 260, 170)
"""Pixels of each row with its gap: lanes, CUs, DRAM, link."""
QUEUE_ROW, GAP = 115, 34
"""Pixels of a track of queues with its gap, and of that: a legend has room there."""
LEGEND_SIZE = 12


def time_unit(timelines: Sequence[TimelineRecord]) -> Unit:
    """The unit in which all of ``timelines`` are shown."""
    return unit_of(TIMES, (end_of(timeline) for timeline in timelines))


def end_of(timeline: TimelineRecord) -> float:
    """End of the last interval or bin, in ns."""
    bins = len(timeline.gpus[0].link_bytes) * timeline.bin_ns
    ends = [item.end_ns for gpu in timeline.gpus for item in gpu.intervals]
    return max(ends, default=bins)


def lanes_chart(rows: Mapping[str, GpuTimeline], unit: Unit, end: float, title: str, summary: str) -> Chart:
    """A row for each name: stages above reduce-scatter above all-gather, triggers as marks, exposed time behind."""
    figure = go.Figure()
    places = {"GEMM stages": -0.28, "reduce-scatter": 0.0, "all-gather": 0.24, "exposed communication": 0.0}
    for lane in reversed(LANES):  # exposed time first, which is behind all else
        kind, colour = LANES[lane]
        spans = [(row, *span) for row, gpu in enumerate(rows.values()) for span in _spans(gpu, kind, unit)]
        if spans:
            where, start, length = (np.array(column) for column in zip(*spans, strict=True))
            figure.add_bar(
                y=where + places[lane], x=length, base=start, orientation="h", name=lane,
                legendrank=list(LANES).index(lane), **BEHIND if kind == "exposed" else IN_FRONT,
                marker={"color": _stage_colours(where) if kind == "stage" else colour, "line": {"width": 0}},
                customdata=start + length, hovertemplate=_span_text(lane, unit),
            )  # fmt: skip
    marks = [(row, time) for row, gpu in enumerate(rows.values()) for time in _triggers(gpu, unit)]
    if marks:
        where, times = (np.array(column) for column in zip(*marks, strict=True))
        figure.add_scatter(
            y=where + 0.42, x=times, mode="markers", name=TRIGGERS,
            marker={"symbol": "line-ns", "size": 7, "line": {"width": 1, "color": TRIGGER_COLOUR}},
            hovertemplate=f"DMA trigger: %{{x:.4g}} {unit.name}<extra></extra>",
        )  # fmt: skip
    names = [plain(name) for name in rows]
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names, range=[len(rows) - 0.45, -0.55],
                        fixedrange=True, zeroline=False, showgrid=False)  # fmt: skip
    figure.update_xaxes(title_text=unit.title("time since GEMM launch"), range=[0, end / unit.size])
    plot = finished(figure, 96 + max(60, 52 * len(rows)), barmode="overlay") | {"zoom": ["xaxis"], "unit": unit.name}
    plot["layout"]["dragmode"] = "zoom"
    return Chart(title=title, summary=summary, figure=plot, table=_span_table(rows, title), zoom=True)


def gpu_chart(timeline: TimelineRecord, number: int, unit: Unit, end: float, name: str) -> Chart:
    """All that is recorded of one GPU: intervals and triggers, CUs, DRAM traffic by cause, link and updates, queues."""
    gpu, width = timeline.gpus[number], timeline.bin_ns
    tracks = list(queue_tracks(gpu.queues))
    heights = [*GPU_ROWS, *[QUEUE_ROW] * len(tracks)]
    height, rows = sum(heights), len(heights)
    figure = make_subplots(rows=rows, shared_xaxes=True, vertical_spacing=GAP / height, row_heights=heights)
    _add_lanes(figure, gpu, unit)
    step = {"mode": "lines", "x0": 0, "dx": width / unit.size}
    _add_area(figure, 2, "CUs computing", 100 * np.array(gpu.cu_busy), COLOURS["gemm_read"], step, "%")
    traffic = {cause: np.array(gpu.dram_bytes[cause]) / width for cause in CAUSES}
    rate = unit_of(RATES, np.sum(list(traffic.values()), axis=0))
    for cause, values in traffic.items():
        _add_area(figure, 3, CAUSE_TITLES[cause], values / rate.size, COLOURS[cause], step, rate.name, "dram")
    sent = _sent(gpu, width)
    link = unit_of(RATES, (max(values, default=0) for values in sent.values()))
    for (label, values), colour in zip(sent.items(), (OTHER, COLOURS["rs_write"], COLOURS["gemm_write"]), strict=True):
        _add_line(figure, 4, label, values / link.size, colour, step, link.name)
    titles = {2: "CUs (%)", 3: f"DRAM ({rate.name})", 4: f"link, updates<br>({link.name})"}
    for row, track in enumerate(tracks, len(GPU_ROWS) + 1):
        titles[row] = f"{track.title}<br>({track.unit})"
        for label, values, colour in track.lines:
            _add_line(figure, row, label, values, colour, step, track.unit, showlegend=len(track.lines) > 1)
    figure.update_yaxes(fixedrange=True, rangemode="tozero", zeroline=False)
    for row, title in titles.items():
        figure.update_yaxes(title_text=title, row=row, col=1)
    figure.update_yaxes(range=[0, 100], row=2, col=1)
    figure.update_xaxes(range=[0, end / unit.size])
    figure.update_xaxes(title_text=unit.title("time since GEMM launch"), row=rows, col=1)
    plot = finished(figure, height, barmode="overlay", hovermode="x unified", **_legends(figure, rows)) | {
        "zoom": ["xaxis", *(f"xaxis{row}" for row in range(2, rows + 1))],
        "unit": unit.name,
        "legends": True,
    }
    plot["layout"]["dragmode"] = "zoom"
    moved = sum(map(sum, gpu.dram_bytes.values()))
    summary = (
        f"{name} over {with_unit(TIMES, end_of(timeline))}: GEMM stages, DMA triggers and collectives, computing CUs, "
        f"DRAM traffic by cause ({with_unit(BYTES, moved)} in all), link and near-memory updates"
        f"{', and what waits in queues' if tracks else ''}."
    )
    return Chart(title=f"{name} over time", summary=summary, figure=plot,
                 table=_time_table(timeline, gpu, name), zoom=True)  # fmt: skip


def _legends(figure: go.Figure, rows: int) -> dict[str, Any]:
    """Gives each row the legend of its own traces, above it; returns the layout of these."""
    layout = {}
    for row in range(2, rows + 1):
        figure.update_traces(legend=f"legend{row}", row=row, col=1)
        top = figure.layout[f"yaxis{row}"].domain[1]
        layout[f"legend{row}"] = {
            "orientation": "h", "x": 0, "xanchor": "left", "y": top, "yanchor": "bottom", "traceorder": "normal",
            "font": {"size": LEGEND_SIZE},
        }  # fmt: skip
    return layout


def _add_lanes(figure: go.Figure, gpu: GpuTimeline, unit: Unit) -> None:
    for lane, (kind, colour) in LANES.items():
        spans = _spans(gpu, kind, unit)
        start, length = (np.array([span[i] for span in spans]) for i in (0, 1))
        if spans:
            figure.add_bar(
                y=[lane.replace(" communication", "")] * len(spans), x=length, base=start, orientation="h", name=lane,
                width=0.62, showlegend=False, row=1, col=1, customdata=start + length,
                marker={"color": _stage_colours(start * 0) if kind == "stage" else colour, "line": {"width": 0}},
                hovertemplate=_span_text(lane, unit),
            )  # fmt: skip
    times = _triggers(gpu, unit)
    if times:
        figure.add_scatter(
            y=[TRIGGERS] * len(times), x=times, mode="markers", showlegend=False, row=1, col=1, name=TRIGGERS,
            marker={"symbol": "line-ns", "size": 13, "line": {"width": 1, "color": TRIGGER_COLOUR}},
            hovertemplate=f"DMA trigger: %{{x:.4g}} {unit.name}<extra></extra>",
        )  # fmt: skip
    order = ["exposed", "all-gather", "reduce-scatter", TRIGGERS, "GEMM stages"]
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=order, range=[-0.6, len(order) - 0.4],
                        showgrid=False, row=1, col=1)  # fmt: skip


def _add_area(
    figure: go.Figure, row: int, name: str, values: NDArray[np.float64], colour: str, step: Mapping[str, Any],
    unit: str, group: str | None = None,
) -> None:  # fmt: skip
    fill = {"stackgroup": group} if group else {"fill": "tozeroy"}
    figure.add_scatter(
        y=_closed(values), name=name, row=row, col=1, fillcolor=colour, showlegend=group is not None, **fill, **step,
        line={"shape": "hv", "width": 0, "color": colour}, hovertemplate=f"{name}: %{{y:.4g}} {unit}<extra></extra>",
    )  # fmt: skip


def _add_line(
    figure: go.Figure, row: int, name: str, values: NDArray[np.float64], colour: str, step: Mapping[str, Any],
    unit: str, *, showlegend: bool = True,
) -> None:  # fmt: skip
    """``showlegend``: not for what the axis names already."""
    figure.add_scatter(
        y=_closed(values), name=name, row=row, col=1, **step, line={"shape": "hv", "width": 1.5, "color": colour},
        showlegend=showlegend, hovertemplate=f"{name}: %{{y:.4g}} {unit}<extra></extra>",
    )  # fmt: skip


def _sent(gpu: GpuTimeline, width: float) -> dict[str, NDArray[np.float64]]:
    """Bytes per ns of the link and of both kinds of updates."""
    return {
        "link out": np.array(gpu.link_bytes) / width,
        "incoming updates": np.array(gpu.incoming_updates) * LINE_BYTES / width,
        "local updates": np.array(gpu.local_updates) * LINE_BYTES / width,
    }


def _closed(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Heights of steps, with that of the last bin once more at its end; a picture needs single precision."""
    return np.append(values, values[-1:]).astype(np.float32)


def _spans(gpu: GpuTimeline, kind: IntervalKind, unit: Unit) -> list[tuple[float, float]]:
    """Start and length, in order."""
    found = [(item.start_ns, item.end_ns - item.start_ns) for item in gpu.intervals if item.kind == kind]
    return [(start / unit.size, length / unit.size) for start, length in sorted(found)]


def _triggers(gpu: GpuTimeline, unit: Unit) -> list[float]:
    """Times of the triggers; of very many, evenly chosen ones."""
    step = ceil_div(len(gpu.triggers), MAX_TRIGGERS) or 1
    return sorted(item.time_ns / unit.size for item in gpu.triggers)[::step]


def _stage_colours(rows: NDArray[Any]) -> list[str]:
    """A colour for each stage, by turns in every row."""
    seen: dict[Any, int] = {}
    found = []
    for row in rows.tolist():
        seen[row] = seen.get(row, -1) + 1
        found.append((COLOURS["gemm_read"], SECOND_STAGE)[seen[row] % 2])
    return found


def _span_text(lane: str, unit: Unit) -> str:
    return f"{lane}: %{{base:.4g}} to %{{customdata:.4g}} {unit.name}<extra></extra>"


def _span_table(rows: Mapping[str, GpuTimeline], title: str) -> Table:
    """When each activity was, and how much of it."""
    unit = unit_of(TIMES, (item.end_ns for gpu in rows.values() for item in gpu.intervals))
    kinds: dict[str, IntervalKind] = {"GEMM": "gemm", "reduce-scatter": "reduce_scatter", "all-gather": "all_gather"}

    def extent(gpu: GpuTimeline, kind: IntervalKind) -> str:
        spans = [item for item in gpu.intervals if item.kind == kind]
        if not spans:
            return DASH
        first, last = min(item.start_ns for item in spans), max(item.end_ns for item in spans)
        return f"{unit.text(first)} to {unit.text(last)}"

    return Table(
        caption=f"{title}: when each activity was",
        head=("", *(unit.title(name) for name in kinds), "stages", unit.title("exposed"), "DMA triggers"),
        rows=[
            (
                name,
                *(extent(gpu, kind) for kind in kinds.values()),
                count(sum(item.kind == "stage" for item in gpu.intervals)),
                unit.text(sum(item.end_ns - item.start_ns for item in gpu.intervals if item.kind == "exposed")),
                count(len(gpu.triggers)),
            )
            for name, gpu in rows.items()
        ],
    )


def _time_table(timeline: TimelineRecord, gpu: GpuTimeline, name: str) -> Table:
    """Means over at most MAX_ROWS parts of the time."""
    bins, width = len(gpu.link_bytes), timeline.bin_ns
    step = ceil_div(bins, MAX_ROWS) or 1
    unit = unit_of(TIMES, [bins * width])
    columns = {CAUSE_TITLES[cause]: np.array(gpu.dram_bytes[cause]) / width for cause in CAUSES} | _sent(gpu, width)
    rate = unit_of(RATES, (max(values, default=0) for values in columns.values()))
    waiting = {
        f"{name} ({track.unit})": values for track in queue_tracks(gpu.queues) for name, values, _ in track.lines
    }
    rows = []
    for first in range(0, bins, step):
        part = slice(first, min(first + step, bins))
        span = f"{unit.text(first * width)} to {unit.text(part.stop * width)}"
        busy = f"{100 * np.mean(gpu.cu_busy[part]):.0f}"
        triggers = sum(first * width <= item.time_ns < part.stop * width for item in gpu.triggers)
        rates = (rate.text(values[part].mean()) for values in columns.values())
        lengths = (digits(values[part].mean()) for values in waiting.values())
        rows.append((span, busy, *rates, count(triggers), *lengths))
    return Table(
        caption=f"{name}: means over parts of the time; rates in {rate.name}",
        head=(unit.title("time"), "CUs (%)", *columns, "DMA triggers", *waiting),
        rows=rows,
    )
