"""What the sections of a machine file have in common: no defaults, no unknown keys, a unit for each number."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def quantity(unit: str, **limits: Any) -> Any:
    """A required field with a unit; ``limits`` are pydantic's ge, gt, le, lt."""
    return Field(json_schema_extra={"unit": unit}, **limits)


class Section(BaseModel):
    """One section of a machine file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
