"""Traces read back through Perfetto's own messages, as tracks that tests can count on."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


@dataclass
class ReadSlice:
    """A slice or, if it has no duration, perhaps an instant."""

    name: str
    begin: int
    end: int
    details: dict[str, int | str]
    flows: list[int]
    ending: list[int]


@dataclass
class ReadTrack:
    """A track of one process: slices, and values of a counter with its unit."""

    process: str
    name: str
    unit: str = ""
    slices: list[ReadSlice] = field(default_factory=list)
    values: list[tuple[int, float]] = field(default_factory=list)

    @property
    def integral(self) -> float:
        """Of a rate, over time in ns."""
        return sum(
            value * (end - begin) for (begin, value), (end, _) in zip(self.values, self.values[1:], strict=False)
        )


def read_trace(path: Path) -> list[ReadTrack]:
    """All tracks of a trace, in its order. Fails if a slice ends that has not begun, or does not end, or if the times
    of a track go back."""
    trace = Trace.FromString(path.read_bytes())
    processes: dict[int, str] = {}
    tracks: dict[int, ReadTrack] = {}
    open_slices: dict[int, list[ReadSlice]] = defaultdict(list)
    latest: dict[int, int] = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            found = packet.track_descriptor
            if found.HasField("process"):
                processes[found.uuid] = found.process.process_name
            else:
                unit = found.counter.unit_name if found.HasField("counter") else ""
                tracks[found.uuid] = ReadTrack(processes[found.parent_uuid], found.name, unit)
        elif packet.HasField("track_event"):
            event, time = packet.track_event, packet.timestamp
            track = tracks[event.track_uuid]
            assert time >= latest.get(event.track_uuid, 0), f"{track.name} goes back"
            latest[event.track_uuid] = time
            if event.type == TrackEvent.TYPE_COUNTER:
                track.values.append((time, event.double_counter_value))
            elif event.type == TrackEvent.TYPE_SLICE_END:
                open_slices[event.track_uuid].pop().end = time
            else:
                details = {
                    item.name: item.string_value if item.HasField("string_value") else item.int_value
                    for item in event.debug_annotations
                }
                made = ReadSlice(
                    event.name, time, time, details, list(event.flow_ids), list(event.terminating_flow_ids)
                )
                track.slices.append(made)
                if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                    open_slices[event.track_uuid].append(made)
    assert not any(open_slices.values())
    return list(tracks.values())
