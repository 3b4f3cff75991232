"""The command line with the whole system behind it: a toy machine with the golden hardware."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.run.records import read_result
from t3sim.run.request import COMPARED

TOY = ("--machine", "toy", "--m", "256", "--n", "200", "--k", "512", "--tp", "4", "--hardware", "golden")


def t3(*arguments: str):
    return CliRunner().invoke(cli.main, arguments)


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("compared") / "out"
    result = t3("compare", *TOY, "--threads", "2", "-o", str(out))
    assert result.exit_code == 0, result.output
    assert "0.0" not in next(line for line in result.stdout.splitlines() if line.startswith("time"))
    return out


def test_compare_holds_in_every_policy(compared):
    for policy in COMPARED:
        record = read_result(compared / policy / "result.json")
        assert False not in record.identities.values(), policy
        assert (record.tracker is not None) == (policy in ("t3", "t3-mca"))
        if record.tracker is not None:
            assert record.data_check is not None
            assert record.data_check.elements == 4 * 256 * 200, "the output on each of 4 GPUs, without padding"
            assert record.data_check.mismatches == 0


def test_overlap_gains(compared):
    gains = json.loads((compared / "compare.json").read_text())["speedup_over_sequential"]
    assert gains["sequential"] == 1.0
    assert min(gains["t3"], gains["t3-mca"], gains["ideal-overlap"]) > 1.1


def test_a_written_machine_repeats_the_run(compared, tmp_path: Path):
    """config.toml and one thread give the same bytes, but for the machine's name."""
    machine = compared / "t3" / "config.toml"
    arguments = ["--machine", str(machine), *TOY[2:], "--policy", "t3", "--threads", "1", "-o", str(tmp_path / "out")]
    result = t3("run", *arguments)
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path / "out")) == [
        "config.toml",
        "result.json",
        "t3-manifest.json",
        "timeline.json",
        "timeline.png",
        "timing.json",
    ]
    again = (tmp_path / "out" / "result.json").read_text().replace('"machine": "config"', '"machine": "toy"')
    assert again == (compared / "t3" / "result.json").read_text()


def test_compiled_hardware_gives_the_same_record(compared, tmp_path: Path):
    result = t3("run", *TOY[:-1], "rtl", "-o", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    record = read_result(tmp_path / "out" / "result.json")
    assert record.rtl is not None
    assert record.rtl.cycles == record.rtl.cycles_evaluated + record.rtl.cycles_skipped
    same = record.model_copy(update={"hardware": "golden", "rtl": None})
    assert same == read_result(compared / "t3-mca" / "result.json")


def test_ctrl_c_in_a_run_is_one_message(tmp_path: Path):
    script = (
        "from t3sim.cli import bars, main as cli\n"
        "bars.LINE_SECONDS = 0\n"
        "cli.main(['run', '--machine', 'toy', '--m', '1024', '--n', '1024', '--k', '8192', '--tp', '4',"
        " '--hardware', 'golden', '--threads', '2', '-o', 'out'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        while "simulated" not in (line := process.stderr.readline()):
            assert line, "the process ended before it reported progress"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "Error: interrupted; no output was written"
    assert "Traceback" not in errors
    assert os.listdir(tmp_path) == []


def test_unwritable_output_is_refused_before_the_run(tmp_path: Path):
    (tmp_path / "file").write_text("")
    result = t3("run", *TOY, "-o", str(tmp_path / "file" / "deep" / "out"))
    assert result.exit_code == 2
    folder = tmp_path / "file" / "deep" / "out"
    assert result.stderr.startswith(f"Error: --out must be a folder that can be made and written, not {folder}: ")
    assert result.stderr.count("\n") == 1


def test_missing_compiler_is_one_message(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    result = t3("run", *TOY[:-2])
    assert result.exit_code == 2
    assert result.stderr.count("Error:") == 1
    assert "needs a C++ compiler, and 'no-such-compiler' is not on the PATH: apt install g++" in result.stderr


def test_an_error_of_the_simulated_system_is_one_message(monkeypatch):
    monkeypatch.setattr("t3sim.run.system.wait_until_ready", lambda gpu, steps: False)
    result = t3("run", *TOY)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[-1] == "Error: the T3 unit does not finish its initialisation"
    assert "Traceback" not in result.output
