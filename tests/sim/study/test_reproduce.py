"""``t3 reproduce`` from the command line to its files, with toy GEMMs on the toy machine."""

import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from opent3 import many
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST
from t3sim.inputs.machine.files import load_machine
from t3sim.run.provenance import Provenance
from t3sim.study.published import published
from t3sim.study.reproduction import Reproduction
from t3sim.study.runner import Status
from t3sim.study.store import Store
from t3sim.study.suite import NEEDS, QUICK_TABLES, TABLES, TP_8_16, Suite, points

from tests.support.toy_evaluation import toy_suite

pytestmark = pytest.mark.long  # a whole evaluation, if a small one

ONE = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def patched():
    with pytest.MonkeyPatch.context() as patch:
        suite = toy_suite(patch)
        patch.setattr(many, "Suite", lambda **choices: toy_suite(patch, **{**choices, "machine": "toy"}))
        yield suite


def t3(*arguments: str):
    return CliRunner(env=ONE).invoke(cli.main, arguments)


@pytest.fixture(scope="module")
def written(patched, tmp_path_factory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("reproduced") / "out"
    result = t3("reproduce", "--hardware", "golden", "--out", str(out))
    assert result.exit_code == 0, result.output
    return out, result.stdout


@pytest.fixture(scope="module")
def record(written) -> Reproduction:
    return Reproduction.model_validate_json((written[0] / "reproduce.json").read_bytes())


def test_the_record_has_every_published_figure_with_a_verdict(record):
    assert [item.name for item in record.figures] == list(published())
    for item in record.figures:
        assert item.measured is not None and math.isfinite(item.measured), item.name
        assert item.own_rule is not None and math.isfinite(item.own_rule), item.name
        assert item.verdict == published()[item.name].verdict(item.measured)
    assert record.failures == []
    assert record.tables == list(TABLES)


def test_the_record_has_every_run_once(record):
    seen = [
        (run.variant, run.result.workload.model, run.result.workload.sublayer, run.result.policy, run.result.mirror)
        for run in record.runs
    ]
    assert len(seen) > 150
    assert {policy for variant, _, _, policy, _ in seen if variant == "backlog"} == {"t3-mca"}
    policies = {policy for _, _, _, policy, _ in seen}
    assert policies == {
        "sequential", "sequential-nmc", "sequential-pipelined", "t3", "t3-mca", "ideal-overlap", "ideal-overlap-nmc",
    }  # fmt: skip
    assert all(run.speedup is not None for run in record.runs if run.result.policy in ("t3", "ideal-overlap"))


def test_speedups_of_the_record_are_times_of_the_record(record):
    def total(policy: str, mirror: bool) -> float:
        return next(
            run.result.time_ns.total
            for run in record.runs
            if (run.variant, run.result.workload.model, run.result.workload.sublayer) == ("base", "t-nlg", "fc2")
            and run.result.policy == policy
            and run.result.mirror == mirror
        )

    gain = next(run.speedup for run in record.runs if run.result.workload.model == "t-nlg" and run.variant == "base"
                and run.result.workload.sublayer == "fc2" and run.result.policy == "t3-mca")  # fmt: skip
    assert gain == pytest.approx(total("sequential", False) / total("t3-mca", False))


def test_models_sum_what_their_sublayers_take(record):
    pairs = {(item.model, item.tp) for item in record.models}
    assert pairs == {("mega-gpt-2", 8), ("mega-gpt-2", 16), ("t-nlg", 8), ("t-nlg", 16), ("gpt-3", 32), ("palm", 32),
                     ("mt-nlg", 32), ("1t", 64), ("10t", 64)}  # fmt: skip
    assert all(0 < item.sublayers_ns < item.total_ns for item in record.models)


def test_the_machine_is_written_that_the_runs_had(written, record):
    digest = Provenance.of(load_machine(written[0] / "config.toml")).machine
    assert {run.result.provenance.machine for run in record.runs if run.variant == "base"} == {digest}


def test_every_chart_is_written_twice(written):
    names = {path.name for path in written[0].iterdir()}
    charts = {name.removesuffix(".png") for name in names if name.endswith(".png")}
    assert charts >= {"time-split", "speedups", "dram-traffic-over-time", "data-movement", "end-to-end",
                      "tp32-speedups", "twice-the-cus"}  # fmt: skip
    assert names == {
        MANIFEST,
        "config.toml",
        "reproduce.json",
        "traffic.json",
        *(f"{name}.{kind}" for name in charts for kind in ("png", "svg")),
    }
    for name in charts:
        assert (written[0] / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_second_time_nothing_runs_and_the_files_are_the_same(written, monkeypatch, tmp_path):
    monkeypatch.setattr("t3sim.study.runner.workers", None)
    result = t3("reproduce", "--hardware", "golden", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    for path in written[0].iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_miss_is_printed_as_one(written, record):
    assert any(item.verdict == "outside" for item in record.figures), "toy GEMMs do not reproduce the paper"
    for item in record.figures:
        line = next(line for line in written[1].splitlines() if line.startswith(f"{item.title} "))
        assert ("OUTSIDE" in line) == (item.verdict == "outside")


def test_only_some_tables(written):
    result = t3("reproduce", "--hardware", "golden", "--only", "nmc", "--only", "mirror")
    assert result.exit_code == 0, result.output
    assert "near-memory reduction" in result.stdout and "whole models" not in result.stdout
    assert "not run" in result.stdout


def test_a_result_that_does_not_add_up_is_exit_code_1(written, monkeypatch, tmp_path):
    get = Store.get

    def broken(store, experiment):
        outcome = get(store, experiment)
        assert outcome is not None
        record = outcome.record.model_copy(update={"identities": {"rs_read_closed_form": False}})
        return outcome.model_copy(update={"record": record})

    monkeypatch.setattr(Store, "get", broken)
    result = t3("reproduce", "--hardware", "golden", "--only", "timeline", "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "identity rs_read_closed_form does not hold" in result.stderr
    assert (tmp_path / "out" / "reproduce.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "figures"), "--only must name tables of sublayers, "),
        (("--quick", "--only", "tp32"), "--only must name tables of sublayers, "),
        (("--hardware", "fpga"), "hardware must be one of rtl, golden, not 'fpga'"),
        (("--set", "gpu.cu=3"), "unknown key gpu.cu"),
        (("--set", "arbiter.mca=backlog"), "--set arbiter.mca must be paper here, not backlog: published numbers"),
        (("--out", "tests"), "--out must be a new folder"),
    ],
)
def test_errors_are_one_message(patched, arguments, message):
    result = t3("reproduce", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_ctrl_c_says_what_is_kept(patched, monkeypatch):
    def interrupted(experiments, store, jobs, on_status, scheduler, on_outcome):
        costs = {"cost_done": 1, "cost_total": 9, "wall_seconds": 5, "last_seconds": 5}
        on_status(Status(done=1, total=2, running=("a run",), failed=0, **costs))
        raise KeyboardInterrupt

    monkeypatch.setattr("opent3.many.run_missing", interrupted)
    result = t3("reproduce", "--hardware", "golden")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == (
        "Error: interrupted; finished runs are kept, and the same command goes on from there"
    )


def test_all_gpus_are_simulated_where_it_is_said(patched):
    for item in Suite(machine="toy", hardware="golden").experiments(TABLES):
        if not item.mirror:
            assert item.policy in ("sequential", "sequential-nmc", "t3", "t3-mca")
    assert all(item.mirror for item in Suite(machine="toy", quick=True).experiments(QUICK_TABLES))
    assert any(not item.mirror for item in Suite(machine="toy").experiments(["sublayers"]))


def test_tables_name_what_the_paper_evaluated():
    assert len(TP_8_16) == 16
    assert {point.tp for need in NEEDS["tp64"] for point in need.points} == {64}
    assert len(points(("a", "b"), (8, 16))) == 16
