"""IEEE 754 sum, minimum and maximum, pipelined, of one format or of several that share the hardware."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .stages import register_stages

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
BF16 = FloatFormat(exponent_bits=8, mantissa_bits=7)
FP32 = FloatFormat(exponent_bits=8, mantissa_bits=23)

FORMAT_BITS = 2
"""Width of a format's number: a unit has up to four formats."""

_GUARD_BITS = 3
"""Guard, round and sticky: enough to round a sum of two numbers correctly."""

_Decided = data.StructLayout({"form": FORMAT_BITS, "nan": 1, "invalid": 1, "infinite": 1})
"""What is known of the result before the addition: its format, and whether it is no finite number."""

_COARSE_LEVEL = 3
"""The leading one is brought up in two steps: by powers of two from 2**3 on, then by smaller ones."""


_STEP_TIMES = (4, 5, 5, 2, 4, 6, 3, 2)
"""How long each of the eight steps takes beside the others, by the longest path of FP16 on an ECP5."""


class FloatUnit(wiring.Component):
    """Sum, minimum or maximum of two numbers whose format is chosen per operation.

    Operands are unpacked into one form: the mantissa at the left end of the widest format's, the exponent with its own
    bias in the widest format's width. Between unpacking and rounding, all formats are the same. Minimum and maximum
    are IEEE 754-2019 minimumNumber and maximumNumber with -0 below +0: the one chosen passes the adder as itself + 0.

    Parameters
    ----------
    formats : one to four formats; an operation names one by its number in this sequence.
    latency : pipeline registers, at least 1, of which the last one is the output; eight steps lie between them so that
        the longest way from one to the next is as short as can be.

    Members
    -------
    advance : In(latency) : load enable of each pipeline register, the first one (bit 0) first.
    form : In(2) : number of the format.
    compare, larger : In(1) : 0, any: sum; 1, 0: minimum; 1, 1: maximum.
    a, b : In : operands, as wide as the widest format; those of a narrower one lie in the low bits.
    result : Out : as the operands, 0 above a narrower format; a NaN is always the canonical one.
    flags : Out(Flags) : exceptions. Divide-by-zero is always 0, and so is underflow: a sum that is tiny is exact.

    Latency: ``latency`` cycles while ``advance`` is all ones. Throughput: one operation per cycle.

    Raises
    ------
    ValueError
        if ``latency`` is below 1, or if the formats are none or more than four.
    """

    def __init__(self, *formats: FloatFormat, latency: int) -> None:
        if latency < 1:
            raise ValueError(f"latency of a float unit must be at least 1, not {latency}")
        if not 1 <= len(formats) <= 1 << FORMAT_BITS:
            raise ValueError(f"a float unit must have 1 to {1 << FORMAT_BITS} formats, not {len(formats)}")
        self._formats, self._latency = formats, latency
        self._exponent_bits = max(form.exponent_bits for form in formats)
        self._mantissa_bits = max(form.mantissa_bits for form in formats)
        bits = max(form.bits for form in formats)
        super().__init__({
            "advance": In(latency), "form": In(FORMAT_BITS), "compare": In(1), "larger": In(1), "a": In(bits),
            "b": In(bits), "result": Out(bits), "flags": Out(Flags),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from operands to result."""
        return self._latency

    def elaborate(self, platform: Any) -> Module:
        """Each step names what it hands on, to a register or to the next step.

        A value has registers of its own: software simulates words of up to 64 bits much faster than one wide word.
        """
        m = Module()
        steps = (
            self._unpack, self._order, self._align, self._add,
            self._normalise_coarsely, self._normalise_finely, self._round, self._pack,
        )  # fmt: skip
        registers, passed = register_stages(_STEP_TIMES, self._latency), 0
        state: Any = self
        for number, step in enumerate(steps, start=1):
            name = step.__name__.removeprefix("_")
            values = {key: _named(m, f"{name}_{key}", value) for key, value in step(m, state).items()}
            for _ in range(registers.count(number)):
                held = {key: Signal.like(value, name=f"{value.name}_{passed}") for key, value in values.items()}
                with m.If(self.advance[passed]):
                    m.d.sync += [held[key].eq(value) for key, value in values.items()]
                values = held
                passed += 1
            state = SimpleNamespace(**values)
        m.d.comb += [self.result.eq(state.result), self.flags.eq(state.flags)]
        return m

    def _unpack(self, m: Module, state: Any) -> dict[str, Value]:
        """Both numbers in the common form, and which one has the smaller magnitude (a NaN has the largest)."""
        a, b = (_named(m, name, self._unpacked(state.form, getattr(state, name))) for name in ("a", "b"))
        return {**_same(state, "form", "compare", "larger"), "a": a, "b": b, "swap": a[:-1] < b[:-1]}

    def _order(self, m: Module, state: Any) -> dict[str, Value]:
        """The larger magnitude first, significands with hidden bit; operands that are not finite are decided here.

        A minimum or maximum is the number of larger magnitude if its sign says so and it is not a NaN, else the other.
        """
        number = data.StructLayout({"mantissa": self._mantissa_bits, "exponent": self._exponent_bits, "sign": 1})
        max_exponent_field = _named(m, "max_exponent_field", self._max_exponent_of(state.form))
        a, b = number(state.a), number(state.b)
        a_nan = _named(m, "a_nan", (a.exponent == max_exponent_field) & a.mantissa.any())
        b_nan = _named(m, "b_nan", (b.exponent == max_exponent_field) & b.mantissa.any())
        both_infinite = (a.exponent == max_exponent_field) & (b.exponent == max_exponent_field) & ~a_nan & ~b_nan
        subtract = _named(m, "subtract", (a.sign ^ b.sign) & ~state.compare)
        no_sum = _named(m, "no_sum", both_infinite & subtract)

        larger_sign = Mux(state.swap, b.sign, a.sign)
        other = state.compare & (a_nan | b_nan | (larger_sign == state.larger))
        takes_b = _named(m, "takes_b", state.swap ^ other)
        first = number(_named(m, "first", Mux(takes_b, state.b, state.a)))
        second = number(_named(m, "second", Mux(state.swap, state.a, state.b)))
        a_exponent, b_exponent = (x.exponent | ~x.exponent.any() for x in (a, b))  # a subnormal has the exponent 1
        bits = self._exponent_bits
        a_above, b_above = (a_exponent - b_exponent)[:bits], (b_exponent - a_exponent)[:bits]
        decided = Signal(_Decided, name="decided")
        m.d.comb += [
            decided.form.eq(state.form),
            decided.nan.eq(Mux(state.compare, a_nan & b_nan, a_nan | b_nan | no_sum)),
            decided.invalid.eq((a_nan & ~a.mantissa[-1]) | (b_nan & ~b.mantissa[-1]) | no_sum),
            decided.infinite.eq(first.exponent == max_exponent_field),
        ]
        return {
            "decided": decided.as_value(),
            "sign": first.sign,
            "subtract": subtract,
            "exponent": Mux(takes_b, b_exponent, a_exponent),
            "distance": Mux(state.swap, b_above, a_above),  # of a sum: nothing is aligned for a minimum or maximum
            "big": Cat(first.mantissa, first.exponent.any()),
            "small": Mux(state.compare, 0, Cat(second.mantissa, second.exponent.any())),
        }

    def _align(self, m: Module, state: Any) -> dict[str, Value]:
        """Shifts small down to big's exponent; what falls off ends in the sticky bit."""
        small = Cat(Const(0, _GUARD_BITS), state.small)
        levels = min((len(small) - 1).bit_length(), len(state.distance))
        for level in range(levels):
            kept = small[1 << level :]
            shifted = Cat(small[: 1 << level].any() | kept[0], kept[1:])
            small = _named(m, f"by_{1 << level}", Mux(state.distance[level], shifted, small))
        if levels < len(state.distance):
            small = Mux(state.distance[levels:].any(), small.any(), small)
        return {**_same(state, "decided", "sign", "subtract", "exponent", "big"), "small": small}

    def _add(self, m: Module, state: Any) -> dict[str, Value]:
        """Adds or subtracts magnitudes; big is not smaller than small, so the total is never negative."""
        big, small = Cat(Const(0, _GUARD_BITS), state.big, Const(0, 1)), Cat(state.small, Const(0, 1))
        inverted = small ^ state.subtract.replicate(len(small))
        total = (Cat(state.subtract, big) + Cat(state.subtract, inverted))[1 : len(big) + 1]  # lowest bit: carry in
        return {**_same(state, "decided", "sign", "subtract", "exponent"), "total": total}

    def _normalise_coarsely(self, m: Module, state: Any) -> dict[str, Value]:
        """The long shifts of the normalisation; an exact zero difference is +0."""
        sign = state.sign & ~(state.subtract & ~state.total.any())
        levels = range(_COARSE_LEVEL, (len(state.total) - 1).bit_length())
        return {**_same(state, "decided"), "sign": sign, **_normalised(m, state, levels)}

    def _normalise_finely(self, m: Module, state: Any) -> dict[str, Value]:
        """The short shifts: now the leading one is at the top, or lower if the result is subnormal."""
        return {**_same(state, "decided", "sign"), **_normalised(m, state, range(_COARSE_LEVEL))}

    def _round(self, m: Module, state: Any) -> dict[str, Value]:
        """To nearest, ties to even, at the last place of the format.

        The hidden bit adds 1 to the exponent, as the top is where an addition's carry goes; a zero has no exponent.
        A carry out of the mantissa increments the exponent.
        """
        form = _Decided(state.decided).form
        total, hidden, lowest = state.total, state.total[-1], _GUARD_BITS + 1
        ups, inexact = [], []
        for number, f in enumerate(self._formats):
            place = lowest + self._mantissa_bits - f.mantissa_bits
            guard, sticky = total[place - 1], _named(m, f"sticky_{number}", total[: place - 1].any())
            ups.append((guard & (sticky | total[place])).shift_left(place - lowest))
            inexact.append(guard | sticky)
        kept = Cat(total[lowest:-1], Mux(hidden, state.exponent, 0))
        rounded = kept + Cat(self._by_format(form, ups) | Const(0, self._mantissa_bits), hidden)
        return {**_same(state, "decided", "sign"), "rounded": rounded, "inexact": self._by_format(form, inexact)}

    def _pack(self, m: Module, state: Any) -> dict[str, Value]:
        """Puts what is not finite in place of the number, and the number into its format."""
        top, decided = self._mantissa_bits, _Decided(state.decided)
        finite = _named(m, "finite", ~(decided.nan | decided.infinite))
        overflow = _named(m, "overflow", finite & self._reaches_max(decided.form, state.rounded[top:]))
        special = Cat(Const(0, top - 1), decided.nan, Const(-1, self._exponent_bits))
        magnitude = _named(m, "magnitude", Mux(finite & ~overflow, state.rounded[: len(special)], special))
        sign = state.sign & ~decided.nan
        packed = [Cat(magnitude[top - f.mantissa_bits : top + f.exponent_bits], sign) for f in self._formats]
        flags = Signal(Flags, name="flags")
        m.d.comb += [
            flags.invalid.eq(decided.invalid),
            flags.overflow.eq(overflow),
            flags.inexact.eq(finite & (state.inexact | overflow)),
        ]
        return {"result": self._by_format(decided.form, packed), "flags": flags.as_value()}

    def _unpacked(self, form: Value, bits: Value) -> Value:
        """A number in the common form: mantissa, exponent, sign."""
        candidates = []
        for f in self._formats:
            right = Const(0, self._mantissa_bits - f.mantissa_bits)
            left = Const(0, self._exponent_bits - f.exponent_bits)
            candidates.append(Cat(right, bits[: f.bits - 1], left, bits[f.bits - 1]))
        return self._by_format(form, candidates)

    def _max_exponent_of(self, form: Value) -> Value:
        """The exponent of infinities and NaNs."""
        return self._by_format(form, [Const(f.max_exponent, self._exponent_bits) for f in self._formats])

    def _reaches_max(self, form: Value, exponent: Value) -> Value:
        """Whether a rounded exponent is that of infinities, all ones, or above it: no carry chain is needed."""
        reached = [exponent[: f.exponent_bits].all() | exponent[f.exponent_bits :].any() for f in self._formats]
        return self._by_format(form, reached)

    def _by_format(self, form: Value, candidates: Sequence[Value]) -> Value:
        """The candidate of the format with the number ``form``."""
        chosen = candidates[-1]
        for number, candidate in reversed(list(enumerate(candidates[:-1]))):
            chosen = Mux(form == number, candidate, chosen)
        return chosen


def _named(m: Module, name: str, value: Value) -> Signal:
    """A signal that is ``value``: what several expressions use appears once in the hardware's text."""
    signal = Signal(value.shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal


def _same(state: Any, *names: str) -> dict[str, Value]:
    """What a step hands on unchanged."""
    return {name: getattr(state, name) for name in names}


def _normalised(m: Module, state: Any, levels: range) -> dict[str, Value]:
    """The total shifted up by 2**level, highest of ``levels`` first, and the exponent decreased by as much.

    A level is skipped if it would lose a one or make the exponent negative.
    """
    total, exponent = state.total, state.exponent
    for level in reversed(levels):
        shift = 1 << level
        may = _named(m, f"may_{shift}", ~total[-shift:].any() & exponent[level:].any())
        total = _named(m, f"up_{shift}", Mux(may, total.shift_left(shift), total)[: len(total)])
        exponent = _named(m, f"exponent_{shift}", (exponent - may.shift_left(level))[: len(exponent)])
    return {"total": total, "exponent": exponent}
