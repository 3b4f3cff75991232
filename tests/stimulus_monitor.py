"""Random inputs for the OccupancyMonitor."""

import random

from lockstep import Lockstep
from stimulus import Stimulus
from t3hdl.config import T3Config


class Monitor(Stimulus):
    """Slices that were busy for a random part of the first stage."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.served = [0] * config.slices

    def drive_part(self) -> None:
        # Before the first stage has ended a tile ends it; afterwards none matters.
        self.bench.set("tile_done_valid", self.chance(0.02 if self.bench.get("measure") else 0.6))
        if self.chance(0.05):
            self.bench.set("comm_seen", self.chance(0.2))
        if self.bench.get("measure"):
            share = self.rng.choice((0, 1, 2, 3, 4))  # eighths of the cycles; a grant is two bus cycles
            shift = self.rng.choice((0, 0, 0, 6, 18))  # some in a long stage, of which the sum has all bits
            self.served = [self.rng.randrange(6 * share + 1) << shift for _ in self.served]
        if not self.bench.get("measure"):
            self.bench.set("served", self.served[self.bench.get("select") % self.config.slices])
