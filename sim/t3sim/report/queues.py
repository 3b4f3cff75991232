"""What waits on a GPU over time, as tracks: the queues that one axis shows, in its unit."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t3sim.common.units import BYTES, unit_of
from t3sim.run.events import QUEUE_TITLES, Queue
from t3sim.run.timeline import COLOURS, EXPOSED
from t3sim.run.timeline_record import QueuesRecord

from .figures import OTHER

TRACKS: dict[str, dict[Queue, str]] = {
    "DRAM queue": {"dram_largest": OTHER, "dram_mean": COLOURS["gemm_read"]},
    "slices": {
        "compute_bursts": COLOURS["gemm_read"],
        "communication_bursts": COLOURS["rs_read"],
        "held_bursts": EXPOSED,
    },
    "tracker": {"tokens": COLOURS["ag_read"]},
    "DMA": {"dma_blocks": COLOURS["rs_read"]},
    "link queue": {"link_bytes": OTHER},
}
"""Title of an axis -> the queues on it, with their colours."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """An axis of ``unit``: (name, a value per bin, colour) of each line on it."""

    title: str
    unit: str
    lines: list[tuple[str, NDArray[np.float64], str]]


def queue_tracks(queues: QueuesRecord | None) -> Iterator[Track]:
    """The tracks of a GPU; none of a record that has no queues."""
    if queues is None:
        return
    for title, colours in TRACKS.items():
        values = {queue: np.array(getattr(queues, queue), dtype=np.float64) for queue in colours}
        unit = QUEUE_TITLES[next(iter(colours))][1]
        if unit == "bytes":
            size = unit_of(BYTES, [max(row.max(initial=0) for row in values.values())])
            unit, values = size.name, {queue: row / size.size for queue, row in values.items()}
        lines = [(QUEUE_TITLES[queue][0], row, colours[queue]) for queue, row in values.items()]
        yield Track(title=title, unit=unit, lines=lines)
