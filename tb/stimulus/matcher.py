"""Random inputs for a RangeMatcher."""

import random

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind
from t3hdl.interface.words import pack

from tb.lockstep import Lockstep
from tb.stimulus.ranges import REGION, Ranges


class Matcher(Ranges):
    """Store rows against ranges and chunks; ``chunks`` has the rectangle of tiles of every descriptor."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.hold = 25
        self.chunks = [(0, 0, 0, 0)] * config.descriptors

    def plan_job(self, context: int, first: int, end: int) -> None:
        self.range_writes(context)
        rng = self.rng
        for i in range(first, end):
            self.chunks[i] = row0, row1, col0, col1 = self.sides()
            kind = ChunkKind.REMOTE if self.chance(0.5) else rng.randrange(4)
            self.descriptor_writes(i, (
                pack(regs.DESCRIPTOR_LAYOUTS[0], row0=row0, row1=row1, col0=col0, col1=col1, kind=kind,
                     op=rng.randrange(6), peer=rng.getrandbits(8)),
                pack(regs.DESCRIPTOR_LAYOUTS[1], context=context if self.chance(0.9) else self.context(),
                      expected=rng.getrandbits(32)),
                pack(regs.DESCRIPTOR_LAYOUTS[2], base=rng.getrandbits(39)),
                pack(regs.DESCRIPTOR_LAYOUTS[3], peer_base=rng.getrandbits(39)),
            ))  # fmt: skip

    def sides(self) -> tuple[int, int, int, int]:
        """A rectangle of the region; sometimes one of its sides lies elsewhere."""
        row0, row1, col0, col1 = self.rectangle()
        sides = self.row | row0, self.row | row1, self.col | col0, self.col | col1
        row0, row1, col0, col1 = (self.near(side, REGION, far=0.1) for side in sides)
        return row0, row1, col0, col1

    def tile(self, context: int) -> tuple[int, int]:
        if context not in self.windows or self.chance(0.1):
            return super().tile(context)
        row0, row1, col0, col1 = self.chunks[self.rng.randrange(*self.windows[context])]
        return self.between(row0, row1), self.between(col0, col1)

    def rate(self, name: str) -> float:
        """Rows come whenever anything does."""
        return 1.0 if name == "store" else super().rate(name)

    def drive_part(self) -> None:
        self.offer("store", self.request)
        self.accept("route")
