"""``timeline.json``: the timeline of every simulated GPU as numbers, for reports and for tools of one's own."""

import json
from collections.abc import Sized
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, model_validator

from t3sim import __version__
from t3sim.common.strict_record import StrictRecord

from .events import QUEUES
from .request import CAUSES, Cause, IntervalKind, Timeline

DIGITS = 6
"""Decimals of a fraction; more would say nothing and take most of the file."""
LONGEST_NS = 1e15
"""More than any run simulates."""


class SpanRecord(StrictRecord):
    """The GPU was in ``kind`` from ``start_ns`` to ``end_ns``."""

    kind: IntervalKind
    start_ns: float
    end_ns: float


class TriggerRecord(StrictRecord):
    """At ``time_ns`` a DMA block of ``chunk`` fired."""

    chunk: NonNegativeInt
    time_ns: float


class QueuesRecord(StrictRecord):
    """What waits when a bin begins, a value per bin: lines in the DRAM queues of all channels, mean and largest; bursts
    of both streams at the memory slices, and held until their chunk is live; tokens on their way to the tracker; DMA
    blocks that are ready or under way; bytes of packets for the link."""

    dram_mean: list[float]
    dram_largest: list[int]
    compute_bursts: list[int]
    communication_bursts: list[int]
    held_bursts: list[int]
    tokens: list[int]
    dma_blocks: list[int]
    link_bytes: list[int]


class GpuTimeline(StrictRecord):
    """One GPU. Lists have one value per bin: ``cu_busy`` the mean fraction of CUs that compute, ``dram_bytes`` by cause
    and ``link_bytes`` what moved, ``incoming_updates`` and ``local_updates`` lines. Format 1 has no ``queues``."""

    cu_busy: list[float]
    dram_bytes: dict[Cause, list[int]]
    link_bytes: list[int]
    incoming_updates: list[int]
    local_updates: list[int]
    queues: QueuesRecord | None = None
    intervals: list[SpanRecord]
    triggers: list[TriggerRecord]


class TimelineRecord(StrictRecord):
    """All of ``timeline.json``: bins of ``bin_ns`` from the launch of the GEMM on, as many on every GPU."""

    schema_version: Literal[1, 2] = Field(default=2, alias="schema")
    opent3: str = __version__
    bin_ns: float = Field(gt=0, le=LONGEST_NS)
    gpus: list[GpuTimeline] = Field(min_length=1)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        lengths = set()
        for gpu in self.gpus:
            if set(gpu.dram_bytes) != set(CAUSES):
                raise ValueError(
                    f"dram_bytes must have the causes {', '.join(CAUSES)}, not {', '.join(gpu.dram_bytes)}"
                )
            if (gpu.queues is None) != (self.schema_version == 1):
                raise ValueError("every GPU must have queues in format 2, and none in format 1")
            rows: list[Sized] = [
                gpu.cu_busy,
                gpu.link_bytes,
                gpu.incoming_updates,
                gpu.local_updates,
                *gpu.dram_bytes.values(),
                *(getattr(gpu.queues, name) for name in QUEUES if gpu.queues),
            ]
            lengths |= {len(row) for row in rows}
        if len(lengths) != 1:
            raise ValueError(
                f"every list must have one value per bin, not {', '.join(map(str, sorted(lengths)))} values"
            )
        return self

    @classmethod
    def of(cls, timeline: Timeline) -> Self:
        """The record of ``timeline``."""
        return cls(bin_ns=timeline.bin_ns, gpus=[_gpu(timeline, gpu) for gpu in range(len(timeline.cu_busy))])

    def text(self) -> str:
        """The JSON of the file, each GPU in a line; numbers one by one would be most of the file in line ends."""
        content = self.model_dump(by_alias=True, exclude={"gpus"})
        head = json.dumps(content, allow_nan=False).removesuffix("}")
        gpus = ",\n".join(json.dumps(gpu.model_dump(), allow_nan=False) for gpu in self.gpus)
        return f'{head}, "gpus": [\n{gpus}\n]}}\n'


def _gpu(timeline: Timeline, gpu: int) -> GpuTimeline:
    return GpuTimeline(
        cu_busy=np.round(timeline.cu_busy[gpu], DIGITS).tolist(),
        dram_bytes={cause: _whole(timeline.bytes[cause][gpu]) for cause in CAUSES},
        link_bytes=_whole(timeline.link_bytes[gpu]),
        incoming_updates=_whole(timeline.updates[gpu]),
        local_updates=_whole(timeline.local_updates[gpu]),
        queues=_queues(timeline, gpu),
        intervals=[
            SpanRecord(kind=item.kind, start_ns=item.start_ns, end_ns=item.end_ns)
            for item in timeline.intervals
            if item.gpu == gpu
        ],
        triggers=[
            TriggerRecord(chunk=item.chunk, time_ns=item.time_ns) for item in timeline.triggers if item.gpu == gpu
        ],
    )


def _queues(timeline: Timeline, gpu: int) -> QueuesRecord:
    rows = {name: values[gpu] for name, values in timeline.queues.items()}
    mean = np.round(rows["dram_mean"], DIGITS).tolist()
    return QueuesRecord(dram_mean=mean, **{name: _whole(rows[name]) for name in QUEUES if name != "dram_mean"})


def _whole(values: NDArray[np.float64]) -> list[int]:
    """Counts, which the engine keeps as integers."""
    found: list[int] = np.rint(values).astype(np.int64).tolist()
    return found
