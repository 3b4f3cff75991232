"""Functional coverage: named bins, each a condition on a trace, counted over every cycle of every run."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from words import Trace

Bins = dict[str, Callable[[Trace], np.ndarray]]
"""Per name, whether the case occurs, in every cycle of the trace."""


class Coverage:
    """How often each bin of one component was hit, and how many items moved."""

    def __init__(self, bins: Bins) -> None:
        self._bins = bins
        self.hits = dict.fromkeys(bins, 0)
        self.transactions = self.cycles = 0

    def sample(self, trace: Trace, transactions: int) -> None:
        """Count what happened in this trace."""
        for name, occurs in self._bins.items():
            self.hits[name] += int(np.count_nonzero(occurs(trace)))
        self.transactions += transactions
        self.cycles += len(trace)

    def save(self, path: Path, **about: object) -> None:
        """Write the counts as JSON, with ``about`` beside them."""
        counts = {"transactions": self.transactions, "cycles": self.cycles, "bins": self.hits}
        path.write_text(json.dumps({**about, **counts}, indent=1) + "\n")


def after(condition: np.ndarray, cycles: int) -> np.ndarray:
    """Whether the condition held ``cycles`` cycles ago (not before the trace)."""
    if cycles == 0:
        return condition
    late = np.zeros_like(condition)
    late[cycles:] = condition[:-cycles]
    return late


def rises(level: np.ndarray) -> np.ndarray:
    """Whether the level is set and was not in the cycle before."""
    return level & ~after(level, 1) & (np.arange(len(level)) > 0)


def same_within(
    happens: np.ndarray, values: Iterable[np.ndarray], cycles: int
) -> np.ndarray:
    """Whether the event happens with the same values as ``cycles`` cycles ago."""
    same = happens & after(happens, cycles)
    for value in values:
        same &= value == after(value, cycles)
    return same


def stream_bins(trace_streams: Iterable[str]) -> Bins:
    """For each stream: items move back to back, the sender pauses, the receiver presses back."""
    bins: Bins = {}
    for stream in trace_streams:
        bins[f"{stream}: back to back"] = lambda t, s=stream: t.moved(s) & after(t.moved(s), 1)
        bins[f"{stream}: pause"] = lambda t, s=stream: t.is_set(f"{s}.ready") & ~t.is_set(f"{s}.valid")
        bins[f"{stream}: back-pressure"] = lambda t, s=stream: t.is_set(f"{s}.valid") & ~t.is_set(f"{s}.ready")
    return bins
