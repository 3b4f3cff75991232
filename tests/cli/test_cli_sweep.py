"""``t3 sweep`` of a GEMM by its sizes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli

VARY = ("--vary", "link.gb_s=10,20", "--policies", "t3", "--jobs", "1", "--machine", "toy")


def t3(*arguments: object):
    return CliRunner(env={"OMP_NUM_THREADS": "1"}).invoke(cli.main, [str(item) for item in arguments])


def test_one_gemm_at_several_degrees(tmp_path: Path):
    result = t3("sweep", "--m", 128, "--n", 64, "--k", 256, "--tp", "2,4", *VARY, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert record["own"] is None and [variant["name"] for variant in record["variants"]] == [
        "link.gb_s=10", "link.gb_s=20",
    ]  # fmt: skip
    work = [run["result"]["workload"] for run in record["variants"][0]["runs"]]
    assert {(item["m"], item["n"], item["k_total"], item["model"]) for item in work} == {(128, 64, 256, "custom")}
    assert sorted({item["tp"] for item in work}) == [2, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--m", "8"), "needs --m, --n and --k; missing: --n, --k"),
        (("--m", "8", "--n", "8", "--k", "64", "--models", "t-nlg"), "one GEMM of your own: leave out --models"),
        (("--m", "8", "--n", "8", "--k", "64", "--sublayers", "op"), "one GEMM of your own: leave out --sublayers"),
        (("--m", "8", "--n", "8", "--k", "64", "--tp", "x"), "numbers of GPUs separated by commas, not 'x'"),
        (("--m", "8", "--n", "8", "--k", "64", "--tp", ""), "choose at least one degree"),
        (("--m", "8", "--n", "8", "--k", "0"), "--k must be in 1 to"),
        (("--tp", "8,,16"), "--tp must be names separated by commas, not '8,,16'"),
        (("--models", "t-nlg", "--sublayers", "op", "--tp", "8,08"), "each point once, and t-nlg op TP 8 comes again"),
        (("--tp", "8,8"), "--tp must name each once, not '8,8'"),
    ],
)
def test_sizes_that_cannot_be(options, message):
    result = t3("sweep", *options, *VARY)
    assert result.exit_code == 2 and message in result.stderr and "Traceback" not in result.output


def test_a_run_names_the_values_that_were_changed():
    sizes = ("--m", 128, "--n", 64, "--k", 256, "--tp", 2, "--hardware", "golden", "--policy", "t3")
    result = t3("run", *sizes, "--machine", "toy", "--set", "link.gb_s=20", "--set", "dma.block=tile")
    assert result.exit_code == 0, result.output
    assert "on machine toy with link.gb_s=20, dma.block=tile, golden hardware (small)" in result.stdout
