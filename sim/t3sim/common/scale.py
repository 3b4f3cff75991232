"""Numbers times ratios, where the product of number, numerator and denominator may not fit in 64 bits.

What does fit: a result below 2**62, of a numerator and a denominator of at most ratio.CLOCK_LARGEST. The bounds of a
machine file (machine_section.CLOCK_RATIO) and of a run's length (limits.LONGEST_CYCLES) see to the result.
"""

from .compiled import compiled_inner


@compiled_inner
def floor_scaled(value, numerator, denominator):
    """value * numerator / denominator, rounded down."""
    whole = value // denominator
    return whole * numerator + (value - whole * denominator) * numerator // denominator


@compiled_inner
def cycles_of(nbytes, rate, numerator, denominator):
    """Memory cycles, rounded up, in which a path of ``rate`` bytes per CU clock passes ``nbytes``.

    ``numerator / denominator``: CU clocks in a memory clock. Fits for up to 2**31 bytes and a rate of up to 2**31.
    """
    return -(-nbytes * denominator // (rate * numerator))


@compiled_inner
def ceil_scaled(value, numerator, denominator):
    """value * numerator / denominator, rounded up."""
    return -floor_scaled(-value, numerator, denominator)
