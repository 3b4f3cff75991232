"""What stimuli of parts that compare addresses have in common: ranges of lines, and requests into them."""

import random

from amaranth.hdl import Shape
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, EPOCH_BITS, LINE_BITS, MemoryRequest, Op
from t3hdl.interface.words import pack

from tb.lockstep import Lockstep
from tb.stimulus.base import TILES, Stimulus

BASES = (0x20, 0x20, 0x23, 0x40, 0x80, 0xC4)
LIMITS = (0x40, 0x80, 0x86, 0xC0, 0xF0, 0xFF)
"""Lines of a page at which random ranges begin and end, some within an aligned block; requests go to 0x20 to 0xF0."""
PAGE = range(8, LINE_BITS)
"""Bits of a line that name its page."""
REGION = range(TILES.bit_length(), MemoryRequest["row"].width)
"""Bits of a row or column of tiles that name its region."""


class Ranges(Stimulus):
    """Lines and tiles lie close together, on a page and in a region of which any bit may be set; from time to time
    both change. Some bounds and some requests lie elsewhere, so that a single high bit decides about a match.

    ``bounds`` has the ranges that were last written valid: owner, base, limit; ``epochs`` the epoch of each.
    """

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.page = self.row = self.col = 0
        self.bounds: dict[int, tuple[int, int, int]] = {}
        self.epochs: dict[int, int] = {}

    def plan(self) -> None:
        self.page = self.rng.getrandbits(len(PAGE)) << PAGE[0]
        self.row, self.col = (self.rng.getrandbits(len(REGION)) << REGION[0] for _ in range(2))

    def range_writes(self, context: int) -> None:
        """The ranges that no active context owns, mostly for ``context``."""
        for i in range(self.config.ranges):
            if self.range_owners.get(i) in self.windows or self.chance(0.2):
                continue
            base, limit = (self.near(self.page | self.rng.choice(lines), PAGE, far=0.15) for lines in (BASES, LIMITS))
            owner = context if self.chance(0.9) else self.context()
            valid, epoch = self.chance(0.8), self.epoch()
            attributes = pack(
                regs.RangeAttributes,
                valid=valid,
                context=owner,
                epoch=epoch,
                op=self.rng.choice((Op.ADD, Op.ADD, Op.STORE, Op.MAX)),
                dtype=self.rng.randrange(4),
            )
            for word, value in enumerate((base, limit, attributes)):
                self.writes.append((regs.RANGE + i * regs.RANGE_STRIDE + 8 * word, value))
            self.range_owners.pop(i, None)
            self.bounds.pop(i, None)
            self.epochs.pop(i, None)
            if valid:
                self.range_owners[i] = owner
                self.bounds[i] = owner, base, limit
                self.epochs[i] = epoch

    def epoch(self) -> int:
        """An epoch, mostly one of two that differ in one bit."""
        return self.rng.choice((0, 1 << self.rng.randrange(EPOCH_BITS), self.rng.getrandbits(EPOCH_BITS), 0, 0))

    def between(self, first: int, end: int) -> int:
        """Mostly one of [first, end), often the first or the last one, or one beside them."""
        inside = self.rng.randrange(first, end) if first < end else first
        return self.rng.choice((first, max(0, first - 1), max(0, end - 1), end, inside, inside, inside))

    def line(self, context: int) -> int:
        """A line, often in a range of this context, or if it has none in another one's."""
        mine = [(base, limit) for owner, base, limit in self.bounds.values() if owner == context]
        ranges = mine or [(base, limit) for _, base, limit in self.bounds.values()]
        near = self.between(*self.rng.choice(ranges)) if ranges and self.chance(0.7) else None
        return self.near(self.page | self.rng.randrange(0x20, 0xF0) if near is None else near, PAGE, far=0.05)

    def length(self, line: int) -> int:
        """The length of a burst from ``line`` on: mostly one that its aligned block allows, often the longest."""
        longest = BURST_LINES - 1 - line % BURST_LINES
        return self.rng.choice((0, longest, self.rng.randint(0, longest), self.rng.randrange(BURST_LINES)))

    def request(self) -> int:
        """A memory request, mostly a tracked store."""
        rng, context = self.rng, self.context()
        row, col = self.tile(context)
        line = self.line(context)
        word = pack(
            MemoryRequest,
            line=line, op=rng.choice((Op.STORE, Op.STORE, *range(8))),
            dtype=rng.randrange(4), stream=rng.randrange(2), context=context, source=rng.getrandbits(8),
            tagged=self.chance(0.9), wf=rng.randrange(2), right=self.chance(0.1), bottom=self.chance(0.1),
            row=self.near(row, REGION, far=0.05), col=self.near(col, REGION, far=0.05),
            epoch=rng.choice([*self.epochs.values()]) if self.epochs and self.chance(0.9) else self.epoch(),
            tag=rng.getrandbits(29), length=self.length(line),
        )  # fmt: skip
        return self.jittered(word, range(Shape.cast(MemoryRequest).width))

    def tile(self, context: int) -> tuple[int, int]:
        """Row and column of a tile that an access of this context may be for."""
        return self.row | self.rng.randrange(3), self.col | self.rng.randrange(3)
