"""Many runs: kept as they finish, resumed, failed one by one, interrupted."""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from t3sim.common.cache import BuildError
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import Workload, custom_workload
from t3sim.study import store as store_module
from t3sim.study import workers as workers_module
from t3sim.study.experiment import Experiment
from t3sim.study.runner import RunsFailedError, Status, run_missing
from t3sim.study.store import COLUMNS, SCHEMA, Outcome, Store

WORK = custom_workload(128, 128, 256, 4)
LARGEST = dict.fromkeys(("gpu.cus", "kernel.cus"), 1024) | {"kernel.outstanding_lines_per_cu": 1 << 16}
LARGEST |= dict.fromkeys(("dma.buffer_kib", "link.egress_buffer_kib", "link.rx_buffer_kib"), 1 << 20)
"""Legal one by one, and together more than can be simulated."""


def toy(policy: str = "t3", **choices) -> Experiment:
    return Experiment(**{"workload": WORK, "machine": load_machine("toy"), "policy": policy} | choices)


def no_report(status: Status) -> None:
    """For tests that look at results only."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, list[Status]]:
    """The folder of two finished runs, and what was reported of them."""
    folder, seen = tmp_path_factory.mktemp("kept"), []
    runs = [toy("sequential"), toy("t3"), toy("t3")]
    assert run_missing(runs, Store(folder), 2, seen.append) == 2, "two runs with one key are one"
    return folder, seen


def test_progress_goes_from_nothing_to_all(finished):
    first, last = finished[1][0], finished[1][-1]
    assert (first.done, first.total, last.done, last.running) == (0, 2, 2, ())
    assert first.seconds_left is None and last.seconds_left == pytest.approx(0, abs=1e-6)
    assert last.cost_done == pytest.approx(last.cost_total)


def test_a_kept_run_is_not_simulated_again(finished, monkeypatch):
    monkeypatch.setattr("t3sim.study.runner.workers", None)
    assert run_missing([toy("sequential"), toy("t3")], Store(finished[0]), 2, no_report) == 0


def test_a_kept_run_has_the_traffic_of_its_record(finished):
    kept = Store(finished[0]).get(toy("t3"))
    assert kept is not None and kept.traffic is not None
    assert all(kept.record.identities.values())
    total = sum(sum(values) for values in kept.traffic.bytes.values())
    assert total == pytest.approx(kept.record.traffic_bytes_per_gpu.total)


def test_what_is_kept_is_what_a_simulation_gives(tmp_path):
    from t3sim.run.simulate import simulate

    store, run = Store(tmp_path), toy("t3-mca")
    result = simulate(run.request())
    store.put(run, Outcome.of(run.label, result))
    kept = store.get(run)
    assert kept is not None
    assert kept.record == result.record.model_copy(update={"machine": "toy"})


def test_a_kept_result_takes_the_names_of_who_asks(finished):
    work = Workload(model="t-nlg", sublayer="fc1", tp=4, m=128, n=128, k=256)
    kept = Store(finished[0]).get(toy(workload=work))
    assert kept is not None
    assert (kept.record.workload.model, kept.record.workload.sublayer) == ("t-nlg", "fc1")


def copied(folder: Path, target: Path) -> Store:
    """The store in ``folder``, to be damaged."""
    return Store(shutil.copytree(folder, target / "copy"))


@pytest.mark.parametrize("content", ["", "{", '{"schema": 7}'])
def test_a_damaged_row_is_as_good_as_none(finished, tmp_path, content):
    store = copied(finished[0], tmp_path)
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("UPDATE runs SET record = ?", (content,))
    assert store.get(toy()) is None


def test_a_damaged_file_is_named(tmp_path):
    store = Store(tmp_path)
    store.path.write_text("no database at all" * 100)
    with pytest.raises(
        BuildError, match=r"the finished runs in .*runs\.sqlite cannot be used \(file is not a database"
    ):
        store.get(toy())


EXCHANGED = """
    ALTER TABLE runs RENAME COLUMN model TO other;
    ALTER TABLE runs RENAME COLUMN sublayer TO model;
    ALTER TABLE runs RENAME COLUMN other TO sublayer;
"""
"""The same columns in another order."""


@pytest.mark.parametrize(
    "change",
    [
        "PRAGMA user_version = 2",
        "ALTER TABLE runs ADD COLUMN more TEXT",
        "ALTER TABLE runs DROP COLUMN traffic",
        EXCHANGED,
    ],
)
def test_a_table_of_another_version_is_refused(finished, tmp_path, change):
    store = copied(finished[0], tmp_path)
    with closing(sqlite3.connect(store.path)) as database, database:
        database.executescript(change)
    outcome = Store(finished[0]).get(toy("t3"))
    assert outcome is not None
    for use in (lambda: store.get(toy("t3")), lambda: store.put(toy("t3"), outcome)):
        with pytest.raises(BuildError, match="were kept by another version of OpenT3 .*move the file away, or set"):
            use()


def test_a_table_of_before_versions_is_taken_and_marked(finished, tmp_path):
    store = copied(finished[0], tmp_path)
    with closing(sqlite3.connect(store.path)) as database, database:
        assert database.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        database.execute("PRAGMA user_version = 0")
    outcome = store.get(toy("t3"))
    assert outcome is not None
    store.put(toy("t3"), outcome)
    with closing(sqlite3.connect(store.path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (SCHEMA,)


def test_an_empty_file_has_no_runs(tmp_path):
    store = Store(tmp_path)
    store.path.touch()
    assert store.get(toy()) is None


def test_the_store_can_be_asked(finished):
    with closing(sqlite3.connect(Store(finished[0]).path)) as database:
        rows = database.execute(
            "SELECT model, tp, policy, hardware, machine, json_extract(record, '$.time_ns.total') = total_ns FROM runs "
            "ORDER BY policy"
        ).fetchall()
    assert rows == [("custom", 4, policy, "golden", "toy", 1) for policy in ("sequential", "t3")]


def test_results_of_other_sources_are_not_taken(finished, monkeypatch):
    assert Store(finished[0]).get(toy()) is not None
    monkeypatch.setattr(store_module, "digest_for", lambda hardware: f"another for {hardware}")
    assert Store(finished[0]).get(toy()) is None


def test_a_run_of_changed_sources_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(workers_module, "source_digest", lambda program: "another")
    with pytest.raises(RunsFailedError, match="sources have changed since the command began: start it again"):
        run_missing([toy()], Store(tmp_path), 1, no_report)
    assert not list(tmp_path.rglob("*.sqlite"))


@pytest.mark.long
def test_a_failed_run_is_named_and_the_others_are_kept(tmp_path):
    store = Store(tmp_path)
    bad = toy(machine=load_machine("toy", LARGEST), mirror=False)
    with pytest.raises(RunsFailedError) as failed:
        run_missing([bad, toy("sequential"), toy("t3")], store, 2, no_report)
    assert str(failed.value).startswith(f"1 of 3 runs did not finish: {bad.label}: ")
    assert "2 finished runs are kept" in str(failed.value)
    assert store.get(toy("sequential")) is not None and store.get(toy("t3")) is not None


def kept_rows(folder: Path) -> list[tuple]:
    """All that is kept, without the wall time."""
    names = ", ".join(name for name in COLUMNS if name != "wall_seconds")
    with closing(sqlite3.connect(Store(folder).path)) as database:
        return database.execute(f"SELECT {names} FROM runs ORDER BY key").fetchall()


def kill_a_worker() -> int:
    """Kills a worker process, if there is one; returns how many."""
    found = multiprocessing.active_children()[:1]
    for process in found:
        process.kill()
    return len(found)


def test_a_killed_worker_loses_nothing(finished, tmp_path):
    killed = 0

    def kill_once(status: Status) -> None:
        nonlocal killed
        if status.running and not killed:
            killed = kill_a_worker()

    assert run_missing([toy("sequential"), toy("t3")], Store(tmp_path), 1, kill_once) == 2
    assert killed == 1
    assert kept_rows(tmp_path) == kept_rows(finished[0])
    assert multiprocessing.active_children() == []


def test_one_process_gives_the_same(finished, tmp_path):
    from t3sim.run.simulate import simulate

    for run in (toy("sequential"), toy("t3")):
        Store(tmp_path).put(run, Outcome.of(run.label, simulate(run.request())))
    assert kept_rows(tmp_path) == kept_rows(finished[0])


@pytest.mark.long
def test_two_hundred_runs_with_a_killed_worker_are_those_without(tmp_path):
    runs = [
        toy(policy, machine=load_machine("toy", {"link.gb_s": gb_s}), workload=custom_workload(256, 64, 64, 2))
        for gb_s in range(5, 105)
        for policy in ("sequential", "t3")
    ]
    killed = 0

    def kill_once(status: Status) -> None:
        nonlocal killed
        if status.done >= 50 and not killed:
            killed = kill_a_worker()

    assert run_missing(runs, Store(tmp_path / "killed"), 2, kill_once) == 200
    assert killed == 1
    assert run_missing(runs, Store(tmp_path / "quiet"), 2, no_report) == 200
    assert kept_rows(tmp_path / "killed") == kept_rows(tmp_path / "quiet")


HALF = """
import os
import signal
import sys
from pathlib import Path

from t3sim.study.runner import run_missing
from t3sim.study.store import Store
from tests.sim.study.test_runner import toy

def die(status):
    if status.done:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    run_missing([toy("sequential"), toy("t3")], Store(Path(sys.argv[1])), 1, die)
"""


@pytest.mark.long
def test_what_a_killed_command_has_finished_is_kept(finished, tmp_path):
    (tmp_path / "half.py").write_text(HALF)
    command = [sys.executable, str(tmp_path / "half.py"), str(tmp_path / "kept")]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run(command, env=os.environ | paths, timeout=120, check=False).returncode == -signal.SIGKILL
    assert run_missing([toy("sequential"), toy("t3")], Store(tmp_path / "kept"), 1, no_report) == 1
    assert kept_rows(tmp_path / "kept") == kept_rows(finished[0])


SCRIPT = """
import signal
import sys
from t3sim.inputs.machine.files import load_machine
from t3sim.study import store as store_module
from t3sim.study import workers as workers_module
from t3sim.study.experiment import Experiment
from t3sim.study.runner import run_missing
from t3sim.study.store import Store
from t3sim.inputs.workload import custom_workload
from pathlib import Path

def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background would ignore it
    runs = [Experiment(workload=custom_workload(128, 128, 256, 4), machine=load_machine("toy"), policy="t3"),
            *(Experiment(workload=custom_workload(512, 512, k, 4), machine=load_machine("toy"), policy="t3-mca")
              for k in (1 << 20, 1 << 21))]
    store = Store(Path(sys.argv[1]))
    try:
        run_missing(sorted(runs, key=lambda run: run.cost), store, 2, lambda now: print(len(now.running), flush=True))
    except KeyboardInterrupt:
        print("interrupted", flush=True)

if __name__ == "__main__":
    main()
"""


def workers_of(process: int) -> list[int]:
    """Process ids of all children of all threads, read from /proc."""
    threads = Path(f"/proc/{process}/task").glob("*/children")
    return [int(text) for children in threads for text in children.read_text().split()]


@pytest.mark.parametrize(
    "sign",
    [
        pytest.param(signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGKILL, id="killed", marks=pytest.mark.long),
    ],
)
def test_an_end_in_the_middle_leaves_no_worker_behind(tmp_path, sign):
    (tmp_path / "many.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "many.py"), str(tmp_path / "results")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "2":
            assert process.poll() is None
        time.sleep(1)
        workers = workers_of(process.pid)
        assert len(workers) >= 2
        process.send_signal(sign)
        out, errors = process.communicate(timeout=60)
    if sign == signal.SIGINT:
        assert out.splitlines()[-1] == "interrupted", errors
        assert "Traceback" not in errors
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{worker}") for worker in workers):
        assert time.monotonic() < deadline, "a worker goes on without its parent"
        time.sleep(0.1)
