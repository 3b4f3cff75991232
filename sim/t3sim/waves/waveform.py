"""A waveform as any format has it: variables in scopes, and values that change at times."""

from collections.abc import Sequence
from dataclasses import dataclass

VERSION = "OpenT3, t3 waves"
"""Who wrote a file."""
TimedChange = tuple[int, int, int | None]
"""Time in picoseconds, number of the variable, value; None from where on it means nothing."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """``bits`` bits; ``path``: scopes and name, as ``t3.gpu0.tracker.token_0.valid``."""

    path: tuple[str, ...]
    bits: int


@dataclass(frozen=True, kw_only=True)
class Waveform:
    """``first``: every variable's first value, which it has from ``begin`` on. ``changes``: those behind it, in the
    order of their times, before ``end``. Times are picoseconds since the launch of the GEMM."""

    variables: Sequence[Variable]
    begin: int
    end: int
    first: Sequence[int | None]
    changes: Sequence[TimedChange]
