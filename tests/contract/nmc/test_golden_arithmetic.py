"""The golden arithmetic of the NMC's lanes: values against NumPy and ml_dtypes, flags against rational numbers."""

import ml_dtypes
import numpy as np
import pytest
from t3hdl.interface.layouts import Dtype, Op
from t3sim.validation.alu_cases import Cases, expected, lane_type, random_pairs

from tb.alu import float_reference as exact
from tb.alu.float_reference import INEXACT, INVALID, OVERFLOW

FORMATS = {Dtype.FP16: exact.FP16, Dtype.BF16: exact.BF16, Dtype.FP32: exact.FP32}
NUMPY = {Dtype.FP16: np.float16, Dtype.BF16: ml_dtypes.bfloat16, Dtype.FP32: np.float32}
FLOATS = list(FORMATS)
DEFINITIONS = {Op.ADD: exact.add, Op.MIN: exact.minimum, Op.MAX: exact.maximum}


def compute(op: Op, dtype: Dtype, a: int, b: int) -> tuple[int, int]:
    """Bits and flags of one case by the golden arithmetic."""
    cases = expected(op, dtype, *(np.array([side], lane_type(dtype)) for side in (a, b)))
    return int(cases.bits[0]), int(cases.flags[0])


def blocks(op: Op, dtype: Dtype, count: int, seed: int) -> tuple[Cases, Cases]:
    """Every pair of special values, and ``count`` random pairs, with the golden arithmetic's results."""
    print(f"seed {seed}")
    special, random = (make() for make in random_pairs(op, dtype, count, seed))
    return special, random


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_are_numpys(dtype):
    for cases in blocks(Op.ADD, dtype, 1 << 20, 11):
        with np.errstate(all="ignore"):
            total = cases.a.view(NUMPY[dtype]) + cases.b.view(NUMPY[dtype])
        nan = FORMATS[dtype].nan
        assert np.array_equal(cases.bits, np.where(np.isnan(total), cases.a.dtype.type(nan), total.view(cases.a.dtype)))


def test_every_half_precision_sum_with_chosen_addends_is_numpys():
    seed = 3
    print(f"seed {seed}")
    every = np.arange(65536, dtype=np.uint16)
    for choice in np.random.default_rng(seed).integers(0, 65536, 200, np.uint16):
        bits = expected(Op.ADD, Dtype.FP16, np.full(65536, choice), every).bits
        with np.errstate(all="ignore"):
            total = choice.view(np.float16) + every.view(np.float16)
        assert np.array_equal(bits, np.where(np.isnan(total), np.uint16(0x7E00), total.view(np.uint16))), hex(choice)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [Op.MIN, Op.MAX])
def test_minima_and_maxima_are_numpys_where_numpy_says(op, dtype):
    for cases in blocks(op, dtype, 200_000, 12):
        with np.errstate(invalid="ignore"):  # signalling NaNs
            x, y, got = (side.view(NUMPY[dtype]).astype(np.float64) for side in (cases.a, cases.b, cases.bits))
            best = np.fmin(x, y) if op == Op.MIN else np.fmax(x, y)
        assert np.array_equal(got, best, equal_nan=True)
        zeros = (x == 0) & (y == 0)
        either = np.logical_or if op == Op.MIN else np.logical_and
        assert np.array_equal(np.signbit(got)[zeros], either(np.signbit(x), np.signbit(y))[zeros])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [Op.ADD, Op.MIN, Op.MAX])
def test_bits_and_flags_are_those_of_the_definition(op, dtype):
    for cases in blocks(op, dtype, 5000, 13):
        sample = np.random.default_rng(13).permutation(len(cases))[:5000]
        columns = (side[sample].tolist() for side in (cases.a, cases.b, cases.bits, cases.flags))
        for x, y, bits, flags in zip(*columns, strict=True):
            assert (bits, flags) == DEFINITIONS[op](FORMATS[dtype], x, y), (hex(x), hex(y))


def test_known_sums_and_flags():
    huge, tiny, one = 0x7F7FFFFF, 1, 0x3F800000
    assert compute(Op.ADD, Dtype.FP32, huge, huge) == (0x7F800000, OVERFLOW | INEXACT)
    assert compute(Op.ADD, Dtype.FP32, huge, tiny) == (huge, INEXACT)
    assert compute(Op.ADD, Dtype.FP32, tiny, tiny) == (2, 0)
    assert compute(Op.ADD, Dtype.FP32, one, one | 1 << 31) == (0, 0)
    assert compute(Op.ADD, Dtype.FP32, 1 << 31, 1 << 31) == (1 << 31, 0)
    assert compute(Op.ADD, Dtype.FP32, one, 0x80000001) == (one, INEXACT)
    assert compute(Op.ADD, Dtype.BF16, 0x7F80, 0xFF80) == (0x7FC0, INVALID)
    assert compute(Op.ADD, Dtype.BF16, 0x7F80, 0x7FC1) == (0x7FC0, 0)
    assert compute(Op.ADD, Dtype.BF16, 0x3F80, 0x7F81) == (0x7FC0, INVALID)
    assert compute(Op.MIN, Dtype.BF16, 0x0000, 0x8000) == (0x8000, 0)
    assert compute(Op.MAX, Dtype.BF16, 0x8000, 0x0000) == (0x0000, 0)
    assert compute(Op.MAX, Dtype.FP16, 0x7D00, 0x3C00) == (0x3C00, INVALID)
    assert compute(Op.MIN, Dtype.FP16, 0xFE01, 0x7C00) == (0x7C00, 0)
    assert compute(Op.MIN, Dtype.FP16, 0xFE01, 0xFD01) == (0x7E00, INVALID)


@pytest.mark.parametrize("op", [Op.ADD, Op.MIN, Op.MAX])
def test_integers_are_signed_and_wrap(op):
    for cases in blocks(op, Dtype.INT32, 100_000, 14):
        x, y = cases.a.view(np.int32), cases.b.view(np.int32)
        best = {Op.ADD: x + y, Op.MIN: np.minimum(x, y), Op.MAX: np.maximum(x, y)}[op]
        assert np.array_equal(cases.bits.view(np.int32), best) and not cases.flags.any()
