"""Functional coverage: named bins, each a condition on a trace, counted over every cycle of every run."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data
from t3hdl.interface import register_map as regs

from tb.words import Trace

Cycles = np.ndarray
"""One truth value, or one number, per cycle of a trace."""
CoverageBins = dict[str, Callable[[Trace], Cycles]]
"""Per name, whether the case occurs, in every cycle of the trace."""
SHORT, MEDIUM, LONG = 4000, 20_000, 80_000
"""Cycles, those of all seeds together, from which a bin is expected to be hit (preset ``small``): ``SHORT`` unless a
testbench says otherwise. One episode in two hits what is expected from ``MEDIUM`` cycles, one in six from ``LONG``."""


class Coverage:
    """How often each bin of one component was hit, and how many items moved.

    ``rare`` has the cycles from which a bin is expected, where these are not ``SHORT``.
    """

    def __init__(self, bins: CoverageBins, rare: Mapping[str, int]) -> None:
        self._bins, self._rare = bins, rare
        self.hits = dict.fromkeys(bins, 0)
        self.transactions = 0

    def sample(self, trace: Trace, transactions: int) -> None:
        """Count what happened in this trace."""
        for name, occurs in self._bins.items():
            self.hits[name] += int(np.count_nonzero(occurs(trace)))
        self.transactions += transactions

    def save(self, path: Path, **about: object) -> None:
        """Write the counts as JSON, with ``about`` beside them.

        Raises ValueError for a rare bin that does not exist.
        """
        if unknown := self._rare.keys() - self.hits:
            raise ValueError(f"no bins of these names: {', '.join(sorted(unknown))}")
        expected = {name: self._rare.get(name, SHORT) for name in self.hits}
        counts = {"transactions": self.transactions, "bins": self.hits, "expected_from": expected}
        path.write_text(json.dumps({**about, **counts}, indent=1) + "\n")


def after(cycles: Cycles, count: int = 1) -> Cycles:
    """The values of ``count`` cycles ago (0 before the trace)."""
    late = np.zeros_like(cycles)
    late[count:] = cycles[: len(cycles) - count]
    return late


def rises(level: Cycles) -> Cycles:
    """Whether the level is set and was not in the cycle before."""
    return level & ~after(level)


def changes(value: Cycles) -> Cycles:
    """Whether the value is another one than in the cycle before."""
    changed = value != after(value)
    changed[:1] = False
    return changed


def again(happens: Cycles, values: Iterable[Cycles], distance: int) -> Cycles:
    """Whether the event happens with the same values as ``distance`` cycles ago."""
    same = happens & after(happens, distance)
    for value in values:
        same &= value == after(value, distance)
    return same


def latest(happens: Cycles, values: Cycles, first: int = 0) -> Cycles:
    """The value of the latest event before each cycle; ``first`` before there is one."""
    index = np.maximum.accumulate(np.where(happens, np.arange(1, len(happens) + 1), 0))
    return after_or(np.concatenate(([first], values))[index].astype(np.uint64), first)


def after_or(cycles: Cycles, first: int) -> Cycles:
    """The values of the cycle before, ``first`` in the first cycle."""
    late = np.full_like(cycles, first)
    late[1:] = cycles[:-1]
    return late


def field_of(layout: data.Layout, field: str, words: Cycles) -> Cycles:
    """One field of a register's words."""
    place = layout[field]
    return words >> np.uint64(place.offset) & np.uint64((1 << Shape.cast(place.shape).width) - 1)


def writes(trace: Trace, address: int) -> Cycles:
    """Whether the configuration pulse writes the register at ``address``."""
    return trace.is_set("config_valid") & (trace.get("config", "address") == address)


def control(trace: Trace, action: str) -> Cycles:
    """Whether the configuration pulse orders ``action`` (a field of CONTROL)."""
    return writes(trace, regs.CONTROL) & (field_of(regs.Control, action, trace.get("config", "data")) != 0)


def register(trace: Trace, address: int, reset: int = 0) -> Cycles:
    """What the register at ``address`` of the part holds in every cycle."""
    return latest(writes(trace, address), trace.get("config", "data"), reset)


def range_bound_within(trace: Trace, first: Cycles, length: Cycles, *, ago: int) -> Cycles:
    """Whether a range, as last written ``ago`` cycles before, begins or ends behind the first line of a burst and not
    behind its last."""
    found = np.zeros(len(trace), bool)
    for number in range(regs.RANGE_COUNT):
        for address in (regs.RANGE_BASE, regs.RANGE_LIMIT):
            bound = after(register(trace, address + number * regs.RANGE_STRIDE), ago)
            found |= (first < bound) & (bound <= first + length)
    return found


def stream_bins(streams: Iterable[str], pulsed: Iterable[str] = ()) -> CoverageBins:
    """For each stream: items move back to back, the sender pauses, the receiver presses back.

    Those in ``pulsed`` never move back to back.
    """
    bins: CoverageBins = {}
    for stream in streams:
        if stream not in pulsed:
            bins[f"{stream}: back to back"] = lambda t, s=stream: t.moved(s) & after(t.moved(s))
        bins[f"{stream}: pause"] = lambda t, s=stream: t.is_set(f"{s}.ready") & ~t.is_set(f"{s}.valid")
        bins[f"{stream}: back-pressure"] = lambda t, s=stream: t.is_set(f"{s}.valid") & ~t.is_set(f"{s}.ready")
    return bins


def config_bins(actions: Iterable[str]) -> CoverageBins:
    """For each action of CONTROL: it is ordered."""
    return {action: (lambda t, a=action: control(t, a)) for action in actions}
