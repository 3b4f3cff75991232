"""What can happen in a node of the token network, leaf or root."""

import numpy as np
from t3hdl.interface.layouts import COUNT_BITS

from tb.coverage_bins import LONG, MEDIUM, CoverageBins, Cycles
from tb.words import Trace

RARE = {"tokens merged while waiting": MEDIUM, "largest sum": LONG}
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def node_bins(inputs: int, outputs: int) -> CoverageBins:
    """Bins of a node with this many streams on each side."""
    arriving = [f"token_in.{i}" for i in range(inputs)]
    leaving = [f"token_out.{o}" for o in range(outputs)]
    places = 2 * (inputs + outputs)
    half = (1 << (COUNT_BITS - 1)) - 1  # the largest count that is added to another; twice that is never sent

    def together(trace: Trace, streams: list[str]) -> Cycles:
        return np.logical_and.reduce([trace.moved(stream) for stream in streams])

    def merged(trace: Trace) -> Cycles:
        """In the last cycle: fewer tokens have left than came in, by more than the node can hold."""
        came, left = (sum(int(trace.moved(s).sum()) for s in streams) for streams in (arriving, leaving))
        return (np.arange(len(trace)) == len(trace) - 1) & (came - left > places)

    def counts(trace: Trace, n: int) -> Cycles:
        """A token leaves with this count."""
        return np.logical_or.reduce([trace.moved(s) & (trace.get(f"{s}.payload", "n") == n) for s in leaving])

    return {
        "all inputs at once": lambda t: together(t, arriving),
        "all outputs at once": lambda t: together(t, leaving),
        "all inputs blocked": lambda t: np.logical_and.reduce([~t.is_set(f"{s}.ready") for s in arriving]),
        "tokens merged while waiting": merged,
        "largest count": lambda t: counts(t, 2 * half + 1),
        "largest sum": lambda t: counts(t, 2 * half),
    }
