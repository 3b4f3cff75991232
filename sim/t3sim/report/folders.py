"""Output folders of t3, read and checked: what a run, a comparison, a sweep or a reproduction left behind."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from t3sim import __version__
from t3sim.common.user_input import read_file, readable, shortened
from t3sim.inputs.machine.files import Machine, load_machine
from t3sim.run.request import POLICIES
from t3sim.run.result import Result, WallSeconds
from t3sim.run.timeline_record import TimelineRecord
from t3sim.study.reproduction import Reproduction
from t3sim.study.sweep import SweepRecord

MAX_BYTES = 1 << 28
"""Size of one record: many times that of the largest ring's timeline."""
SCHEMA = 1
"""The version of every format that is read here."""


class Comparison(BaseModel):
    """All of ``compare.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    schema_version: Literal[1] = Field(alias="schema")
    opent3: str = __version__
    speedup_over_sequential: dict[str, float | None]
    runs: dict[str, Result] = Field(min_length=1)

    @model_validator(mode="after")
    def _agrees(self) -> "Comparison":
        if list(self.runs) != list(self.speedup_over_sequential):
            raise ValueError("speedup_over_sequential and runs must have the same policies")
        if wrong := [name for name, result in self.runs.items() if name != result.policy or name not in POLICIES]:
            raise ValueError(f"runs must be named by their policies, not {shortened(wrong[0])}")
        return self


class Timing(BaseModel):
    """All of ``timing.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    wall_seconds: WallSeconds


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy. ``config``: the text of ``config.toml``, which ``machine`` was read from. ``timeline``: None for a
    computed policy, and for a folder of a version that did not write it."""

    result: Result
    timeline: TimelineRecord | None
    machine: Machine
    config: str
    wall: WallSeconds


@dataclass(frozen=True, kw_only=True)
class Runs:
    """What ``t3 run`` (one) or ``t3 compare`` (several, of one GEMM) wrote. ``speedups``: as recorded."""

    name: str
    command: Literal["run", "compare"]
    runs: tuple[Run, ...]
    speedups: tuple[float | None, ...]

    @property
    def results(self) -> list[Result]:
        """The records, in their order."""
        return [run.result for run in self.runs]


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What ``t3 sweep`` wrote; ``assumptions``: changes of assumptions rather than combinations of values."""

    name: str
    record: SweepRecord
    assumptions: bool


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """What ``t3 reproduce`` wrote."""

    name: str
    record: Reproduction


Folder = Runs | Swept | Reproduced
RECORDS = {
    "compare.json": "t3 compare",
    "result.json": "t3 run",
    "sweep.json": "t3 sweep --vary",
    "sensitivity.json": "t3 sweep --assumptions",
    "reproduce.json": "t3 reproduce",
}
"""The file by which a folder is known -> what wrote it."""


def read_folder(path: Path) -> Folder:
    """What is in the output folder ``path``.

    Raises ValueError, which names file and remedy, for a folder of another kind, and for a file that is missing, cut
    off, of another version, or that does not say what it should.
    """
    if not path.is_dir():
        raise ValueError(f"DIR must be a folder that t3 wrote, and {readable(path)} is not a folder")
    found = [name for name in RECORDS if os.path.lexists(path / name)]
    if len(found) != 1:
        what = f"has both {found[0]} and {found[1]}" if found else f"has none of {', '.join(RECORDS)}"
        raise ValueError(
            f"DIR must be an output folder of t3 run, compare, sweep or reproduce, but {readable(path)} {what}: name "
            "the folder that was given to --out"
        )
    name = readable(Path(os.path.realpath(path)).name)
    match found[0]:
        case "compare.json":
            return _comparison(path, name)
        case "result.json":
            result = _read(path / "result.json", Result)
            return Runs(name=name, command="run", runs=(_run(path, result),), speedups=(None,))
        case "reproduce.json":
            return Reproduced(name=name, record=_read(path / "reproduce.json", Reproduction))
        case record:
            swept = _read(path / record, SweepRecord)
            if not swept.variants or not all(variant.runs for variant in swept.variants):
                raise ValueError(f"{readable(path / record)} has no machine, or one without a run: sweep again")
            return Swept(name=name, record=swept, assumptions=record == "sensitivity.json")


def _comparison(path: Path, name: str) -> Runs:
    record = _read(path / "compare.json", Comparison)
    return Runs(
        name=name,
        command="compare",
        runs=tuple(_run(path / policy, result) for policy, result in record.runs.items()),
        speedups=tuple(record.speedup_over_sequential.values()),
    )


def _run(folder: Path, result: Result) -> Run:
    """The run whose files are in ``folder``."""
    if result.policy not in POLICIES:
        raise ValueError(f"{readable(folder)}: policy must be one of {', '.join(POLICIES)}, not {result.policy!r}")
    config, timeline = folder / "config.toml", folder / "timeline.json"
    record = _read(timeline, TimelineRecord) if os.path.lexists(timeline) else None
    if record and len(record.gpus) != result.gpus_simulated:
        raise ValueError(
            f"{readable(timeline)} has {len(record.gpus)} GPUs, and the run beside it {result.gpus_simulated}: they "
            "are of different runs"
        )
    text = _bytes(config).decode("utf-8", "replace")
    return Run(
        result=result,
        timeline=record,
        machine=load_machine(config),
        config=text,
        wall=_read(folder / "timing.json", Timing, versioned=False).wall_seconds,
    )


_Model = TypeVar("_Model", bound=BaseModel)


def _read(path: Path, model: type[_Model], *, versioned: bool = True) -> _Model:
    """The record in ``path``. Raises ValueError."""
    name = readable(path)
    try:
        content: Any = json.loads(_bytes(path))
    except RecursionError as error:
        raise ValueError(f"{name} nests lists or objects too deeply to be a file of t3") from error
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            raise ValueError(f"{name} is not JSON, or was cut off ({error}): run again what wrote it") from error
        raise
    if versioned and isinstance(content, dict) and content.get("schema") != SCHEMA:
        raise ValueError(
            f"{name} has format {shortened(content.get('schema'))} (written by version "
            f"{shortened(content.get('opent3'))}), and this version ({__version__}) reads format {SCHEMA}: report with "
            "the version that wrote it, or run again"
        )
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise ValueError(f"{name} is not a record of this version: {where}: {first['msg']}") from error


def _bytes(path: Path) -> bytes:
    """The content of a file of ours. Raises ValueError if it cannot be read."""
    try:
        return read_file(path, MAX_BYTES)
    except OSError as error:
        raise ValueError(
            f"{readable(path)} cannot be read ({error.strerror}), and belongs to what t3 wrote: run again"
        ) from error
    except ValueError as error:
        raise ValueError(f"{readable(path)} must be a file that t3 wrote, and is {error}") from error
