"""Many runs with one fault each, in worker processes. Finished runs are kept, so that an interrupted campaign goes on.

A fault depends on the seed, its kind and its number alone: not on the other faults, their order, or the workers.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from t3sim.common.cache import BuildError, cache_folder, check_writable
from t3sim.common.output import write_atomically
from t3sim.study.sources import source_digest
from t3sim.study.workers import Task, WorkerDiedError, WorkersError, workers

from .bench import Bench, Verdict
from .classes import FaultCase
from .outcome import Outcome
from .setup import FaultSetup

BATCH = 16
"""Runs that a worker does at a time."""
PROGRAM = "t3sim.faults.bench"
"""The module whose sources decide a verdict."""


class Journal:
    """The verdicts of a seed that are known, in a file of the cache folder; every one is added at once.

    Campaigns of the same seed that run side by side share the file, one at a time.

    Raises BuildError if the folder cannot be written, or a line of the file is damaged.
    """

    def __init__(self, seed: int) -> None:
        folder = cache_folder() / "faults"
        check_writable(folder)
        self.path: Path = folder / f"{source_digest(PROGRAM)}-{seed}.jsonl"
        self._lock = FileLock(self.path.with_suffix(".lock"))
        with self._lock:
            self.known: dict[FaultCase, Verdict] = dict(self._read())

    def _read(self) -> Iterator[tuple[FaultCase, Verdict]]:
        """What is in the file, but for a last line that was cut off; another one would be appended to it."""
        text = self.path.read_text() if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            write_atomically(self.path, whole)
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                yield _entry(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise BuildError(
                    f"line {number} of {self.path} is damaged: move the file away, and its faults are run again"
                ) from error

    def add(self, found: Mapping[FaultCase, Verdict]) -> None:
        """Keep these verdicts."""
        self.known |= found
        with self._lock, self.path.open("a") as file:
            for job, verdict in found.items():
                file.write(json.dumps({"job": asdict(job), "verdict": asdict(verdict)}) + "\n")


def _entry(entry: Any) -> tuple[FaultCase, Verdict]:
    """A line of the journal."""
    verdict = entry["verdict"]
    verdict |= {"outcome": Outcome(verdict["outcome"]), "named": tuple(verdict["named"])}
    return FaultCase(**entry["job"]), Verdict(**verdict)


class CampaignError(Exception):
    """The workers did not finish; the message says what is kept."""


def run_campaign(
    todo: Sequence[FaultCase],
    seed: int,
    processes: int,
    on_done: Callable[[int], None],
    scheduler: str | None = None,
) -> dict[FaultCase, Verdict]:
    """The verdicts of all jobs, in their order; ``on_done`` is told how many are known.

    ``processes`` of this computer find them, or the workers of the Dask ``scheduler`` at an address. Raises what a run
    raises, CampaignError and KeyboardInterrupt; what was finished by then is kept.
    """
    journal = Journal(seed)
    missing = sorted(job for job in todo if job not in journal.known)
    batches = []
    for protected in (True, False):
        mine = [job for job in missing if job.protected is protected]
        batches += [(protected, mine[first : first + BATCH], seed) for first in range(0, len(mine), BATCH)]
    done = len(todo) - len(missing)
    on_done(done)
    tasks = [Task(function=_work, arguments=batch, label=_label(batch[1])) for batch in batches]
    if tasks:
        failures = []
        with workers(min(processes, len(tasks)), scheduler, PROGRAM) as pool:
            try:
                for found in pool.results(tasks):
                    if found is not None and isinstance(found[1], WorkerDiedError):
                        failures.append(f"{found[0].label}: {found[1]}")
                    elif found is not None:
                        verdicts = _verdicts(found[1])
                        journal.add(verdicts)
                        done += len(verdicts)
                    on_done(done)
            except WorkersError as error:
                failures.append(str(error))
        if failures:
            raise CampaignError(f"{'; '.join(failures)} ({KEPT})")
    return {job: journal.known[job] for job in todo}


KEPT = "finished runs are kept, and the same command goes on from there"


def _label(batch: Sequence[FaultCase]) -> str:
    return f"faults {batch[0].kind}:{batch[0].number} to {batch[-1].kind}:{batch[-1].number}"


def _verdicts(result: Any) -> dict[FaultCase, Verdict]:
    """A task's result. Raises what the task raised."""
    if isinstance(result, BaseException):
        raise result
    return result


@cache
def _bench(protected: bool) -> Bench:
    """A worker's bench; it has one of each kind at most."""
    return Bench(FaultSetup(protected))


def _work(protected: bool, batch: Sequence[FaultCase], seed: int) -> dict[FaultCase, Verdict]:
    """In a worker: some faults, one after the other."""
    bench = _bench(protected)
    return {job: bench.run(job.kind, job.number, seed) for job in batch}
