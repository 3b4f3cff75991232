"""Records that t3 wrote, read again: with one message for what is missing, cut off, of another version, or wrong."""

import json
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from t3sim import __version__
from t3sim.common.user_input import read_file, readable, shortened
from t3sim.inputs import arguments

from .request import POLICIES
from .result import Result

MAX_BYTES = 1 << 28
"""Size of one record: many times that of the largest ring's timeline."""
_Model = TypeVar("_Model", bound=BaseModel)


class Comparison(BaseModel):
    """All of ``compare.json``: records by policy, and their speedups; None where the sequential policy is missing."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)
    schema_version: Literal[1] = Field(default=1, alias="schema")
    opent3: str = __version__
    speedup_over_sequential: dict[str, float | None]
    runs: dict[str, Result] = Field(min_length=1)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if list(self.runs) != list(self.speedup_over_sequential):
            raise ValueError("speedup_over_sequential and runs must have the same policies")
        if wrong := [name for name, result in self.runs.items() if name != result.policy or name not in POLICIES]:
            raise ValueError(f"runs must be named by their policies, not {shortened(wrong[0])}")
        return self


def read_result(path: str | Path) -> Result:
    """The record in ``path``. Raises ValueError if it is not one of this version's schema."""
    return read_record(arguments.path("path", path), Result)


def read_record(path: Path, model: type[_Model], *, versioned: bool = True) -> _Model:
    """The record of type ``model`` in ``path``; ``versioned``: it says its format, which must be one that the model's
    ``schema_version`` names. Raises ValueError."""
    name = readable(path)
    try:
        content: Any = json.loads(read_ours(path))
    except RecursionError as error:
        raise ValueError(f"{name} nests lists or objects too deeply to be a file of t3") from error
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            raise ValueError(f"{name} is not JSON, or was cut off ({error}): run again what wrote it") from error
        raise
    formats = get_args(model.model_fields["schema_version"].annotation) if versioned else ()
    if versioned and isinstance(content, dict) and content.get("schema") not in formats:
        raise ValueError(
            f"{name} has format {shortened(content.get('schema'))} (written by version "
            f"{shortened(content.get('opent3'))}), and this version ({__version__}) reads format "
            f"{' and '.join(map(str, formats))}: use the version that wrote it, or run again"
        )
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise ValueError(
            f"{name} is not a record of this version: {where}: {first['msg']}; run again what wrote it"
        ) from error


def read_ours(path: Path) -> bytes:
    """The content of a file of ours. Raises ValueError if it cannot be read."""
    try:
        return read_file(path, MAX_BYTES)
    except OSError as error:
        raise ValueError(
            f"{readable(path)} cannot be read ({error.strerror}), and belongs to what t3 wrote: run again"
        ) from error
    except ValueError as error:
        raise ValueError(f"{readable(path)} must be a file that t3 wrote, and is {error}") from error
