"""Ratios of rates, and their use in compiled code."""

import math
import random
from fractions import Fraction

import pytest
from numba import njit
from t3sim.engine.scale import ceil_scaled, floor_scaled
from t3sim.machine_section import GB_S, MOST_MHZ
from t3sim.ratio import CLOCK_LARGEST, LINK_LARGEST, decimal, ratio


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
        clocks = Fraction(rng.randint(1, MOST_MHZ), rng.randint(1, MOST_MHZ))
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
