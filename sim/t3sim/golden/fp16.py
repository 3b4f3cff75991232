"""IEEE 754 binary16 addition with exception flags, by integer arithmetic.

Every finite binary16 is an integer multiple of 2**-24 below 2**41 such units, so a sum is exact in ``int64`` and is
rounded once, to nearest even. A sum that is subnormal is exact: addition never underflows.
"""

from numba import njit

CANONICAL_NAN = 0x7E00
INVALID, OVERFLOW, INEXACT = 1 << 4, 1 << 2, 1 << 0
"""Flags (bits 4 to 0: invalid, divide-by-zero, overflow, underflow, inexact) that an addition can raise."""

_SIGN, _INFINITY, _QUIET, _FRACTION = 0x8000, 0x7C00, 0x0200, 0x03FF
_FRACTION_BITS = 10


@njit(cache=True)
def _units(bits):
    """The value of a finite binary16, in units of 2**-24."""
    exponent, magnitude = (bits & _INFINITY) >> _FRACTION_BITS, bits & _FRACTION
    if exponent > 0:
        magnitude = (magnitude | (_FRACTION + 1)) << (exponent - 1)
    return -magnitude if bits & _SIGN else magnitude


@njit(cache=True)
def _is_signaling(bits):
    magnitude = bits & ~_SIGN
    return magnitude > _INFINITY and magnitude & _QUIET == 0


@njit(cache=True)
def _round(units):
    """The binary16 nearest to a non-zero number of units (bits, flags)."""
    sign, magnitude = (_SIGN, -units) if units < 0 else (0, units)
    shift = 0
    while magnitude >> shift > 2 * _FRACTION + 1:
        shift += 1
    kept = magnitude >> shift
    rest = (magnitude - (kept << shift)) * 2
    unit = 1 << shift
    if rest > unit or (rest == unit and kept & 1):
        kept += 1
    # Exponent field 1 begins at 1024 units, so adding the significand with its leading one carries as it should.
    bits = kept + (shift << _FRACTION_BITS)
    if bits >= _INFINITY:
        return sign | _INFINITY, OVERFLOW | INEXACT
    return sign | bits, INEXACT if rest else 0


@njit(cache=True)
def fp16_add(a, b):
    """Sum of two binary16 (bit patterns, int64) to nearest even: (bit pattern, flags). NaN results are 0x7E00."""
    a_magnitude, b_magnitude = a & ~_SIGN, b & ~_SIGN
    if a_magnitude > _INFINITY or b_magnitude > _INFINITY:
        return CANONICAL_NAN, INVALID if _is_signaling(a) or _is_signaling(b) else 0
    if a_magnitude == _INFINITY or b_magnitude == _INFINITY:
        if a_magnitude == b_magnitude and a != b:
            return CANONICAL_NAN, INVALID
        return a if a_magnitude == _INFINITY else b, 0
    units = _units(a) + _units(b)
    if units == 0:  # exact: +0, unless both are -0
        return a & b & _SIGN, 0
    return _round(units)
