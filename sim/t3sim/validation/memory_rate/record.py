"""What was measured: a row for each regime, with the reason if an access waited for the tracker."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from t3sim import __version__

DEEPER = (9, 16, 32)
"""Depths of a slice's token queue with which `paper` is measured, too: what takes in tokens that come at once. With 9,
one more than `paper` has, no access of two contexts waits at the sources' rate."""


class Waits(BaseModel):
    """A regime on one configuration of the hardware: a preset, with ``settings`` (empty: as it is).

    ``command``: repeats it alone; empty for streams, which `t3 validate tracker` alone makes. ``lines``: that were
    tracked. ``blocked``: cycles, of all channels together, in which an access waited for the tracker and for nothing
    else; ``cause``: why, if there are any. ``overflowed_chunks``: chunks with lines that had no tile entry.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    regime: str
    what: str
    where: str
    settings: str = ""
    command: str
    lines: int
    overflowed_chunks: int
    blocked: int
    cause: str

    @property
    def hardware(self) -> str:
        """The preset or machine, and its settings."""
        return f"{self.where}, {self.settings}" if self.settings else self.where


class TrackerWaits(BaseModel):
    """All of ``tracker.json``. ``hardware``: version and netlist that were measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    hardware: dict[str, str]
    rows: list[Waits] = Field(min_length=1)
