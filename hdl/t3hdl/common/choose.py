"""Choosing one of several requests: the lowest one, or the next one in turn; sums and comparisons with few carries."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def lowest_bit(mask: Value) -> Value:
    """``mask`` with only its lowest set bit left (0 if none is set), in a depth of log2(bits) rather than by a sum."""
    n, below, step = len(mask), (mask << 1)[: len(mask)], 1
    while step < n:
        below, step = below | (below << step)[:n], 2 * step
    return mask & ~below


def one_hot_index(one_hot: Value) -> Value:
    """Number of the set bit of a mask with at most one set bit (0 if none is set): one OR per bit of the number."""
    n = len(one_hot)
    picks = [sum(1 << i for i in range(n) if i >> k & 1) for k in range((n - 1).bit_length())]
    return Cat(*((one_hot & pick).any() for pick in picks)) if picks else Const(0, 1)


def lowest_index(mask: Value) -> Value:
    """Number of the lowest set bit of a mask; of the last bit if none is set, so the last bit need not be tested."""
    if len(mask) == 1:
        return Const(0, 0)
    half = 1 << ((len(mask) - 1).bit_length() - 1)
    low, high = mask[:half], mask[half:]
    return Cat(Mux(low.any(), lowest_index(low), lowest_index(high))[: (half - 1).bit_length()], ~low.any())


def chosen(one_hot: Value, values: Sequence[ValueLike]) -> Value:
    """The value that belongs to the set bit of a mask with at most one set bit (0 if none is set): an AND-OR."""
    casts = [Value.cast(value) for value in values]
    return reduce(or_, (value & one_hot[i].replicate(len(value)) for i, value in enumerate(casts)))


def popcount(mask: Value) -> Value:
    """How many bits of the mask are set: logic for every four of them, because short adders are slow in FPGAs."""
    return sum((_ones_of_four(mask[i : i + 4]) for i in range(0, len(mask), 4)), start=Const(0))


def _ones_of_four(bits: Value) -> Value:
    """How many of at most four bits are set."""
    two, all_ = Cat(bits[i] & bits[:i].any() for i in range(1, len(bits))).any(), bits.all() & (len(bits) == 4)
    return Cat(bits.xor(), two & ~all_, all_)


def sum_equals(a: Value, b: Value, c: Value) -> Value:
    """Whether a + b = c in full, without a carry chain: every bit's carry is what the bit below it must have given."""
    n = max(len(a), len(b), len(c)) + 1
    a, b, c = (_extended(value, n) for value in (a, b, c))
    needed = a ^ b ^ c
    given = (a & b) | ((a | b) & ~c)
    return needed == Cat(Const(0, 1), given)[:n]


def sum_below(a: Value, b: Value, limit: Value) -> Value:
    """Whether a + b < ``limit`` in full, by a carry-save adder and one carry chain."""
    n = max(len(a), len(b), len(limit)) + 1
    sums, carries = _carry_save(_extended(a, n), _extended(b, n), ~_extended(limit, n))
    # a + b - limit, where -limit is ~limit + 1: bit n is set if nothing is borrowed.
    return ~(Cat(sums, Const(0, 1)) + Cat(Const(1, 1), carries))[n]


def sum_exceeds(a: Value, b: Value, limit: Value) -> Value:
    """Whether a + b > ``limit`` in full, by a carry-save adder and one carry chain."""
    n = max(len(a), len(b), len(limit)) + 1
    sums, carries = _carry_save(_extended(a, n), _extended(b, n), ~_extended(limit, n))
    return (Cat(sums, Const(0, 1)) + Cat(Const(0, 1), carries))[n]


def sum_of(values: Sequence[Value]) -> Value:
    """Sum of unsigned values in full, by carry-save adders until two are left, and one carry chain."""
    bits = max(len(value) for value in values) + (len(values) - 1).bit_length()
    left = sorted(values, key=len)  # the short ones first: so most of the bits are of few values
    while len(left) > 2:
        n = max(len(value) for value in left[:3])
        sums, carries = _carry_save(*(_extended(value, n) for value in left[:3]))
        left = [*left[3:], sums, Cat(Const(0, 1), carries)]
    return sum(left, start=Const(0))[:bits]


def _carry_save(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """Sums and carries of three values of one length: the carries count twice."""
    return a ^ b ^ c, (a & b) | (a & c) | (b & c)


def _extended(value: Value, n: int) -> Value:
    """``value`` in ``n`` bits."""
    return Cat(value, Const(0, n - len(value))) if n > len(value) else value


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
        # Both are computed in parallel.
        m.d.comb += self.grant.eq(Mux(first.any(), lowest_bit(first), lowest_bit(self.requests)))
        with m.If(self.take & self.grant.any()):
            m.d.sync += behind.eq(Cat(self.grant[:i].any() for i in range(len(behind))))
        return m
