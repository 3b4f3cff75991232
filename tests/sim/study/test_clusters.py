"""Clusters as docs/guides/cluster.md starts them: real schedulers and workers of Dask, on the loopback device."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.request import urlopen

import dask
import pytest
from distributed import LocalCluster
from t3sim.study import local_cluster
from t3sim.study.runner import Status, run_missing
from t3sim.study.store import Store
from t3sim.study.workers import Task, workers

from docs.pages import GUIDES
from tests.sim.study.test_runner import finished, kept_rows, toy

__all__ = ["finished"]  # a fixture
HERE = ("--host", "127.0.0.1")
RUNS = [toy("sequential"), toy("t3")]


def recipe() -> tuple[list[str], list[str]]:
    """The two commands of the guide that start a cluster by hand, without their comments."""
    text = (GUIDES / "cluster.md").read_text(encoding="utf-8")
    block = text.split("## By hand\n")[1].split("```")[1]
    first, second = ([word for word in line.split("#")[0].split() if word] for line in block.strip().splitlines())
    return first, second


@contextmanager
def started(command: list[str], *more: str) -> Iterator[subprocess.Popen]:
    """A program of the guide, of this Python environment, with a process group of its own that ends with the block."""
    assert command[0] == "dask"
    program = [sys.executable, "-m", "dask", *command[1:], *more]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        program, stderr=subprocess.PIPE, text=True, start_new_session=True, env=os.environ | paths
    ) as process:
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen) -> None:
    """Kills a program and its workers at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def said(process: subprocess.Popen, pattern: str) -> str:
    """What a program says, as soon as it does; the rest is read away, so that it never waits for a reader."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found[1]
    raise AssertionError(f"{process.args} ended without {pattern}")


@contextmanager
def by_hand(number: int) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """The guide's cluster, with ``number`` programs of one worker each in place of eight workers on each computer."""
    scheduler, worker = recipe()
    with ExitStack() as programs:
        head = programs.enter_context(started(scheduler, *HERE, "--port", "0", "--no-dashboard"))
        address = said(head, r"Scheduler at: +(tcp://\S+)")
        begin = worker.index("tcp://head:8786")
        command = [*worker[:begin], address, *worker[begin + 1 :]]
        command[command.index("--nworkers") + 1] = "1"
        found = [programs.enter_context(started(command, *HERE, "--no-dashboard")) for _ in range(number)]
        for program in found:
            said(program, r"(Registered to)")
        yield address, found


@pytest.mark.long
def test_the_recipe_by_hand_gives_the_same_and_a_killed_worker_loses_nothing(finished, tmp_path):
    with by_hand(2) as (address, programs):
        killed: list[int] = []

        def kill_once(status: Status) -> None:
            if len(status.running) == 2 and not killed:
                killed.append(programs[0].pid)
                end(programs[0])

        assert run_missing(RUNS, Store(tmp_path), 1, kill_once, address) == 2
    assert killed, "while both worked"
    assert kept_rows(tmp_path) == kept_rows(finished[0])


@pytest.mark.long
def test_a_cluster_that_adapts_grows_for_the_runs_and_gives_the_same(finished, tmp_path):
    numbers: set[int] = set()
    with (
        dask.config.set({"distributed.scheduler.unknown-task-duration": "60s"}),
        LocalCluster(
            n_workers=0, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL + 1,
        ) as cluster,
    ):  # fmt: skip
        cluster.adapt(minimum=0, maximum=2, interval="200ms")
        assert len(cluster.workers) == 0
        done = run_missing(
            RUNS, Store(tmp_path), 1, lambda status: numbers.add(len(cluster.workers)), cluster.scheduler_address
        )
        assert done == 2 and max(numbers) == 2, "as many as there are runs"
        deadline = time.monotonic() + 60
        while len(cluster.workers) > 0:
            assert time.monotonic() < deadline, "workers stay without work"
            time.sleep(0.2)
    assert kept_rows(tmp_path) == kept_rows(finished[0])


@pytest.mark.long
def test_processes_of_this_computer_end_when_there_is_no_work_left_for_them():
    long, short = (
        Task(function=time.sleep, arguments=(seconds,), label=f"{seconds}", priority=seconds) for seconds in (6, 0)
    )
    with workers(2) as pool:
        assert pool._cluster is not None
        numbers = []
        for found in pool.results([long, short]):
            numbers.append(len(pool._cluster.workers))
            assert found is None or found[1] is None
        assert numbers[0] <= 2 and numbers[-2] == 1, "one has gone while the other works"


def test_the_dashboard_answers_and_is_missed_with_a_remedy(monkeypatch):
    pytest.importorskip("bokeh", reason="pip install 'opent3[dashboard]'")
    with workers(1) as pool:
        assert pool.dashboard is not None and pool.no_dashboard is None
        with urlopen(pool.dashboard.replace("/status", "/health"), timeout=10) as answer:
            assert answer.read() == b"ok"
    monkeypatch.setattr(local_cluster, "has_dashboard", lambda: False)
    monkeypatch.setattr("t3sim.study.workers.has_dashboard", lambda: False)
    with workers(1) as pool:
        assert pool.dashboard is None and "pip install 'opent3[dashboard]'" in str(pool.no_dashboard)


def test_the_guide_says_what_was_not_tried_here():
    text = (GUIDES / "cluster.md").read_text(encoding="utf-8")
    assert "dask-worker" not in text
    for heading in ("## SSH", "## Slurm", "## Kubernetes"):
        section = text.split(heading)[1].split("\n## ")[0]
        assert "not run here" in section, heading
