"""A long-lived register that can be protected like the tables are."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Shape, Signal, Value

from .secded import check_bits, decode, encode
from .state_parity import CHECKED


@dataclass(frozen=True)
class ProtectedRegister:
    """``following`` is what the register takes; the user assigns it, or leaves it at ``value``."""

    value: Any
    following: Any
    corrected: Value
    uncorrectable: Value


def protected_register(m: Module, shape: Any, *, name: str, protect: bool, init: int = 0) -> ProtectedRegister:
    """A register in ``m`` of this shape, ``init`` after reset; with ``protect`` it holds check bits, too.

    A single-bit error is corrected at every read, and in the register at the next clock edge. ``corrected`` and
    ``uncorrectable`` are 1 for the cycle in which the register holds a wrong bit, more than one (then ``value`` means
    nothing). Without ``protect`` both are constant 0, and the register is a plain one.
    """
    width = Shape.cast(shape).width
    following = Signal(shape, name=f"{name}_following")
    if not protect:
        value = Signal(shape, name=name, init=shape.from_bits(init) if hasattr(shape, "from_bits") else init)
        m.d.comb += following.eq(value)
        m.d.sync += value.eq(following)
        return ProtectedRegister(value, following, Const(0, 1), Const(0, 1))
    value = Signal(shape, name=f"{name}_value")
    # Zero is a code word: it stands for the value after reset.
    stored = Signal(width + check_bits(width), name=name, attrs=dict(CHECKED))
    decoded = decode(m, stored, width)
    m.d.comb += [
        Value.cast(value).eq(decoded.word ^ init),
        Value.cast(following).eq(Value.cast(value)),
    ]
    m.d.sync += stored.eq(encode(Value.cast(following) ^ init))
    return ProtectedRegister(value, following, decoded.corrected, decoded.uncorrectable)
