"""Carries out many proofs side by side."""

import multiprocessing
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path

from .check import check
from .netlist import ToolError
from .proof import Proof, Task, Verdict


def tasks(proofs: Iterable[Proof], *, quick: bool = False) -> list[Task]:
    """All sizes of all proofs; with ``quick`` the first size of the quick ones."""
    return [
        Task(proof=proof, size=size)
        for proof in proofs
        if proof.quick or not quick
        for size in list(proof.sizes)[: 1 if quick else None]
    ]


def prove(todo: list[Task], *, workers: int, keep: Path | None = None) -> Iterator[tuple[Task, Verdict]]:
    """Tasks with their verdicts, as they end. ``keep`` : folder for waveforms of counterexamples.

    Raises ToolError if Yosys or ABC is missing or fails, or a worker is killed; what has not come to its end then is
    dropped.
    """
    # Fresh processes, because the caller may have threads. Those that are not quick go first, to end with the others.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())  # the caller's own
    ends_its_programs = (signal.SIGTERM, signal.default_int_handler)
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=signal.signal, initargs=ends_its_programs
    ) as pool:
        running = {
            pool.submit(_check, task.proof.name, task.size, keep): task
            for task in sorted(todo, key=lambda task: task.proof.quick)
        }
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException as error:
            _end(set(multiprocessing.active_children()) - others)
            if isinstance(error, BrokenProcessPool):
                raise ToolError(
                    "a proof's process was killed, as happens when memory runs out: use fewer --jobs"
                ) from error
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end(workers: Iterable[BaseProcess]) -> None:
    """Ends workers and their programs. One that is interrupted goes on with a task that the pool has handed out
    already, so it is ended again, once it has had the time to end its program."""
    while alive := [worker for worker in workers if worker.is_alive()]:
        for worker in alive:
            worker.terminate()
        for worker in alive:
            worker.join(2)


def _check(name: str, size: str, keep: Path | None) -> Verdict:
    """In a worker: a proof is known there by its name, because harnesses cannot be sent."""
    from .catalogue import chosen_proofs

    (proof,) = chosen_proofs((name,))
    return check(Task(proof=proof, size=size), keep)
