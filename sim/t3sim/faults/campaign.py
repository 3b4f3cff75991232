"""Many runs with one fault each, in worker processes. Finished runs are kept, so that an interrupted campaign goes on.

A fault depends on the seed, its kind and its number alone: not on the other faults, their order, or the workers.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict
from functools import cache
from pathlib import Path

from t3sim.common.cache import cache_folder, check_writable
from t3sim.study.runner import ignores_sigint, workers
from t3sim.study.store import source_digest

from .bench import Bench, Verdict
from .classes import FaultCase
from .outcome import Outcome
from .setup import FaultSetup

BATCH = 16
"""Runs that a worker does at a time."""


class Journal:
    """The verdicts of a seed that are known, in a file of the cache folder; every one is added at once."""

    def __init__(self, seed: int) -> None:
        folder = cache_folder() / "faults"
        check_writable(folder)
        self.path: Path = folder / f"{source_digest('t3sim.faults.bench')}-{seed}.jsonl"
        self.known: dict[FaultCase, Verdict] = dict(self._read())

    def _read(self) -> Iterator[tuple[FaultCase, Verdict]]:
        """What is in the file; the last line may have been cut off."""
        lines = self.path.read_text().split("\n")[:-1] if self.path.exists() else []
        for line in lines:
            entry = json.loads(line)
            verdict = entry["verdict"]
            verdict |= {"outcome": Outcome(verdict["outcome"]), "named": tuple(verdict["named"])}
            yield FaultCase(**entry["job"]), Verdict(**verdict)

    def add(self, found: Mapping[FaultCase, Verdict]) -> None:
        """Keep these verdicts."""
        self.known |= found
        with self.path.open("a") as file:
            for job, verdict in found.items():
                file.write(json.dumps({"job": asdict(job), "verdict": asdict(verdict)}) + "\n")


def run_campaign(
    todo: Sequence[FaultCase], seed: int, processes: int, on_done: Callable[[int], None]
) -> dict[FaultCase, Verdict]:
    """The verdicts of all jobs, in their order; ``on_done`` is told how many are known.

    Raises what a run raises, and KeyboardInterrupt; what was finished by then is kept.
    """
    journal = Journal(seed)
    missing = sorted(job for job in todo if job not in journal.known)
    waiting = []
    for protected in (True, False):
        mine = [job for job in missing if job.protected is protected]
        waiting += [(protected, mine[first : first + BATCH]) for first in range(0, len(mine), BATCH)]
    on_done(len(todo) - len(missing))
    if waiting:
        with workers(min(processes, len(waiting))) as pool:
            running: set[Future[dict[FaultCase, Verdict]]] = set()
            while waiting or running:
                while waiting and len(running) < processes + 1:
                    with ignores_sigint():
                        running.add(pool.submit(_work, *waiting.pop(0), seed))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    journal.add(future.result())
                on_done(sum(job in journal.known for job in todo))
    return {job: journal.known[job] for job in todo}


@cache
def _bench(protected: bool) -> Bench:
    """A worker's bench; it has one of each kind at most."""
    return Bench(FaultSetup(protected))


def _work(protected: bool, batch: Sequence[FaultCase], seed: int) -> dict[FaultCase, Verdict]:
    """In a worker: some faults, one after the other."""
    bench = _bench(protected)
    return {job: bench.run(job.kind, job.number, seed) for job in batch}
