"""Processes that work on tasks, by Dask: of this computer, or those of a scheduler that somebody else has started.

One way for both. A scheduler elsewhere gets all tasks at once, so that a cluster that grows and shrinks by itself sees
how much there is to do; processes here get one each, so that none is blamed for the death of another. Results come back
one by one to the caller, who alone keeps them: workers write nothing. The tasks of a worker that dies are done again by
another one.

Dask and not a pool of processes: after the death of one process a pool gives up all others, and it ends at the borders
of one computer.
"""

import asyncio
import logging
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .local_cluster import end, has_dashboard, local_cluster
from .sources import SIMULATOR, source_digest

if TYPE_CHECKING:  # it takes most of a second to import, which `t3 --help` does not need
    from distributed import Client, Future, LocalCluster

REPORT_SECONDS = 1.0
"""Real time between two reports of progress."""
CONNECT_SECONDS = 5
"""Real time in which a scheduler must answer."""


class WorkersError(Exception):
    """No task can go on: the scheduler or all workers are gone, or they are not of this version of OpenT3."""


class WorkerDiedError(Exception):
    """A task cost too many workers their life."""


class _UnfitError(Exception):
    """Why a worker may not work on these tasks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """``function``, by a name that a worker can import, of ``arguments``. The largest ``priority`` begins first."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    label: str
    priority: float = 0


class Workers:
    """What :func:`workers` opens."""

    def __init__(self, client: "Client", cluster: "LocalCluster | None", program: str, sources: str) -> None:
        self._client, self._cluster = client, cluster
        self._program, self._sources = program, sources
        self._futures: dict[Future, Task] = {}
        self._done: SimpleQueue[Future] = SimpleQueue()
        self._was_lost = False

    @cached_property
    def dashboard(self) -> str | None:
        """Address of the page that shows the work; None if nothing serves it."""
        if self._cluster is not None and not has_dashboard():
            return None
        with suppress(KeyError):  # of a scheduler without one
            return self._client.dashboard_link or None
        return None

    @property
    def no_dashboard(self) -> str | None:
        """Why there is no such page, with the remedy; None if there is one, and where only its owner can tell."""
        if self._cluster is None or has_dashboard():
            return None
        return "no dashboard: Bokeh, which draws it, is not installed (pip install 'opent3[dashboard]')"

    @property
    def running(self) -> list[Task]:
        """What workers have at the moment."""
        keys = {key for found in self._client.processing().values() for key in found}
        return [task for future, task in self._futures.items() if future.key in keys]

    def results(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any] | None]:
        """Every task with its result, or with the exception that it raised, as they come; None when a while was quiet.

        An exception is what the task raised, or WorkerDiedError. Raises WorkersError; then no more comes.
        """
        waiting = deque(sorted(tasks, key=lambda task: -task.priority))
        room = len(waiting) if self._cluster is None else len(self._cluster.workers)
        while waiting or self._futures:
            while waiting and len(self._futures) < room:
                self._submit(waiting.popleft())
            try:
                future = self._done.get(timeout=REPORT_SECONDS)
            except Empty:
                self._check_alive()
                yield None
                continue
            task = self._futures.pop(future)
            try:
                outcome = self._outcome(future)
            except WorkersError:
                yield from self._finished()
                raise
            if not waiting:
                self._end_idle()
            yield task, outcome

    def _end_idle(self) -> None:
        """Ends processes of this computer that have nothing to do and never will: the last runs may take long."""
        if self._cluster is None:
            return
        ours = {future.key for future in self._futures}
        held = (*self._client.processing().items(), *self._client.has_what().items())  # a result may still be there
        busy = {address for address, keys in held if not ours.isdisjoint(keys)}
        idle = [name for name, nanny in self._cluster.workers.items() if nanny.worker_address not in busy]
        spare = len(self._cluster.workers) - max(1, len(self._futures))  # one that has just died may be among the idle
        if idle and spare > 0:
            self._cluster.sync(self._cluster.scale_down, idle[:spare])

    def _finished(self) -> Iterator[tuple[Task, Any]]:
        """What else is finished when no more can be done."""
        for future, task in self._futures.items():
            if future.status == "finished":
                yield task, future.result()

    def _submit(self, task: Task) -> None:
        payload = pickle.dumps((task.function, task.arguments))
        fit = (self._program, self._sources, self._cluster is None)
        future = self._client.submit(_checked, *fit, payload, pure=False, priority=task.priority)
        self._futures[future] = task
        future.add_done_callback(self._done.put)

    def _outcome(self, future: "Future") -> Any:
        """A result, or an exception of the task itself."""
        from distributed import KilledWorker

        error = CancelledError() if future.cancelled() else future.exception()
        if error is None:
            return future.result()
        if isinstance(error, KilledWorker):
            advice = "use fewer --jobs" if self._cluster is not None else "give each worker more, or start fewer"
            return WorkerDiedError(
                f"{error.allowed_failures + 1} worker processes died in it, as happens when memory is short: {advice}"
            )
        if isinstance(error, CancelledError):
            raise WorkersError("the connection to the scheduler broke")
        if isinstance(error, _UnfitError) or (self._cluster is None and isinstance(error, ImportError)):
            raise WorkersError(self._unfit(str(error)))
        if isinstance(error, RuntimeError) and "deserialization" in str(error):
            raise WorkersError(self._unfit(str(error.__cause__ or error)))
        return error

    def _unfit(self, why: str) -> str:
        if self._cluster is not None:
            return "the simulator's sources have changed since the command began: start it again"
        return f"the scheduler's side does not fit ({why}): start scheduler and workers with this version of OpenT3"

    def _check_alive(self) -> None:
        """Raises WorkersError if no worker of this computer is left, and none is about to start."""
        if self._cluster is None:
            if self._client.status in ("closed", "closing"):
                raise WorkersError("the connection to the scheduler broke")
            return
        lost = all(_is_lost(nanny) for nanny in self._cluster.workers.values())
        if lost and self._was_lost:  # once may be the moment before they start again
            raise WorkersError("all worker processes died, as happens when memory is short: use fewer --jobs")
        self._was_lost = lost


def _is_lost(nanny: Any) -> bool:
    """Whether the process that a nanny of Dask looks after is gone for good."""
    process = nanny.process
    return process is None or process.status.name in ("stopped", "failed")


@contextmanager
def workers(jobs: int, scheduler: str | None = None, program: str = SIMULATOR) -> Iterator[Workers]:
    """``jobs`` processes of this computer, which end with the block, or all workers of the ``scheduler``.

    ``scheduler``: an address, as ``tcp://host:8786``. ``program``: the module whose sources must be the same on both
    sides. Raises ValueError if no scheduler answers, or if the processes cannot start.
    """
    from distributed import Client  # here and below, because it takes half a second to import
    from distributed.utils import silence_logging_cmgr

    expected = source_digest(program)
    with silence_logging_cmgr(logging.CRITICAL + 1):  # what matters of it is one message of ours
        if scheduler is not None:
            with _connected(scheduler) as client:
                yield Workers(client, None, program, expected)
            return
        with local_cluster(jobs) as cluster, Client(cluster, set_as_default=False) as client:
            try:
                yield Workers(client, cluster, program, expected)
            finally:
                end(cluster)


@contextmanager
def _connected(scheduler: str) -> "Iterator[Client]":
    """A client of a scheduler. Raises ValueError if there is none."""
    from distributed import Client

    _check_answers(scheduler)
    with Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False) as client:
        yield client


def _check_answers(scheduler: str) -> None:
    """Raises ValueError if nothing answers there: a client that finds nothing cannot be closed without a traceback."""
    from distributed.comm import connect
    from distributed.security import Security

    async def answer() -> None:
        arguments = Security().get_connection_args("client")
        (await connect(scheduler, timeout=CONNECT_SECONDS, **arguments)).abort()

    try:
        parts = urlsplit(scheduler)
        if not (parts.scheme and parts.hostname and parts.port):
            raise ValueError("a scheme, a host and a port are needed")
        with ThreadPoolExecutor(1) as pool:  # a notebook's own loop runs in this thread
            pool.submit(asyncio.run, answer()).result()
    except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:
        why = str(error) or type(error).__name__
        raise ValueError(
            "--scheduler must be the address of a Dask scheduler that runs, as tcp://host:8786, not "
            f"{scheduler!r}: {why}"
        ) from error


def _checked(program: str, sources: str, foreign: bool, payload: bytes) -> Any:
    """In a worker: one task, after a look at whether this worker is fit for it."""
    from distributed import get_worker

    found = source_digest(program)
    if found != sources:
        raise _UnfitError(f"{get_worker().address} has the simulator's sources {found}, not {sources}")
    if foreign and get_worker().state.nthreads != 1:
        raise _UnfitError(f"{get_worker().address} has more than one thread, and must start with --nthreads 1")
    function, arguments = pickle.loads(payload)
    return function(*arguments)
