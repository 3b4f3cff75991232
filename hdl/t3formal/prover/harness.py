"""A part under proof: free inputs, what is assumed of them, what is claimed of the part."""

import re
from typing import Any

from amaranth.hdl import Const, Fragment, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In

from .inside import Inside

BAD = "bad"
"""The output that says: every assumption has held up to now, and some claim does not hold."""
STEP = "step"
"""As ``bad``, and every claim held in the ``depth`` cycles before: what an induction step looks for."""
LASTING = "proof_"
"""How the names of those registers begin that keep their initial value in an induction step."""


class SizeError(ValueError):
    """A proof does not speak of parts of this size."""


class Harness:
    """A part with free inputs, an abstract model beside it in ``m``, and claims about both.

    Every input port of the part takes any value in any cycle, unless :meth:`drive` or :meth:`assume` restricts it. The
    proof begins after reset: registers have their initial values, memories hold anything, ``rst`` stays 0.

    Parameters
    ----------
    dut : the part. Its module is called ``dut``.

    Attributes
    ----------
    m : where models are built; ``m.submodules.dut`` is the part.
    dut : the part.
    inside : its registers and memories by name.
    inputs : free inputs by name, those of the part under their names in Verilog.
    assumptions, claims, covers : names and one-bit values.
    choices : names of what is ``chosen``, and that it stays what it is.
    """

    def __init__(self, dut: Component) -> None:
        self.m, self.dut = Module(), dut
        fragment = Fragment.get(dut, None)
        self.m.submodules.dut = fragment
        self.inside = Inside(fragment)
        self.inputs = {
            "__".join(map(str, path)): Value.cast(value)
            for path, member, value in dut.signature.flatten(dut)
            if member.flow == In and Value.cast(value).shape().width
        }
        self.assumptions: dict[str, Signal] = {}
        self.choices: dict[str, Signal] = {}
        self.claims: dict[str, Signal] = {}
        self.covers: dict[str, Signal] = {}
        self.first = Signal(init=1, name=f"{LASTING}first")
        self.m.d.sync += self.first.eq(0)

    def free(self, name: str, shape: Any = 1) -> Any:
        """A value that may be another one in every cycle."""
        if name in self.inputs:
            raise ValueError(f"there is an input {name!r} already: choose another name")
        signal = Signal(shape, name=name)
        self.inputs[name] = Value.cast(signal)
        return signal

    def chosen(self, name: str, shape: Any = 1) -> Any:
        """Any value, the same in all cycles: what is shown for it is shown for every one."""
        chosen, kept = self.free(name, shape), Signal(shape, name=f"{name}_kept")
        self.m.d.sync += kept.eq(chosen)
        self._add(self.choices, name, self.first | (Value.cast(chosen) == Value.cast(kept)))
        return chosen

    def drive(self, port: Any, value: Any) -> None:
        """Gives an input port of the part a value of the harness instead of a free one."""
        target = Value.cast(port)
        name = next(name for name, free in self.inputs.items() if free is target)
        del self.inputs[name]
        self.m.d.comb += target.eq(value)

    def past(self, value: Any, init: int = 0) -> Signal:
        """What ``value`` was in the cycle before; ``init`` in the first cycle."""
        held = Signal(Value.cast(value).shape(), name="past", init=init)
        self.m.d.sync += held.eq(value)
        return held

    def assume(self, name: str, condition: Any) -> None:
        """Only runs in which this has always been true count. ``name`` as in :mod:`~t3formal.models.assumptions`."""
        self._add(self.assumptions, name, condition)

    def claim(self, name: str, condition: Any) -> None:
        """Must be true in every cycle."""
        self._add(self.claims, name, condition)

    def cover(self, name: str, condition: Any) -> None:
        """Must be true in some cycle of some run: without it, claims may hold because nothing happens."""
        self._add(self.covers, name, condition)

    def _add(self, where: dict[str, Signal], name: str, condition: Any) -> None:
        if name in where:
            raise ValueError(f"{name!r} is there already: choose another name")
        where[name] = signal = Signal(name=re.sub(r"\W+", "_", name))
        self.m.d.comb += signal.eq(Value.cast(condition).bool())

    def finish(self, depth: int = 0) -> dict[str, Signal]:
        """The outputs of the finished harness: ``bad``, ``step`` and ``cover_0`` and up, in the order of ``covers``.

        ``depth`` : cycles in which the claims held before, for ``step``. Call it once.
        """
        m = self.m
        good, so_far = Signal(), Signal(init=1, name=f"{LASTING}assumed")
        claimed, before = Signal(), Signal(range(max(depth, 1) + 1), name=f"{LASTING}claimed")
        held = Signal(init=1, name=f"{LASTING}held")
        outputs = {BAD: Signal(name=BAD), STEP: Signal(name=STEP)}
        m.d.comb += [
            good.eq(so_far & _all(self.assumptions) & _all(self.choices)),
            claimed.eq(_all(self.claims)),
            outputs[BAD].eq(good & ~claimed),
            outputs[STEP].eq(good & held & (before == depth) & ~claimed),
        ]
        m.d.sync += [so_far.eq(good), held.eq(held & claimed), before.eq(Mux(before == depth, depth, before + 1))]
        for number, reached in enumerate(self.covers.values()):
            outputs[f"cover_{number}"] = output = Signal(name=f"cover_{number}")
            m.d.comb += output.eq(good & reached)
        return outputs


def _all(conditions: dict[str, Signal]) -> Value:
    """Whether all of them are true."""
    value: Value = Const(1)
    for condition in conditions.values():
        value = value & condition
    return value
