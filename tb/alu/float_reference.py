"""Exact sums, minima and maxima of IEEE 754 numbers and their exceptions, from rational arithmetic alone."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

INVALID, OVERFLOW, UNDERFLOW, INEXACT = 16, 4, 2, 1


@dataclass(frozen=True)
class Format:
    """A binary interchange format: widths of the biased exponent and of the stored fraction."""

    exponent_bits: int
    mantissa_bits: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def quiet(self) -> int:
        """The bit of a NaN that says quiet."""
        return 1 << (self.mantissa_bits - 1)

    @property
    def nan(self) -> int:
        """The canonical NaN."""
        return self.infinity | self.quiet

    def magnitude(self, bits: int) -> int:
        return bits & ((1 << (self.bits - 1)) - 1)

    def is_nan(self, bits: int) -> bool:
        return self.magnitude(bits) > self.infinity

    def is_signalling(self, bits: int) -> bool:
        return self.is_nan(bits) and not bits & self.quiet

    def is_infinite(self, bits: int) -> bool:
        return self.magnitude(bits) == self.infinity


FP16, BF16, FP32 = Format(5, 10), Format(8, 7), Format(8, 23)


def value_of(form: Format, bits: int) -> Fraction:
    """The exact value of a finite number."""
    magnitude = form.magnitude(bits)
    exponent, mantissa = magnitude >> form.mantissa_bits, magnitude & ((1 << form.mantissa_bits) - 1)
    significand = mantissa | (1 << form.mantissa_bits if exponent else 0)
    value = Fraction(significand) * Fraction(2) ** (max(exponent, 1) - form.bias - form.mantissa_bits)
    return -value if bits >> (form.bits - 1) else value


def _round_to_even(value: Fraction) -> int:
    floor = value.numerator // value.denominator
    rest = value - floor
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1)
    return floor + up


def _exponent_of(magnitude: Fraction) -> int:
    """The e of 2**e <= magnitude < 2**(e + 1)."""
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent if magnitude >= Fraction(2) ** exponent else exponent - 1


def round_to(form: Format, value: Fraction, zero_sign: int = 0) -> tuple[int, int]:
    """The number nearest to ``value`` (bits) and its flags; a zero gets ``zero_sign``."""
    top = form.bits - 1
    if value == 0:
        return zero_sign << top, 0
    sign, magnitude = int(value < 0), abs(value)
    smallest = 1 - form.bias  # exponent of the smallest normal number, and of the subnormals
    exponent = max(_exponent_of(magnitude), smallest)
    place = Fraction(2) ** (exponent - form.mantissa_bits)
    units = _round_to_even(magnitude / place)
    inexact = magnitude != units * place
    # Without a hidden bit the exponent field is 0; a carry out of the mantissa goes into the exponent.
    bits = ((exponent - smallest) << form.mantissa_bits) + units
    if bits >= form.infinity:
        return sign << top | form.infinity, OVERFLOW | INEXACT
    # tiny after rounding: rounded as if the exponent had no lower bound, still below the smallest normal number
    unbounded = Fraction(2) ** (_exponent_of(magnitude) - form.mantissa_bits)
    tiny = _round_to_even(magnitude / unbounded) * unbounded < Fraction(2) ** smallest
    return sign << top | bits, INEXACT * inexact | UNDERFLOW * (tiny and inexact)


def add(form: Format, a: int, b: int) -> tuple[int, int]:
    """a + b as (bits, flags), round to nearest even, canonical NaN."""
    if form.is_nan(a) or form.is_nan(b):
        return form.nan, INVALID * (form.is_signalling(a) or form.is_signalling(b))
    if form.is_infinite(a) or form.is_infinite(b):
        if form.is_infinite(a) and form.is_infinite(b) and a != b:
            return form.nan, INVALID
        return (a if form.is_infinite(a) else b), 0
    return round_to(form, value_of(form, a) + value_of(form, b), zero_sign=(a & b) >> (form.bits - 1))


def _place(form: Format, bits: int) -> tuple[Fraction, bool]:
    """Orders what is not a NaN by value; -0 comes before +0."""
    positive = not bits >> (form.bits - 1)
    if form.is_infinite(bits):
        beyond = Fraction(2) ** (form.bias + 1)
        return (beyond if positive else -beyond), positive
    return value_of(form, bits), positive


def _number(form: Format, a: int, b: int, choose: Callable[..., int]) -> tuple[int, int]:
    """The one that is a number, of two numbers the one that ``choose`` (min or max) takes by their places."""
    flags = INVALID * (form.is_signalling(a) or form.is_signalling(b))
    numbers = [bits for bits in (a, b) if not form.is_nan(bits)]
    if not numbers:
        return form.nan, flags
    return choose(numbers, key=lambda bits: _place(form, bits)), flags


def minimum(form: Format, a: int, b: int) -> tuple[int, int]:
    """minimumNumber of IEEE 754-2019 as (bits, flags)."""
    return _number(form, a, b, min)


def maximum(form: Format, a: int, b: int) -> tuple[int, int]:
    """maximumNumber of IEEE 754-2019 as (bits, flags)."""
    return _number(form, a, b, max)
