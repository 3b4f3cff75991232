"""What is said of a parameter of the hardware's configuration: meaning, unit and legal values, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """``meaning`` in words, ``unit`` of a number, its bounds ``low`` and ``high``, whether it is a ``power_of_two``; or
    ``choices`` of a name, of which a list takes several."""

    meaning: str
    unit: str = ""
    low: int | None = None
    high: int | None = None
    power_of_two: bool = False
    choices: tuple[str, ...] = ()

    @property
    def legal(self) -> str:
        """The legal values in words, as Markdown."""
        if self.choices:
            return ", ".join(f"`{choice}`" for choice in self.choices)
        if self.low is None:
            return "`true`, `false`"
        return f"{self.low:,} to {self.high:,}" + (", a power of two" if self.power_of_two else "")

    def check(self, name: str, value: Any) -> None:
        """Raises ValueError if the number ``value`` is none that the parameter ``name`` may have."""
        if self.low is None or self.high is None:
            return
        if not self.low <= value <= self.high:
            raise ValueError(f"{name} must be in {self.low} to {self.high}, not {value}")
        if self.power_of_two and value & (value - 1):
            raise ValueError(f"{name} must be a power of two, not {value}")


def count(default: int, low: int, high: int, unit: str, meaning: str, *, power_of_two: bool = False) -> Any:
    """A field of a dataclass that is a number."""
    about = Parameter(meaning=meaning, unit=unit, low=low, high=high, power_of_two=power_of_two)
    return field(default=default, metadata={"parameter": about})


def choice(default: Any, choices: tuple[str, ...], meaning: str) -> Any:
    """A field of a dataclass that is one of some names, or a list of them, or without names a switch."""
    return field(default=default, metadata={"parameter": Parameter(meaning=meaning, choices=choices)})


def parameters(kind: type) -> Mapping[str, Parameter]:
    """The parameters of a dataclass by name, in its order."""
    return {each.name: each.metadata["parameter"] for each in fields(kind)}
