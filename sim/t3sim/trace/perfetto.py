"""Tracks as a Perfetto trace: the bytes of protobuf messages, the same for the same tracks.

Format: https://perfetto.dev/docs/reference/synthetic-track-event; the messages are those of Perfetto's own package.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    CounterDescriptor,
    ProcessDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder, TraceProtoBuilder

from .tracks import Process, Slice, Track

SEQUENCE = 1
"""All packets are of one writer."""
BATCH = 10_000
"""Events that are in memory as messages at a time, which take several times what they do in a file."""
Event = tuple[int, int, Any, Slice | float | None]
"""Time in ns, track, type of event, and what begins, the value of a counter, or nothing where a slice ends."""


def write_trace(processes: Iterable[Process], file: IO[bytes]) -> None:
    """Writes the trace: what tracks there are, then their events by time."""
    builder = StreamingTraceProtoBuilder(file)
    uuid, events = 0, list[Event]()
    for process in processes:
        uuid += 1
        parent = uuid
        builder.write_packet(_described(_process(process, parent)))
        for rank, track in enumerate(process.tracks):
            uuid += 1
            builder.write_packet(_described(_track(track, uuid, parent, rank)))
            events += _events(track, uuid)
    events.sort(key=itemgetter(0))  # stable: events at one time keep their order
    for start in range(0, len(events), BATCH):
        batch = TraceProtoBuilder()
        for event in events[start : start + BATCH]:
            _fill(batch.add_packet(), *event)
        file.write(batch.serialize())


def _described(descriptor: TrackDescriptor) -> TracePacket:
    return TracePacket(trusted_packet_sequence_id=SEQUENCE, track_descriptor=descriptor)


def _process(process: Process, uuid: int) -> TrackDescriptor:
    return TrackDescriptor(
        uuid=uuid,
        process=ProcessDescriptor(pid=uuid, process_name=process.name),
        child_ordering=TrackDescriptor.EXPLICIT,
    )


def _track(track: Track, uuid: int, parent: int, rank: int) -> TrackDescriptor:
    """Tracks of one name are shown as one with several rows."""
    descriptor = TrackDescriptor(uuid=uuid, parent_uuid=parent, name=track.name, sibling_order_rank=rank)
    if track.unit:
        descriptor.counter.CopyFrom(CounterDescriptor(unit_name=track.unit))
    return descriptor


def _events(track: Track, uuid: int) -> Iterator[Event]:
    for time, value in track.values:
        yield time, uuid, TrackEvent.TYPE_COUNTER, value
    for item in track.slices:
        if track.instants:
            yield item.begin, uuid, TrackEvent.TYPE_INSTANT, item
        else:
            yield item.begin, uuid, TrackEvent.TYPE_SLICE_BEGIN, item
            yield item.end, uuid, TrackEvent.TYPE_SLICE_END, None


def _fill(packet: TracePacket, time: int, uuid: int, kind: Any, content: Slice | float | None) -> None:
    packet.timestamp = time
    packet.trusted_packet_sequence_id = SEQUENCE
    event = packet.track_event
    event.type = kind
    event.track_uuid = uuid
    if isinstance(content, Slice):
        event.name = content.name
        event.flow_ids.extend(content.flows)
        event.terminating_flow_ids.extend(content.ending)
        for name, value in content.details.items():
            detail = event.debug_annotations.add()
            detail.name = name
            if isinstance(value, str):
                detail.string_value = value
            else:
                detail.int_value = value
    elif content is not None:
        event.double_counter_value = content
