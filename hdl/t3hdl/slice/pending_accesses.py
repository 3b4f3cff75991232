"""Counts the tracked accesses of every context between the match at a slice's entry and their count."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interface.layouts import MAX_CONTEXTS

OfContext = data.StructLayout({"valid": 1, "context": 4})
"""A pulse: a tracked access of this context."""


class PendingAccesses(wiring.Component):
    """A counter per context: an arm is refused, and an abort goes on, while one of its context is not 0.

    Parameters
    ----------
    contexts : number of contexts.
    most : accesses of one context that are pending at the same time, at most.

    Members
    -------
    compute_enters, comm_enters : In : a tracked access enters a queue.
    leaves : In : one is counted, or would be but for an abort. Of a context without pending accesses it changes
        nothing, not even with one that enters in the same cycle.
    pending : Out : a bit per context.

    Latency: 1. Throughput: one of each pulse per cycle. Reset: 0. Nothing else clears a counter.
    """

    def __init__(self, *, contexts: int, most: int) -> None:
        super().__init__({
            "compute_enters": In(OfContext), "comm_enters": In(OfContext), "leaves": In(OfContext),
            "pending": Out(MAX_CONTEXTS),
        })  # fmt: skip
        self._contexts, self._most = contexts, most

    def elaborate(self, platform: Any) -> Module:
        """What enters arrives late, behind the match of its range: all sums are there before it."""
        m = Module()
        for c in range(self._contexts):
            count, left = (Signal(range(self._most + 1), name=f"{name}_{c}") for name in ("count", "left"))
            enters = Cat(pulse.valid & (pulse.context == c) for pulse in (self.compute_enters, self.comm_enters))
            leaves = self.leaves.valid & (self.leaves.context == c) & (count != 0)
            m.d.comb += [
                left.eq(Mux(leaves, count - 1, count)),
                self.pending[c].eq(count != 0),
            ]
            m.d.sync += count.eq(Mux(enters.all(), left + 2, Mux(enters.any(), left + 1, left)))
        return m
