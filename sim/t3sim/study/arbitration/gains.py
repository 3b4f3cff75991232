"""Every GEMM on the machine as it is: what its sublayer gains by arbitration, and how far it is from its bounds."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Group, RenderableType
from rich.text import Text

from t3sim.common.fitted_table import FittedTable
from t3sim.study.drawing import DARK, legend_above, save
from t3sim.study.suite import OVERLAPPED

from .record import ArbitrationMap, Cell, Place

TOLERANCE = 0.001
"""Less than this part of the time is no loss."""
NEAR = 0.02
"""A sublayer at most this part of the time above its bound has little left to gain by arbitration."""

COLUMNS: dict[str, Callable[[Cell], str]] = {
    "speedup, t3": lambda cell: f"{cell.policies['t3'].speedup:.3f}",
    "t3-mca": lambda cell: f"{cell.policies['t3-mca'].speedup:.3f}",
    "gain, %": lambda cell: f"{100 * (cell.gain - 1):+.2f}",
    "of one launch, ±": lambda cell: f"{100 * cell.spread:.2f}" if cell.launches > 1 else "-",
    "above the bound, %": lambda cell: f"{100 * cell.above_bound:+.1f}",
    "stages": lambda cell: f"{cell.policies['t3'].gemm_stages or '-'}",
    "above the pipeline, %": lambda cell: "-" if cell.above_pipeline is None else f"{100 * cell.above_pipeline:+.1f}",
    "GEMM, t3": lambda cell: f"{cell.pair[0]:.3f}",
    "GEMM, t3-mca": lambda cell: f"{cell.pair[1]:.3f}",
    "CUs wait longer for loads, %": lambda cell: f"{100 * cell.later('loads'):+.1f}",
    "for stores, %": lambda cell: f"{100 * cell.later('stores'):+.1f}",
}
"""Figures of a GEMM, means over its launches; times are over those of the sequential run. The gain of one launch has a
standard deviation. Waits are those under t3-mca less the sequential ones, of the sequential GEMM's time."""


def worst_first(record: ArbitrationMap) -> list[Place]:
    """The GEMMs on the machine as it is; the one that arbitration costs most comes first, of those to which it does
    nothing the one that is farthest from its bound."""
    base = record.machines[0]
    places = (Place(base, *both) for both in zip(record.titles, base.cells, strict=True))
    return sorted(places, key=lambda place: (place.cell.gain, -place.cell.above_bound, place.gemm))


def rows(record: ArbitrationMap) -> Iterator[tuple[str, ...]]:
    """A row of figures for each GEMM, in the order of :func:`worst_first`."""
    for _, gemm, cell in worst_first(record):
        yield (gemm, *(value(cell) for value in COLUMNS.values()))


def verdict(record: ArbitrationMap, among: Collection[str] | None = None) -> str:
    """How many GEMMs lose by arbitration, how much at most, and how many are near their bound: of all, or of those
    ``among`` which only."""
    cells = [place.cell for place in worst_first(record) if among is None or place.gemm in among]
    losses = [1 - cell.gain for cell in cells if cell.gain < 1 - TOLERANCE]
    gains = [cell.gain - 1 for cell in cells if cell.gain > 1 + TOLERANCE]
    lost = f"{len(losses)} (at most {max(losses):.2%})" if losses else "0"
    gained = f"{len(gains)} (at most {max(gains):.2%})" if gains else "0"
    return (
        f"t3-mca against t3, GEMMs in all: {len(cells)}; of them changed by arbitration: "
        f"{sum(cell.differs for cell in cells)}; with a loss above {TOLERANCE:.1%}: {lost}{_for_nothing(cells)}; with "
        f"a gain above {TOLERANCE:.1%}: {gained}; at most {NEAR:.0%} above the bound, max(GEMM, reduce-scatter) + "
        f"all-gather of the sequential run: {sum(cell.above_bound <= NEAR for cell in cells)}{_near_pipeline(cells)}."
    )


def _near_pipeline(cells: Sequence[Cell]) -> str:
    """How many are near the pipeline of their stages; nothing of records from before it was kept."""
    above = [cell.above_pipeline for cell in cells if cell.above_pipeline is not None]
    if not above:
        return ""
    return (
        f"; at most {NEAR:.0%} above a pipeline of the GEMM's stages, which takes min(GEMM, reduce-scatter) / stages "
        f"longer than that: {sum(value <= NEAR for value in above)}"
    )


def _for_nothing(cells: Sequence[Cell]) -> str:
    """Which losses are no more than what a run changes for nothing: two standard errors of the mean over launches."""
    launches = cells[0].launches
    if launches == 1:
        return ""
    sure = sum(cell.gain + 2 * cell.spread / math.sqrt(launches) < 1 - TOLERANCE for cell in cells)
    return f", {sure} of them by more than what {launches} launches that differ by some ns explain"


def gains_table(record: ArbitrationMap) -> RenderableType:
    """The verdict, and a row for each GEMM, the worst first."""
    table = FittedTable("GEMM", *COLUMNS, text=["GEMM"])
    for row in rows(record):
        table.add_row(*row)
    return Group(Text(verdict(record), style="bold"), table)


def draw_gains(record: ArbitrationMap, folder: Path) -> None:
    """Writes ``gains`` as PNG and SVG: time under t3 and under t3-mca of every GEMM, over its bound."""
    save(gains(record), folder / "gains")


def gains(record: ArbitrationMap) -> Figure:
    """A line for each GEMM, the one that is farthest from its bound on top."""
    places = sorted(worst_first(record), key=lambda place: place.cell.above_bound)
    figure = Figure(figsize=(7.5, 1.6 + 0.2 * len(places)), layout="constrained")
    axes = figure.subplots()
    height = np.arange(len(places))
    for policy, marker in zip(OVERLAPPED, ("o", "|"), strict=True):
        times = [cell.ideal / cell.policies[policy].speedup for _, _, cell in places]
        axes.plot(times, height, marker, markersize=6 if policy == "t3" else 11, markeredgewidth=1.8, label=policy)
    pipelines = [math.nan if cell.pipeline is None else cell.ideal / cell.pipeline for _, _, cell in places]
    axes.plot(pipelines, height, "x", color=DARK, markersize=5, label="a pipeline of the GEMM's stages")
    axes.axvline(1, color=DARK, linewidth=0.8, label="max(GEMM, reduce-scatter) + all-gather, sequential")
    axes.set_yticks(height, [place.gemm for place in places], fontsize=8)
    axes.set(ylim=(-0.7, len(places) - 0.3), xlabel="time of the sublayer over its bound")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    legend_above(axes, 2)
    return figure
