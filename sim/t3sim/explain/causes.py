"""Why a line waits at its memory slice: the four causes that are told apart, and what people call them."""

from collections.abc import Mapping
from types import MappingProxyType

TITLES: Mapping[str, str] = MappingProxyType({
    "other_stream": "the other stream's turn", "threshold": "the threshold", "full_queue": "a full DRAM queue",
    "tracker": "the tracker",
})  # fmt: skip
"""Cause, as the waits of a stage name it -> what a line waits for."""
SHORT: Mapping[str, str] = MappingProxyType({
    "other_stream": "other stream's turn", "threshold": "arbiter's threshold", "full_queue": "DRAM queue full",
    "tracker": "tracker busy",
})  # fmt: skip
"""The same for the head of a column."""
FIELDS: Mapping[str, str] = MappingProxyType({cause: f"blocked_by_{cause}_cycles" for cause in TITLES})
"""Cause -> the field of a stream's record."""
