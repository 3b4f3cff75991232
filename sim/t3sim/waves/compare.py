"""Where two waves of the same instances differ first."""

from dataclasses import dataclass

from .hierarchy import signal_path
from .record import Wave, Waves
from .signals import HINTS


@dataclass(frozen=True, kw_only=True)
class Difference:
    """From ``cycle`` on a signal has ``values`` in the one and in the other, as texts."""

    cycle: int
    signal: str
    values: tuple[str, str]


def first_difference(one: Waves, other: Waves) -> Difference | None:
    """The earliest change that only one of both has, or has with another value; None if there is none.

    The hints ``idle`` and ``wake_at`` do not count, nor do internal signals, which the golden model does not have.
    """
    found = []
    if one.window != other.window:  # the run of one of them is over before
        lasts = one.window.last, other.window.last
        found.append(Difference(cycle=min(lasts), signal="the end of the run", values=(f"{lasts[0]}", f"{lasts[1]}")))
    for mine, yours in zip(one.parts, other.parts, strict=True):
        left, right = _changes(mine), _changes(yours)
        found += [
            Difference(
                cycle=cycle,
                signal=".".join(signal_path(one, mine, mine.signals[number])),
                values=(left.get((cycle, number), "unchanged"), right.get((cycle, number), "unchanged")),
            )
            for (cycle, number), _ in left.items() ^ right.items()
        ]
    return min(found, key=lambda difference: (difference.cycle, difference.signal), default=None)


def _changes(wave: Wave) -> dict[tuple[int, int], str]:
    """Value by cycle and number of the signal."""
    hints = {number for number, signal in enumerate(wave.signals) if signal.path in {(name,) for name in HINTS}}
    return {
        (cycle, number): "unknown" if value is None else hex(value)
        for cycle, number, value in wave.changes
        if number not in hints
    }
