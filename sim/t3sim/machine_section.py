"""What the sections of a machine file have in common: no defaults, no unknown keys, a unit for each number."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MOST_MHZ = 100_000
"""Fastest clock."""
MOST_NS = 1_000_000
"""Longest latency: a run of many steps of 1 ms each still ends."""
MOST_KIB = 1 << 20
"""Largest buffer: 1 GiB."""
GB_S = (1e-4, 1e6)
"""Slowest and fastest link. Compiled code counts its bytes and picoseconds in 64 bits."""
MOST_SKEW_NS = 1e8
"""Latest start of a GPU."""
CLOCK_SCALE = (1e-3, 1e3)
"""Slowest and fastest GPU of a ring, as a factor of the clock."""


def quantity(unit: str, **limits: Any) -> Any:
    """A required field with a unit; ``limits`` are pydantic's ge, gt, le, lt, of which every number has both.

    They keep what compiled code computes within 64 bits, and a run of finite length.
    """
    return Field(json_schema_extra={"unit": unit}, **limits)


class Section(BaseModel):
    """One section of a machine file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
