"""Runs what is missing, by workers. Every finished run is kept at once, whatever happens to the others."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from t3sim.common.cache import BuildError, check_writable
from t3sim.run.request import SimulationError

from .experiment import Experiment
from .store import Outcome, Store
from .workers import Task, WorkerDiedError, Workers, WorkersError, workers

EXPECTED = (ValueError, BuildError, SimulationError, MemoryError, OSError, WorkerDiedError)
"""What a run may raise; anything else is a defect of the program."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """How far the runs are; costs are in estimated seconds of one core (:attr:`Experiment.cost`).

    ``wall_seconds``: since the first began; ``last_seconds``: as of the last one that finished.
    ``dashboard``: address of Dask's page on the workers, if there is one; ``no_dashboard``: else why, with the remedy.
    """

    done: int
    total: int
    cost_done: float
    cost_total: float
    running: tuple[str, ...]
    failed: int
    wall_seconds: float
    last_seconds: float
    dashboard: str | None = None
    no_dashboard: str | None = None

    @property
    def seconds_left(self) -> float | None:
        """By the rate up to the last run that finished, less the time since, at least 0; None before anything is done.

        Running runs count for nothing in the rate: by the time since as well, it would fall until one finishes.
        """
        if not self.cost_done:
            return None
        left = (self.cost_total - self.cost_done) / self.cost_done * self.last_seconds
        return max(0.0, left - (self.wall_seconds - self.last_seconds))


OnOutcome = Callable[[Experiment, Outcome, bool], None]
"""Called with every run that is there, and whether it was kept from before; what it raises ends the work."""


def _nothing(item: Experiment, outcome: Outcome, kept: bool) -> None:
    """For callers who look at the store when all is done."""


class RunsFailedError(Exception):
    """Some runs did not finish; the message names them, and says that the others are kept."""


def run_missing(
    experiments: Sequence[Experiment],
    store: Store,
    jobs: int,
    on_status: Callable[[Status], None],
    scheduler: str | None = None,
    on_outcome: OnOutcome = _nothing,
) -> int:
    """Simulates what ``store`` does not have, the longest first; returns how many runs that were.

    ``jobs`` processes of this computer do it, or the workers of the Dask ``scheduler`` at an address. Only this process
    writes into the store. ``on_outcome`` gets every run when it is there, those first that the store has.

    Raises BuildError if the cache cannot keep results, ValueError if no scheduler answers, RunsFailedError when all
    others are done, KeyboardInterrupt with all workers of this computer ended.
    """
    missing: dict[str, Experiment] = {}
    for key, item in {item.key: item for item in experiments}.items():
        kept = store.get(item)
        if kept is None:
            missing[key] = item
        else:
            on_outcome(item, kept, True)
    if missing:
        check_writable(store.folder)
        todo = sorted(missing.values(), key=lambda item: -item.cost)
        with workers(min(jobs, len(todo)), scheduler) as pool:
            threads = 1 if scheduler is not None else max(1, jobs // len(todo))
            _Runs(todo, store, pool, on_status, on_outcome).run(threads)
    return len(missing)


class _Runs:
    """The state of one call of :func:`run_missing`."""

    def __init__(
        self,
        todo: Sequence[Experiment],
        store: Store,
        pool: Workers,
        on_status: Callable[[Status], None],
        on_outcome: OnOutcome,
    ) -> None:
        self.todo, self.store, self.pool = todo, store, pool
        self.on_status, self.on_outcome = on_status, on_outcome
        self.failures: list[str] = []
        self.finished: list[Experiment] = []
        self.begin = time.monotonic()
        self.last_seconds = 0.0

    def run(self, threads: int) -> None:
        experiments = {
            Task(function=_work, arguments=(item, threads), label=item.label, priority=item.cost): item
            for item in self.todo
        }
        self._report()
        try:
            for found in self.pool.results(list(experiments)):
                if found is not None:
                    self._collect(experiments[found[0]], found[1])
                self._report()
        except WorkersError as error:
            self.failures.append(str(error))
        if self.failures:
            raise RunsFailedError(
                f"{len(self.todo) - len(self.finished)} of {len(self.todo)} runs did not finish: "
                f"{'; '.join(self.failures)} ({len(self.finished)} finished runs are kept, and the same command goes "
                f"on from there)"
            )

    def _collect(self, item: Experiment, result: Any) -> None:
        if isinstance(result, Outcome):
            self.store.put(item, result)
            self.finished.append(item)
            self.last_seconds = time.monotonic() - self.begin
            self.on_outcome(item, result.named(item), False)
        elif isinstance(result, EXPECTED):
            self.failures.append(f"{item.label}: {result or type(result).__name__}")
        else:
            raise result

    def _report(self) -> None:
        """Tells how far the runs are."""
        self.on_status(
            Status(
                done=len(self.finished),
                total=len(self.todo),
                cost_done=sum(item.cost for item in self.finished),
                cost_total=sum(item.cost for item in self.todo),
                running=tuple(task.label for task in self.pool.running),
                failed=len(self.failures),
                wall_seconds=time.monotonic() - self.begin,
                last_seconds=self.last_seconds,
                dashboard=self.pool.dashboard,
                no_dashboard=self.pool.no_dashboard,
            )
        )


def _work(experiment: Experiment, threads: int) -> Outcome:
    """In a worker: one run."""
    from t3sim.run.simulate import simulate  # here, because it takes seconds to import

    return Outcome.of(experiment.label, simulate(experiment.request(threads)))
