"""Arithmetic of the NMC ALU's lanes: IEEE 754 sums, minima and maxima with exception flags, and 32-bit integers.

Operands and results are bit patterns in ``int64``. A floating sum is brought to one integer times a power of two,
which is exact or has the exact sum's sign, rounding and exactness, and is rounded once, to nearest even.
A sum that is subnormal is exact: addition never underflows.
"""

from typing import NamedTuple

from t3hdl.interface.layouts import Dtype

from t3sim.common.compiled import njit
from t3sim.hardware.words import ADD, MAX, MIN

INVALID, OVERFLOW, INEXACT = 1 << 4, 1 << 2, 1 << 0
"""Flags (bits 4 to 0: invalid, divide-by-zero, overflow, underflow, inexact) that a lane can raise."""


class Format(NamedTuple):
    """A binary floating format: bits of the fraction; bit patterns of infinity, sign, quiet bit, canonical NaN."""

    fraction_bits: int
    infinity: int
    sign: int
    quiet: int
    nan: int


def _format(fraction_bits: int, width: int) -> Format:
    sign, quiet = 1 << (width - 1), 1 << (fraction_bits - 1)
    infinity = sign - (1 << fraction_bits)
    return Format(fraction_bits, infinity, sign, quiet, infinity | quiet)


FP16, BF16, FP32 = _format(10, 16), _format(7, 16), _format(23, 32)
FORMATS = {Dtype.FP16: FP16, Dtype.BF16: BF16, Dtype.FP32: FP32}
"""The format of each floating dtype."""
LANE_BITS = {Dtype.FP16: 16, Dtype.BF16: 16, Dtype.FP32: 32, Dtype.INT32: 32}
"""Width of each dtype's lane."""

_DTYPE_FP16, _DTYPE_BF16, _DTYPE_FP32 = int(Dtype.FP16), int(Dtype.BF16), int(Dtype.FP32)
_WORD, _WORD_SIGN = 0xFFFF_FFFF, 0x8000_0000
_REACH = 28
"""Places by which operands are aligned at most: a smaller one counts as one unit there, far below any half ulp."""


@njit(cache=True)
def _is_signaling(bits, form):
    magnitude = bits & ~form.sign
    return magnitude > form.infinity and magnitude & form.quiet == 0


@njit(cache=True)
def _exponent(bits, form):
    """Exponent field of a finite number, as its significand is counted: 1 for zero and subnormal numbers."""
    return max((bits & form.infinity) >> form.fraction_bits, 1)


@njit(cache=True)
def _significand(bits, form):
    """Signed significand of a finite number, in units of its last place."""
    hidden = 1 << form.fraction_bits
    magnitude = bits & (hidden - 1)
    if bits & form.infinity:
        magnitude |= hidden
    return -magnitude if bits & form.sign else magnitude


@njit(cache=True)
def _round(total, exponent, form):
    """The number nearest to ``total``, not 0, in units of the last place at ``exponent`` (bits, flags)."""
    sign, magnitude = (form.sign, -total) if total < 0 else (0, total)
    hidden = 1 << form.fraction_bits
    while magnitude < hidden and exponent > 1:
        magnitude <<= 1
        exponent -= 1
    shift = 0
    while magnitude >> shift >= 2 * hidden:
        shift += 1
    kept = magnitude >> shift
    rest = (magnitude - (kept << shift)) * 2
    unit = 1 << shift
    if rest > unit or (rest == unit and kept & 1):
        kept += 1
    # The significand with its leading one counts for one exponent more, and carries into it as it should.
    bits = kept + ((exponent + shift - 1) << form.fraction_bits)
    if bits >= form.infinity:
        return sign | form.infinity, OVERFLOW | INEXACT
    return sign | bits, INEXACT if rest else 0


@njit(cache=True)
def _nan(a, b, form):
    return form.nan, INVALID if _is_signaling(a, form) or _is_signaling(b, form) else 0


@njit(cache=True)
def float_add(a, b, form):
    """Sum of two numbers of the format ``form``: (bits, flags). NaN results are canonical."""
    a_magnitude, b_magnitude = a & ~form.sign, b & ~form.sign
    if a_magnitude > form.infinity or b_magnitude > form.infinity:
        return _nan(a, b, form)
    if a_magnitude == form.infinity or b_magnitude == form.infinity:
        if a_magnitude == b_magnitude and a != b:
            return form.nan, INVALID
        return a if a_magnitude == form.infinity else b, 0
    big, small = (a, b) if a_magnitude >= b_magnitude else (b, a)
    exponent = _exponent(big, form)
    distance, addend = exponent - _exponent(small, form), _significand(small, form)
    if distance > _REACH:
        distance, addend = _REACH, (addend > 0) - (addend < 0)
    total = (_significand(big, form) << distance) + addend
    if total == 0:  # exact: +0, unless both are -0
        return a & b & form.sign, 0
    return _round(total, exponent - distance, form)


@njit(cache=True)
def float_select(a, b, greater, form):
    """IEEE 754-2019 maximumNumber (``greater``) or minimumNumber of two numbers, -0 below +0: (bits, flags)."""
    a_magnitude, b_magnitude = a & ~form.sign, b & ~form.sign
    result, flags = _nan(a, b, form)
    if a_magnitude <= form.infinity and b_magnitude <= form.infinity:
        a_key, b_key = -1 - a_magnitude if a & form.sign else a, -1 - b_magnitude if b & form.sign else b
        result = a if (a_key > b_key) == greater else b
    elif a_magnitude <= form.infinity:
        result = a
    elif b_magnitude <= form.infinity:
        result = b
    return result, flags


@njit(cache=True)
def _float_lane(op, a, b, form):
    if op == ADD:
        return float_add(a, b, form)
    return float_select(a, b, op == MAX, form)


@njit(cache=True)
def _integer_lane(op, a, b):
    if op == ADD:
        return (a + b) & _WORD, 0
    return a if ((a ^ _WORD_SIGN) < (b ^ _WORD_SIGN)) == (op == MIN) else b, 0


@njit(cache=True)
def lane(op, dtype, a, b):
    """ADD, MIN or MAX of two numbers of ``dtype``, unsigned bit patterns: (bits, flags)."""
    if dtype == _DTYPE_FP16:
        return _float_lane(op, a, b, FP16)
    if dtype == _DTYPE_BF16:
        return _float_lane(op, a, b, BF16)
    if dtype == _DTYPE_FP32:
        return _float_lane(op, a, b, FP32)
    return _integer_lane(op, a, b)
