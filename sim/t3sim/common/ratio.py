"""Rates as ratios of integers: what a user types as a decimal number stays that number in compiled code."""

from fractions import Fraction

CLOCK_LARGEST = 1 << 31
"""Largest numerator and denominator of a ratio of clocks: compiled code multiplies them with each other in 64 bits."""
LINK_LARGEST = 1 << 46
"""The same for the time of a byte, which is multiplied with the bytes of a packet."""


def decimal(value: float) -> Fraction:
    """The number that ``value`` is written as: 0.0015 is 3/2000."""
    return Fraction(str(value))


def ratio(value: Fraction, largest: int) -> Fraction:
    """``value`` (above 0) itself if numerator and denominator are at most ``largest``, as those of rates of few digits.

    Else the nearest such ratio, which differs by less than one part in ``largest``: less than the clocks resolve.
    """
    if max(value.numerator, value.denominator) <= largest:
        return value
    return value.limit_denominator(largest) if value < 1 else 1 / (1 / value).limit_denominator(largest)
