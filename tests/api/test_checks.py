"""Machines and checks in Python: presets, files, faults, references, speed."""

import json
from contextlib import nullcontext

import opent3
import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.faults.bench import Verdict
from t3sim.faults.outcome import Outcome
from t3sim.validation import alu

from tests.contract.nmc.golden_alu import golden_alu

SUMS = ("3C00 3C00 4000 00", "3C00 BC00 0000 00")


def test_presets_are_a_frame_of_the_commands_figures():
    frame = opent3.machine_frame()
    assert list(frame["name"]) == opent3.preset_names()
    paper = frame[frame["name"] == "paper"].iloc[0]
    assert (paper["cus"], paper["memory_gb_s"], paper["compared_with"]) == (80, 1024, "T3 paper")
    printed = CliRunner().invoke(cli.main, ["machine", "list"]).stdout
    assert all(f"{tflops:.4g}" in printed for tflops in frame["fp16_tflop_s"])


def test_a_new_machine_is_a_file_that_can_be_loaded_and_is_never_replaced(tmp_path):
    path = opent3.new_machine(tmp_path / "mine", "toy")
    assert path == tmp_path / "mine.toml"
    assert opent3.load_machine(path).gpu == opent3.load_machine("toy").gpu
    for name, message in ((path, "exists, and is left as it is"), (tmp_path / "toy", "NAME must not be that of a")):
        with pytest.raises(ValueError, match=message):
            opent3.new_machine(name)
    with pytest.raises(ValueError, match="path must be the name of a new file, not 3"):
        opent3.new_machine(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="--base must be one of"):
        opent3.new_machine(tmp_path / "other", "nope")
    assert [item.name for item in tmp_path.iterdir()] == ["mine.toml"]


def test_faults_are_counted_told_and_written(monkeypatch, tmp_path):
    def campaign(todo, seed, processes, on_done, scheduler):
        on_done(len(todo))
        return {
            job: Verdict(job.kind, job.number, f"{job.kind} packet", "a fault", Outcome.SILENT if job.number == 3 else
                         Outcome.MASKED, ())
            for job in todo
        }  # fmt: skip

    monkeypatch.setattr("t3sim.faults.campaign.run_campaign", campaign)
    told: list[tuple[int, int]] = []
    result = opent3.faults(30, ["link"], protect=True, on_done=lambda *both: told.append(both), out=tmp_path / "out")
    assert told == [(30, 30)] and [row.faults for row in result.record.rows] == [10, 10, 10]
    assert result.failures == [f"{kind} 3 (a fault): {Outcome.SILENT}" for kind in ("lost", "repeated", "reordered")]
    assert json.loads((tmp_path / "out" / "faults.json").read_text())["seed"] == 0


def test_a_campaign_that_its_workers_did_not_finish_says_so(monkeypatch):
    from t3sim.faults.campaign import CampaignError

    def campaign(*arguments):
        raise CampaignError("all worker processes died")

    monkeypatch.setattr("t3sim.faults.campaign.run_campaign", campaign)
    with pytest.raises(opent3.RunsFailedError, match="all worker processes died"):
        opent3.faults(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": "bits"}, "classes must be a list of classes of faults, not 'bits'"),
        ({"classes": []}, "--classes must be some of"),
        ({"classes": ["moon"]}, "each once, not 'moon'"),
        ({"count": 0}, "count must be at least 1"),
        ({"jobs": 0}, "jobs must be at least 1"),
    ],
)
def test_faults_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        opent3.faults(**arguments)
    with pytest.raises(ValueError, match="kind must be one of"):
        opent3.fault("moon", 1)


def test_one_fault_is_classified_as_the_command_says():
    verdict = opent3.fault("lost", 0)
    printed = CliRunner().invoke(cli.main, ["faults", "--repeat", "lost:0", "--protect"]).stdout
    assert printed.startswith(f"protected: {verdict.label}, {verdict.text}: {verdict.outcome}")


def test_the_references_of_dram_are_those_of_the_package():
    rows = opent3.validate_hbm(tolerance=0.05)
    assert len(rows) == 18 and all(row.within for row in rows)
    with pytest.raises(ValueError, match="give both --traces and --reference, or neither"):
        opent3.validate_hbm("mine.npz")


def test_cases_of_the_alu_are_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(alu, "open_alu", lambda config: nullcontext(golden_alu()))
    seen: list[str] = []

    def watch(check):
        seen.append(check.title)
        return nullcontext(lambda cases, seconds: None)

    (row,) = opent3.validate_alu(SUMS, dtype="fp16", op="add", watch=watch, out=tmp_path / "out")
    assert (row.cases, row.differences, seen) == (2, 0, ["fp16 add"])
    assert json.loads((tmp_path / "out" / "validate.json").read_text())["checks"][0]["cases"] == 2
    (row,) = opent3.validate_alu(SUMS[:1], dtype="fp16", op="min")
    assert row.differences == 1
    for given in ({}, {"cases": SUMS, "random": 3}):
        with pytest.raises(ValueError, match="give one of cases, --exhaustive, --random, not"):
            opent3.validate_alu(**given)


def test_a_gpu_needs_what_belongs_together(tmp_path):
    for options, message in (
        ({"recorded": "x.json"}, "--from needs --machine"),
        ({"recorded": "x.json", "machine": "toy", "samples": 3}, "leave out --rates and --samples"),
        ({"settings": {"link.gb_s": 3}}, "give --machine"),
        ({"rates": "fast"}, "rates must be a list of GB/s"),
        ({"samples": 0}, "samples must be 1 or more, not 0"),
        ({"rates": [-1]}, "--rates must be different GB/s"),
        ({"recorded": tmp_path / "x.json", "machine": "toy"}, "cannot be read"),
    ):
        with pytest.raises(ValueError, match=message):
            opent3.validate_gpu(**options)


def test_the_bench_measures_compiled_hardware():
    with pytest.raises(ValueError, match="bench measures the rtl hardware, not 'golden'"):
        opent3.bench(opent3.custom_workload(m=64, n=64, k=64, tp=2), machine="toy", hardware="golden")


@pytest.mark.parametrize(
    ("measure", "options", "message"),
    [
        (opent3.bench, {"contention": False}, "contention must be True, not False"),
        (opent3.bench_scaling, {"contention": False}, "contention must be True, not False"),
        (opent3.bench, {"threads": 2}, "threads must be 1, not 2"),
        (opent3.bench_scaling, {"threads": 2}, "threads must be 1, not 2"),
        (opent3.bench_scaling, {"mirror": False}, "mirror must be True, not False"),
    ],
)
def test_a_benchmark_of_other_runs_is_refused_before_it_runs(measure, options, message, monkeypatch):
    monkeypatch.setattr("t3sim.validation.bench.run_policies", lambda *_: pytest.fail("it ran"))
    with pytest.raises(ValueError, match=message):
        measure(opent3.custom_workload(m=64, n=64, k=64, tp=2), machine="toy", **options)
