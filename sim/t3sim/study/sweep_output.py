"""Table and chart of a sweep."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Group, RenderableType
from rich.text import Text

from t3sim.common.fitted_table import FittedTable

from .drawing import FONT, POLICY_COLOURS, legend_above, save, speedup_bars, value_rows
from .sweep import Geomeans, SweepRecord, SweptVariant

TRAFFIC_TITLES = {"gemm_reads": "GEMM reads, fewer by", "data_movement": "data movement"}
"""Columns that are no policy's speedup: of t3-mca, relative to sequential."""
LETTER = 0.085
"""Inches for a letter of a label, with room."""
WIDEST = 16
"""Inches of a row of machines."""


def sweep_table(record: SweepRecord) -> RenderableType:
    """Geometric means of every variant; from the second on, how they differ from the first."""
    first = record.variants[0]
    names = [*first.geomeans.speedups, *(name for name in TRAFFIC_TITLES if getattr(first.geomeans, name) is not None)]
    why = any(variant.why for variant in record.variants)
    titles = (TRAFFIC_TITLES.get(name, name) for name in names)
    table = FittedTable("machine", *titles, *(["why"] if why else []), text=["why"])
    for index, variant in enumerate(record.variants):
        cells = [_cell(variant, name, with_change=index > 0) for name in names]
        table.add_row(variant.name, *cells, *([variant.why] if why else []))
    return Group(Text("geometric means over the sublayers (and change against the first line)", style="bold"), table)


def _value(means: Geomeans, name: str) -> float:
    values: dict[str, float] = {str(policy): gain for policy, gain in means.speedups.items()}
    return values[name] if name in values else float(getattr(means, name))


def _cell(variant: SweptVariant, name: str, *, with_change: bool) -> str:
    text = f"{_value(variant.geomeans, name):.3f}"
    return f"{text} ({variant.changes[name]:+5.1f} %)" if with_change else text


def draw_sweep(record: SweepRecord, path: Path) -> None:
    """Writes the geometric means of every machine as bars, PNG and SVG: a row of charts, or several of equal scale."""
    variants = record.variants
    lines = [line for item in variants for line in item.name.split(", ")]
    policies = len(variants[0].geomeans.speedups)
    width = max(0.9, 0.3 * policies, LETTER * max(map(len, lines)))
    in_a_row = min(len(variants), max(1, int(WIDEST / width)))
    starts = range(0, len(variants), in_a_row)
    figure = Figure(figsize=(3 + in_a_row * width, 4.2 * len(starts)), layout="constrained")
    figure.suptitle("Geometric mean of speedups over sequential, by machine", fontsize="medium")
    charts = np.atleast_1d(figure.subplots(len(starts), 1, sharey=True))
    for axes, start in zip(charts, starts, strict=True):
        _draw_means(axes, variants[start : start + in_a_row])
        axes.set_xlim(-0.7, in_a_row - 0.3)
    legend_above(charts[0], policies)
    save(figure, path)


def _draw_means(axes: Axes, variants: Sequence[SweptVariant]) -> None:
    """The geometric means of some machines, each with its values below."""
    labels = [item.name.replace(", ", "\n") for item in variants]
    where = np.arange(len(variants), dtype=float)
    means = {name: [item.geomeans.speedups[name] for item in variants] for name in variants[0].geomeans.speedups}
    speedup_bars(axes, where, means)
    axes.set_xticks(where, labels, fontsize=FONT)
    value_rows(axes, where, means, 3, above=1 + max(label.count("\n") + 1 for label in labels))


def draw_sensitivity(record: SweepRecord, path: Path) -> None:
    """Writes how every assumption moves the geometric means: one panel per figure, the strongest on top."""
    base, variants = record.variants[0], record.variants[1:]
    names = list(base.changes)
    order = sorted(variants, key=lambda item: max(abs(item.changes[name]) for name in base.geomeans.speedups))
    height = 1.6 + 0.23 * len(order)
    figure = Figure(figsize=(2.5 + 2.2 * len(names), height), layout="constrained")
    figure.suptitle("How each assumption moves the geometric means (change in percent)", fontsize="medium")
    rows = np.arange(len(order))
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(names), sharey=True)), names, strict=True):
        changes = [item.changes[name] for item in order]
        axes.barh(rows, changes, 0.7, color=POLICY_COLOURS.get(name, "#009E73"))
        axes.axvline(0, color="#333333", linewidth=0.8)
        axes.set_title(f"{TRAFFIC_TITLES.get(name, name)}\nbase {_value(base.geomeans, name):.3f}", fontsize="small")
        _number(axes, rows, changes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="both", labelsize="small")
        axes.set_yticks(rows, [item.name for item in order])
        axes.margins(y=0.01)
    save(figure, path)


def _number(axes: Axes, rows: np.ndarray, changes: Sequence[float]) -> None:
    """Writes each change beside its bar, and makes room for it."""
    reach = max(1.0, *(abs(change) for change in changes))
    axes.set_xlim(-1.6 * reach, 1.6 * reach)
    for row, change in zip(rows, changes, strict=True):
        axes.annotate(f"{change:+.1f}", (change, row), xytext=(3 if change >= 0 else -3, 0), va="center",
                      textcoords="offset points", ha="left" if change >= 0 else "right", fontsize=FONT)  # fmt: skip
