"""Choosing one of several requests: the lowest one, or the next one in turn."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def lowest_bit(mask: Value) -> Value:
    """``mask`` with only its lowest set bit left (0 if none is set)."""
    return (mask & (~mask + 1))[: len(mask)]


def index_of(one_hot: Value) -> Value:
    """Number of the set bit of a mask with at most one set bit (0 if none is set): one OR per bit of the number."""
    n = len(one_hot)
    picks = [sum(1 << i for i in range(n) if i >> k & 1) for k in range((n - 1).bit_length())]
    return Cat(*((one_hot & pick).any() for pick in picks)) if picks else Const(0, 1)


class RoundRobin(wiring.Component):
    """Grants one of n requests: the first at or after the place behind the last grant, in cyclic order.

    Parameters
    ----------
    requesters : number of requests, at least 1.

    Members
    -------
    requests : In : one bit per requester.
    take : In(1) : the grant of this cycle is used; the turn goes to the requester behind it.
    grant : Out : the winner, one-hot; 0 without a request. A function of ``requests`` and the turn.

    Latency: 0. Throughput: one grant per cycle. Reset: requester 0 has the turn.

    Raises
    ------
    ValueError
        if ``requesters`` is below 1.
    """

    def __init__(self, *, requesters: int) -> None:
        if requesters < 1:
            raise ValueError(f"requesters must be at least 1, not {requesters}")
        super().__init__({"requests": In(requesters), "take": In(1), "grant": Out(requesters)})

    def elaborate(self, platform: Any) -> Module:
        """``behind`` masks the requesters that come before the wrap; all zeros and all ones both mean: from 0."""
        m = Module()
        behind = Signal(len(self.requests))
        first = self.requests & behind
        m.d.comb += self.grant.eq(lowest_bit(Mux(first.any(), first, self.requests)))
        with m.If(self.take & self.grant.any()):
            m.d.sync += behind.eq(~(self.grant | (self.grant - 1)))
        return m
