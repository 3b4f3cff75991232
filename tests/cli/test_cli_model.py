"""``t3 model`` with toy GEMMs in place of the sublayers."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from opent3 import many, models
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST
from t3sim.inputs.machine.files import load_machine
from t3sim.run.records import read_record
from t3sim.study.layer.operators import layer_operators, model_operators
from t3sim.study.model_record import WholeModelRecord

from tests.support.toy_evaluation import toy_suite


@pytest.fixture(scope="module")
def patched():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many, "Suite", lambda **choices: toy_suite(patch, **{**choices, "machine": "toy"}))
        yield


def t3(*arguments: str):
    return CliRunner(env={"OMP_NUM_THREADS": "1"}).invoke(cli.main, ["model", *arguments])


@pytest.mark.parametrize(("phase", "sublayers"), [("prompt", 2), pytest.param("training", 4, marks=pytest.mark.long)])
def test_every_operator_and_policy_has_a_row_and_shares_sum_to_all(patched, phase, sublayers):
    result = t3("--phase", phase)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines()]
    operators = [*layer_operators("t-nlg", 8, phase), *model_operators("t-nlg", 8, phase)]
    names = {operator.name for operator in operators if operator.sublayer is None}
    found = {row[0]: row for row in rows if row and row[0] in names}
    assert found.keys() == names
    simulated = [row for row in rows if row[:1] == ["sublayer"]]
    assert len(simulated) == sublayers
    shares = sum(float(row[-1]) for row in [*found.values(), *simulated])
    assert shares == pytest.approx(100, abs=0.05 * (len(found) + len(simulated)))
    speedups = {row[0]: float(row[-1]) for row in rows if row and row[0] in ("sequential", "t3", "t3-mca")}
    assert speedups.keys() == {"sequential", "t3", "t3-mca"}
    assert speedups["sequential"] == 1
    assert re.search(r"gives at most 1\.\d{3}x", result.stdout.replace("\n", " "))


def test_the_record_adds_up_and_says_what_is_printed(patched, tmp_path: Path):
    out = tmp_path / "model"
    result = t3("--phase", "prompt", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == [
        "config.toml",
        "model.json",
        "model.png",
        "model.svg",
        MANIFEST,
    ]
    record = read_record(out / "model.json", WholeModelRecord)
    assert (record.model, record.tp, record.phase, record.own, record.failures) == ("t-nlg", 8, "prompt", None, [])
    other = sum(item.total_ns for item in record.operators)
    for policy, times in record.policies.items():
        assert times.other == pytest.approx(other)
        hidden = times.gemm + times.exposed_reduce_scatter + times.all_gather
        assert times.total == pytest.approx(hidden + other)
        runs = [run for run in record.sublayers if run.result.policy == policy]
        assert times.exposed_reduce_scatter >= 0
        assert sorted(run.result.workload.sublayer for run in runs) == ["fc2", "op"]
        assert hidden == pytest.approx(sum(run.runs * run.result.time_ns.total for run in runs))
        assert re.search(rf"^{policy} .* {times.speedup:.3f}$", result.stdout, re.MULTILINE)
    assert load_machine(out / "config.toml").model_dump(exclude={"name", "sources"}) == load_machine("toy").model_dump(
        exclude={"name", "sources"}
    )
    assert f"written to {out}" in result.stdout.replace("\n", "")


def test_a_folder_of_somebody_else_is_refused_before_anything_runs(patched, monkeypatch, tmp_path: Path):
    monkeypatch.setattr(models, "run_all", None)
    (tmp_path / "mine").write_text("mine")
    result = t3("--out", str(tmp_path))
    assert result.exit_code == 2 and "--out must be a new folder" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_optimizer_is_a_row_if_asked_for(patched):
    assert "optimizer" not in t3().stdout
    assert re.search(r"^optimizer +1 ", t3("--optimizer").stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "t-nlgg"], "did you mean 't-nlg'?"),
        (["--tp", "65"], "tp must be in 2 to 64 GPUs, not 65"),
        (["--phase", "decode"], "phase must be one of prompt, training, not 'decode'"),
        (["--attention", "flash"], "attention must be one of unfused, fused, not 'flash'"),
        (["--phase", "prompt", "--optimizer"], "--optimizer belongs to --phase training, not to 'prompt'"),
        (["--hardware", "fpga"], "hardware must be one of rtl, golden, not 'fpga'"),
    ],
)
def test_errors_are_one_message_before_anything_runs(patched, monkeypatch, arguments, message):
    monkeypatch.setattr(models, "run_all", None)
    result = t3(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
