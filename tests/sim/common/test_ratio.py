"""Ratios of rates, and their use in compiled code."""

import math
import random
from fractions import Fraction

import pytest
from numba import njit
from t3sim.common.ratio import CLOCK_LARGEST, LINK_LARGEST, decimal, ratio
from t3sim.common.scale import ceil_scaled, cycles_of, floor_scaled
from t3sim.inputs.limits import LONGEST_CYCLES
from t3sim.inputs.machine.gpu import STORE_ROW_BYTES
from t3sim.inputs.machine.section import CLOCK_RATIO, GB_S, MHZ


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (150, Fraction(150)), (150.0, Fraction(150)), (0.0004, Fraction(1, 2500)), (0.0015, Fraction(3, 2000)),
        (33.3, Fraction(333, 10)), (1e-4, Fraction(1, 10000)), (0.0, Fraction(0)), (1e6, Fraction(10**6)),
    ],
)  # fmt: skip
def test_a_number_is_what_is_written(value, expected):
    assert decimal(value) == expected


def test_rates_of_six_digits_are_exact():
    rng = random.Random(7)
    for _ in range(500):
        rate = decimal(float(f"{math.exp(rng.uniform(*map(math.log, GB_S))):.6g}"))
        assert ratio(1000 / rate, LINK_LARGEST) == 1000 / rate
        clocks = Fraction(rng.randint(*MHZ), rng.randint(*MHZ))
        assert ratio(clocks, CLOCK_LARGEST) == clocks


def test_other_rates_are_as_near_as_the_clocks_resolve():
    rng = random.Random(8)
    for _ in range(500):
        value = Fraction(math.exp(rng.uniform(math.log(1e-8), math.log(1e8))))
        for largest in (CLOCK_LARGEST, LINK_LARGEST):
            near = ratio(value, largest)
            assert abs(near / value - 1) < Fraction(1, largest)
            assert max(near.numerator, near.denominator) <= largest


@njit
def scaled(value, numerator, denominator):
    return floor_scaled(value, numerator, denominator), ceil_scaled(value, numerator, denominator)


def test_scaling_is_exact_where_the_product_does_not_fit():
    rng = random.Random(9)
    for _ in range(1000):
        value, numerator, denominator = (rng.randrange(1, 1 << bits) for bits in (44, 31, 31))
        if value * numerator // denominator < 1 << 62:
            expected = value * numerator // denominator, -(-value * numerator // denominator)
            assert scaled(value, numerator, denominator) == expected
    assert scaled(0, 3, 7) == (0, 0)


def test_scaling_is_exact_up_to_the_longest_run_at_every_legal_ratio_of_clocks():
    least, most = (decimal(bound) for bound in CLOCK_RATIO)
    tiny = Fraction(1, CLOCK_LARGEST)  # makes numerators and denominators as large as they get
    for clocks in (least, least + tiny, 1 - tiny, 1 + tiny, most - tiny * 1_000_000, most):
        near = ratio(clocks, CLOCK_LARGEST)
        for cycles in (LONGEST_CYCLES, LONGEST_CYCLES - 1, LONGEST_CYCLES + 10_000_000):
            exact = cycles * near.numerator // near.denominator, -(-cycles * near.numerator // near.denominator)
            assert scaled(cycles, near.numerator, near.denominator) == exact
            back = -(-exact[1] * near.denominator // near.numerator)
            assert scaled(exact[1], near.denominator, near.numerator)[1] == back


@njit
def passed(nbytes, rate, numerator, denominator):
    return cycles_of(nbytes, rate, numerator, denominator)


def test_the_time_of_a_tiles_bytes_on_a_store_path_is_exact_at_every_legal_ratio_of_clocks():
    rng, most = random.Random(10), 1024 * STORE_ROW_BYTES
    for clocks in (decimal(bound) for bound in CLOCK_RATIO):
        near = ratio(clocks * (1 + Fraction(1, CLOCK_LARGEST)), CLOCK_LARGEST)
        for nbytes in (32, most, *(rng.randrange(32, most, 32) for _ in range(100))):
            for path in (32, 1 << 16):
                cycles = passed(nbytes, path, near.numerator, near.denominator)
                assert cycles * path * near >= nbytes > (cycles - 1) * path * near
