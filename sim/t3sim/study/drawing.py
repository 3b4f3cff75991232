"""What the charts share: colours, bars with their values in rows below, and files that repeat byte for byte."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from t3sim.run.request import Policy
from t3sim.run.timeline import ALL_GATHER, GEMM, REDUCE_SCATTER, save_png

# Okabe and Ito's colours, distinct for colour-blind readers.
POLICY_COLOURS: Mapping[str, str] = {
    "ideal-overlap": "#999999",
    "ideal-overlap-nmc": "#444444",
    "t3": "#E69F00",
    "t3-mca": "#0072B2",
}
SPLIT_COLOURS: Mapping[str, str] = {"GEMM": GEMM, "reduce-scatter": REDUCE_SCATTER, "all-gather": ALL_GATHER}
DARK = "#333333"
GAP = 0.8
"""Room between groups, in bars' groups."""
FONT = 8.5
"""Points of the smallest text."""
LINE = 12
"""Points from one line of text below the axes to the next."""


def positions(groups: Sequence[str]) -> np.ndarray:
    """Where to draw a group of bars for each entry; entries of different groups stand apart."""
    where, at = [], 0.0
    for index, name in enumerate(groups):
        if index:
            at += 1.0 if groups[index - 1] == name else 1.0 + GAP
        where.append(at)
    return np.array(where)


def label_groups(axes: Axes, where: np.ndarray, labels: Sequence[str], groups: Sequence[str]) -> None:
    """Labels below the bars, and below them the name of each group."""
    axes.set_xticks(where, labels, fontsize=FONT)
    axes.tick_params(axis="x", length=0)
    for name in dict.fromkeys(groups):
        inside = [position for position, group in zip(where, groups, strict=True) if group == name]
        axes.annotate(name, (float(np.mean(inside)), 0), xycoords=("data", "axes fraction"), xytext=(0, -26),
                      textcoords="offset points", ha="center", va="top", fontsize=FONT, color=DARK)  # fmt: skip
    axes.set_xlim(where[0] - 0.8, where[-1] + 0.8)
    axes.spines[["top", "right"]].set_visible(False)


def speedup_bars(
    axes: Axes, where: np.ndarray, series: Mapping[Policy, Sequence[float]], title: str = "speedup"
) -> None:
    """One bar per series at each position, from 1 to its value; the axis says so."""
    width = 0.86 / len(series)
    for index, (name, values) in enumerate(series.items()):
        heights = np.asarray(values) - 1
        at = where + bar_offset(index, len(series))
        axes.bar(at, heights, width * 0.94, bottom=1, color=POLICY_COLOURS.get(name, "#009E73"), label=name)
    axes.axhline(1, color=DARK, linewidth=0.8)
    axes.margins(y=0.08)
    axes.set_ylabel(f"{title}\n(bars start at 1)")
    axes.spines[["top", "right"]].set_visible(False)


def bar_offset(index: int, series: int) -> float:
    """From a position to the middle of one of its bars."""
    return (index - (series - 1) / 2) * 0.86 / series


def value_rows(
    axes: Axes, where: np.ndarray, series: Mapping[Policy, Sequence[float]], digits: int = 2, *, above: int = 3
) -> None:
    """The values of each series as a row below the axes, under ``above`` lines of other text."""
    for row, (name, values) in enumerate(series.items()):
        down = -LINE * (above + row) - 6
        axes.annotate(name, (0, 0), xycoords="axes fraction", xytext=(-8, down), textcoords="offset points",
                      ha="right", va="top", fontsize=FONT, color=DARK)  # fmt: skip
        for x, value in zip(where, values, strict=True):
            axes.annotate(f"{value:.{digits}f}", (x, 0), xycoords=("data", "axes fraction"), xytext=(0, down),
                          textcoords="offset points", ha="center", va="top", fontsize=FONT, color=DARK)  # fmt: skip


def stacked_bars(
    axes: Axes, where: np.ndarray, parts: Mapping[str, Sequence[float]], colours: Mapping[str, str], width: float = 0.7,
    *, labelled: bool = True,
) -> None:  # fmt: skip
    """One bar of stacked parts at each position."""
    floor = np.zeros(len(where))
    for name, values in parts.items():
        axes.bar(where, values, width, bottom=floor, color=colours[name], label=name if labelled else None)
        floor += np.asarray(values)


def legend_above(axes: Axes, columns: int) -> None:
    """The legend over the axes, so that it hides nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, fontsize="small", frameon=False)


def save(figure: Figure, path: Path) -> None:
    """Writes ``path`` with the endings .png and .svg; the same figure gives the same bytes."""
    save_png(figure, path.with_suffix(".png"))
    with matplotlib.rc_context({"svg.hashsalt": "OpenT3"}):
        FigureCanvasSVG(figure).print_svg(path.with_suffix(".svg"), metadata={"Date": None, "Creator": "OpenT3"})
