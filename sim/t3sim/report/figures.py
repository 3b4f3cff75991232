"""Plotly figures of the report: bars that compare. Colours of text and grid come from the page's theme."""

import html
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go

from t3sim.run.request import CAUSE_TITLES, CAUSES
from t3sim.run.timeline import COLOURS, EXPOSED
from t3sim.study import drawing

# Those of the pictures, but for the bounds: a report also has sequential policies, which are grey, and black paper.
POLICY_COLOURS: Mapping[str, str] = MappingProxyType({
    **drawing.POLICY_COLOURS,
    "sequential": "#8A8A8A",
    "sequential-pipelined": "#A9A27C",
    "sequential-nmc": "#7D8FA3",
    "ideal-overlap": "#56B4E9",
    "ideal-overlap-nmc": "#009E73",
})  # fmt: skip
OTHER = "#999999"
CAUSE_COLOURS: Mapping[str, str] = MappingProxyType({CAUSE_TITLES[cause]: COLOURS[cause] for cause in CAUSES})
SPLIT_COLOURS: Mapping[str, str] = MappingProxyType(
    {"GEMM": COLOURS["gemm_read"], "exposed communication": EXPOSED, "other": OTHER}
)
SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A8A8A", "#B8A900")
"""For names that have no colour of their own."""
ROW, SMALL_ROW, HEAD = 44, 26, 96
"""Pixels of a bar with its gap, of one of many, and of axis and legend."""
MANY = 10
"""Bars from which on they are small."""
COLUMN = 26
"""Characters of a label in a line."""
LAYOUT: Mapping[str, Any] = MappingProxyType({
    "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
    "legend": {"orientation": "h", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom", "traceorder": "normal"},
    "dragmode": False,
})  # fmt: skip
AXIS: Mapping[str, Any] = MappingProxyType({"automargin": True, "exponentformat": "none", "separatethousands": True})


def plain(text: str) -> str:
    """``text`` for a label: Plotly takes some HTML, and a name that looks like it shall be shown as it is."""
    return html.escape(text, quote=False)


def folded(text: str) -> str:
    """A long label in lines."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(lines[-1]) + len(word) < COLUMN:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "<br>".join(plain(line) for line in lines)


def finished(figure: go.Figure, height: int, **layout: Any) -> dict[str, Any]:
    """The figure as plain data, with what all figures share, and without a template, which has colours of its own.

    What they share is put into the data: Plotly takes longer for it than for all else in a figure.
    """
    figure.layout.template = None
    found: dict[str, Any] = json.loads(figure.to_json())  # arrays as base64, which is short
    for trace in found["data"]:
        if trace["type"] == "bar":
            _merge(trace.setdefault("marker", {}), {"line": {"width": 0}})
    for axis in {"xaxis", "yaxis", *(key for key in found["layout"] if key.startswith(("xaxis", "yaxis")))}:
        _merge(found["layout"].setdefault(axis, {}), AXIS)
    _merge(found["layout"], {"height": height, **LAYOUT, **layout})
    found["layout"].pop("template", None)
    return found


def _merge(data: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Puts ``changes`` into ``data``, level by level."""
    for key, value in changes.items():
        if isinstance(value, dict):
            _merge(data.setdefault(key, {}), value)
        else:
            data[key] = value


def stacked(
    names: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    title: str,
    texts: Sequence[str] = (),
) -> dict[str, Any]:
    """A horizontal bar of stacked parts for each name; parts that are nothing everywhere are left out. ``texts``:
    what is written behind each bar; the page makes more room for it where it is narrow, behind ``end``."""
    many = len(names) >= MANY
    labels = [plain(name) if many else folded(name) for name in names]
    traces = [
        {
            "type": "bar", "y": labels, "x": list(values), "name": plain(name), "orientation": "h",
            "marker": {"color": colours[name]}, "hovertemplate": f"%{{y}}<br>{plain(name)}: %{{x:.4g}}<extra></extra>",
        }
        for name, values in parts.items()
        if any(values)
    ]  # fmt: skip
    ends = [sum(column) for column in zip(*parts.values(), strict=True)]
    behind = [
        {"x": end, "y": label, "text": plain(text), "showarrow": False, "xanchor": "left", "xshift": 6}
        for label, end, text in zip(labels, ends, texts, strict=False)
    ]
    reach = max(ends, default=0) * (1.3 if texts else 1.05) or 1
    figure = go.Figure(
        traces,
        {
            "annotations": behind, "xaxis": {"title": {"text": plain(title)}, "range": [0, reach]},
            "yaxis": {"autorange": "reversed", "showgrid": False},
        },
    )  # fmt: skip
    plot = finished(figure, HEAD + (SMALL_ROW if many else ROW) * len(names), barmode="stack", bargap=0.3)
    return plot | {"end": max(ends, default=0)} if texts else plot


def bars(values: Mapping[str, float], title: str, lines: Mapping[str, float], base: float = 1) -> dict[str, Any]:
    """A horizontal bar from ``base`` to each value, and dashed lines with their names at others. A long bar has its
    value inside, where no line crosses it."""
    figure = go.Figure()
    ends = [base, *values.values(), *lines.values()]
    reach = max(ends) - min(ends)
    figure.add_bar(
        y=[folded(name) for name in values], x=[value - base for value in values.values()], base=base, orientation="h",
        marker_color=[POLICY_COLOURS.get(name, SERIES[0]) for name in values], showlegend=False,
        text=[f"{value:.3f}x" for value in values.values()], cliponaxis=False, insidetextanchor="end",
        textposition=["inside" if abs(value - base) > reach / 2 else "outside" for value in values.values()],
        customdata=list(values.values()), hovertemplate="%{y}: %{customdata:.3f}<extra></extra>",
    )  # fmt: skip
    for index, (name, at) in enumerate(lines.items()):
        line = {"dash": ("dash", "dot")[index % 2], "width": 2, "color": POLICY_COLOURS.get(name, OTHER)}
        figure.add_shape(
            type="line", x0=at, x1=at, y0=0, y1=1, yref="y domain", line=line, showlegend=True,
            name=f"{plain(name)}: {at:.3f}x",
        )  # fmt: skip
    room = 0.18 * reach or 0.1
    figure.update_xaxes(title_text=plain(title), range=[min(ends) - room / 3, max(ends) + room])
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False)
    figure.add_vline(x=base, line_width=1, line_color=OTHER)
    return finished(figure, HEAD + ROW * len(values), bargap=0.35)


def grouped(
    groups: Sequence[str], series: Mapping[str, Sequence[float | None]], title: str, base: float = 0
) -> dict[str, Any]:
    """Vertical bars from ``base``: one for each series in every group."""
    figure = go.Figure()
    labels = [folded(group) for group in groups]
    for index, (name, values) in enumerate(series.items()):
        figure.add_bar(
            x=labels, y=[None if value is None else value - base for value in values], base=base, name=plain(name),
            marker_color=POLICY_COLOURS.get(name, SERIES[index % len(SERIES)]), customdata=list(values),
            hovertemplate=f"%{{x}}<br>{plain(name)}: %{{customdata:.3f}}<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(title_text=plain(title))
    figure.update_xaxes(type="category")
    if base:
        figure.add_hline(y=base, line_width=1, line_color=OTHER)
    return finished(figure, 380, barmode="group", bargap=0.25)


def beside(
    rows: Sequence[tuple[str, float, float | None, float | None, float | None]], title: str, unit: str
) -> dict[str, Any]:
    """For each (name, published, measured, low, high) a diamond, a point, and a line for the band; a band that is open
    on one side ends at the edge of the chart."""
    figure = go.Figure()
    values = [value for row in rows for value in row[1:] if value is not None]
    room = 0.06 * (max(values) - min(values)) or 0.1
    edges = min(values) - room, max(values) + room
    labels = [plain(row[0]) for row in rows]
    spans = [(label, row[3], row[4]) for label, row in zip(labels, rows, strict=True) if row[3:] != (None, None)]
    figure.add_bar(
        y=[label for label, _, _ in spans], orientation="h", name="band", marker_color=OTHER, opacity=0.45, width=0.5,
        base=[edges[0] if low is None else low for _, low, _ in spans], hoverinfo="skip",
        x=[(edges[1] if high is None else high) - (edges[0] if low is None else low) for _, low, high in spans],
    )  # fmt: skip
    for name, column, symbol, colour in (
        ("published", 1, "diamond-open", "#D55E00"),
        ("measured", 2, "circle", "#0072B2"),
    ):
        figure.add_scatter(
            x=[row[column] for row in rows], y=labels, mode="markers", name=name,
            marker={"symbol": symbol, "size": 10, "color": colour, "line": {"width": 2, "color": colour}},
            hovertemplate=f"%{{y}}<br>{name}: %{{x:.4g}} {unit}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title_text=f"{plain(title)} ({unit})", range=list(edges))
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=labels[::-1])
    return finished(figure, HEAD + 26 * len(rows), bargap=0.3)
