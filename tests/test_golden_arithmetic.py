"""The golden arithmetic of the NMC's lanes: values against NumPy and ml_dtypes, flags against rational numbers."""

import random

import exact_arithmetic as exact
import ml_dtypes
import numpy as np
import pytest
from numba import njit
from t3hdl.layouts import Dtype, Op
from t3sim.golden.arithmetic import lane

FORMATS = {Dtype.FP16: exact.FP16, Dtype.BF16: exact.BF16, Dtype.FP32: exact.FP32}
NUMPY = {Dtype.FP16: np.float16, Dtype.BF16: ml_dtypes.bfloat16, Dtype.FP32: np.float32}
FLOATS = list(FORMATS)


@njit
def lanes(op, dtype, a, b, bits, flags):
    for i in range(len(a)):
        bits[i], flags[i] = lane(op, dtype, a[i], b[i])


def compute(op: Op, dtype: Dtype, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bits and flags of the golden arithmetic."""
    bits, flags = np.zeros(len(a), np.int64), np.zeros(len(a), np.int64)
    lanes(int(op), int(dtype), a.astype(np.int64), b.astype(np.int64), bits, flags)
    return bits, flags


def special(form: exact.Binary) -> list[int]:
    """Zeros, subnormal and normal limits, ones and halves, infinities, NaNs of both kinds; both signs."""
    hidden, inf = 1 << form.fraction, form.infinity
    one = inf >> 1 & inf
    magnitudes = [
        0, 1, 2, 3, hidden - 1, hidden, hidden + 1, 2 * hidden - 1, 2 * hidden, one - 1, one, one + 1,
        one - hidden * (form.fraction + 1), one - hidden * (form.fraction + 2), inf - hidden, inf - 2, inf - 1, inf,
        inf + 1, form.nan - 1, form.nan, form.nan + 1, form.sign - 1,
    ]  # fmt: skip
    return magnitudes + [x | form.sign for x in magnitudes]


def operands(form: exact.Binary, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of special values; random pairs, of which half are near each other so that they cancel and round."""
    print(f"seed {seed}")
    values = np.array(special(form), np.int64)
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << form.width, count)
    near = (a + (rng.integers(-2 * form.fraction, 2 * form.fraction, count) << form.fraction)) ^ rng.integers(
        0, 1 << form.fraction, count
    )
    b = np.where(np.arange(count) % 2, rng.integers(0, 1 << form.width, count), near & (form.sign * 2 - 1))
    b ^= rng.integers(0, 2, count) * form.sign
    pairs = np.repeat(values, len(values)), np.tile(values, len(values))
    return np.concatenate([pairs[0], a]), np.concatenate([pairs[1], b])


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_are_numpys(dtype):
    form = FORMATS[dtype]
    a, b = operands(form, 1_000_000, 11)
    bits, _ = compute(Op.ADD, dtype, a, b)
    kind = np.uint16 if form.width == 16 else np.uint32
    with np.errstate(all="ignore"):
        total = a.astype(kind).view(NUMPY[dtype]) + b.astype(kind).view(NUMPY[dtype])
    assert np.array_equal(bits, np.where(np.isnan(total), form.nan, total.view(kind)))


def test_every_half_precision_sum_with_chosen_addends_is_numpys():
    seed = 3
    print(f"seed {seed}")
    every = np.arange(65536)
    for choice in special(exact.FP16) + list(np.random.default_rng(seed).integers(0, 65536, 200)):
        bits, _ = compute(Op.ADD, Dtype.FP16, np.full(65536, choice), every)
        with np.errstate(all="ignore"):
            total = np.uint16(choice).view(np.float16) + every.astype(np.uint16).view(np.float16)
        assert np.array_equal(bits, np.where(np.isnan(total), 0x7E00, total.view(np.uint16))), hex(choice)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [Op.MIN, Op.MAX])
def test_minima_and_maxima_are_numpys_where_numpy_says(op, dtype):
    form = FORMATS[dtype]
    a, b = operands(form, 200_000, 12)
    bits, _ = compute(op, dtype, a, b)
    kind = np.uint16 if form.width == 16 else np.uint32
    with np.errstate(invalid="ignore"):  # signalling NaNs
        x, y, got = (side.astype(kind).view(NUMPY[dtype]).astype(np.float64) for side in (a, b, bits))
        best = np.fmin(x, y) if op == Op.MIN else np.fmax(x, y)
    assert np.array_equal(got, best, equal_nan=True)
    signed_zeros = (x == 0) & (y == 0)
    assert np.array_equal(np.signbit(got)[signed_zeros], (
        np.signbit(x) | np.signbit(y) if op == Op.MIN else np.signbit(x) & np.signbit(y)
    )[signed_zeros])  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [Op.ADD, Op.MIN, Op.MAX])
def test_bits_and_flags_are_those_of_the_definition(op, dtype):
    form = FORMATS[dtype]
    a, b = operands(form, 6000, 13)
    bits, flags = compute(op, dtype, a, b)
    for x, y, got, raised in zip(a.tolist(), b.tolist(), bits.tolist(), flags.tolist(), strict=True):
        expected = exact.add(x, y, form) if op == Op.ADD else exact.select(x, y, op == Op.MAX, form)
        assert (got, raised) == expected, (hex(x), hex(y))


def test_known_sums_and_flags():
    def result(op, dtype, a, b):
        bits, flags = compute(op, dtype, np.array([a]), np.array([b]))
        return int(bits[0]), int(flags[0])

    huge, tiny, one = 0x7F7FFFFF, 1, 0x3F800000
    assert result(Op.ADD, Dtype.FP32, huge, huge) == (0x7F800000, exact.OVERFLOW | exact.INEXACT)
    assert result(Op.ADD, Dtype.FP32, huge, tiny) == (huge, exact.INEXACT)
    assert result(Op.ADD, Dtype.FP32, tiny, tiny) == (2, 0)
    assert result(Op.ADD, Dtype.FP32, one, one | 1 << 31) == (0, 0)
    assert result(Op.ADD, Dtype.FP32, 1 << 31, 1 << 31) == (1 << 31, 0)
    assert result(Op.ADD, Dtype.FP32, one, 0x80000001) == (one, exact.INEXACT)
    assert result(Op.ADD, Dtype.BF16, 0x7F80, 0xFF80) == (0x7FC0, exact.INVALID)
    assert result(Op.ADD, Dtype.BF16, 0x7F80, 0x7FC1) == (0x7FC0, 0)
    assert result(Op.ADD, Dtype.BF16, 0x3F80, 0x7F81) == (0x7FC0, exact.INVALID)
    assert result(Op.MIN, Dtype.BF16, 0x0000, 0x8000) == (0x8000, 0)
    assert result(Op.MAX, Dtype.BF16, 0x8000, 0x0000) == (0x0000, 0)
    assert result(Op.MAX, Dtype.FP16, 0x7D00, 0x3C00) == (0x3C00, exact.INVALID)
    assert result(Op.MIN, Dtype.FP16, 0xFE01, 0x7C00) == (0x7C00, 0)
    assert result(Op.MIN, Dtype.FP16, 0xFE01, 0xFD01) == (0x7E00, exact.INVALID)


@pytest.mark.parametrize("op", [Op.ADD, Op.MIN, Op.MAX])
def test_integers_are_signed_and_wrap(op):
    seed = 14
    print(f"seed {seed}")
    limits = [0, 1, 2, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF]
    rng = random.Random(seed)
    pairs = [(x, y) for x in limits for y in limits] + [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(5000)]
    a, b = (np.array(side, np.uint32) for side in zip(*pairs, strict=True))
    bits, flags = compute(op, Dtype.INT32, a, b)
    x, y = a.view(np.int32), b.view(np.int32)
    expected = {Op.ADD: x + y, Op.MIN: np.minimum(x, y), Op.MAX: np.maximum(x, y)}[op]
    assert np.array_equal(bits.astype(np.uint32).view(np.int32), expected) and not flags.any()
