"""``t3 fpga``: its outputs, its errors, the programmer, and real builds."""

import importlib.metadata
import json
import re
import sys
from copy import deepcopy
from types import SimpleNamespace

import pytest
from t3fpga.build import netlist, tools
from t3fpga.build.build import Build
from t3fpga.build.platforms import Board

from .board_builds import MISSING, NEEDS_EXTRA, RECORD, t3


@pytest.fixture
def built(monkeypatch):
    """Builds end at once, with this record and a bitstream of one byte."""
    record = deepcopy(RECORD)

    def run(self, folder, tools, show, jobs):
        show("synthesis", "begins")
        show("synthesis", "")
        (folder / record["bitstream"]["file"]).write_bytes(b"x")
        return record

    monkeypatch.setattr(Build, "check", lambda self: None)
    monkeypatch.setattr(Build, "run", run)
    return record


def test_output(built, tmp_path):
    result = t3("fpga", "--board", "icebreaker", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out" / "fpga.json").read_text()) == built
    assert (tmp_path / "out" / "t3_icebreaker.bin").read_bytes() == b"x"
    for text in (
        "preset fpga-up5k: TrackerOnlyTest",
        "passed: led_g 0",
        "button: the user button",
        "5,000",
        "20.5 (seed 1), 21.25 (seed 2), 19 (seed 3); median 20.5, target 12: met",
        "tracker.a to tra",
    ):
        assert text in result.output
    assert t3("fpga", "--board", "icebreaker", "--out", str(tmp_path / "out")).exit_code == 0, "takes its place"


@pytest.mark.parametrize(
    ("target", "said"), [(24, "missed"), (21, "met by the fastest seed, missed by the median"), (20.5, "met")]
)
def test_whether_the_target_is_met_is_said(built, tmp_path, target, said):
    built["target_mhz"] = target
    result = t3("fpga", "--board", "icebreaker", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0 and f"target {target}: {said}\n" in result.output


def test_an_oscillator_that_is_too_fast_is_exit_code_1(built, tmp_path):
    built["oscillator_mhz"] = 25.0
    result = t3("fpga", "--board", "icebreaker", "--out", str(tmp_path / "out"))
    assert result.exit_code == 1 and "oscillator of 25 MHz is too fast for this bitstream" in result.stderr
    assert (tmp_path / "out" / "fpga.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--board", "arty"), "--board must be one of ulx3s, ecpix5, icebreaker, hx8k, not 'arty'"),
        (("--board", "hx8k", "--preset", "huge"), "hardware preset must be one of .*fpga-up5k, not 'huge'"),
        (("--board", "hx8k", "--program"), "--program needs iceprog, and 'no-such' is not on the PATH: apt install"),
        (("--board", "hx8k", "--out", "/etc"), "--out must be a new folder"),
    ],
)
def test_errors(arguments, message, built, monkeypatch):
    monkeypatch.setenv("ICEPROG", "no-such")
    result = t3("fpga", *arguments)
    assert result.exit_code == 2 and re.search(message, result.stderr), result.output


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    result = t3("fpga", "--board", "hx8k", "--out", str(tmp_path / "deep" / "out"))
    assert result.exit_code == 2 and "pip install 'opent3[fpga]'" in result.stderr
    assert "started" not in result.stderr, "it is said before the work begins"
    assert list(tmp_path.iterdir()) == []


def test_programming(built, tmp_path, monkeypatch):
    """By a program that keeps what it is given."""
    tool = tmp_path / "iceprog"
    tool.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/board\n')
    tool.chmod(0o755)
    monkeypatch.setenv("ICEPROG", str(tool))
    arguments = ("fpga", "--board", "icebreaker", "--program", "--out", str(tmp_path / "out"))
    if MISSING:
        pytest.skip(f"{', '.join(MISSING)} missing: {tools.EXTRA}")
    assert t3(*arguments).exit_code == 0
    assert (tmp_path / "board").read_bytes() == b"x"
    tool.write_text("#!/bin/sh\nexit 4\n")
    result = t3(*arguments)
    assert result.exit_code == 2 and "failed with status 4: is the iCEBreaker connected" in result.stderr


def test_an_interrupted_programmer(built, tmp_path, monkeypatch):
    """The bitstream is there already."""

    def interrupted(products, name):
        raise KeyboardInterrupt

    monkeypatch.setattr(Board, "make_platform", lambda board: SimpleNamespace(toolchain_program=interrupted))
    monkeypatch.setenv("ICEPROG", sys.executable)
    result = t3("fpga", "--board", "icebreaker", "--program", "--out", str(tmp_path / "out"))
    assert result.exit_code == 130 and f"the bitstream, which is in {tmp_path / 'out'}" in result.stderr
    assert (tmp_path / "out" / "t3_icebreaker.bin").exists()


def test_a_variable_that_changes_the_build_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("AMARANTH_synth_opts", "-dsp")
    result = t3("fpga", "--board", "hx8k", "--out", str(tmp_path / "out"))
    assert result.exit_code == 2 and "AMARANTH_synth_opts changes what is built" in result.stderr


@pytest.mark.slow
@NEEDS_EXTRA
def test_a_board_is_built(tmp_path):
    """Twice: same seed, same bytes; and the record has every field."""
    records, bitstreams = [], []
    for name in ("first", "second"):
        result = t3("fpga", "--board", "ecpix5", "--preset", "fpga-hx8k", "--out", str(tmp_path / name))
        assert result.exit_code == 0, result.output
        records.append(json.loads((tmp_path / name / "fpga.json").read_text()))
        bitstreams.append((tmp_path / name / "t3_ecpix5.bit").read_bytes())
    assert records[0] == records[1] and bitstreams[0] == bitstreams[1]
    record = records[0]
    assert set(record) == set(RECORD) and set(record["critical_path"]) == set(RECORD["critical_path"])
    assert set(record["used"]) == set(netlist.RESOURCES)
    parts = {"tracker", "trigger", "slice", "matcher", "network", "registers", "axi", "nmc", "self-test"}
    assert parts <= set(record["area"])
    assert list(record["fmax_mhz"]) == ["1"] and record["seed"] == 1


@pytest.mark.slow
@NEEDS_EXTRA
def test_a_design_that_does_not_fit(tmp_path):
    """Tracker and trigger of a larger unit have no place on a small board."""
    result = t3("fpga", "--board", "hx8k", "--preset", "fpga", "--out", str(tmp_path / "out"))
    assert result.exit_code == 2 and not (tmp_path / "out").exists()
    needs = r"preset 'fpga' does not fit on iCE40HX8K-B-EVN \(iCE40HX8K\): it needs [\d,]+ logic cells of 7,680"
    assert re.search(needs, result.stderr)
