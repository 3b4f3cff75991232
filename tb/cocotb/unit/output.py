"""The output of a job in lines: where its tiles are, and the bursts of 1 to 8 lines that requesters make of them."""

import random
from dataclasses import dataclass
from itertools import pairwise

from t3hdl.interface.layouts import BURST_LINES

ROWS = 3
_EDGES = [(bottom, right, wf) for bottom in (0, 1) for right in (0, 1) for wf in (0, 1)]
SHAPES = {edge: (3 - edge[0] - edge[1] + edge[2], 8 - 3 * edge[0] - 2 * edge[1] - edge[2]) for edge in _EDGES}
"""Rows of a tile, each in another channel, and lines of a row, by (last tile row, last tile column, wavefront); the
same for every job."""
TILE_ROWS = max(rows for rows, _ in SHAPES.values())
SHORT = 4
"""Lines that are missing from the last aligned block of an output."""
Burst = tuple[int, int]
"""First line, and lines beyond it."""


@dataclass(frozen=True)
class Output:
    """Lines from ``base`` on, which is a multiple of 8; ``columns`` of tiles."""

    base: int
    columns: int
    rng: random.Random

    @property
    def lines(self) -> int:
        """Lines of the output buffer."""
        return ROWS * self.columns * 2 * TILE_ROWS * BURST_LINES - SHORT

    def shape(self, row: int, col: int, wf: int) -> tuple[int, int]:
        """Rows and lines of a row of a wavefront tile."""
        return SHAPES[int(row == ROWS - 1), int(col == self.columns - 1), wf]

    def bursts(self, row: int, col: int, wf: int) -> list[Burst]:
        """A wavefront tile in bursts: whole rows, or rows in pieces."""
        rows, width = self.shape(row, col, wf)
        first = self.base + ((row * self.columns + col) * 2 + wf) * TILE_ROWS * BURST_LINES
        pieces = []
        for start in range(first, first + rows * BURST_LINES, BURST_LINES):
            cuts = self.rng.sample(range(1, width), min(width - 1, self.rng.choice((0, 0, 1, 2))))
            bounds = [0, *sorted(cuts), width]
            pieces += [(start + here, end - here - 1) for here, end in pairwise(bounds)]
        return pieces

    def some_burst(self) -> Burst:
        """Any lines of the output, in one aligned block."""
        at = self.rng.randrange(self.lines)
        longest = min(BURST_LINES - at % BURST_LINES, self.lines - at) - 1
        return self.base + at, self.rng.choice((0, longest, self.rng.randint(0, longest)))

    def leaving_burst(self) -> Burst:
        """A burst that begins in the output and leaves its aligned block."""
        at = self.rng.randint(1, BURST_LINES - 1)
        return self.base + self.rng.randrange(self.lines // BURST_LINES) * BURST_LINES + at, BURST_LINES - at

    def burst_over_the_end(self) -> Burst:
        """A burst that begins in the output and ends behind it, in one aligned block."""
        return self.base + self.lines - self.rng.randint(1, SHORT), SHORT
