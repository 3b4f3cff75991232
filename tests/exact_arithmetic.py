"""IEEE 754 by definition: sums, minima and maxima of any binary format from rational numbers, with exception flags."""

from dataclasses import dataclass
from fractions import Fraction

INVALID, OVERFLOW, UNDERFLOW, INEXACT = 16, 4, 2, 1


@dataclass(frozen=True)
class Binary:
    """A binary interchange format of ``width`` bits, ``fraction`` of them behind the leading one."""

    width: int
    fraction: int

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        return self.sign - (1 << self.fraction)

    @property
    def nan(self) -> int:
        return self.infinity | 1 << (self.fraction - 1)

    @property
    def minimum_exponent(self) -> int:
        return 2 - (1 << (self.width - self.fraction - 2))

    def is_nan(self, bits: int) -> bool:
        return bits & ~self.sign > self.infinity

    def is_signaling(self, bits: int) -> bool:
        return self.is_nan(bits) and not bits >> (self.fraction - 1) & 1

    def value(self, bits: int) -> Fraction:
        """The value of a finite number; an infinity is the next power of two, so that it compares as it should."""
        field, significand = (bits & self.infinity) >> self.fraction, Fraction(bits & (1 << self.fraction) - 1)
        significand /= 1 << self.fraction
        exponent = max(field, 1) - 1 + self.minimum_exponent
        magnitude = (significand + (field > 0)) * Fraction(2) ** exponent
        return -magnitude if bits & self.sign else magnitude


FP16, BF16, FP32 = Binary(16, 10), Binary(16, 7), Binary(32, 23)


def _exponent_of(magnitude: Fraction) -> int:
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent if magnitude >= Fraction(2) ** exponent else exponent - 1


def _encode(exact: Fraction, form: Binary) -> tuple[int, int]:
    """A value that is not 0, rounded to nearest even: (bits, flags)."""
    sign, magnitude = form.sign if exact < 0 else 0, abs(exact)
    exponent = _exponent_of(magnitude)
    unbounded_ulp = Fraction(2) ** (exponent - form.fraction)
    ulp = Fraction(2) ** (max(exponent, form.minimum_exponent) - form.fraction)
    rounded = round(magnitude / ulp) * ulp  # Python rounds halves to even
    if rounded >= form.value(form.infinity):
        return sign | form.infinity, OVERFLOW | INEXACT
    tiny = round(magnitude / unbounded_ulp) * unbounded_ulp < Fraction(2) ** form.minimum_exponent
    flags = (INEXACT | UNDERFLOW * tiny) if rounded != magnitude else 0
    smallest = Fraction(2) ** form.minimum_exponent
    field = _exponent_of(rounded) - form.minimum_exponent + 1 if rounded >= smallest else 0
    units = int(rounded / Fraction(2) ** (max(field, 1) - 1 + form.minimum_exponent - form.fraction))
    return sign | field << form.fraction | units & (1 << form.fraction) - 1, flags


def add(a: int, b: int, form: Binary) -> tuple[int, int]:
    """a + b as (bits, flags)."""
    if form.is_nan(a) or form.is_nan(b):
        return form.nan, INVALID * (form.is_signaling(a) or form.is_signaling(b))
    infinite = [x for x in (a, b) if x & ~form.sign == form.infinity]
    if infinite:
        return (form.nan, INVALID) if len(set(infinite)) == 2 else (infinite[0], 0)
    exact = form.value(a) + form.value(b)
    return _encode(exact, form) if exact else (a & b & form.sign, 0)


def select(a: int, b: int, greater: bool, form: Binary) -> tuple[int, int]:
    """IEEE 754-2019 maximumNumber (``greater``) or minimumNumber as (bits, flags)."""
    flags = INVALID * (form.is_signaling(a) or form.is_signaling(b))
    numbers = [x for x in (a, b) if not form.is_nan(x)]
    if not numbers:
        return form.nan, flags

    def order(bits: int) -> tuple[Fraction, bool]:
        return form.value(bits), not bits & form.sign

    return (max if greater else min)(numbers, key=order), flags
