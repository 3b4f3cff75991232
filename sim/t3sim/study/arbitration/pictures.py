"""The map as pictures: what every change and pair of changes makes of arbitration, and all GEMMs of all machines."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure

from t3sim.study.drawing import DARK, FONT, legend_above, save

from .record import IMPLIED_PAIR, ArbitrationMap, Cell
from .table import is_pair

CELL = 0.5
"""Inches of a change in a heat map."""
LEAST = 0.02
"""A colour scale reaches at least so far from 1, so that nothing looks like much."""
NAMES = 10.5
"""Points of the changes' names, which a reader looks for in a wide picture."""
NOT_A_PAIR = "\u2013"
"""In the square of two changes that no machine can have both of."""
MARKERS = "os^Dv<>pPX*h"
NAMED = 6
"""Places that are named where all are shown."""


def draw_map(record: ArbitrationMap, folder: Path) -> None:
    """Writes what every GEMM gains on every machine (``gain``) and the pairs of all (``pairs``), as PNG and SVG; and,
    if changes were made in pairs, a heat map of them for every GEMM (``worth-GEMM``)."""
    if any(is_pair(machine) for machine in record.machines):
        for index, point in enumerate(record.titles):
            save(heat_maps(record, index), folder / f"worth-{re.sub(r'[^a-z0-9]+', '-', point.lower())}")
    save(gain_map(record), folder / "gain")
    save(pairs(record), folder / "pairs")


def gain_map(record: ArbitrationMap) -> Figure:
    """What arbitration gains every GEMM on every machine, but for pairs of changes."""
    machines = [machine for machine in record.machines if not is_pair(machine)]
    cells = np.array([[100 * (cell.gain - 1) for cell in machine.cells] for machine in machines])
    size = CELL * len(record.gemms), CELL * 0.6 * len(machines)
    figure = Figure(figsize=(size[0] + 5, size[1] + 2), layout="constrained")
    axes = figure.subplots()
    reach = max(100 * LEAST, float(np.abs(cells).max()))
    axes.imshow(cells, cmap="PuOr_r", norm=TwoSlopeNorm(0, -reach, reach), aspect="auto")
    scale = Normalize(0, reach)
    for (row, column), value in np.ndenumerate(cells):
        colour = "white" if scale(abs(value)) > 0.7 else DARK
        axes.text(column, row, f"{value:+.1f}", ha="center", va="center", fontsize=FONT, color=colour)
    axes.set_xticks(range(len(record.gemms)), record.titles, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(machines)), [machine.name for machine in machines])
    axes.set_title(f"What a sublayer gains by arbitration on {record.machine}:\ntime under t3 over t3-mca, less 1 (%)")
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.tick_params(length=0)
    return figure


def heat_maps(record: ArbitrationMap, index: int) -> Figure:
    """Of GEMM ``index``: what contention costs, what arbitration is worth, and what the whole sublayer gains."""
    changes = [name for names in record.singles.values() for name in names]
    values: dict[str, Callable[[Cell], float]] = {
        "what contention costs:\nGEMM under t3 over sequential": lambda cell: cell.pair[0],
        "what arbitration is worth:\nGEMM under t3 over t3-mca": lambda cell: cell.worth,
        "what the sublayer gains:\ntime under t3 over t3-mca": lambda cell: cell.gain,
    }
    size = CELL * len(changes)
    figure = Figure(figsize=(3 * (size + 1.6), size + 2.2), layout="constrained")
    base = record.machines[0].cells[index]
    figure.suptitle(
        f"{record.titles[index]} on machine {record.machine}: every change alone (diagonal) and every pair "
        f"({NOT_A_PAIR}: two values of one parameter)",
        fontsize="x-large",
    )
    for axes, (title, value) in zip(figure.subplots(1, 3), values.items(), strict=True):
        cells = np.full((len(changes), len(changes)), np.nan)
        for row, first in enumerate(changes):
            for column, second in enumerate(changes[: row + 1]):
                machine = record.at({first, second})
                if machine is not None:
                    cells[row, column] = value(machine.cells[index])
        _heat_map(axes, cells, changes)
        axes.set_title(f"{title}\nmachine as it is: {value(base):.3f}", fontsize="large", loc="left")
    return figure


def _heat_map(axes: Axes, cells: np.ndarray, changes: list[str]) -> None:
    """A square for each pair that was simulated, with its value; 1 is white."""
    reach = max(LEAST, float(np.nanmax(np.abs(cells - 1))))
    axes.imshow(cells, cmap="PuOr_r", norm=TwoSlopeNorm(1, 1 - reach, 1 + reach))
    scale = Normalize(0, reach)
    for (row, column), value in np.ndenumerate(cells):
        if column <= row:
            text = NOT_A_PAIR if np.isnan(value) else f"{value:.3f}"
            colour = "white" if scale(abs(value - 1)) > 0.7 else DARK
            axes.text(column, row, text, ha="center", va="center", fontsize=FONT, color=colour)
    axes.set_xticks(range(len(changes)), changes, rotation=45, ha="right", rotation_mode="anchor", fontsize=NAMES)
    axes.set_yticks(range(len(changes)), changes, fontsize=NAMES)
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.tick_params(length=0)


def pairs(record: ArbitrationMap) -> Figure:
    """Every GEMM on every machine: the GEMM under t3-mca over that under t3, with the implied pair."""
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    figure.suptitle(
        f"Every GEMM on machine {record.machine} and its changes; the sequential GEMM is 1\n"
        "(named: where arbitration is worth most)",
        fontsize="medium",
    )
    axes = figure.subplots()
    for index, point in enumerate(record.titles):
        found = np.array([machine.cells[index].pair for machine in record.machines])
        axes.plot(*found.T, MARKERS[index % len(MARKERS)], markersize=4, alpha=0.7, label=point)
    t3, mca = np.array([cell.pair for *_, cell in record.places()]).T
    least, most = min(t3.min(), mca.min(), 1), max(t3.max(), mca.max(), IMPLIED_PAIR[0])
    ends = least - 0.02, most + 0.02
    axes.plot(ends, ends, color=DARK, linewidth=0.8, label="arbitration is worth nothing")
    best = sorted(record.places(), key=lambda place: place.cell.worth)[-NAMED:]
    names = {tuple(round(value, 2) for value in cell.pair): (machine.name, cell.pair) for machine, _, cell in best}
    for name, pair in names.values():  # of those that lie on each other the best alone has its name
        axes.annotate(name, pair, xytext=(5, -3), textcoords="offset points", fontsize=FONT - 1.5)
    axes.plot(*IMPLIED_PAIR, "*", markersize=16, color="#D55E00", label="what the published speedups need")
    axes.set(xlim=ends, ylim=ends, xlabel="GEMM under t3", ylabel="GEMM under t3-mca", aspect="equal")
    axes.spines[["top", "right"]].set_visible(False)
    legend_above(axes, 2)
    return figure
