"""Random inputs for a MemorySlice."""

import random

from lockstep import Lockstep
from stimulus import Stimulus
from t3hdl.config import NO_LIMIT, T3Config


class Slice(Stimulus):
    """Two streams, a DRAM queue that fills and drains, updates performed in any order."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.in_memory: list[int] = []

    def plan_job(self, context: int, first: int, end: int) -> None:
        self.range_writes(context)

    def drive_part(self) -> None:
        if "dram" in self.bench.moved:
            self.in_memory.append(self.bench.moved["dram"])
        for stream in ("compute_read", "compute_write", "comm_read", "comm_write"):
            self.offer(stream, self.request)
        for stream in ("dram", "token"):
            self.accept(stream)
        done = None
        if self.in_memory and self.chance(self.rate("done")):
            done = self.in_memory.pop(self.rng.randrange(min(4, len(self.in_memory))))
        self.pulse("update_done", done)
        if self.chance(0.1 * self.activity):
            self.bench.set("occupancy", self.rng.choice((0, 3, 39, 126, 127, self.rng.randrange(128))))
        if self.chance(0.01):
            self.bench.set("threshold", self.rng.choice((NO_LIMIT, 5, 0)))
            self.bench.set("measure", self.chance(0.5))
