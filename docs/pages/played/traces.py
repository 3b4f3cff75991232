"""The picture of a trace in docs/guides: ``python -m docs.pages.played.traces`` runs it, and draws what is in the file.

The file is read back through Perfetto's own messages, so that the picture shows what its viewer gets: tracks of two
neighbours, and the flows from a trigger to the link and to the neighbour.
"""

import hashlib
import os
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import matplotlib.pyplot as plt
import opent3
from matplotlib.axes import Axes
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from docs.pages import GUIDES

PICTURE = GUIDES / "traces.png"
SIZE = {"m": 256, "n": 256, "k": 512, "tp": 4}
SETTINGS: dict[str, object] = {"hardware.tracker_ways": 8}
"""Room for every tile, so that blocks fire by their tiles."""
SHOWN = (
    ("t3-mca GPU 1", ("GEMM stages", "triggers", "link out")),
    ("t3-mca GPU 0", ("link in", "triggers", "link out")),
)
"""Processes and their tracks, from above: GPU 1 sends to GPU 0."""
COUNTERS = ("DRAM GEMM reads", "DRAM RS reads", "DRAM RS writes", "CUs computing")
"""Of the second process."""
COLOURS = {"GEMM stages": "#4c78a8", "triggers": "#d55e00", "link out": "#e69f00", "link in": "#009e73"}
BOX: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6, "zorder": 2}
FLOW: dict[str, Any] = {"color": "#888888", "linewidth": 0.8, "alpha": 0.8, "zorder": 1}


@dataclass
class Lane:
    """A track as the file has it: slices (begin and end in ns, flows that go through it or end in it), values."""

    process: str
    name: str
    unit: str
    slices: list[tuple[int, int, set[int]]] = field(default_factory=list)
    values: list[tuple[int, float]] = field(default_factory=list)


def lanes(path: Path) -> list[Lane]:
    """All tracks of a trace."""
    processes: dict[int, str] = {}
    found: dict[int, Lane] = {}
    begun: dict[int, list[tuple[int, set[int]]]] = {}
    for packet in Trace.FromString(path.read_bytes()).packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                processes[track.uuid] = track.process.process_name
            else:
                unit = track.counter.unit_name if track.HasField("counter") else ""
                found[track.uuid] = Lane(processes[track.parent_uuid], track.name, unit)
        elif packet.HasField("track_event"):
            event, time = packet.track_event, packet.timestamp
            lane, flows = found[event.track_uuid], {*event.flow_ids, *event.terminating_flow_ids}
            if event.type == TrackEvent.TYPE_COUNTER:
                lane.values.append((time, event.double_counter_value))
            elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
                begun.setdefault(event.track_uuid, []).append((time, flows))
            elif event.type == TrackEvent.TYPE_SLICE_END:
                begin, going = begun[event.track_uuid].pop()
                lane.slices.append((begin, time, going))
            else:
                lane.slices.append((time, time, flows))
    return list(found.values())


def traced(path: Path) -> Path:
    """Runs what the picture shows, with its trace at ``path``."""
    work = opent3.custom_workload(**SIZE)
    opent3.run(work, "t3-mca", machine="toy", settings=SETTINGS, hardware="golden", trace=path)
    return path


def described(tracks: list[Lane]) -> str:
    """What the picture is of, written into it: a test sees by it that the picture is old."""
    return f"tracks with the digest {hashlib.sha256(repr(tracks).encode()).hexdigest()[:16]}"


def draw(tracks: list[Lane]) -> None:
    """Writes PICTURE."""
    figure, (above, *below) = plt.subplots(
        1 + len(COUNTERS), 1, sharex=True, figsize=(9.6, 6.6), layout="constrained",
        height_ratios=[3.4, *[0.7] * len(COUNTERS)],
    )  # fmt: skip
    places: dict[int, list[tuple[float, float]]] = {}
    names = [(process, name) for process, several in SHOWN for name in several]
    for row, (process, name) in enumerate(names):
        for lane in (lane for lane in tracks if (lane.process, lane.name) == (process, name)):
            _draw_slices(above, row, lane, places)
    for of_flow in places.values():
        for (begin, one), (other, two) in pairwise(sorted(of_flow)):
            above.plot([begin / 1e3, other / 1e3], [one, two], **FLOW)
    above.set_yticks(range(len(names)), [f"{process.removeprefix('t3-mca ')}: {name}" for process, name in names])
    above.set_ylim(len(names) - 0.4, -0.6)
    above.spines[["top", "right"]].set_visible(False)
    for axes, name in zip(below, COUNTERS, strict=True):
        (lane,) = (lane for lane in tracks if (lane.process, lane.name) == (SHOWN[1][0], name))
        times, values = zip(*lane.values, strict=True)
        axes.fill_between([time / 1e3 for time in times], values, step="post", color="#4c78a8", alpha=0.7, linewidth=0)
        axes.set_ylabel(f"{name}\n[{lane.unit}]", rotation=0, ha="right", va="center", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    below[-1].set_xlabel("us since GEMM launch")
    figure.savefig(PICTURE, dpi=120, metadata={"Software": None, "Description": described(tracks)})


def _draw_slices(axes: Axes, row: int, lane: Lane, places: dict[int, list[tuple[float, float]]]) -> None:
    """Boxes, or marks for instants; notes the begin and row of every slice of a flow in ``places``."""
    for begin, end, flows in lane.slices:
        if end > begin:
            axes.barh(row, (end - begin) / 1e3, 0.5, left=begin / 1e3, color=COLOURS[lane.name], **BOX)
        else:
            axes.plot(begin / 1e3, row, marker="v", color=COLOURS[lane.name], markersize=7, zorder=3)
        for flow in flows:
            places.setdefault(flow, []).append((begin, row))


@click.command()
def main() -> None:
    """Run, trace, and draw."""
    with TemporaryDirectory() as folder:
        draw(lanes(traced(Path(folder) / "run.pftrace")))
    click.echo(f"written: {os.path.relpath(PICTURE)}")


if __name__ == "__main__":
    main()
