"""Many runs: kept as they finish, resumed, failed one by one, interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from t3sim.machine import load_machine
from t3sim.reports.experiment import Experiment
from t3sim.reports.runner import RunsFailedError, Status, run_missing
from t3sim.reports.store import Store
from t3sim.workload import custom_workload

WORK = custom_workload(128, 128, 256, 4)


def toy(policy: str = "t3", **choices) -> Experiment:
    return Experiment(**{"workload": WORK, "machine": load_machine("toy"), "policy": policy} | choices)


def no_report(status: Status) -> None:
    """For tests that look at results only."""


def test_a_run_is_simulated_once_and_its_result_kept(tmp_path):
    store, seen = Store(tmp_path), []
    runs = [toy("sequential"), toy("t3"), toy("t3")]
    assert run_missing(runs, store, 2, seen.append) == 2, "two runs with one key are one"
    assert (seen[0].done, seen[0].total, seen[-1].done, seen[-1].running) == (0, 2, 2, ())
    assert seen[-1].cost_done == pytest.approx(seen[-1].cost_total)
    assert run_missing(runs, store, 2, seen.append) == 0
    kept = store.get(toy("t3"))
    assert kept is not None and kept.traffic is not None
    assert all(kept.record.identities.values())
    total = sum(sum(values) for values in kept.traffic.bytes.values())
    assert total == pytest.approx(kept.record.traffic_bytes_per_gpu.total)


def test_what_is_kept_is_what_a_simulation_gives(tmp_path):
    from t3sim.simulate import simulate

    store, run = Store(tmp_path), toy("t3-mca")
    result = simulate(run.request())
    store.put(run, result)
    kept = store.get(run)
    assert kept is not None
    assert kept.record == result.record.model_copy(update={"machine": "toy"})


def test_a_kept_result_takes_the_names_of_who_asks(tmp_path):
    from t3sim.workload import Workload

    store = Store(tmp_path)
    run_missing([toy()], store, 1, no_report)
    work = Workload(model="t-nlg", sublayer="fc1", tp=4, m=128, n=128, k=256)
    kept = store.get(toy(workload=work))
    assert kept is not None
    assert (kept.record.workload.model, kept.record.workload.sublayer) == ("t-nlg", "fc1")


@pytest.mark.parametrize("content", ["", "{", '{"schema": 7}'])
def test_a_damaged_file_is_as_good_as_none(tmp_path, content):
    store = Store(tmp_path)
    run_missing([toy()], store, 1, no_report)
    path = next(store.folder.glob("*.json"))
    good = path.read_bytes()
    path.write_text(content)
    assert store.get(toy()) is None
    run_missing([toy()], store, 1, no_report)
    assert json.loads(path.read_bytes())["record"] == json.loads(good)["record"]


def test_results_of_other_sources_are_not_taken(tmp_path):
    run_missing([toy()], Store(tmp_path), 1, no_report)
    assert Store(tmp_path, "another").get(toy()) is None


def test_a_run_of_changed_sources_is_refused(tmp_path):
    with pytest.raises(RunsFailedError, match="sources have changed since the command began: start it again"):
        run_missing([toy()], Store(tmp_path, "another"), 1, no_report)
    assert not list(tmp_path.rglob("*.json"))


def test_a_failed_run_is_named_and_the_others_are_kept(tmp_path):
    store = Store(tmp_path)
    config = load_machine("toy", {"hardware.overrides.count_on": "performed"})
    with pytest.raises(RunsFailedError) as failed:
        run_missing([toy(machine=config), toy("sequential"), toy("t3")], store, 2, no_report)
    assert str(failed.value).startswith(f"1 of 3 runs failed: {toy(machine=config).label}: ")
    assert "2 finished runs are kept" in str(failed.value)
    assert store.get(toy("sequential")) is not None and store.get(toy("t3")) is not None


SCRIPT = """
import signal
import sys
from t3sim.machine import load_machine
from t3sim.reports.experiment import Experiment
from t3sim.reports.runner import run_missing
from t3sim.reports.store import Store
from t3sim.workload import custom_workload
from pathlib import Path

def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background would ignore it
    runs = [Experiment(workload=custom_workload(128, 128, 256, 4), machine=load_machine("toy"), policy="t3"),
            *(Experiment(workload=custom_workload(2048, 2048, k, 4), machine=load_machine("toy"), policy="t3-mca")
              for k in (1 << 16, 1 << 17))]
    store = Store(Path(sys.argv[1]))
    try:
        run_missing(sorted(runs, key=lambda run: run.cost), store, 2, lambda now: print(len(now.running), flush=True))
    except KeyboardInterrupt:
        print("interrupted", flush=True)

if __name__ == "__main__":
    main()
"""


def workers_of(process: int) -> list[int]:
    """Process ids of all children, read from /proc."""
    children = Path(f"/proc/{process}/task/{process}/children")
    return [int(text) for text in children.read_text().split()]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
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
