"""Long-lived registers with a parity bit and a parity check."""

from amaranth.hdl import Const, Module, Signal, Value

from .state_parity import CHECKED
from .synthesis_attributes import KEEP


def write_with_parity(m: Module, register: Signal, *, write: Value, value: Value, protect: bool) -> Value:
    """Writes ``value`` to ``register`` in cycles with ``write``; returns the parity check.

    With ``protect`` a parity bit is written beside it, and the result is 0 while an odd number of bits is wrong; else
    the result is the constant 1 and nothing is added.
    """
    with m.If(write):
        m.d.sync += register.eq(value)
    if not protect:
        return Const(1)
    register.attrs.update({**CHECKED, **KEEP})
    init = Const(register.init, len(register)).value
    parity = Signal(name=f"{register.name}_parity", init=init.bit_count() & 1, attrs={**CHECKED, **KEEP})
    stored = Signal.like(register, name=f"{register.name}_stored")
    m.d.comb += stored.eq(value)
    with m.If(write):
        m.d.sync += parity.eq(stored.xor())
    return register.xor() == parity
