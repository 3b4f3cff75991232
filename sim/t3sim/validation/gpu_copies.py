"""Blocks that copy engines of a CUDA GPU copy to and from the host, beside its GEMMs."""

from collections import deque
from math import ceil
from typing import Any

BLOCK_BYTES = 4 << 20
"""Of one copy: a bus of 50 GB/s moves it in 84 us, and Python starts it in a tenth of that."""
CACHES = 3
"""Blocks go round in so many times the cache that each comes from memory, or goes there."""
IN_FLIGHT = 4
"""Most blocks of a direction that are under way."""


class Copies:
    """Copies of one direction, on a stream of their own; ``torch`` is the module.

    On the host they are of one block of pinned memory, without which a copy would wait for the one before it.
    """

    def __init__(self, torch: Any, cache_bytes: int, *, to_host: bool) -> None:
        self._torch = torch
        self._stream = torch.cuda.Stream()
        host = torch.empty(1, BLOCK_BYTES, dtype=torch.uint8, pin_memory=True)
        count = max(1, ceil(CACHES * cache_bytes / BLOCK_BYTES))  # a driver may say that there is no cache
        gpu = torch.empty(count, BLOCK_BYTES, dtype=torch.uint8, device="cuda")
        self._targets, self._sources = (host, gpu) if to_host else (gpu, host)
        self.begin()

    def begin(self) -> None:
        """Counts from here."""
        self._under_way: deque[Any] = deque()
        self._started = 0

    def advance(self, due: float) -> None:
        """Starts the next block if fewer than ``due`` bytes were started and few are under way."""
        if self._started * BLOCK_BYTES >= due or self._still_under_way() >= IN_FLIGHT:
            return
        target, source = (blocks[self._started % len(blocks)] for blocks in (self._targets, self._sources))
        event = self._torch.cuda.Event()
        with self._torch.cuda.stream(self._stream):
            target.copy_(source, non_blocking=True)
            event.record()
        self._under_way.append(event)
        self._started += 1

    def done_bytes(self) -> int:
        """Of the blocks whose copies have finished."""
        return (self._started - self._still_under_way()) * BLOCK_BYTES

    def _still_under_way(self) -> int:
        while self._under_way and self._under_way[0].query():
            self._under_way.popleft()
        return len(self._under_way)
