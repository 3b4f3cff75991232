"""The command line: what it prints and writes, and one message with the right exit code for every expected error."""

import json
import os
import re
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3formal.prover import netlist
from t3hdl.config import preset
from t3sim import __version__
from t3sim.cli import doctor
from t3sim.cli import main as cli
from t3sim.cli.start import packages
from t3sim.common.cache import BuildError
from t3sim.common.manifest import MANIFEST
from t3sim.inputs.machine.files import load_machine
from t3sim.run.records import read_result
from t3sim.run.request import COMPARED, Progress, RunRequest, RunResult

from tests.support.sample_result import sample_run

T3 = [sys.executable, "-m", "t3sim.cli.main"]


@pytest.fixture
def engine(monkeypatch):
    """Replaces the engine by one that returns made-up results; the list receives the requests."""
    requests: list[RunRequest] = []

    def simulate(request, on_progress) -> RunResult:
        requests.append(request)
        on_progress(Progress(simulated_ns=5e4, work_done=0.05, phase="GEMM", wall_seconds=2.0))
        return sample_run(request.policy, request.workload)

    monkeypatch.setitem(sys.modules, "t3sim.run.simulate", types.SimpleNamespace(simulate=simulate))
    return requests


def t3(*arguments: str):
    return CliRunner().invoke(cli.main, arguments)


def fails(result, message: str, code: int = 2) -> None:
    """One message on stderr, no traceback, nothing on stdout, this exit code."""
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stderr.count("Error:") == 1


def test_version_and_help():
    assert __version__ in t3("--version").stdout
    for command in ("run", "compare", "bench", "verilog", "validate", "doctor"):
        assert command in t3("--help").stdout
        assert t3(command, "--help").exit_code == 0


@pytest.mark.parametrize(("group", "heading"), [((), "First minutes:"), (("machine",), "Commands:"),
                                                (("validate",), "Commands:")])  # fmt: skip
def test_the_list_of_commands_cuts_no_sentence(group, heading):
    commands = t3(*group, "--help").stdout.partition(f"{heading}\n")[2]
    assert commands and "..." not in commands


def test_help_lists_every_command_once():
    names = [line.split()[0] for line in t3("--help").stdout.splitlines() if re.match(r"  [a-z]+  +[A-Z]", line)]
    assert sorted(names) == sorted(cli.main.commands) and len(names) > 15


def test_run_prints_a_table_and_writes_a_folder(engine, tmp_path: Path):
    out = tmp_path / "out"
    result = t3("run", "--policy", "t3", "--out", str(out), "--threads", "1")
    assert result.exit_code == 0, result.output
    for text in (
        "t-nlg fc2 TP 8 (8192 x 4256 x 17024)",
        "time (us)",
        "1800",
        "RS reads",
        "mismatches",
        "skipped, idle",
    ):
        assert text in result.stdout
    assert sorted(os.listdir(out)) == [
        "config.toml", "result.json", MANIFEST, "timeline.json", "timeline.png", "timing.json",
    ]  # fmt: skip
    assert read_result(out / "result.json").policy == "t3"
    assert load_machine(out / "config.toml") == load_machine("paper").model_copy(update={"name": "config"})
    assert json.loads((out / "timing.json").read_text()) == {"wall_seconds": {"build": 12.0, "simulate": 40.0}}


def test_names_with_brackets_are_no_markup(engine, tmp_path: Path):
    (tmp_path / "[red]mine :warning:.toml").write_text('base = "paper"\n')
    result = t3("run", "--machine", str(tmp_path / "[red]mine :warning:.toml"), "--out", str(tmp_path / "[bold]out"))
    assert result.exit_code == 0, result.output
    assert "on machine [red]mine :warning:, rtl hardware" in result.stdout
    assert f"written to {tmp_path / '[bold]out'}\n" in result.stdout


def test_out_without_a_name_is_refused(engine, tmp_path: Path, monkeypatch):
    """As from a shell variable that is not set."""
    monkeypatch.chdir(tmp_path)
    result = t3("run", "--out", "")
    assert result.exit_code == 2 and "must be the name of a folder, not empty" in result.stderr
    assert os.listdir(tmp_path) == [] and not engine


@pytest.mark.parametrize("command", ["report", "explain"])
def test_a_folder_without_a_name_is_not_this_one(command, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = t3(command, "")
    assert result.exit_code == 2 and "must be the name of a folder, not empty: give one" in result.stderr


def test_a_name_with_control_characters_is_shown_without(engine, tmp_path: Path):
    result = t3("run", "--out", str(tmp_path / "\x1b[31mred"))
    assert result.stdout.endswith("/\\x1b[31mred\n")
    assert (tmp_path / "\x1b[31mred" / "result.json").exists()


def test_run_without_out_writes_nothing(engine, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert t3("run").exit_code == 0
    assert os.listdir(tmp_path) == []


def test_options_reach_the_engine(engine):
    result = t3(
        "run", "--m", "256", "--n", "512", "--k", "96", "--tp", "4", "--machine", "toy", "--set", "link.gb_s=33",
        "--set", "gpu.dispatch=stage", "--set", "hardware.tracker_banks=1", "--hardware", "golden", "--no-mirror",
        "--threads", "3", "--seed", "7", "--data-lines", "50", "--policy", "t3",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (request,) = engine
    assert (request.workload.m, request.workload.n, request.workload.k, request.workload.tp) == (256, 512, 96, 4)
    assert (request.machine.link.gb_s, request.machine.gpu.dispatch) == (33.0, "stage")
    assert request.machine.hardware.config() == preset("small", tracker_banks=1, tile_marks=4096)
    assert (request.hardware, request.mirror, request.threads, request.seed) == ("golden", False, 3, 7)
    assert (request.policy, request.data_lines) == ("t3", 50)


def test_hardware_preset_replaces_the_machines(engine):
    assert t3("run", "--hardware-preset", "paper-fit").exit_code == 0
    assert engine[0].machine.hardware.config().tracker_sets == 1024


def test_compare_prints_and_writes_every_policy(engine, tmp_path: Path):
    out = tmp_path / "out"
    result = t3("compare", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert [request.policy for request in engine] == ["sequential", "t3", "t3-mca"], "the ideal needs no run of its own"
    header = next(line for line in result.stdout.splitlines() if "t3-mca" in line)
    assert header.split() == list(COMPARED)
    row = next(line for line in result.stdout.splitlines() if "speedup" in line)
    assert row.split()[-4:] == ["1.000", "1.250", "1.364", f"{2250 / 1750:.3f}"]
    content = json.loads((out / "compare.json").read_text())
    assert content["speedup_over_sequential"]["t3"] == 1.25
    assert list(content["runs"]) == list(COMPARED)
    assert sorted(os.listdir(out)) == sorted(["compare.json", "comparison.png", MANIFEST, *COMPARED])
    assert sorted(os.listdir(out / "ideal-overlap")) == ["config.toml", "result.json", "timing.json"]
    assert json.loads((out / "t3" / "result.json").read_text()) == content["runs"]["t3"]


def test_ideal_overlap_is_computed_from_the_sequential_run(engine):
    result = t3("run", "--policy", "ideal-overlap")
    assert result.exit_code == 0, result.output
    assert [request.policy for request in engine] == ["sequential"]
    time = next(line for line in result.stdout.splitlines() if line.startswith("time"))
    assert float(time.split()[-1]) == 1300.0 + 450.0, "max(GEMM, RS) + AG"


def test_ideal_overlap_nmc_takes_its_reduce_scatter_from_another_run(engine):
    result = t3("run", "--policy", "ideal-overlap-nmc")
    assert result.exit_code == 0, result.output
    assert [request.policy for request in engine] == ["sequential", "sequential-nmc"]


def test_a_comparison_without_sequential_has_no_speedup(engine, tmp_path: Path):
    result = t3("compare", "--policies", "t3,t3-mca", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert content["speedup_over_sequential"] == {"t3": None, "t3-mca": None}


def test_progress_goes_to_stderr(engine):
    result = t3("run", "--policy", "t3")
    assert "t3: started" in result.stderr
    assert "started" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "t-nlgg"), "did you mean 't-nlg'?"),
        (("--sublayer", "fc3"), "sublayer must be one of"),
        (("--tp", "1"), "tp must be in 2 to 64 GPUs, not 1"),
        (("--m", "64"), "missing: --n, --k"),
        (("--m", "64", "--n", "64", "--k", "64", "--model", "palm"), "not both"),
        (("--m", "64", "--n", "64", "--k", "4"), "the smallest legal k is 8, not 4"),
        (("--set", "gpu.cus=4", "--set", "gpu.cus=5"), "--set must give each key once, and gpu.cus comes twice"),
        (
            ("--hardware-preset", "small", "--set", "hardware.preset=paper"),
            "give either --hardware-preset or --set hardware.preset, not both",
        ),
        (("--m", "64", "--n", "64", "--k", "64"), "the smallest legal n for m = 64 is 449"),
        (
            ("--policy", "t4"),
            "--policy must be one of sequential, sequential-pipelined, sequential-nmc, t3, t3-mca, ideal-overlap, ",
        ),
        (("--hardware", "fpga"), "hardware must be one of rtl, golden, not 'fpga'"),
        (
            ("--hardware-preset", "huge"),
            "hardware preset must be one of paper, paper-fit, small, fpga, fpga-all, fpga-hx8k, fpga-up5k, not 'huge'",
        ),
        (("--machine", "papre"), "machine must be one of a100-like, b200-like"),
        (("--set", "gpu.cuss=3"), "did you mean 'cus'?"),
        (("--set", "gpu.cus"), "section.key=value"),
        (("--threads", "0"), "threads must be at least 1, not 0"),
        (("--seed", "-1"), "seed must be in"),
        (("--data-lines", "-1"), "--data-lines must be at least 0, not -1"),
        (("--set", "variation.clock_scale=[1.0]"), "one value for each of 8 GPUs, not 1"),
        (("--tp", "many"), "'many' is not a valid integer"),
        (("--outt", "x"), "No such option"),
    ],
)
def test_wrong_options_are_one_message_and_exit_code_2(engine, arguments, message):
    fails(t3("run", *arguments), message)
    assert engine == []


def test_compare_refuses_unknown_and_repeated_policies(engine):
    fails(t3("compare", "--policies", "t3,t4"), "not 't4'")
    fails(t3("compare", "--policies", "t3,t3"), "name each once")
    assert engine == []


def test_an_occupied_out_is_refused_before_the_simulation(engine, tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("precious")
    fails(t3("run", "--out", str(tmp_path)), "--out must be a new folder")
    assert engine == []


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (BuildError("g++ is missing: apt install g++"), "g++ is missing", 2),
        (ValueError("the tracker is too small"), "the tracker is too small", 2),
        (OSError(28, "No space left on device", "/data/x"), "no space left on the disk of /data/x", 2),
        (OSError(27, "File too large"), "larger than a limit lets it be (File too large): raise it, or choose", 2),
        (PermissionError(13, "Permission denied", "/data/x"), "/data/x: Permission denied", 2),
        (MemoryError(), "out of memory", 2),
        (KeyboardInterrupt(), "interrupted; no output was written", 130),
    ],
)
def test_errors_during_a_run_leave_nothing_behind(engine, monkeypatch, tmp_path: Path, error, message, code):
    def simulate(request, on_progress):
        raise error

    monkeypatch.setattr(sys.modules["t3sim.run.simulate"], "simulate", simulate)
    fails(t3("run", "--out", str(tmp_path / "out")), message, code)
    assert os.listdir(tmp_path) == []


def test_an_error_while_writing_leaves_nothing_behind(engine, monkeypatch, tmp_path: Path):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("t3sim.run.timeline.draw_timeline", full_disk)
    fails(t3("run", "--out", str(tmp_path / "out")), "no space left")
    assert os.listdir(tmp_path) == []


def test_an_unexpected_error_keeps_its_traceback(engine, monkeypatch):
    def simulate(request, on_progress):
        raise KeyError("bug")

    monkeypatch.setattr(sys.modules["t3sim.run.simulate"], "simulate", simulate)
    assert isinstance(t3("run").exception, KeyError)


def test_traceback_shows_where_an_error_came_from(engine):
    result = t3("--traceback", "run", "--tp", "1")
    assert isinstance(result.exception, ValueError)


def test_a_result_that_does_not_add_up_fails_and_is_kept(engine, monkeypatch, tmp_path: Path):
    def simulate(request, on_progress):
        result = sample_run(request.policy)
        check = result.record.data_check.model_copy(update={"mismatches": 3})
        record = result.record.model_copy(update={"identities": {"traffic": False}, "data_check": check})
        return RunResult(record=record, timeline=result.timeline, wall=result.wall)

    monkeypatch.setattr(sys.modules["t3sim.run.simulate"], "simulate", simulate)
    result = t3("run", "--policy", "t3", "--out", str(tmp_path / "out"))
    fails(result, "t3: identity traffic does not hold; t3: 3 of 1048576 output elements differ", 1)
    assert (tmp_path / "out" / "result.json").exists()


def test_validate_hbm_holds_with_the_packaged_reference():
    result = t3("validate", "hbm")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 1 + 18
    assert "OFF" not in result.stdout


def test_validate_hbm_fails_beyond_the_tolerance():
    result = t3("validate", "hbm", "--tolerance", "1e-6")
    fails(result, "off by more than 1e-06: rw_random_75", 1)
    assert "OFF" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--traces", "x.npz"), "give both --traces and --reference, or neither"),
        (("--traces", "x.npz", "--reference", "x.json"), "no file x.npz"),
        (("--tolerance", "0"), "tolerance must be above 0"),
    ],
)
def test_validate_hbm_refuses_bad_files(arguments, message):
    fails(t3("validate", "hbm", *arguments), message)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch) -> None:
    """A cache folder that no other process uses or has left something in."""
    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("own_cache")
def test_doctor_reports_this_machine():
    result = t3("doctor")
    assert result.exit_code == 0, result.output
    for name in ("Python", "C++ compiler", "Verilator", "Python packages", "cache folder", "disk", "cores", "memory"):
        assert name in result.stdout


@pytest.mark.usefixtures("own_cache")
def test_doctor_names_the_extra_of_the_package(monkeypatch):
    monkeypatch.setattr(packages, "missing_packages", lambda extra="": ["no-such>=1"] if extra == "fpga" else [])
    result = t3("doctor")
    (line,) = (line for line in result.stdout.splitlines() if "FPGA tools" in line)
    assert "missing no-such>=1; only `t3 fpga` needs it: pip install 'opent3[fpga]'" in line
    assert line.split()[0] == "--" and result.exit_code == 0, "neither there nor needed"


@pytest.mark.usefixtures("own_cache")
def test_doctor_fails_if_a_package_of_every_command_is_missing(monkeypatch):
    monkeypatch.setattr(packages, "missing_packages", lambda extra="": [] if extra else ["no-such>=1"])
    result = t3("doctor")
    (line,) = (line for line in result.stdout.splitlines() if "Python packages" in line)
    assert "missing no-such>=1" in line and "pip install" in line
    assert line.split()[0] == "FAIL" and result.exit_code == 1


def test_prove_without_its_tools_is_one_message(monkeypatch):
    monkeypatch.setattr(netlist.importlib.util, "find_spec", lambda name: None)
    result = t3("prove", "--quick")
    assert result.exit_code == 2 and result.stderr.startswith("Error: proofs need Yosys and ABC: pip install")


def test_doctor_fails_with_a_remedy(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("CXX", "no-such-compiler")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(doctor, "MEMORY_BYTES", 1 << 60)
    result = t3("doctor")
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert text.count("FAIL") == 4
    for remedy in ("apt install g++", "OPENT3_CACHE", "--machine toy"):
        assert remedy in text


def test_a_process_ends_with_one_message(tmp_path: Path):
    done = subprocess.run([*T3, "run", "--tp", "1"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: --tp must be in 2 to 64 GPUs, not 1\n"


def test_ctrl_c_ends_a_process_with_130(tmp_path: Path):
    script = (
        "import sys, types, time\n"
        "def simulate(request, on_progress):\n"
        "    print('simulating', flush=True)\n"
        "    time.sleep(60)\n"
        "sys.modules['t3sim.run.simulate'] = types.SimpleNamespace(simulate=simulate)\n"
        "from t3sim.cli.main import main\n"
        "main(['run', '--out', 'out'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "simulating\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "Error: interrupted; no output was written"
    assert os.listdir(tmp_path) == []
