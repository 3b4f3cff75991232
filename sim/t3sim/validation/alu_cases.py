"""Cases for the NMC ALU: from text in Berkeley TestFloat's format, special values and random ones, or every pair."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
from t3hdl.interface.layouts import Dtype, Op

from t3sim.common.compiled import njit
from t3sim.hardware.golden.arithmetic import FORMATS, LANE_BITS, lane

BLOCK = 1 << 20
"""Cases that are made and checked at a time."""
TEXT_BLOCK = 1 << 16
_MAX_FLAGS = 31
_EVERY = 1 << 16


@dataclass(frozen=True)
class Cases:
    """Operands ``a`` (the old line's lane) and ``b`` (the new data), expected result and flags: arrays of one length.

    Bit patterns in unsigned integers as wide as a lane; flags are IEEE 754's, as bits 4 to 0.
    """

    a: np.ndarray
    b: np.ndarray
    bits: np.ndarray
    flags: np.ndarray

    def __len__(self) -> int:
        return len(self.a)


Source = Iterator[Callable[[], Cases]]
"""Blocks of cases in their order, each made when it is called, by any thread."""


def lane_type(dtype: Dtype) -> np.dtype:
    """Unsigned integers as wide as a lane of ``dtype``."""
    return np.dtype(f"<u{LANE_BITS[dtype] // 8}")


def expected(op: Op, dtype: Dtype, a: np.ndarray, b: np.ndarray) -> Cases:
    """These operands with the golden arithmetic's results."""
    bits, flags = np.empty_like(a), np.empty(len(a), np.uint8)
    _expected(int(op), int(dtype), a, b, bits, flags)
    return Cases(a, b, bits, flags)


@njit(cache=True, nogil=True)
def _expected(op, dtype, a, b, bits, flags):
    for i in range(len(a)):
        bits[i], flags[i] = lane(op, dtype, np.int64(a[i]), np.int64(b[i]))


def every_pair(op: Op, dtype: Dtype) -> Source:
    """All 2**32 pairs of a 16-bit dtype. ValueError for a wider one."""
    if LANE_BITS[dtype] != 16:
        raise ValueError(f"--exhaustive needs a dtype of 16 bits, fp16 or bf16, not {dtype.name.lower()}: use --random")
    kind, rows = lane_type(dtype), BLOCK // _EVERY

    def block(first: int) -> Callable[[], Cases]:
        return lambda: expected(
            op,
            dtype,
            np.repeat(np.arange(first, first + rows, dtype=kind), _EVERY),
            np.tile(np.arange(_EVERY, dtype=kind), rows),
        )

    return (block(first) for first in range(0, _EVERY, rows))


def random_pairs(op: Op, dtype: Dtype, count: int, seed: int) -> Source:
    """Every pair of :func:`special_values`, then ``count`` random pairs; the same ones for the same ``seed``.

    Of the random pairs of a floating dtype half are independent, half differ little in exponent, so that they cancel
    and round.
    """
    values = special_values(dtype)
    yield lambda: expected(op, dtype, np.repeat(values, len(values)), np.tile(values, len(values)))

    def block(first: int) -> Callable[[], Cases]:
        rng = np.random.default_rng([seed, int(op), int(dtype), first])
        return lambda: expected(op, dtype, *_random(dtype, min(BLOCK, count - first), rng))

    yield from (block(first) for first in range(0, count, BLOCK))


def special_values(dtype: Dtype) -> np.ndarray:
    """Zeros, limits of subnormal and normal numbers, ones and what is near, infinities and NaNs; both signs.

    For integers: limits, and powers of two with their neighbours.
    """
    width = LANE_BITS[dtype]
    top = 1 << (width - 1)
    if dtype not in FORMATS:
        near = [(1 << bit) + step for bit in range(width) for step in (-1, 0, 1)]
        return np.array(sorted({x & (2 * top - 1) for x in [*near, *(-x for x in near)]}), lane_type(dtype))
    form = FORMATS[dtype]
    ulps, infinity = 1 << form.fraction_bits, form.infinity
    one = infinity >> 1 & infinity
    centres = [0, ulps, 2 * ulps, one, one - ulps, one + ulps, infinity - ulps, infinity, form.nan, top]
    centres += [one + place * ulps for place in range(-form.fraction_bits - 3, form.fraction_bits + 4)]
    magnitudes = {x + step for x in centres for step in (-2, -1, 0, 1, 2) if 0 <= x + step < top}
    return np.array(sorted(magnitudes | {x | top for x in magnitudes}), lane_type(dtype))


def _random(dtype: Dtype, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    kind = lane_type(dtype)
    a, b = (rng.integers(0, 1 << LANE_BITS[dtype], count, kind) for _ in range(2))
    if dtype in FORMATS:
        form = FORMATS[dtype]
        reach = form.fraction_bits + 3
        steps = rng.integers(-reach, reach + 1, count).astype(kind) << kind.type(form.fraction_bits)
        kept = b & kind.type(form.sign | (1 << form.fraction_bits) - 1)
        near = kept | (a + steps & kind.type(form.infinity))
        b[::2] = near[::2]
    return a, b


def read_text(lines: Iterable[str], dtype: Dtype) -> Source:
    """The cases of ``a b result flags`` lines, hexadecimal; blank lines are skipped.

    ValueError for anything else, naming line number, rule and value; and if there are no cases.
    """
    numbered = enumerate(lines, 1)
    found = False
    while chunk := list(islice(numbered, TEXT_BLOCK)):
        cases = _parsed(chunk, dtype)
        if len(cases):
            found = True
            yield partial(_same, cases)
    if not found:
        raise ValueError("no cases on standard input: give one `a b result flags` per line, as testfloat_gen does")


def _same(cases: Cases) -> Cases:
    return cases


def _parsed(chunk: list[tuple[int, str]], dtype: Dtype) -> Cases:
    limits = np.array([*(3 * [(1 << LANE_BITS[dtype]) - 1]), _MAX_FLAGS])
    rows = [fields for _, line in chunk if (fields := line.split())]
    try:
        table = np.array([[int(text, 16) for text in fields] for fields in rows], np.int64).reshape(len(rows), 4)
        good = bool(((table >= 0) & (table <= limits)).all())
    except (ValueError, OverflowError):
        good = False
    if not good:
        raise ValueError(_fault(chunk, limits))
    a, b, bits = (np.ascontiguousarray(table[:, column], lane_type(dtype)) for column in range(3))
    if dtype in FORMATS:  # any NaN stands for all of them
        form = FORMATS[dtype]
        bits = np.where((bits & bits.dtype.type(form.sign - 1)) > form.infinity, bits.dtype.type(form.nan), bits)
    return Cases(a, b, bits, table[:, 3].astype(np.uint8))


def _fault(chunk: list[tuple[int, str]], limits: np.ndarray) -> str:
    """What is wrong with the first line that breaks a rule."""
    for number, line in chunk:
        fields = line.split()
        if fields and len(fields) != len(limits):
            return f"line {number}: must have four fields, a b result flags, not {line.strip()!r}"
        for text, limit in zip(fields, limits, strict=False):
            if not _is_hexadecimal(text, limit):
                return f"line {number}: must be hexadecimal from 0 to {limit:X}, not {text!r}"
    raise AssertionError("a line breaks a rule")


def _is_hexadecimal(text: str, limit: int) -> bool:
    try:
        return 0 <= int(text, 16) <= limit
    except ValueError:
        return False
