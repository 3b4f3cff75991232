"""Random inputs that obey the rules of docs/hardware.md: what a legal neighbour might do.

A stimulus has ``drive()``, which sets the inputs of the next cycle from the outputs of this one. Numbers are small and
collide often, so that the rare branches (merges, ties, overflows, full queues) are common.
"""

import random
from collections import deque
from collections.abc import Callable

from amaranth.hdl import Shape
from amaranth.lib import data
from lockstep import Lockstep
from t3hdl import register_map as regs
from t3hdl.config import NO_LIMIT, T3Config
from t3hdl.layouts import ConfigWrite, MemoryRequest, Op

TILES = 8
"""Rows and columns of tiles in the random outputs."""
BASES = (0x20, 0x20, 0x40, 0x80, 0xC0)
LIMITS = (0x40, 0x80, 0xC0, 0xF0, 0x200)
"""Lines at which random ranges begin and end; requests go to 0x20 to 0xF0."""


def pack(layout: data.StructLayout, **values: int) -> int:
    """The word with these fields, and 0 in the others."""
    word = 0
    for name, value in values.items():
        field = layout[name]
        if value >> Shape.cast(field.shape).width:
            raise ValueError(f"{name} has no place for {value}")
        word |= value << field.offset
    return word


class Stimulus:
    """What all parts have in common: streams, configuration pulses, a clock, arm and disarm."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        self.bench, self.config, self.rng = bench, config, rng
        self.now = rng.choice((0, 1000, (1 << 47) - 500))
        self.writes: deque[tuple[int, int]] = deque()
        self.armed = False
        self.activity = 1.0
        self.hold = 1  # mean cycles from arm to disarm
        self._rates: dict[str, float] = {}

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def rate(self, name: str) -> float:
        """A probability that stays for some time: phases of flow, of trickle and of standstill."""
        if name not in self._rates or self.chance(0.015):
            self._rates[name] = self.rng.choice((0.0, 0.05, 0.3, 0.7, 1.0, 1.0))
        return self._rates[name]

    def drive(self) -> None:
        """Set the inputs of the next cycle."""
        if self.chance(0.01):
            self.activity = self.rng.choice((0.0, 0.1, 1.0, 1.0))
        if "now" in self.bench.inputs:
            self.now += 1
            self.bench.set("now", self.now)
        if "config_valid" in self.bench.inputs:
            self.configure()
        self.drive_part()

    def drive_part(self) -> None:
        """The inputs of this kind of part."""
        raise NotImplementedError

    def offer(self, stream: str, item: Callable[[], int]) -> None:
        """Offer items at an input stream; an offered item stays until its transfer."""
        valid, payload = f"{stream}.valid", f"{stream}.payload"
        if self.bench.driven(valid) and not self.was_taken(stream):
            return
        offers = self.chance(self.rate(stream) * self.activity)
        self.bench.set(valid, offers)
        if offers:
            self.bench.set(payload, item())

    def was_taken(self, stream: str) -> bool:
        """Whether the input stream transferred in the last cycle."""
        return stream in self.bench.moved

    def accept(self, stream: str) -> None:
        """Be ready at an output stream, or not."""
        self.bench.set(f"{stream}.ready", self.chance(self.rate(stream)))

    def pulse(self, port: str, payload: int | None) -> None:
        """A pulse with this payload, or none."""
        self.bench.set(f"{port}_valid", payload is not None)
        if payload is not None:
            self.bench.set(port, payload)

    def configure(self) -> None:
        """At most one configuration write per cycle: tables while disarmed, then arm, much later disarm."""
        if not self.writes and self.chance(1 / self.hold if self.armed else 0.02):
            if self.armed or self.chance(0.1):
                self.writes.append((regs.CONTROL, pack(regs.Control, disarm=1)))
            else:
                self.plan()
                self.hold = 200 + 3 * len(self.writes)
                count = self.rng.randint(1, self.config.descriptors)
                self.writes.append((regs.CONTROL, pack(regs.Control, arm=1, descriptors=count)))
        elif not self.writes and self.chance(0.01):
            self.writes.append(self.free_write())
        write = self.writes.popleft() if self.writes and self.chance(0.7) else None
        if write and write[0] == regs.CONTROL:
            self.armed = bool(write[1] & 1)
        self.pulse("config", pack(ConfigWrite, address=write[0], data=write[1]) if write else None)

    def plan(self) -> None:
        """Queue the table writes before an arm."""

    def free_write(self) -> tuple[int, int]:
        """A write that is legal at any time."""
        if self.chance(0.5):
            return regs.THRESHOLDS, self.rng.getrandbits(32)
        values = {
            "mca": self.chance(0.7),
            "fixed": self.chance(0.5),
            "threshold": self.rng.choice((NO_LIMIT, 0, 3, 40)),
            "starvation": self.rng.choice((0, 1, 5, 20, 300)),
            "burst": self.rng.choice((0, 1, 2, 8)),
        }
        return regs.ARBITER, pack(regs.Arbiter, **values)

    def range_writes(self) -> None:
        """Every RANGE register."""
        for i in range(self.config.ranges):
            base, limit = self.rng.choice(BASES), self.rng.choice(LIMITS)
            attributes = pack(
                regs.RangeAttributes,
                valid=self.chance(0.8), context=int(self.chance(0.1)), epoch=self.rng.randrange(4),
                op=self.rng.choice((Op.ADD, Op.ADD, Op.STORE, Op.MAX)), dtype=self.rng.randrange(4),
            )  # fmt: skip
            for word, value in enumerate((base, limit, attributes)):
                self.writes.append((regs.RANGE + i * regs.RANGE_STRIDE + 8 * word, value))

    def descriptor_writes(self, number: int, words: tuple[int, ...]) -> None:
        """The first words of one descriptor."""
        for word, value in enumerate(words):
            self.writes.append((regs.DESCRIPTOR + number * regs.DESCRIPTOR_STRIDE + 8 * word, value))

    def rectangle(self) -> tuple[int, int, int, int]:
        """Tiles [row0, row1) x [col0, col1), at least one."""
        (row0, row1), (col0, col1) = (sorted(self.rng.sample(range(TILES + 1), 2)) for _ in range(2))
        return row0, row1, col0, col1

    def request(self) -> int:
        """A memory request, mostly a tracked store."""
        rng = self.rng
        return pack(
            MemoryRequest,
            line=rng.randrange(0x20, 0xF0) if self.chance(0.95) else rng.getrandbits(39),
            op=rng.choice((Op.STORE, Op.STORE, Op.ADD, Op.READ, Op.MIN, Op.MAX, Op.READ_CLEAR)),
            dtype=rng.randrange(4), stream=rng.randrange(2), context=int(self.chance(0.1)), source=rng.getrandbits(8),
            tagged=self.chance(0.9), wf=rng.randrange(2), right=self.chance(0.1), bottom=self.chance(0.1),
            row=rng.randrange(3), col=rng.randrange(3) if self.chance(0.95) else rng.getrandbits(12),
            tag=rng.getrandbits(32),
        )  # fmt: skip
