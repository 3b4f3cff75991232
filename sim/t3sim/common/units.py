"""Times, bytes and counts in units in which they have four significant digits and no more noughts than that."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """``size`` is the unit in what the program counts in: ns, bytes, bytes per ns, operations or events."""

    name: str
    size: float

    def title(self, text: str) -> str:
        """``text`` with the unit, for a row, a column or an axis."""
        return f"{text} ({self.name})" if self.name else text

    def text(self, value: float) -> str:
        """``value`` in this unit, without its name."""
        return digits(value / self.size)


TIMES = (Unit("ns", 1), Unit("us", 1e3), Unit("ms", 1e6), Unit("s", 1e9))
BYTES = (Unit("B", 1), Unit("kB", 1e3), Unit("MB", 1e6), Unit("GB", 1e9), Unit("TB", 1e12))
RATES = (Unit("kB/s", 1e-6), Unit("MB/s", 1e-3), Unit("GB/s", 1), Unit("TB/s", 1e3))
FLOP = (Unit("FLOP", 1), Unit("kFLOP", 1e3), Unit("MFLOP", 1e6), Unit("GFLOP", 1e9), Unit("TFLOP", 1e12))
COUNTS = (Unit("", 1), Unit("thousands", 1e3), Unit("millions", 1e6), Unit("billions", 1e9))
SMALLEST = 10
"""From here on a unit is large enough for the largest of several values: up to four digits stand before its point."""


def unit_of(units: Sequence[Unit], values: Iterable[float]) -> Unit:
    """The unit in which the largest of ``values`` has two to four digits before the point."""
    largest = max(map(abs, values), default=0)
    return next((unit for unit in reversed(units) if largest >= SMALLEST * unit.size), units[0])


def digits(value: float) -> str:
    """``value`` with four significant digits, and all of those before the point."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def with_unit(units: Sequence[Unit], value: float) -> str:
    """A single value with its unit, for a sentence."""
    unit = unit_of(units, [value])
    return f"{unit.text(value)} {unit.name}".rstrip()
