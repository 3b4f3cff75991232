"""What the sections of a machine file have in common: no defaults, no unknown keys, a unit for each number."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MHZ = (10, 10_000)
"""Slowest and fastest clock of CUs and memory."""
MAX_NS = 1_000_000
"""Longest latency: a run of many steps of 1 ms each still ends."""
MAX_KIB = 1 << 20
"""Largest buffer: 1 GiB."""
GB_S = (1e-4, 1e6)
"""Slowest and fastest link. Compiled code counts its bytes and picoseconds in 64 bits."""
MAX_SKEW_NS = 1e8
"""Latest start of a GPU."""
CLOCK_SCALE = (1e-3, 10.0)
"""Slowest and fastest GPU of a ring, as a factor of the clock."""
CLOCK_RATIO = (1e-3, 1e3)
"""Fewest and most CU clocks in a memory clock: with them compiled code converts every time of a run in 64 bits."""
MAX_HEADER_BYTES = 4096
"""Of a packet: many times its data, which are at most 256 bytes."""
MAX_SLAB_K = 4096
"""Longest K step: operands of more do not fit into a CU, and progress is counted in slabs."""


def quantity(unit: str, meaning: str, **limits: Any) -> Any:
    """A required field with a unit; ``limits`` are pydantic's ge, gt, le, lt, of which every number has both.

    They keep what compiled code computes within 64 bits, and a run of finite length.
    """
    return Field(json_schema_extra={"unit": unit}, description=meaning, **limits)


def choice(meaning: str) -> Any:
    """A required field without a unit: a choice or a name."""
    return Field(description=meaning)


class Section(BaseModel):
    """One section of a machine file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
