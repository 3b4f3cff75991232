"""Units of times, bytes and counts, and digits."""

import pytest
from t3sim.common.units import BYTES, COUNTS, RATES, TIMES, digits, unit_of, with_unit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1, "1.000"), (12.3456, "12.35"), (1910.4, "1910"), (123456.7, "123457"), (0.5, "0.5000"),
        (0.0123456, "0.01235"), (-3.25, "-3.250"), (999.96, "1000.0"),
    ],
)  # fmt: skip
def test_digits(value, text):
    assert digits(value) == text


@pytest.mark.parametrize(
    ("units", "value", "text"),
    [
        (TIMES, 0, "0 ns"), (TIMES, 3, "3.000 ns"), (TIMES, 3210, "3210 ns"), (TIMES, 16_000, "16.00 us"),
        (TIMES, 1_910_400, "1910 us"), (TIMES, 12.5e6, "12.50 ms"), (TIMES, 80e9, "80.00 s"),
        (BYTES, 512, "512.0 B"), (BYTES, 102_400, "102.4 kB"), (BYTES, 477.3e6, "477.3 MB"), (BYTES, 8e9, "8000 MB"),
        (RATES, 150, "150.0 GB/s"), (RATES, 0.3, "300.0 MB/s"), (RATES, 1e-9, "0.001000 kB/s"),
        (COUNTS, 156_730_000, "156.7 millions"), (COUNTS, 99, "99.00"),
    ],
)  # fmt: skip
def test_a_value_has_four_digits_and_a_unit(units, value, text):
    assert with_unit(units, value) == text


def test_the_largest_of_several_values_chooses_the_unit():
    unit = unit_of(TIMES, [20.0, 1_910_400.0, 0.0])
    assert unit.title("time") == "time (us)"
    assert [unit.text(value) for value in (1_910_400, 20, 0)] == ["1910", "0.02000", "0"]
    assert unit_of(TIMES, []).name == "ns"
    assert unit_of(COUNTS, [99]).title("RTL cycles") == "RTL cycles"
