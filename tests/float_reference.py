"""Exact sums of FP16 numbers and their IEEE 754 exceptions, from rational arithmetic alone."""

from fractions import Fraction

INVALID, OVERFLOW, UNDERFLOW, INEXACT = 16, 4, 2, 1
NAN = 0x7E00
MANTISSA, BIAS, MAX_EXPONENT = 10, 15, 31


def is_nan(bits: int) -> bool:
    return bits & 0x7FFF > 0x7C00


def is_infinite(bits: int) -> bool:
    return bits & 0x7FFF == 0x7C00


def value_of(bits: int) -> Fraction:
    """The exact value of a finite FP16 number."""
    exponent, mantissa = bits >> MANTISSA & MAX_EXPONENT, bits & 0x3FF
    significand = mantissa | (1 << MANTISSA if exponent else 0)
    magnitude = Fraction(significand) * Fraction(2) ** (max(exponent, 1) - BIAS - MANTISSA)
    return -magnitude if bits >> 15 else magnitude


def _round_to_even(value: Fraction) -> int:
    floor = value.numerator // value.denominator
    rest = value - floor
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1)
    return floor + up


def round_to_fp16(value: Fraction, zero_sign: int) -> tuple[int, int]:
    """The FP16 number nearest to ``value`` (bits) and its flags; a zero gets ``zero_sign``."""
    if value == 0:
        return zero_sign << 15, 0
    sign, magnitude = int(value < 0), abs(value)
    exponent = 1  # the smallest one, of subnormals too
    while magnitude >= Fraction(2) ** (exponent + 1 - BIAS):
        exponent += 1
    units = _round_to_even(magnitude / Fraction(2) ** (exponent - BIAS - MANTISSA))
    inexact = magnitude != units * Fraction(2) ** (exponent - BIAS - MANTISSA)
    if units == 2 << MANTISSA:
        exponent, units = exponent + 1, units >> 1
    if exponent >= MAX_EXPONENT:
        return sign << 15 | 0x7C00, OVERFLOW | INEXACT
    # tiny after rounding: rounded as if the exponent had no lower bound, still below the smallest normal number
    unbounded = magnitude
    scale = Fraction(1)
    while unbounded < 1:
        unbounded, scale = unbounded * 2, scale / 2
    tiny = _round_to_even(unbounded * (1 << MANTISSA)) * scale / (1 << MANTISSA) < Fraction(2) ** (1 - BIAS)
    flags = INEXACT * inexact | UNDERFLOW * (tiny and inexact)
    field = exponent if units >> MANTISSA else 0
    return sign << 15 | field << MANTISSA | (units & 0x3FF), flags


def add(a: int, b: int) -> tuple[int, int]:
    """FP16 a + b as (bits, flags), round to nearest even, canonical NaN."""
    if is_nan(a) or is_nan(b):
        signalling = any(is_nan(x) and not x & 0x200 for x in (a, b))
        return NAN, INVALID * signalling
    if is_infinite(a) or is_infinite(b):
        if is_infinite(a) and is_infinite(b) and a != b:
            return NAN, INVALID
        return (a if is_infinite(a) else b), 0
    return round_to_fp16(value_of(a) + value_of(b), zero_sign=(a & b) >> 15)
