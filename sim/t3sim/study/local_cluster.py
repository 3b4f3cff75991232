"""Dask's cluster of this computer: a scheduler in this process, and worker processes that end with it."""

import importlib.util
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.resource_tracker import ensure_running
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it takes most of a second to import, which `t3 --help` does not need
    from distributed import LocalCluster

DEATHS = 3
"""Workers of this computer that a task may cost before it counts as failed."""
SETTINGS = {
    "distributed.comm.require-encryption": False,  # nothing leaves this computer
    "distributed.nanny.pre-spawn-environ": {},  # the simulator decides about its threads
    "distributed.scheduler.allowed-failures": DEATHS - 1,
    "distributed.scheduler.worker-ttl": None,  # a worker of this computer that is silent is busy
    "distributed.worker.profile.enabled": False,
}
"""Dask's settings for the cluster of this computer; those of another one are its owner's."""


@contextmanager
def local_cluster(jobs: int) -> "Iterator[LocalCluster]":
    """A scheduler in this process with ``jobs`` worker processes, all on the loopback device.

    Raises ValueError if they cannot start.
    """
    import dask
    from distributed import LocalCluster

    # Workers that are killed leave their files: they lie in a folder that goes with the cluster.
    with (
        TemporaryDirectory(prefix="t3-workers-", ignore_cleanup_errors=True) as scratch,
        dask.config.set(SETTINGS | {"temporary-directory": scratch}),
    ):
        ensure_running()  # before: it would let Ctrl-C through again
        with _ignores_sigint(), _start_errors(jobs):
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,  # the operating system's
                silence_logs=logging.CRITICAL + 1,
                scheduler_kwargs={"dashboard": has_dashboard()},
            )
        with cluster:
            yield cluster


@contextmanager
def _start_errors(jobs: int) -> Iterator[None]:
    """Turns what keeps processes from starting into ValueError, which names the first of a chain of errors."""
    loops = logging.getLogger("asyncio")
    level = loops.level
    loops.setLevel(logging.CRITICAL + 1)  # what they say while they give up is this one message
    try:
        yield
    except (OSError, RuntimeError, TimeoutError) as error:
        first: BaseException = error
        while (earlier := first.__cause__ or first.__context__) is not None:
            first = earlier
        raise ValueError(
            f"{jobs} worker processes cannot start on this computer ({str(first) or type(first).__name__}): use fewer "
            "--jobs, or see to its limits (ulimit -n for open files, ulimit -u for processes)"
        ) from error
    finally:
        loops.setLevel(level)


def has_dashboard() -> bool:
    """Whether Dask's pages can be drawn."""
    return importlib.util.find_spec("bokeh") is not None


def end(cluster: "LocalCluster") -> None:
    """Ends the worker processes at once, whatever they do: nothing that they have is needed any more."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()  # else it starts another process
        if nanny.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


@contextmanager
def _ignores_sigint() -> Iterator[None]:
    """Threads that start in this block, and their processes, never see Ctrl-C: the parent decides their fate."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
