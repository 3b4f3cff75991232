"""`t3 bench`: attribution of evaluations, targets, and its record; the speeds are made up."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import model_workload
from t3sim.run.provenance import Provenance
from t3sim.run.request import RunRequest
from t3sim.run.result import WallSeconds
from t3sim.validation import bench
from t3sim.validation.bench import Target, attribute
from t3sim.validation.speed import PartSpeed

from tests.support.sample_result import sample_run

SPEEDS = {"slice": 4e6, "leaf": 8e6, "root": 6e6, "tracker": 2.5e6, "trigger": 5e6}


@pytest.fixture
def requests(monkeypatch) -> list[RunRequest]:
    """Replaces what takes time; the list receives the requests, except that which compiles the kernels."""
    asked: list[RunRequest] = []

    def run_policies(request, policies, watch):
        asked.extend(replace(request, policy=policy) for policy in policies)
        return {policy: sample_run(policy, request.workload) for policy in policies}

    monkeypatch.setattr(bench, "run_policies", run_policies)
    monkeypatch.setattr(
        bench, "part_speed", lambda config, name, seed: PartSpeed(in_numba=SPEEDS[name], in_c=2 * SPEEDS[name])
    )
    monkeypatch.setattr(bench, "simulator_cycles_per_second", lambda config, seed: 10.0)
    monkeypatch.setattr(bench, "hbm_requests_per_second", lambda load: 2.5e6)
    return asked


def t3_bench(*arguments: str):
    return CliRunner().invoke(cli.main, ["bench", *arguments])


def test_record(requests, tmp_path: Path):
    result = t3_bench("--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    warm, *asked = requests
    assert warm.machine.name == "toy"
    assert {(request.threads, request.mirror) for request in requests} == {(1, True)}
    assert [(request.policy, request.hardware, request.contention) for request in asked] == [
        ("sequential", "rtl", True),
        *(("t3-mca", "rtl", observed) for observed in (True, False, False, True, True, False)),
        ("t3-mca", "golden", True),
    ]
    content = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert content["rtl_seconds"] == pytest.approx(5 + 0.5 + 0.5 + 1 + 0.1)
    assert content["rtl_share"] == pytest.approx(7.1 / 40)
    assert content["provenance"] == Provenance.of(load_machine("paper")).model_dump(mode="json")
    clocks = 1650e3 * 8  # us, 1 GHz, GPUs
    measured = [target["measured"] for target in content["targets"]]
    assert measured == pytest.approx([clocks / 40 / 10, 2.0, 1.0, 1.0, 40.0, *[2.5e6] * 5])
    assert list(content["ok"].values()) == [True, True, True, True, False, False, *[True] * 4]
    assert result.stdout.count("MISS") == 2
    assert content["contention_ratios"] == [1.0] * 3
    assert (content["lines"], content["evaluations"]) == (4_000_000, 30_000_000)
    (line,) = (line for line in result.stdout.splitlines() if "for each line" in line)
    assert line.split()[-3:] == ["7.50", "4000000", "30000000"]


def test_the_cost_of_observing_contention_is_the_median_of_pairs(requests, monkeypatch):
    """The computer does something else during one run of the six."""
    seconds = iter([40.0, 40.0, 40.0, 80.0, 44.0, 40.0])

    def run_policies(request, policies, watch):
        found = {policy: sample_run(policy, request.workload) for policy in policies}
        if (policies, request.hardware) == (("t3-mca",), "rtl"):
            wall = WallSeconds(build=0.0, simulate=next(seconds))
            return {"t3-mca": replace(found["t3-mca"], wall=wall)}
        return found

    monkeypatch.setattr(bench, "run_policies", run_policies)
    workload = model_workload("t-nlg", "fc2", 8)
    found = bench.bench(
        RunRequest(workload=workload, machine=load_machine("paper"), policy="t3-mca"), lambda label: None
    )
    assert found.contention_ratios == (1.0, 2.0, 1.1)
    (target,) = (target for target in found.targets if "contention" in target.name)
    assert target.measured == 1.1 and target.ok


def test_the_ring_on_one_thread_and_on_two(requests, monkeypatch):
    result = t3_bench("--ring")
    assert result.exit_code == 0, result.output
    assert [(request.mirror, request.threads) for request in requests[-2:]] == [(False, 1), (False, 2)]
    for line, sign in (("8 GPUs on 2 threads, s", "<="), ("ring on one thread over 2", ">=")):
        (shown,) = (row for row in result.stdout.splitlines() if line in row)
        assert sign in shown and "MISS" in shown


def test_seconds_have_targets_for_the_reference_alone(requests):
    for arguments in (("--tp", "4"), ("--set", "link.gb_s=75"), ("--machine", "paper-accelsim")):
        assert "mirrored GPU, s" not in t3_bench(*arguments).stdout


def test_attribution():
    """A million bursts, half of them updates; 20 million slice evaluations without updates, and with them."""
    untracked, update, tile = attribute(sample_run("sequential").record, sample_run("t3-mca").record)
    assert (untracked.count, untracked.per_event) == (500_000, 20.0)
    assert (update.count, update.per_event) == (500_000, (20e6 - 20 * 5e5 + 9.5e6) / 5e5)
    assert (tile.count, tile.per_event) == (17408, pytest.approx(5e5 / 17408))
    assert untracked.evaluations + update.evaluations + tile.evaluations == pytest.approx(30e6)


def test_attribution_needs_counts():
    ideal, tracked = sample_run("ideal-overlap").record, sample_run("t3-mca").record
    with pytest.raises(ValueError, match="sequential run has no record"):
        attribute(ideal, tracked)
    with pytest.raises(ValueError, match="tracked run has no record"):
        attribute(sample_run("sequential").record, sample_run("sequential").record)


@pytest.mark.parametrize(("ceiling", "measured", "ok"), [(True, 2.0, True), (True, 2.1, False), (False, 1.9, False)])
def test_target(ceiling, measured, ok):
    assert Target(name="x", measured=measured, limit=2.0, ceiling=ceiling).ok is ok


def test_quick_is_a_toy(requests):
    assert t3_bench("--quick").exit_code == 0
    assert {(request.machine.name, request.workload.m) for request in requests} == {("toy", 256)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--quick", "--model", "palm"), "--quick chooses machine and GEMM itself: leave out --model"),
        (("--quick", "--machine", "nope"), "--quick chooses machine and GEMM itself: leave out --machine"),
        (("--quick", "--tp", "4", "--k", "96"), "--quick chooses machine and GEMM itself: leave out --k, --tp"),
        (("--threads", "2"), "bench measures on one thread: leave out --threads"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(requests, arguments, message):
    result = t3_bench(*arguments)
    assert (result.exit_code, result.stderr) == (2, f"Error: {message}\n")
    assert not requests


def test_every_gpu_on_request(requests):
    assert t3_bench("--no-mirror").exit_code == 0
    assert not any(request.mirror for request in requests)


def test_only_rtl():
    request = RunRequest(
        workload=model_workload("t-nlg", "fc2", 8), machine=load_machine("paper"), policy="t3-mca", hardware="golden"
    )
    with pytest.raises(ValueError, match="bench measures the rtl hardware, not 'golden'"):
        bench.bench(request, lambda label: None)
