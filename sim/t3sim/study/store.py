"""Results of finished runs on disk: one SQLite file, a row for each run.

A database that comes with Python and that everybody can query, and not a file for each result (as joblib or diskcache
have): sweeps of hundreds of runs are there to be asked. One process writes at a time, for a moment; a row appears at
once and whole. The results are no part of what the user asked for, and the file may be deleted at any time.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from t3sim.common.cache import CACHE_VARIABLE, BuildError, cache_errors, cache_folder
from t3sim.inputs.geometry import ceil_div
from t3sim.run.provenance import Provenance
from t3sim.run.request import Cause, RunResult, Timeline
from t3sim.run.result import Result, WallSeconds, WorkloadRecord

from .experiment import Experiment
from .sources import digest_for

COLUMNS = {
    "sources": "TEXT", "key": "TEXT", "label": "TEXT", "model": "TEXT", "sublayer": "TEXT", "m": "INTEGER",
    "n": "INTEGER", "k": "INTEGER", "tp": "INTEGER", "policy": "TEXT", "hardware": "TEXT", "mirror": "INTEGER",
    "seed": "INTEGER", "machine": "TEXT", "machine_digest": "TEXT", "total_ns": "REAL", "record": "TEXT",
    "traffic": "TEXT", "wall_seconds": "TEXT",
}  # fmt: skip
"""Of the table ``runs``; docs/guides/cluster.md says what they hold."""
SCHEMA = 1
"""The version of the table, in the file's ``user_version``. The first files had none: 0, and the columns of 1."""
WAIT_SECONDS = 60
"""Real time to wait for another process that writes just now."""
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
        factor = ceil_div(bins, MAX_BINS)

        def coarse(values: np.ndarray) -> list[float]:
            summed: list[float] = np.pad(values, (0, -bins % factor)).reshape(-1, factor).sum(axis=1).tolist()
            return summed

        return cls(
            bin_ns=timeline.bin_ns * factor, bytes={cause: coarse(gpus[0]) for cause, gpus in timeline.bytes.items()}
        )


class Outcome(BaseModel):
    """What is kept of a run. ``label`` is for people who look into the store."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    label: str
    record: Result
    traffic: TrafficOverTime | None
    wall_seconds: WallSeconds

    @classmethod
    def of(cls, label: str, result: RunResult) -> Self:
        """What is kept of ``result``."""
        traffic = None if result.timeline is None else TrafficOverTime.of(result.timeline)
        return cls(label=label, record=result.record, traffic=traffic, wall_seconds=result.wall)

    def named(self, experiment: Experiment) -> Self:
        """The same run with the experiment's own names of workload and machine."""
        machine = experiment.machine
        names: dict[str, Any] = {
            "workload": WorkloadRecord.of(experiment.workload),
            "machine": machine.name,
            "provenance": Provenance.of(machine),  # which may differ in what the policy does not use
        }
        return self.model_copy(update={"record": self.record.model_copy(update=names)})


class Store:
    """The results of the simulator that is installed in ``folder``, by default ``results`` in the cache folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder() / "results"
        self.path = self.folder / "runs.sqlite"

    def get(self, experiment: Experiment) -> Outcome | None:
        """The finished run, with the experiment's own names of workload and machine; None if it has not run.

        Raises BuildError if the file cannot be read, or is of another version.
        """
        outcome = self._read(digest_for(experiment.hardware), experiment.key)
        return None if outcome is None else outcome.named(experiment)

    def put(self, experiment: Experiment, outcome: Outcome) -> None:
        """Keeps a finished run. Raises BuildError as :meth:`get`, and if the cache folder cannot be written."""
        work, record = experiment.workload, outcome.record
        row = {
            "sources": digest_for(experiment.hardware), "key": experiment.key, "label": outcome.label,
            "model": work.model, "sublayer": work.sublayer, "m": work.m, "n": work.n, "k": work.k, "tp": work.tp,
            "policy": experiment.policy, "hardware": experiment.hardware, "mirror": experiment.mirror,
            "seed": experiment.seed, "machine": experiment.machine.name,
            "machine_digest": Provenance.of(experiment.machine).machine, "total_ns": record.time_ns.total,
            "record": record.model_dump_json(by_alias=True),
            "traffic": None if outcome.traffic is None else outcome.traffic.model_dump_json(),
            "wall_seconds": outcome.wall_seconds.model_dump_json(),
        }  # fmt: skip
        with self._errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, WAIT_SECONDS, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
                database.execute(f"CREATE TABLE IF NOT EXISTS runs ({columns}, PRIMARY KEY (sources, key))")
                self._check_version(database)
                database.execute(f"PRAGMA user_version = {SCHEMA}")
                names, places = ", ".join(COLUMNS), ", ".join(f":{name}" for name in COLUMNS)
                database.execute(f"INSERT OR REPLACE INTO runs ({names}) VALUES ({places})", row)
                database.execute("COMMIT")

    def _read(self, sources: str, key: str) -> Outcome | None:
        """The kept run; one of another schema is as good as none."""
        if not self.path.exists():
            return None
        # Read-only where it cannot be written; else what a killed command left half done is undone.
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        with self._errors(), closing(sqlite3.connect(address, WAIT_SECONDS, uri=True)) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
                return None  # a process was killed before its first result
            self._check_version(database)
            found = database.execute(
                "SELECT label, record, traffic, wall_seconds FROM runs WHERE sources = ? AND key = ?",
                (sources, key),
            ).fetchone()
        if found is None:
            return None
        label, record, traffic, wall = found
        try:
            return Outcome(
                label=label,
                record=Result.model_validate_json(record),
                traffic=None if traffic is None else TrafficOverTime.model_validate_json(traffic),
                wall_seconds=WallSeconds.model_validate_json(wall),
            )
        except ValidationError:
            return None

    def _check_version(self, database: sqlite3.Connection) -> None:
        """Raises BuildError if the table is not of this version."""
        version = database.execute("PRAGMA user_version").fetchone()[0]
        columns = [(name, kind) for _, name, kind, *_ in database.execute("PRAGMA table_info(runs)")]
        if version not in (0, SCHEMA) or columns != list(COLUMNS.items()):
            raise BuildError(
                f"the finished runs in {self.path} were kept by another version of OpenT3 (version {version} of the "
                f"table, and this one has {SCHEMA}): use that one, move the file away, or set {CACHE_VARIABLE} to "
                "another folder"
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns the database's errors into BuildError."""
        try:
            with cache_errors(self.folder):
                yield
        except sqlite3.Error as error:
            raise BuildError(
                f"the finished runs in {self.path} cannot be used ({error}): see to its disk and permissions, or move "
                f"the file away, and they run again"
            ) from error
