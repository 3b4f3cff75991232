"""``t3 verilog``: any preset and parameter, whole folders or none, one message for every expected error."""

import errno
import json
import os
import re
from pathlib import Path

import pytest
from t3hdl.export import verilog
from t3sim.common.manifest import MANIFEST

from tests.cli.test_cli import fails, t3

PRODUCTS = ["t3.core", "t3.f", "t3.json", "t3.rdl", "t3.sdc", "t3_assertions.sv", "t3_registers.h"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_written_with_its_parameters(tmp_path: Path):
    """Numbers, names and lists; a second run replaces the first, byte for byte the same."""
    out = tmp_path / "rtl"
    settings = ("tracker_sets=8", "protect=true", "count_on='performed'", 'dtypes=["fp16", "int32"]')
    arguments = ["--preset", "small", "--part", "leaf", "-o", str(out)]
    for setting in settings:
        arguments += ["--set", setting]
    results = []
    for _ in range(2):
        result = t3("verilog", *arguments)
        assert result.exit_code == 0, result.output
        assert os.listdir(tmp_path) == ["rtl"]
        results.append(contents(out))
    assert sorted(results[0]) == sorted([*PRODUCTS, "t3_leaf.v", MANIFEST])
    assert results[0] == results[1]
    parameters = json.loads(results[0]["t3.json"])["parameters"]
    expected = {"tracker_sets": 8, "protect": True, "count_on": "performed", "dtypes": ["fp16", "int32"], "slices": 4}
    assert {name: parameters[name] for name in expected} == expected


def test_names_and_memories_on_request(tmp_path: Path):
    """A prefix before modules and files, and initial values; without the options neither."""
    written = []
    for name, options in (("plain", ()), ("other", ("--prefix", "left_", "--init-memories"))):
        out = tmp_path / name
        assert t3("verilog", "--preset", "small", "--part", "tracker", *options, "-o", str(out)).exit_code == 0
        written.append(contents(out))
    plain, other = written
    assert {name.removeprefix("left_") for name in other} == plain.keys()
    assert {name for name in other if not name.startswith("left_")} == {"t3.rdl", "t3_registers.h", MANIFEST}
    verilog = other["left_t3_tracker.v"].decode()
    assert re.findall(r"^module (?!left_t3_tracker)", verilog, re.MULTILINE) == []
    without = re.sub(r"^  initial begin\n.*?^  end\n|^  initial [^\n]*\n", "", verilog, flags=re.MULTILINE | re.DOTALL)
    assert without != verilog and without.replace("left_", "") == plain["t3_tracker.v"].decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--preset", "smal"),
            "hardware preset must be one of paper, paper-fit, small, fpga, fpga-all, fpga-hx8k, fpga-up5k, not 'smal'",
        ),
        (("--set", "tracker_set=8"), "hardware parameter must be one of"),
        (("--set", "tracker_sets=many"), "tracker_sets must be an int, not 'many'"),
        (("--set", "tracker_sets=3"), "tracker_sets must be a power of two, not 3"),
        (("--set", "nmc_lanes=6"), "nmc_lanes must be a power of two, not 6"),
        (("--set", "nmc_lanes=1"), "nmc_lanes must be in 2 to 16, not 1"),
        (("--set", "tracker_sets"), "--set must have the form key=value, as tracker_sets=512, not 'tracker_sets'"),
        (("--set", 'dtypes=["fp8"]'), "dtypes must be among fp16, bf16, fp32, int32"),
        (("--part", "tracer"), "--part must be of slice, matcher"),
        (("--prefix", "2nd_"), "a prefix of module names must be at most 64 letters, digits and underscores"),
    ],
)
def test_illegal_hardware_is_refused(tmp_path: Path, arguments, message):
    fails(t3("verilog", *arguments, "--out", str(tmp_path / "rtl")), message)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["file", "below a file", "folder of something else"])
def test_output_that_is_not_a_folder_of_ours(tmp_path: Path, kind):
    taken = tmp_path / "taken"
    if kind == "folder of something else":
        taken.mkdir()
        (taken / "thesis.tex").write_text("precious")
    else:
        taken.write_text("precious")
    before = sorted(tmp_path.rglob("*"))
    out = taken / "rtl" if kind == "below a file" else taken
    fails(t3("verilog", "--preset", "small", "--part", "leaf", "--out", str(out)), "--out must be a")
    assert sorted(tmp_path.rglob("*")) == before


def test_full_disk(tmp_path: Path, monkeypatch):
    """The earlier output stays whole."""
    out = tmp_path / "rtl"
    arguments = ("verilog", "--preset", "small", "--part", "leaf", "--out", str(out))
    assert t3(*arguments).exit_code == 0
    before = contents(out)
    original = Path.write_text

    def write_text(path: Path, text: str, encoding: str | None = None) -> int:
        if path.name == "t3.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(path, text, encoding)

    monkeypatch.setattr(Path, "write_text", write_text)
    fails(t3(*arguments), "no space left on the disk of the output: free some, or choose another --out")
    assert contents(out) == before and os.listdir(tmp_path) == ["rtl"]


def test_progress_names_every_step(tmp_path: Path):
    result = t3("verilog", "--preset", "small", "--part", "leaf", "--part", "root", "-o", str(tmp_path / "rtl"))
    assert result.exit_code == 0
    steps = [f"t3_{part}: {step}" for part in ("leaf", "root") for step in verilog.STEPS]
    shown = [f"verilog: step {number} of {len(steps)}: {step}" for number, step in enumerate(steps, 1)]
    assert result.stderr.splitlines() == [f"verilog: {len(steps)} steps", *shown]


def test_missing_yosys(tmp_path: Path, monkeypatch):
    def find_yosys(requirement):
        raise verilog.YosysError("Could not find an acceptable Yosys binary")

    monkeypatch.setattr(verilog, "find_yosys", find_yosys)
    message = "Yosys cannot write the Verilog (Could not find an acceptable Yosys binary): pip install"
    fails(t3("verilog", "--preset", "small", "--part", "leaf", "--out", str(tmp_path / "rtl")), message)
    assert os.listdir(tmp_path) == []
