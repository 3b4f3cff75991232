"""Output folders of t3, read and checked: what a run, a comparison, a whole model, a sweep, a map or a reproduction
left behind."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from t3sim.common.manifest import Manifest
from t3sim.common.user_input import readable
from t3sim.inputs.machine.files import CONFIG, Machine, load_machine
from t3sim.run.records import Comparison, read_ours, read_record
from t3sim.run.request import POLICIES
from t3sim.run.result import Result, WallSeconds
from t3sim.run.timeline_record import TimelineRecord
from t3sim.study.arbitration.record import ArbitrationMap
from t3sim.study.model_record import WholeModelRecord
from t3sim.study.reproduction import Reproduction
from t3sim.study.sweep import SweepRecord
from t3sim.study.traffic_record import FILE as TRAFFIC
from t3sim.study.traffic_record import TrafficRecord


class Timing(BaseModel):
    """All of ``timing.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    wall_seconds: WallSeconds


@dataclass(frozen=True, kw_only=True)
class Config:
    """A machine with all of its values, and the text of the file that it was read from."""

    machine: Machine
    text: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy. ``timeline``: None for a computed policy, and for a folder of a version that did not write it."""

    result: Result
    timeline: TimelineRecord | None
    config: Config
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
    """What ``t3 sweep`` wrote; ``assumptions``: changes of assumptions rather than combinations of values.
    ``traffic``, ``config`` (the first machine): None in a folder of a version that did not write it; so below."""

    name: str
    record: SweepRecord
    traffic: TrafficRecord | None
    config: Config | None
    assumptions: bool


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """What ``t3 model`` wrote."""

    name: str
    record: WholeModelRecord
    config: Config | None


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """What ``t3 map`` wrote."""

    name: str
    record: ArbitrationMap
    config: Config | None


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """What ``t3 reproduce`` wrote."""

    name: str
    record: Reproduction
    traffic: TrafficRecord | None
    config: Config | None


Folder = Runs | Modelled | Swept | Mapped | Reproduced
RECORDS = {
    "compare.json": "t3 compare",
    "result.json": "t3 run",
    "model.json": "t3 model",
    "sweep.json": "t3 sweep --vary",
    "sensitivity.json": "t3 sweep --assumptions",
    "map.json": "t3 map",
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
            "DIR must be an output folder of t3 run, compare, model, sweep, map or reproduce, but "
            f"{readable(path)} {what}: name the folder that was given to --out"
        )
    name = readable(Path(os.path.realpath(path)).name)
    match found[0]:
        case "compare.json":
            return _comparison(path, name)
        case "result.json":
            result = read_record(path / "result.json", Result)
            return Runs(name=name, command="run", runs=(_run(path, result),), speedups=(None,))
        case "model.json":
            model = read_record(path / "model.json", WholeModelRecord)
            if not model.policies or not model.sublayers:
                raise ValueError(f"{readable(path / 'model.json')} has no policy or no sublayer: run again")
            return Modelled(name=name, record=model, config=_kept_config(path))
        case "reproduce.json":
            reproduced = read_record(path / "reproduce.json", Reproduction)
            traffic = _traffic(path, reproduced.sources)
            return Reproduced(name=name, record=reproduced, traffic=traffic, config=_kept_config(path))
        case "map.json":
            found_map = read_record(path / "map.json", ArbitrationMap)
            if not found_map.gemms or not found_map.machines:
                raise ValueError(f"{readable(path / 'map.json')} has no machine or no GEMM: map again")
            return Mapped(name=name, record=found_map, config=_kept_config(path))
        case record:
            swept = read_record(path / record, SweepRecord)
            if not swept.variants or not all(variant.runs for variant in swept.variants):
                raise ValueError(f"{readable(path / record)} has no machine, or one without a run: sweep again")
            traffic = _traffic(path, swept.sources)
            return Swept(
                name=name, record=swept, traffic=traffic, config=_kept_config(path),
                assumptions=record == "sensitivity.json",
            )  # fmt: skip


def _traffic(path: Path, sources: str) -> TrafficRecord | None:
    """The traffic over time beside a record, if it is there."""
    file = path / TRAFFIC
    if not os.path.lexists(file):
        return None
    record = read_record(file, TrafficRecord)
    if record.sources != sources:
        raise ValueError(f"{readable(file)} is of other runs than the record beside it: run again what wrote them")
    return record


def _comparison(path: Path, name: str) -> Runs:
    record = read_record(path / "compare.json", Comparison)
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
    timeline = folder / "timeline.json"
    record = read_record(timeline, TimelineRecord) if os.path.lexists(timeline) else None
    if record and len(record.gpus) != result.gpus_simulated:
        raise ValueError(
            f"{readable(timeline)} has {len(record.gpus)} GPUs, and the run beside it {result.gpus_simulated}: they "
            "are of different runs"
        )
    return Run(
        result=result,
        timeline=record,
        config=_config(folder),
        wall=read_record(folder / "timing.json", Timing, versioned=False).wall_seconds,
    )


def _kept_config(folder: Path) -> Config | None:
    """The machine beside a record of many runs; None where there is none, or only a file that t3 did not write there:
    folders of a version without one may have a ``config.toml`` of their user's."""
    manifest = Manifest.read(folder)
    if not os.path.lexists(folder / CONFIG) or (manifest is not None and CONFIG not in manifest.files):
        return None
    return _config(folder)


def _config(folder: Path) -> Config:
    text = read_ours(folder / CONFIG).decode("utf-8", "replace")
    return Config(machine=load_machine(folder / CONFIG), text=text)
