"""The published figures with their bands, and what is said of a measured value beside one."""

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Verdict = Literal["inside", "outside", "no band", "unreconciled", "not run"]
"""Of a measured value: in or out of the stated band; there is none; the paper contradicts itself; nothing measured."""

ROUNDING = 1e-9
"""Relative slack of a comparison, so that a value on the edge of its band is inside."""


class Figure(BaseModel):
    """One published number: ``table`` names the runs it is measured from, ``band`` where its interval comes from.

    ``note`` holds on any machine; ``cause`` says by machine why the measured value is what it is there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    title: str
    unit: Literal["x", "%"]
    value: float
    tolerance: float | None = None
    low: float | None = None
    high: float | None = None
    band: Literal["target", "rounding", "published"] | None = None
    reconciled: bool = True
    note: str = ""
    cause: dict[str, str] = Field(default_factory=dict)
    source: str

    @model_validator(mode="after")
    def _has_one_band(self) -> Self:
        sides = self.low is not None or self.high is not None
        if self.tolerance is not None and sides:
            raise ValueError(f"{self.title}: give either tolerance, or low and high")
        if (self.band is not None) != (self.tolerance is not None or sides):
            raise ValueError(f"{self.title}: a band needs its origin, and an origin a band")
        if not self.reconciled and (self.band is not None or not self.note):
            raise ValueError(f"{self.title}: an unreconciled figure has no band, and a note that says why")
        return self

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Lowest and highest value inside the band; None where there is no limit."""
        if self.tolerance is not None:
            return self.value - self.tolerance, self.value + self.tolerance
        return self.low, self.high

    def remark(self, machine: str) -> str:
        """The note, and the cause on ``machine`` if one was found."""
        return "; ".join(text for text in (self.note, self.cause.get(machine, "")) if text)

    def verdict(self, measured: float | None) -> Verdict:
        """What is said of ``measured``, in the figure's unit; None if it was not measured."""
        if measured is None:
            return "not run"
        if not self.reconciled:
            return "unreconciled"
        low, high = self.interval
        if low is None and high is None:
            return "no band"
        slack = ROUNDING * max(1.0, abs(measured))
        inside = (low is None or measured >= low - slack) and (high is None or measured <= high + slack)
        return "inside" if inside else "outside"


@lru_cache
def published() -> dict[str, Figure]:
    """All published figures by their names, in the order of the file."""
    text = (resources.files(__package__) / "published.toml").read_text(encoding="utf-8")
    return {name: Figure.model_validate(entry) for name, entry in tomllib.loads(text)["figures"].items()}
