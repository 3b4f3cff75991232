"""Random inputs for the OccupancyMonitor."""

import random

from t3hdl.config import T3Config
from t3hdl.interface.layouts import BACKLOG_BITS

from tb.lockstep import Lockstep
from tb.stimulus.base import Stimulus

SERVED = (1 << 24) - 1
"""The highest count of a slice."""


class Monitor(Stimulus):
    """Slices that were busy for a random part of the first stage, or for a part at which a class begins."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.served = [0] * config.slices
        self.hold = 25
        self.started = 0

    def drive_part(self) -> None:
        # Before the first stage has ended a tile ends it; afterwards none matters.
        self.bench.set("tile_done_valid", self.chance(0.02 if self.bench.get("measure") else 0.6))
        if self.chance(0.1):
            self.bench.set("backlog", self.rng.choice((0, 1, 2, 3, 5, self.rng.getrandbits(BACKLOG_BITS))))
        if self.chance(0.05):
            self.bench.set("comm_seen", self.chance(0.2))
        if self.bench.get("measure"):
            if self.chance(0.03):
                self.now += self.rng.getrandbits(self.rng.randrange(26))  # stages as long as counts are wide
            share = self.rng.choice((0, 1, 2, 3, 4))  # eighths of the cycles; a grant is two bus cycles
            mean = min(SERVED // 2, (self.now - self.started) * share // 8)
            few = self.chance(0.5)  # then the sum is beside the bound of two classes
            self.served = [
                mean + self.rng.randrange(2) if few else self.rng.randrange(2 * mean + 2) for _ in self.served
            ]
        else:
            self.started = self.now
            self.bench.set("served", self.served[self.bench.get("select") % self.config.slices])
