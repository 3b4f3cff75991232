"""Runs what is missing, in worker processes. Every finished run is kept at once, whatever happens to the others."""

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for_sentinel
from os import _exit
from pathlib import Path

from t3sim.common.cache import BuildError, check_writable
from t3sim.run.request import SimulationError

from .experiment import Experiment
from .store import Store, source_digest

REPORT_SECONDS = 1.0
"""Real time between two reports of progress."""
EXPECTED = (ValueError, BuildError, SimulationError, MemoryError, OSError)
"""What a run may raise; anything else is a defect of the program."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """How far the runs are; costs are in estimated seconds of one core (:attr:`Experiment.cost`)."""

    done: int
    total: int
    cost_done: float
    cost_total: float
    running: tuple[str, ...]
    failed: int
    wall_seconds: float

    @property
    def seconds_left(self) -> float | None:
        """By the rate so far; None before anything is done."""
        if not self.cost_done:
            return None
        return (self.cost_total - self.cost_done) / self.cost_done * self.wall_seconds


class RunsFailedError(Exception):
    """Some runs did not finish; the message names them, and says that the others are kept."""


def run_missing(experiments: Sequence[Experiment], store: Store, jobs: int, on_status: Callable[[Status], None]) -> int:
    """Simulates what ``store`` does not have, the longest first, ``jobs`` at a time; returns how many that were.

    Raises BuildError if the cache cannot keep results, RunsFailedError when all others are done, KeyboardInterrupt with
    all workers ended.
    """
    missing = {item.key: item for item in experiments if store.get(item) is None}
    if missing:
        check_writable(store.folder)
        _Pool(store, jobs, on_status).run(sorted(missing.values(), key=lambda item: -item.cost))
    return len(missing)


class _Pool:
    """The state of one call of :func:`run_missing`."""

    def __init__(self, store: Store, jobs: int, on_status: Callable[[Status], None]) -> None:
        self.store, self.jobs, self.on_status = store, jobs, on_status
        self.running: dict[Future[None], Experiment] = {}
        self.failures: list[str] = []
        self.finished: list[Experiment] = []

    def run(self, todo: list[Experiment]) -> None:
        self.todo, self.begin = list(todo), time.monotonic()
        self.total, self.cost = len(todo), sum(item.cost for item in todo)
        jobs = min(self.jobs, self.total)
        threads = max(1, self.jobs // self.total)
        with workers(jobs) as pool:
            while self.todo or self.running:
                while self.todo and len(self.running) < jobs:
                    self._submit(pool, self.todo.pop(0), threads)
                self._report()
                done, _ = wait(self.running, REPORT_SECONDS, FIRST_COMPLETED)
                for future in done:
                    self._collect(future)
        self._report()
        if self.failures:
            raise RunsFailedError(
                f"{self.total - len(self.finished)} of {self.total} runs did not finish: {'; '.join(self.failures)} "
                f"({len(self.finished)} finished runs are kept, and the same command goes on from there)"
            )

    def _submit(self, pool: ProcessPoolExecutor, item: Experiment, threads: int) -> None:
        try:
            with ignores_sigint():
                future = pool.submit(_work, item, threads, self.store.root, self.store.sources)
            self.running[future] = item
        except BrokenProcessPool:
            self._give_up(item)

    def _collect(self, future: Future[None]) -> None:
        if future not in self.running:
            return
        item = self.running.pop(future)
        try:
            future.result()
            self.finished.append(item)
        except BrokenProcessPool:
            self._give_up(item)
        except EXPECTED as error:
            self.failures.append(f"{item.label}: {error or type(error).__name__}")

    def _give_up(self, item: Experiment) -> None:
        """After the death of a worker, which may be that of any run: a pool starts no other."""
        lost = " or ".join(other.label for other in (item, *self.running.values()))
        self.running, self.todo = {}, []
        self.failures.append(
            f"a worker process died in {lost}, as happens when memory is short: use fewer --jobs (the runs that were "
            f"still to come did not start)"
        )

    def _report(self) -> None:
        self.on_status(
            Status(
                done=len(self.finished),
                total=self.total,
                cost_done=sum(item.cost for item in self.finished),
                cost_total=self.cost,
                running=tuple(item.label for item in self.running.values()),
                failed=len(self.failures),
                wall_seconds=time.monotonic() - self.begin,
            )
        )


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end with the block, also in the middle of a run."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    before = set(multiprocessing.active_children())
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def ignores_sigint() -> Iterator[None]:
    """Processes that start in this block never see Ctrl-C: it is the parent who decides what becomes of them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """In a worker: a thread that ends the process when its parent has vanished without a word."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait_for_sentinel([parent.sentinel])
        _exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(experiment: Experiment, threads: int, folder: Path, sources: str) -> None:
    """In a worker: one run, whose result is kept at once."""
    from t3sim.run.simulate import simulate  # here, because it takes seconds to import

    if source_digest() != sources:
        raise SimulationError("the simulator's sources have changed since the command began: start it again")
    Store(folder, sources).put(experiment, simulate(experiment.request(threads)))
