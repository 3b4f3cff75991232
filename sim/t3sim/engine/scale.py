"""Numbers times ratios, where the product of number, numerator and denominator may not fit in 64 bits."""

from ..compiled import inner


@inner
def floor_scaled(value, numerator, denominator):
    """value * numerator / denominator, rounded down."""
    whole = value // denominator
    return whole * numerator + (value - whole * denominator) * numerator // denominator


@inner
def ceil_scaled(value, numerator, denominator):
    """value * numerator / denominator, rounded up."""
    return -floor_scaled(-value, numerator, denominator)
