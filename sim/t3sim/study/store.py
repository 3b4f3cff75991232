"""Results of finished runs on disk: one JSON file each, in a folder named by the simulator's sources.

Files and no database (diskcache, joblib, SQLite): a result is small, already JSON, and never replaced by another one,
so that a rename makes it appear at once and whole on any file system, also when several processes write it. The
results are no part of what the user asked for, and the folder may be deleted at any time.
"""

import ast
import hashlib
from functools import lru_cache
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any, Self

import numpy as np
import t3hdl
from pydantic import BaseModel, ConfigDict, ValidationError
from t3hdl.interface.parts import TABLE

import t3sim
from t3sim.common.cache import cache_errors, cache_folder
from t3sim.common.output import write_atomically
from t3sim.run.provenance import Provenance
from t3sim.run.request import Cause, RunResult, Timeline
from t3sim.run.result import Result, WallSeconds, WorkloadRecord, json_text

from .experiment import Experiment

SIMULATOR = "t3sim.run.simulate"
"""The module whose sources, with all of this project that they import, decide a result."""
MAX_BINS = 512


class TrafficOverTime(BaseModel):
    """DRAM bytes of GPU 0 by cause, in bins of ``bin_ns``."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    bin_ns: float
    bytes: dict[Cause, list[float]]

    @classmethod
    def of(cls, timeline: Timeline) -> Self:
        """The timeline's first GPU in at most MAX_BINS bins."""
        bins = len(next(iter(timeline.bytes.values()))[0])
        factor = -(-bins // MAX_BINS)

        def coarse(values: np.ndarray) -> list[float]:
            summed: list[float] = np.pad(values, (0, -bins % factor)).reshape(-1, factor).sum(axis=1).tolist()
            return summed

        return cls(
            bin_ns=timeline.bin_ns * factor, bytes={cause: coarse(gpus[0]) for cause, gpus in timeline.bytes.items()}
        )


class Outcome(BaseModel):
    """What is kept of a run. ``label`` is for people who look into the folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    label: str
    record: Result
    traffic: TrafficOverTime | None
    wall_seconds: WallSeconds


class Store:
    """The results of one version of the simulator below ``folder``, by default ``results`` in the cache folder."""

    def __init__(self, folder: Path | None = None, sources: str | None = None) -> None:
        self.sources = sources or source_digest()
        self.root = folder or cache_folder() / "results"
        self.folder = self.root / self.sources

    def get(self, experiment: Experiment) -> Outcome | None:
        """The finished run, with the experiment's own names of workload and machine; None if it has not run."""
        path = self._path(experiment)
        try:
            outcome = Outcome.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):  # a file of another schema is as good as none
            return None
        record, machine = outcome.record, experiment.machine
        names: dict[str, Any] = {
            "workload": WorkloadRecord.of(experiment.workload),
            "machine": machine.name,
            "provenance": Provenance.of(machine),  # which may differ in what the policy does not use
        }
        return outcome.model_copy(update={"record": record.model_copy(update=names)})

    def put(self, experiment: Experiment, result: RunResult) -> None:
        """Keeps a finished run. Raises BuildError if the cache folder cannot be written."""
        outcome = Outcome(
            label=experiment.label,
            record=result.record,
            traffic=None if result.timeline is None else TrafficOverTime.of(result.timeline),
            wall_seconds=result.wall,
        )
        with cache_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(experiment), json_text(outcome.model_dump(mode="json", by_alias=True)))

    def _path(self, experiment: Experiment) -> Path:
        return self.folder / f"{experiment.key}.json"


@lru_cache
def source_digest(program: str = SIMULATOR) -> str:
    """Digest of the sources that decide a result: of every module that ``program`` imports, at once or later.

    Comments, docstrings and layout do not count, so that a correction of words does not cost hours of simulation.
    """
    roots = {Path(folder).parent for package in (t3sim, t3hdl) for folder in package.__path__}
    finder = ModuleFinder(path=sorted(map(str, roots)), excludes=_foreign(roots))
    finder.import_hook(program)
    for part in TABLE.values():  # their classes are imported by name
        finder.import_hook(f"t3hdl.{part.component.rpartition('.')[0]}")
    found = {name: file for name, module in finder.modules.items() if (file := getattr(module, "__file__", None))}
    state = hashlib.sha256()
    for name, file in sorted(found.items()):
        state.update(f"{name}\n{_code(Path(file))}\n".encode())
    return state.hexdigest()[:16]


def _foreign(roots: set[Path]) -> list[str]:
    """Other packages beside ours, as in a folder of installed packages; their versions are no sources of a result."""
    names = {path.name.partition(".")[0] for root in roots for path in root.iterdir()}
    return sorted(names - {t3sim.__name__, t3hdl.__name__})


def _code(path: Path) -> str:
    """A module's syntax tree without docstrings, as text."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
