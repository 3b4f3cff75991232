"""The testbenches of the generated Verilog: their parts find what they must find, and a short run of all of them."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from opent3.options import usable_cores
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ConfigWrite
from t3hdl.interface.signatures import nmc_signature, node_signature, slice_signature
from t3hdl.interface.words import pack

from tb import coverage_bins, simulators
from tb.bench import BENCHES, main
from tb.checks import OutputChecks, check_streams
from tb.words import Ports, all_streams, valid_of
from tb.wrapper import wrap

QUICK = ["axi", "crossing", "leaf", "monitor", "root"]
SLICE = Ports.of(slice_signature(preset("small")))


def words(ports: Ports, is_input: bool, *cycles: dict[str, int]) -> list[int]:
    """Rows with these ports, the others 0."""
    places = ports.words.inputs if is_input else ports.words.outputs
    return [sum(value << 64 * places[port][0] for port, value in cycle.items()) for cycle in cycles]


def slice_trace(inputs: list[dict[str, int]], outputs: list[dict[str, int]]):
    return SLICE.trace(words(SLICE, True, *inputs), words(SLICE, False, *outputs))


# The pieces


def test_the_wrapper_puts_every_port_at_its_words_and_escapes_keywords():
    text = wrap("slice", SLICE.words).text
    first, bits = SLICE.words.inputs["config"]
    assert f".\\config (in_words[{64 * first + bits - 1}:{64 * first}])" in text
    assert f"output [{64 * SLICE.words.output_words - 1}:0] out_words" in text
    apart = wrap("slice", SLICE.words, lambda port: port == "now").text
    assert "input [47:0] \\now " in apart and ".\\now (\\now )" in apart


@pytest.mark.parametrize(
    ("port", "valid"),
    [("dram.payload", "dram.valid"), ("token.payload", "token.valid"), ("comm_refused", "comm_refused_valid"),
     ("served", None), ("dram.valid", None)],
)  # fmt: skip
def test_what_says_whether_an_output_means_something(port, valid):
    assert valid_of(port, SLICE.words.outputs) == valid


def test_axi_payloads_belong_to_their_channel():
    ports = ["axi_rdata", "axi_rresp", "axi_rvalid", "axi_bresp", "axi_bvalid", "axi_awready"]
    assert [valid_of(port, ports) for port in ports] == ["axi_rvalid", "axi_rvalid", None, "axi_bvalid", None, None]


def test_a_wrong_output_is_found_and_a_payload_without_valid_is_not_looked_at():
    checks = OutputChecks(SLICE)
    quiet = slice_trace([{}, {}], [{"served": 3}, {"served": 3, "dram.payload": 5, "wake_at": 9}])
    expected = slice_trace([{}, {}], [{"served": 3}, {"served": 3, "dram.payload": 6, "idle": 1}])
    checks.check_equal(quiet, expected.outputs, 0)
    valid = slice_trace([{}, {}], [{}, {"dram.valid": 1, "dram.payload": 5}])
    other = slice_trace([{}, {}], [{}, {"dram.valid": 1, "dram.payload": 6}])
    with pytest.raises(AssertionError, match=r"dram.payload in cycle 101, .*hardware 0x5, golden model 0x6"):
        checks.check_equal(valid, other.outputs, 100)


def test_unknown_bits_count_only_where_they_mean_something():
    checks = OutputChecks(SLICE)
    (payload,) = words(SLICE, False, {"dram.payload": 1})
    quiet, valid = (slice_trace([{}], [{"dram.valid": level}]) for level in (0, 1))
    checks.check_known(quiet, {0: payload}, 0)
    with pytest.raises(AssertionError, match=r"dram.payload has unknown bits in cycle 7"):
        checks.check_known(valid, {0: payload}, 7)


@pytest.mark.parametrize(
    ("after", "message"),
    [({}, "valid fell before the transfer"), ({"dram.valid": 1, "dram.payload": 6}, "the waiting payload changed")],
)
def test_a_stream_that_breaks_the_rules_is_found(after, message):
    outputs = [{"dram.valid": 1, "dram.payload": 5}, after]
    with pytest.raises(AssertionError, match=f"dram: {message} in cycle 1"):
        check_streams(slice_trace([{}, {}], outputs), all_streams(SLICE), 0)
    check_streams(slice_trace([{"dram.ready": 1}, {}], outputs), all_streams(SLICE), 0)
    disarm = pack(ConfigWrite, address=regs.CONTROL, data=pack(regs.Control, disarm=1))
    check_streams(slice_trace([{"config_valid": 1, "config": disarm}, {}], outputs), all_streams(SLICE), 0)


def test_a_field_that_crosses_words_is_read():
    ports = Ports.of(nmc_signature(preset("small")))
    word = pack(ports.layouts["request.payload"], mask=0x8000_0001, tag=7, line=3)
    trace = ports.trace(words(ports, True, {"request.payload": word}), [0])
    assert [int(trace.get("request.payload", name)[0]) for name in ("line", "mask", "tag")] == [3, 0x8000_0001, 7]


def test_bins_look_back_in_time():
    level = np.array([1, 0, 1, 1, 0], bool)
    assert coverage_bins.after(level, 2).tolist() == [False, False, True, False, True]
    assert coverage_bins.rises(level).tolist() == [True, False, True, False, False]
    assert coverage_bins.latest(level, np.arange(5, dtype=np.uint64), 9).tolist() == [9, 0, 0, 2, 3]
    assert coverage_bins.again(level, [np.array([4, 0, 4, 5, 0])], 2).tolist() == [False, False, True, False, False]


def test_every_part_of_a_node_is_a_stream():
    names = {stream.name for stream in all_streams(Ports.of(node_signature(2, 1)))}
    assert names == {"token_in.0", "token_in.1", "token_out.0"}


# The runner


@pytest.mark.parametrize("option", ["--seeds", "--cycles", "--jobs"])
def test_a_run_of_nothing_is_refused(option):
    done = CliRunner().invoke(main, [option, "0"])
    assert done.exit_code == 2 and f"Invalid value for '{option}': 0 is not in the range x>=1" in done.stderr


def test_by_default_all_usable_cores_work():
    assert [option.default for option in main.params if option.name == "jobs"] == [usable_cores]


# The simulators


def run(folder: Path, *options: str, seconds: float | None = None, **variables: str) -> subprocess.CompletedProcess:
    """tb/bench.py with these options. Raises subprocess.TimeoutExpired if it takes more than ``seconds``."""
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-m", "tb.bench", "--out", str(folder), *options]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **variables},
        start_new_session=seconds is not None,
    ) as bench:
        try:
            return subprocess.CompletedProcess(command, *_ended(bench, seconds))
        except subprocess.TimeoutExpired:
            os.killpg(bench.pid, signal.SIGKILL)  # its simulators, too
            raise


def _ended(bench: subprocess.Popen, seconds: float | None) -> tuple[int, str, str]:
    """Exit status, and what was printed."""
    out, err = bench.communicate(timeout=seconds)
    return bench.returncode, out, err


def needs(simulator: str) -> None:
    """Skips the test, with the reason and the remedy, if a simulator is not there."""
    try:
        simulators.require(simulator)
    except simulators.SimulatorError as error:
        pytest.skip(str(error))


def covered(folder: Path) -> dict:
    return json.loads((folder / "coverage.json").read_text())


@pytest.mark.skipif(importlib.util.find_spec("cocotb") is None, reason="no cocotb: pip install 'opent3[dev]'")
def test_a_missing_simulator_is_named_with_its_remedy(tmp_path):
    done = run(tmp_path, "--parts", "leaf", "--simulators", "icarus", PATH="")
    assert done.returncode == 1
    assert "icarus testbenches need iverilog, which is not on the PATH: apt install iverilog" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cocotb") is None, reason="no cocotb: pip install 'opent3[dev]'")
def test_a_missing_compiler_is_named_with_its_remedy(tmp_path):
    done = run(tmp_path, "--parts", "leaf", "--simulators", "verilator", CXX="no-such-compiler")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "'no-such-compiler' is not on the PATH: apt install g++" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cocotb") is None, reason="no cocotb: pip install 'opent3[dev]'")
def test_any_compiler_that_cxx_names_will_do(tmp_path, monkeypatch):
    """It need not be called g++, and what Verilator makes is compiled with it."""
    needs("verilator")
    for name in ("make", "perl"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    compiler = tmp_path / "my-compiler"
    compiler.write_text("#!/bin/sh\necho mine 1.0\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", "my-compiler")
    monkeypatch.setenv("PATH", str(tmp_path))
    with monkeypatch.context() as patch:  # it looks for a linker
        patch.setattr("find_libpython.find_libpython", lambda: "libpython.so")
        simulators.require("verilator")
    monkeypatch.setenv("MAKEFLAGS", "")
    monkeypatch.setenv("VERILATOR_ROOT", "")
    simulators._set_environment("verilator")
    assert f"CXX={compiler} LINK={compiler} " in os.environ["MAKEFLAGS"]


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(QUICK, marks=pytest.mark.long),
        pytest.param(sorted({*BENCHES} - {*QUICK}), marks=pytest.mark.slow),
    ],
    ids=["small", "large"],
)
def test_every_testbench_passes_for_a_short_time(tmp_path, chosen):
    needs("icarus")
    done = run(tmp_path, "--parts", ",".join(chosen), "--simulators", "icarus", "--cycles", "1200", "--no-bins")
    assert done.returncode == 0, done.stdout + done.stderr
    parts = covered(tmp_path)["parts"]
    assert sorted(parts) == chosen
    for name, part in parts.items():
        assert part["transactions"]["icarus"] > 30, name
        hit = sum(count > 0 for count in part["bins"].values())
        assert hit > len(part["bins"]) / 3, name


@pytest.mark.long
def test_verilator_and_icarus_play_the_same(tmp_path):
    needs("icarus")
    needs("verilator")
    done = run(tmp_path, "--parts", "leaf", "--cycles", "4000")
    assert done.returncode == 0, done.stdout + done.stderr
    moved = covered(tmp_path)["parts"]["leaf"]["transactions"]
    assert moved["verilator"] == moved["icarus"] > 1000


def plant(folder: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """A fault: where the Verilog of a part first has ``old``, the testbenches' has ``new``."""
    (folder / "sitecustomize.py").write_text(
        "import t3hdl.export.verilog as v\n"
        "original = v.write_verilog\n"
        "def faulty(component, name, **options):\n"
        "    text = original(component, name, **options)\n"
        f"    assert {old!r} in text\n"
        f"    return text.replace({old!r}, {new!r}, 1)\n"
        "v.write_verilog = faulty\n"
    )
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.long
def test_a_fault_in_the_verilog_is_found(tmp_path, monkeypatch):
    """A merged token loses a count: the testbench stops at the first token that shows it."""
    needs("icarus")
    plant(tmp_path, monkeypatch, " + ", " - ")
    done = run(tmp_path, "--parts", "leaf", "--simulators", "icarus", "--cycles", "20000")  # few tokens merge
    assert done.returncode == 1
    assert "FAILED leaf, icarus, seed 1: AssertionError: token_" in done.stdout


@pytest.mark.long
def test_an_answer_that_never_comes_ends_the_run(tmp_path, monkeypatch):
    """The port never offers the response of a write: the host waits for it until the testbench gives up."""
    needs("icarus")
    plant(tmp_path, monkeypatch, "axi_bvalid <= ", "axi_bvalid <= 1'h0 & ")
    done = run(tmp_path, "--parts", "axi", "--simulators", "icarus", "--cycles", "100", seconds=500)
    assert done.returncode == 1
    most = "101,000 cycles (10 x 100 + 100,000)"
    assert f"FAILED axi, icarus, seed 1: AssertionError: the run must end within {most} and goes on" in done.stdout


@pytest.mark.parametrize("part", BENCHES)
def test_every_testbench_has_the_limit(part):
    text = (Path(simulators.__file__).parent / "cocotb" / f"tb_{part}.py").read_text(encoding="utf-8")
    assert text.count("@bench_test\n") == 1 and "@cocotb.test" not in text


@pytest.mark.slow  # builds the parts for Verilator, too
@pytest.mark.parametrize("part", BENCHES)
def test_every_bin_is_hit(tmp_path, part):
    needs("icarus")
    needs("verilator")
    done = run(tmp_path, "--parts", part, "--seeds", "4", "--cycles", "20000")
    assert done.returncode == 0, done.stdout + done.stderr
