"""Blocks that copy engines of a CUDA GPU copy beside its GEMMs: to and from the host, or within the GPU's memory."""

import importlib
from collections import deque
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from .gpu_record import CopyKind

BLOCK_BYTES = 8 << 20
"""Of one copy: Python takes tens of microseconds to start it, and a bus of 50 GB/s 168 to move it."""
CACHES = 3
"""Blocks go round in so many times the cache that each comes from memory, or goes there."""
IN_FLIGHT = 4
"""Most blocks of a stream that are under way."""
STREAMS = 4
"""Of copies within the memory: those of one stream follow each other."""
_Start = Callable[[Any, Any, Any], None]
"""Starts a copy to the first block from the second, on a stream."""


class CopyStream:
    """Copies on a stream of their own, from block to block of two tensors of whole blocks; ``torch`` is the module."""

    def __init__(self, torch: Any, targets: Any, sources: Any, start: _Start) -> None:
        self._torch, self._targets, self._sources, self._start = torch, targets, sources, start
        self._stream = torch.cuda.Stream()
        self.begin()

    def begin(self) -> None:
        """Counts from here."""
        self._under_way: deque[Any] = deque()
        self._started = 0

    def advance(self, due: float) -> None:
        """Starts the next block if fewer than ``due`` bytes were started and few are under way."""
        if self._started * BLOCK_BYTES < due and self._still_under_way() < IN_FLIGHT:
            target, source = (blocks[self._started % len(blocks)] for blocks in (self._targets, self._sources))
            self._start(target, source, self._stream)
            event = self._torch.cuda.Event()
            event.record(self._stream)
            self._under_way.append(event)
            self._started += 1

    def done(self) -> int:
        """Blocks that are there."""
        return self._started - self._still_under_way()

    def _still_under_way(self) -> int:
        while self._under_way and self._under_way[0].query():
            self._under_way.popleft()
        return len(self._under_way)


class Copies:
    """Streams that read the GPU's memory and streams that write it, which may be the same."""

    def __init__(self, reading: Sequence[CopyStream], writing: Sequence[CopyStream]) -> None:
        self._reading, self._writing = reading, writing
        self._due = {stream: 1 / len(way) for way in (reading, writing) for stream in way}

    def begin(self) -> None:
        """Counts from here."""
        for stream in self._due:
            stream.begin()

    def advance(self, due: float) -> None:
        """Starts blocks where fewer than ``due`` bytes of a way were started."""
        for stream, share in self._due.items():
            stream.advance(due * share)

    def done(self) -> tuple[int, int]:
        """Bytes that were read of the GPU's memory, and written there."""
        done = {stream: stream.done() * BLOCK_BYTES for stream in self._due}
        return sum(done[stream] for stream in self._reading), sum(done[stream] for stream in self._writing)


def open_copies(torch: Any, kind: CopyKind, cache_bytes: int) -> Copies:
    """Copies beside a cache of that size. Raises ValueError if those within the memory cannot be had."""

    def on_gpu() -> Any:
        blocks = ceil(CACHES * cache_bytes / BLOCK_BYTES)
        return torch.empty(blocks, BLOCK_BYTES, dtype=torch.uint8, device="cuda")

    if kind == "memory":
        start = _engine_copy()
        streams = [CopyStream(torch, on_gpu(), on_gpu(), start) for _ in range(STREAMS)]
        return Copies(streams, streams)

    def on_host() -> Any:
        return torch.empty(1, BLOCK_BYTES, dtype=torch.uint8, pin_memory=True)

    def start_by_torch(target: Any, source: Any, stream: Any) -> None:
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)

    return Copies(
        [CopyStream(torch, on_host(), on_gpu(), start_by_torch)],
        [CopyStream(torch, on_gpu(), on_host(), start_by_torch)],
    )


def _engine_copy() -> _Start:
    """Copies within the memory that leave the CUs alone: the driver's batches are the one call that can ask for it."""
    try:
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise ValueError(
            f"copies within the GPU's memory need CUDA's Python bindings, which do not import ({error}): "
            "pip install 'opent3[gpu]', or measure with --copies host"
        ) from error
    attributes = driver.CUmemcpyAttributes()
    attributes.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    attributes.flags = int(driver.CUmemcpyFlags.CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)

    def start(target: Any, source: Any, stream: Any) -> None:
        targets, sources = ([driver.CUdeviceptr(block.data_ptr())] for block in (target, source))
        error = driver.cuMemcpyBatchAsync(
            targets, sources, [BLOCK_BYTES], 1, [attributes], [0], 1, driver.CUstream(stream.cuda_stream)
        )[0]
        if int(error) != 0:
            raise ValueError(
                f"the driver refuses copies within the GPU's memory ({error}): they need CUDA 12.8 or later; "
                "measure with --copies host"
            )

    return start
