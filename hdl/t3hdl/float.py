"""IEEE 754 addition, pipelined: round to nearest even, subnormals, infinities, signed zeros, all flags."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

Flags = data.StructLayout({"inexact": 1, "underflow": 1, "overflow": 1, "divide_by_zero": 1, "invalid": 1})
"""Exceptions of one operation, in the bit order of RISC-V's ``fflags``."""


@dataclass(frozen=True, kw_only=True)
class FloatFormat:
    """A binary interchange format.

    Parameters
    ----------
    exponent_bits : width of the biased exponent.
    mantissa_bits : width of the stored fraction (without the hidden bit).
    """

    exponent_bits: int
    mantissa_bits: int

    @property
    def bits(self) -> int:
        """Width of a number."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def max_exponent(self) -> int:
        """The biased exponent of infinities and NaNs."""
        return (1 << self.exponent_bits) - 1

    @property
    def infinity(self) -> int:
        """Bits of positive infinity."""
        return self.max_exponent << self.mantissa_bits

    @property
    def canonical_nan(self) -> int:
        """Bits of the NaN that every operation returns: positive, quiet, no payload."""
        return self.infinity | 1 << (self.mantissa_bits - 1)


FP16 = FloatFormat(exponent_bits=5, mantissa_bits=10)

_GUARD_BITS = 3
"""Guard, round and sticky: enough to round a sum of two numbers correctly."""


class FloatAdder(wiring.Component):
    """Sum of two numbers of one format, in six steps: order, align, add, count, normalise, round.

    Parameters
    ----------
    float_format : format of operands and sum.
    latency : pipeline registers, at least 1, spread evenly over the steps; the last one is the output.

    Members
    -------
    advance : In(latency) : load enable of each pipeline register, the first one (bit 0) first.
    a, b : In : operands.
    sum : Out : a + b; a NaN is always the canonical one.
    flags : Out(Flags) : exceptions; underflow is always 0, because a sum that is tiny is exact.

    Latency: ``latency`` cycles while ``advance`` is all ones. Throughput: one sum per cycle.

    Raises
    ------
    ValueError
        if ``latency`` is below 1.
    """

    def __init__(self, float_format: FloatFormat, *, latency: int) -> None:
        if latency < 1:
            raise ValueError(f"latency of a float adder must be at least 1, not {latency}")
        self._format, self._latency = float_format, latency
        super().__init__({
            "advance": In(latency), "a": In(float_format.bits), "b": In(float_format.bits),
            "sum": Out(float_format.bits), "flags": Out(Flags),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from operands to sum."""
        return self._latency

    def elaborate(self, platform: Any) -> Module:
        """Each step names what it hands on; after step k of 6, k * latency / 6 registers (rounded down) are passed."""
        m = Module()
        steps = (self._order, self._align, self._add, self._count, self._normalise, self._round)
        passed = 0
        state: Any = self
        for number, step in enumerate(steps, start=1):
            values = step(m, state)
            layout = data.StructLayout({name: value.shape() for name, value in values.items()})
            name = step.__name__.removeprefix("_")
            state = Signal(layout, name=name)
            m.d.comb += [state[key].eq(value) for key, value in values.items()]
            while passed < number * self._latency // len(steps):
                held = Signal(layout, name=f"{name}_held_{passed}")
                with m.If(self.advance[passed]):
                    m.d.sync += held.eq(state)
                state = held
                passed += 1
        m.d.comb += [self.sum.eq(state.sum), self.flags.eq(state.flags)]
        return m

    def _order(self, m: Module, state: Any) -> dict[str, Value]:
        """Larger magnitude first, significands with hidden bit; operands that are not finite decide the result here."""
        form = self._format
        number = data.StructLayout({"mantissa": form.mantissa_bits, "exponent": form.exponent_bits, "sign": 1})
        x, y = Signal(number, name="x"), Signal(number, name="y")
        swap = Signal(name="swap")
        m.d.comb += [
            swap.eq(state.a[:-1] < state.b[:-1]),
            x.eq(Mux(swap, state.b, state.a)),
            y.eq(Mux(swap, state.a, state.b)),
        ]
        subtract = x.sign ^ y.sign
        x_special, y_special = x.exponent == form.max_exponent, y.exponent == form.max_exponent
        x_nan, y_nan = x_special & x.mantissa.any(), y_special & y.mantissa.any()
        opposite_infinities = x_special & y_special & ~x_nan & ~y_nan & subtract
        signalling = (x_nan & ~x.mantissa[-1]) | (y_nan & ~y.mantissa[-1])
        x_normal, y_normal = x.exponent.any(), y.exponent.any()
        x_exponent, y_exponent = x.exponent | ~x_normal, y.exponent | ~y_normal  # a subnormal has the exponent 1
        return {
            "sign": x.sign,
            "nan": x_nan | y_nan | opposite_infinities,
            "invalid": signalling | opposite_infinities,
            "infinite": x_special,
            "subtract": subtract,
            "exponent": x_exponent,
            "distance": (x_exponent - y_exponent)[: form.exponent_bits],
            "big": Cat(x.mantissa, x_normal),
            "small": Cat(y.mantissa, y_normal),
        }

    def _align(self, m: Module, state: Any) -> dict[str, Value]:
        """Shifts small down to big's exponent; what falls off ends in the sticky bit."""
        precision = len(state.small)
        most = precision + _GUARD_BITS - 1  # from here on only the sticky bit is left
        amount = Signal(range(most + 1), name="amount")
        wide = Signal(precision + most, name="wide")
        m.d.comb += [
            amount.eq(Mux(state.distance > most, most, state.distance)),
            wide.eq(Cat(Const(0, most), state.small) >> amount),
        ]
        small = Cat(wide[:precision].any(), wide[precision:])
        return {**_same(state, "subtract", "exponent", "big"), "small": small}

    def _add(self, m: Module, state: Any) -> dict[str, Value]:
        """Adds or subtracts magnitudes; big is not smaller than small, so the total is never negative."""
        big = Cat(Const(0, _GUARD_BITS), state.big)
        total = Mux(state.subtract, big - state.small, big + state.small)[: len(big) + 1]
        return {**_same(state, "subtract", "exponent"), "total": total}

    def _count(self, m: Module, state: Any) -> dict[str, Value]:
        """Leading zeros, at most as many as the exponent allows; an exact zero difference is +0."""
        width, exponent = len(state.total), state.exponent
        leading = Signal(range(width + 1), name="leading", init=width)
        for bit in range(width):  # the last assignment, of the highest one, holds
            with m.If(state.total[bit]):
                m.d.comb += leading.eq(width - 1 - bit)
        zeros = Mux(leading > exponent, exponent, leading)
        sign = state.sign & ~(state.subtract & (state.total == 0))
        return {
            **_same(state, "total"),
            "sign": sign,
            "zeros": zeros[: len(leading)],
            "exponent": (exponent + 1 - zeros)[: len(exponent) + 1],
        }

    def _normalise(self, m: Module, state: Any) -> dict[str, Value]:
        """Shifts the leading one to the top; it stays lower if the sum is subnormal."""
        total = (state.total << state.zeros)[: len(state.total)]
        return {**_same(state, "exponent"), "total": total}

    def _round(self, m: Module, state: Any) -> dict[str, Value]:
        """To nearest, ties to even. A carry out of the mantissa increments the exponent by itself."""
        form, total = self._format, state.total
        lowest = _GUARD_BITS + 1  # place of the last kept bit: the top is where an addition's carry goes
        exponent = Mux(total[-1], state.exponent, 0)
        guard, sticky = total[lowest - 1], total[: lowest - 1].any()
        rounded = Signal(form.mantissa_bits + len(exponent), name="rounded")
        result = Signal(form.bits, name="result")
        overflow = rounded[form.mantissa_bits :] >= form.max_exponent
        finite = ~(state.nan | state.infinite)
        m.d.comb += rounded.eq(Cat(total[lowest:-1], exponent) + (guard & (sticky | total[lowest])))
        with m.If(state.nan):
            m.d.comb += result.eq(form.canonical_nan)
        with m.Elif(state.infinite | overflow):
            m.d.comb += result.eq(Cat(Const(form.infinity, form.bits - 1), state.sign))
        with m.Else():
            m.d.comb += result.eq(Cat(rounded[: form.bits - 1], state.sign))
        flags = Signal(Flags, name="flags")
        m.d.comb += [
            flags.invalid.eq(state.invalid),
            flags.overflow.eq(finite & overflow),
            flags.inexact.eq(finite & (guard | sticky | overflow)),
        ]
        return {"sum": result, "flags": flags.as_value()}


def _same(state: Any, *names: str) -> dict[str, Value]:
    """What a step hands on unchanged: the special cases and the members ``names``."""
    return {name: state[name] for name in ("sign", "nan", "invalid", "infinite", *names)}
