"""Random inputs for a MemorySlice."""

import random

from t3hdl.config import NO_LIMIT, T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ConfigWrite, MemoryRequest, Op
from t3hdl.interface.words import WORD_BYTES, pack

from tb.lockstep import Lockstep
from tb.stimulus.ranges import Ranges

NAME = range(MemoryRequest["wf"].offset, MemoryRequest["tag"].offset)
"""Bits of a request that name its tile."""


class Slice(Ranges):
    """Two streams, a DRAM queue that fills and drains, updates performed in any order, the same requests in turns."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.in_memory: list[int] = []
        self.few: list[int] = []  # requests that come again and again, or none

    def plan_job(self, context: int, first: int, end: int) -> None:
        self.range_writes(context)

    def request(self) -> int:
        """A request; in phases one of two or three, perhaps of tiles whose names differ in one bit."""
        fresh = super().request
        if self.chance(0.01):
            self.few = [fresh() for _ in range(self.rng.choice((0, 1, 2, 3)))]
            if len(self.few) == 1:
                self.few.append(self.few[0] ^ 1 << self.rng.choice(NAME))
        return self.rng.choice(self.few) if self.few else fresh()

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
            self.bench.set("behind", self.chance(0.3))


class SliceInTurns(Slice):
    """Updates of few tiles in turns, all tracked, by both streams. Tokens move on, or stand until entries are full."""

    EPOCH = 1
    _PHASES = ((2, 2800), (2, 600), (3, 4200), (3, 600), (7, 600))
    """Tiles and cycles; the long ones empty the queue of tokens and then leave it to itself."""
    _EMPTY = 100

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        attributes = pack(regs.RangeAttributes, valid=1, epoch=self.EPOCH, op=Op.ADD)
        for word, value in enumerate((0, 1 << 38, attributes)):
            self.writes.append((regs.RANGE + WORD_BYTES * word, value))
        self.cycles = sum(cycles for _, cycles in self._PHASES)
        self._drawn = 0
        self._tiles = [tiles for tiles, cycles in self._PHASES for _ in range(cycles)]
        self._token_rates = [
            0.3 if cycles < 1000 else 1.0 if cycle < self._EMPTY else 0.0
            for _, cycles in self._PHASES
            for cycle in range(cycles)
        ]

    def configure(self) -> None:
        """The range, once."""
        self.activity = 1.0
        write = self.writes.popleft() if self.writes else None
        self.pulse("config", pack(ConfigWrite, address=write[0], data=write[1]) if write else None)

    def rate(self, name: str) -> float:
        """Updates flow all the time, with few reads; tokens as the phase says."""
        if name == "token":
            return self._token_rates[self.bench.cycle % self.cycles]
        return 0.05 if name.endswith("read") else 0.95

    def request(self) -> int:
        """The next tile's update; seldom another one's."""
        self._drawn += 1 if self.chance(0.95) else self.rng.randrange(7)
        tile = self._drawn % self._tiles[self.bench.cycle % self.cycles]
        epoch = self.EPOCH if self.chance(0.99) else 0
        name = {"tagged": 1, "epoch": epoch, "row": tile % 3, "col": tile // 3}
        line = self.rng.getrandbits(38)
        return pack(MemoryRequest, line=line, length=self.length(line) & 1, op=Op.STORE, **name)
