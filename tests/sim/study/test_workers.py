"""Workers of this computer, and those of a scheduler that somebody else started."""

import gc
import logging
import math
import os
import subprocess
import sys
import time

import pytest
from distributed import LocalCluster
from t3sim.study import workers as workers_module
from t3sim.study.local_cluster import DEATHS
from t3sim.study.runner import run_missing
from t3sim.study.store import Store
from t3sim.study.workers import Task, WorkersError, workers

from tests.sim.study.test_runner import finished, kept_rows, no_report, toy

__all__ = ["finished"]  # a fixture


def quick(number: int, function=math.factorial) -> Task:
    return Task(function=function, arguments=(number,), label=f"number {number}", priority=number)


def results_of(pool, tasks) -> list[tuple[str, object]]:
    return [(found[0].label, found[1]) for found in pool.results(tasks) if found is not None]


def cluster(threads: int) -> LocalCluster:
    """A cluster that the test starts, on the loopback device."""
    return LocalCluster(
        n_workers=1, threads_per_worker=threads, host="127.0.0.1", dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL + 1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def address():
    with cluster(1) as found:
        yield found.scheduler_address


@pytest.mark.long
def test_a_task_that_kills_its_workers_is_named_and_an_error_is_the_task_s():
    with workers(1) as pool:
        found = results_of(pool, [quick(3), quick(9, os._exit), quick(-1)])
    assert [label for label, _ in found] == ["number 9", "number 3", "number -1"]
    assert str(found[0][1]).startswith(f"{DEATHS} worker processes died in it, as happens when memory is short: use")
    assert found[1][1] == 6
    assert isinstance(found[2][1], ValueError)


@pytest.mark.long
def test_what_another_scheduler_runs_is_the_same(address, finished, tmp_path):
    assert run_missing([toy("sequential"), toy("t3")], Store(tmp_path), 1, no_report, address) == 2
    assert kept_rows(tmp_path) == kept_rows(finished[0])


def test_workers_of_other_sources_are_refused(address, monkeypatch):
    monkeypatch.setattr(workers_module, "source_digest", lambda program: "0000")
    with (
        workers(1, address) as pool,
        pytest.raises(WorkersError, match="has the simulator's sources .*, not 0000"),
    ):
        results_of(pool, [quick(3)])


def test_workers_of_many_threads_are_refused():
    with (
        cluster(2) as found,
        workers(1, found.scheduler_address) as pool,
        pytest.raises(WorkersError, match="must start with --nthreads 1"),
    ):
        results_of(pool, [quick(3)])


@pytest.mark.long
def test_the_end_of_a_scheduler_is_one_message():
    with cluster(1) as found, workers(1, found.scheduler_address) as pool:
        results = pool.results([quick(600, time.sleep)])
        assert next(results) is None
        found.close()
        with pytest.raises(WorkersError, match="the connection to the scheduler broke"):
            while True:
                next(results)


WRONG = (
    "tcp://127.0.0.1:1", "tcp://127.0.0.1", "127.0.0.1", "nothing://here:1", "http://127.0.0.1:1", "tls://127.0.0.1:1",
    "tcp://127.0.0.1:99999", "tcp://a b", "nonsense", "",
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_no_scheduler_is_one_message_and_leaves_no_client_behind(wrong):
    with pytest.raises(ValueError, match="--scheduler must be the address of a Dask scheduler"), workers(1, wrong):
        pass
    gc.collect()  # a client that is not closed says so here, and a warning is an error


def test_what_is_finished_is_not_lost_with_what_cannot_be_done(address, monkeypatch):
    found = []
    with workers(1, address) as pool:
        outcome = pool._outcome

        def late(future):
            """When all others are finished."""
            while any(other.status == "pending" for other in pool._futures):
                time.sleep(0.05)
            return outcome(future)

        monkeypatch.setattr(pool, "_outcome", late)
        with pytest.raises(WorkersError, match="does not fit"):
            found += (item for item in pool.results([quick(4), quick(9, _missing)]) if item is not None)
    assert [(task.label, result) for task, result in found] == [("number 4", 24)]


def _missing(number: int) -> None:
    raise ImportError(f"no module {number}")


FEW_FILES = """
import math, resource
from t3sim.study.workers import Task, workers

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
    try:
        with workers(2) as pool:
            list(pool.results([Task(function=math.factorial, arguments=(3,), label="a")]))
    except ValueError as error:
        print(error)
"""


def test_processes_that_cannot_start_are_one_message(tmp_path):
    (tmp_path / "few.py").write_text(FEW_FILES)
    done = subprocess.run(
        [sys.executable, tmp_path / "few.py"], capture_output=True, check=False, text=True, timeout=60
    )
    assert done.stdout.startswith("2 worker processes cannot start on this computer ([Errno 24] Too many open files")
    assert "ulimit -n" in done.stdout and not done.stderr and done.returncode == 0
