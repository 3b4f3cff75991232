"""The picture of waves in docs/guides: ``python -m docs.pages.played.waves`` records them again, and draws them.

A toy run's first trigger fires: signals at ports, and within parts, as ``t3 waves`` writes them. The signals are chosen
here; one that is gone is a KeyError.
"""

import os
from dataclasses import replace
from typing import Any

import click
import matplotlib.pyplot as plt
import opent3
from matplotlib.axes import Axes
from t3sim.run.request import RunRequest
from t3sim.waves.hierarchy import waveform
from t3sim.waves.record import Window, record, trigger_cycle
from t3sim.waves.selection import part_instances
from t3sim.waves.waveform import Waveform

from docs.pages import DOCS

PICTURE = DOCS / "guides" / "waves.png"
SIZE = {"m": 256, "n": 64, "k": 64, "tp": 4}
BEFORE, BEHIND = 11, 5
"""Clocks that are shown before the trigger, and from it on: the chunk is complete nine clocks before it."""
SHOWN = (
    ("clk", "clk"),
    ("tracker", None),
    ("tile_done_valid", "tracker.tile_done_valid"),
    ("tile_done.row", "tracker.tile_done.row"),
    ("chunk_done_valid", "tracker.chunk_done_valid"),
    ("trigger, within", None),
    ("core.flush_take", "trigger.t3_trigger.core.flush_take"),
    ("walker.number", "trigger.t3_trigger.core.walker.number"),
    ("core.push", "trigger.t3_trigger.core.push"),
    ("core.waiting", "trigger.t3_trigger.core.waiting"),
    ("core.issue", "trigger.t3_trigger.core.issue"),
    ("trigger", None),
    ("command.valid", "trigger.command.valid"),
    ("command.ready", "trigger.command.ready"),
    ("command.payload.row", "trigger.command.payload.row"),
    ("triggers", "trigger.triggers"),
)
"""Name in the picture, and path below the unit; without one it is a heading."""
HEIGHT = 0.62
LINE: dict[str, Any] = {"color": "#2a7f3f", "linewidth": 1.3}
BUS: dict[str, Any] = {"edgecolor": "#1f5fa8", "facecolor": "#e8f0fa", "linewidth": 1.2}
UNKNOWN: dict[str, Any] = {"edgecolor": "#b0b0b0", "facecolor": "#f0f0f0", "linewidth": 1.0, "hatch": "////"}


def request_shown() -> RunRequest:
    """The run."""
    (request,) = opent3.requests_of(opent3.custom_workload(**SIZE), ("t3-mca",), machine="toy", hardware="rtl")
    return request


def window_shown(request: RunRequest) -> Window:
    """Clocks around the first trigger of GPU 0."""
    fires = trigger_cycle(replace(request, hardware="golden"), 0, 1, lambda progress: None)
    return Window(first=fires - BEFORE, last=fires + BEHIND)


def described(window: Window) -> str:
    """What the picture is of, written into it: a test sees by it that the picture is old."""
    return f"clocks {window.first} to {window.last}"


def recorded() -> tuple[Window, Waveform]:
    """The waves of GPU 0's tracker and trigger, of compiled RTL with internal signals."""
    request = request_shown()
    parts, window = part_instances("tracker,trigger", request.machine.hardware.config()), window_shown(request)
    return window, waveform(record(request, 0, parts, window, lambda progress: None, internals=True))


def spans(of: Waveform, number: int) -> list[tuple[float, float, int | None]]:
    """Begin and end in ns, and value, of each stretch in which a variable is the same."""
    behind = ((time, value) for time, changed, value in of.changes if changed == number)
    at: list[tuple[int, int | None]] = [(of.begin, of.first[number]), *behind]
    ends = [*(time for time, _ in at[1:]), of.end]
    return [(time / 1000, end / 1000, value) for (time, value), end in zip(at, ends, strict=True)]


def draw_signal(axes: Axes, row: float, bits: int, found: list[tuple[float, float, int | None]]) -> None:
    """A line for one bit, boxes with values for several; hatched where the value means nothing."""
    slope = 0.15
    for begin, end, value in found:
        if value is None:
            axes.fill_between([begin, end], row, row + HEIGHT, **UNKNOWN)
        elif bits > 1:
            corners = [begin, begin + slope, end - slope, end, end - slope, begin + slope]
            middle, top = row + HEIGHT / 2, row + HEIGHT
            axes.fill(corners, [middle, top, top, middle, row, row], **BUS)
            if end - begin >= 0.9:
                axes.text((begin + end) / 2, middle, str(value), ha="center", va="center", fontsize=8)
    if bits == 1:
        edges = [(time, value) for begin, end, value in found if value is not None for time in (begin, end)]
        axes.plot([time for time, _ in edges], [row + HEIGHT * value for _, value in edges], **LINE)


def draw(window: Window, of: Waveform) -> None:
    """Writes PICTURE."""
    numbers = {".".join(variable.path[2:]): number for number, variable in enumerate(of.variables)}
    figure, axes = plt.subplots(figsize=(9.6, 5.4), layout="constrained")
    for row, (label, path) in enumerate(reversed(SHOWN)):
        if path is None:
            axes.text(of.begin / 1000 - 0.2, row + HEIGHT / 2, label, ha="right", va="center", weight="bold")
            continue
        number = numbers[path]
        axes.text(of.begin / 1000 - 0.2, row + HEIGHT / 2, label, ha="right", va="center", family="monospace")
        draw_signal(axes, row, of.variables[number].bits, spans(of, number))
    axes.set(xlim=(of.begin / 1000, of.end / 1000), ylim=(-0.3, len(SHOWN)), yticks=[], xlabel="ns since GEMM launch")
    clocks = range(of.begin // 1000, of.end // 1000 + 1)
    axes.set_xticks(clocks[::2], minor=False)
    axes.set_xticks(clocks, minor=True)
    axes.grid(which="both", axis="x", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["left", "right", "top"]].set_visible(False)
    figure.savefig(PICTURE, dpi=120, metadata={"Software": None, "Description": described(window)})


@click.command()
def main() -> None:
    """Record and draw."""
    draw(*recorded())
    click.echo(f"written: {os.path.relpath(PICTURE)}")


if __name__ == "__main__":
    main()
