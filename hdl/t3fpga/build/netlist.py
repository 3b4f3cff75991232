"""What a synthesised netlist and nextpnr's report say: resources, area of each component, Fmax, critical path."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from amaranth.lib.wiring import Out
from t3hdl.config import T3Config
from t3hdl.interface.parts import TABLE

RESOURCES = ("luts", "flip_flops", "block_rams", "dsps")
"""What a device has, under the names of ``fpga.json``."""

_CELLS = {
    "luts": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4, "SB_LUT4": 1},
    "flip_flops": {"TRELLIS_FF": 1, "SB_DFF": 1},
    "block_rams": {"DP16KD": 1, "SB_RAM40_4K": 1},
    "dsps": {"MULT18X18D": 1, "SB_MAC16": 1},
}
"""Which cells take which resource; the names are prefixes. A carry cell of ECP5 is two LUTs, a small RAM is four."""

_SITES = {
    "ecp5": {"luts": "TRELLIS_COMB", "flip_flops": "TRELLIS_FF", "block_rams": "DP16KD", "dsps": "MULT18X18D"},
    "ice40": {"luts": "ICESTORM_LC", "flip_flops": "ICESTORM_LC", "block_rams": "ICESTORM_RAM", "dsps": "ICESTORM_DSP"},
}
"""nextpnr's names of the sites. A logic cell of iCE40 has a LUT and a flip-flop, which often cannot share it."""

_UNIT_ONLY = ("registers", "axi")
"""Parts whose names also mean something in the design around the unit."""
_ANYWHERE = {"nmc", "network"} | {name for name, part in TABLE.items() if part.within == "core"} - {*_UNIT_ONLY}
_PART = re.compile(rf"(?:^|\.)({'|'.join(sorted(_ANYWHERE))})(?:_\d+)?\.|\bunit\.(?:core\.)?({'|'.join(_UNIT_ONLY)})\.")
_WIRE = re.compile(r"^test\.(?:unit\.(?:core\.)?)?([a-z_]+?)(?:_\d+|__|_[A-Z]|\W|$)")
_UNIT = re.compile(r"(?:^|\.)unit\.")
CONNECTIONS = "connections"
"""Cells of the unit that belong to none of its parts."""
TEST = "self-test"
"""Cells of the design around the unit."""

# Yosys names what it makes after the nearest named wire, and appends cell types and ports in capitals. Bits, parts of a
# memory and nextpnr's own additions are left out, too; of a signal without a name its module stays.
_MADE = re.compile(r"_[A-Z].*|\.?\$.*|\[\d+\]$|(?:\.\d+)+$")


def design_name(name: str) -> str:
    """The name in the design's own words of what a cell or net was made from; empty if there is none."""
    while (shorter := _MADE.sub("", name)) != name:
        name = shorter
    return name.removeprefix("test.")


def component(cell: str) -> str:
    """The part of the T3 unit that a cell belongs to by its name, or what else it does.

    A cell that bears the name of a wire between two parts belongs to the one that drives it.
    """
    part = _PART.search(cell)
    if part:
        return part[1] or part[2]
    wire = _WIRE.search(cell)
    if wire and wire[1] in _drivers():
        return _drivers()[wire[1]]
    return CONNECTIONS if _UNIT.search(cell) else TEST


@cache
def _drivers() -> dict[str, str]:
    """The part of the core that drives each port; those that several have, such as ``idle``, are the trigger's."""
    parts = sorted((part for part in TABLE.values() if part.within == "core"), key=lambda part: part.name == "trigger")
    return {
        name: part.name
        for part in parts
        for name, member in part.ports(T3Config()).members.items()
        if member.flow == Out
    }


def area(netlist: Path) -> dict[str, dict[str, int]]:
    """Resources of each component, by the names of cells in Yosys' netlist; largest first."""
    (module,) = (
        module for module in json.loads(netlist.read_text())["modules"].values() if "top" in module["attributes"]
    )
    counted: dict[str, Counter[str]] = {}
    for name, cell in module["cells"].items():
        for resource, cells in _CELLS.items():
            for prefix, sites in cells.items():
                if cell["type"].startswith(prefix):
                    counted.setdefault(component(name), Counter())[resource] += sites
    order = sorted(counted, key=lambda part: (-counted[part]["luts"], part))
    return {part: {resource: counted[part][resource] for resource in RESOURCES} for part in order}


def used(report: Mapping[str, Any], family: str, areas: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Resources used and available. For iCE40 LUTs and flip-flops are the netlist's, and logic cells come beside."""
    sites = {
        name: report["utilization"].get(site, {"used": 0, "available": 0}) for name, site in _SITES[family].items()
    }
    result = {name: {"used": site["used"], "available": site["available"]} for name, site in sites.items()}
    if family == "ice40":
        result = {"logic_cells": dict(result["luts"]), **result}
        for name in ("luts", "flip_flops"):
            result[name]["used"] = sum(part[name] for part in areas.values())
    return result


def over_utilised(log: str, family: str) -> dict[str, tuple[int, int]]:
    """Resources of which nextpnr's log says that the design needs more (first number) than there are (second)."""
    names = {site: "logic_cells" if site == "ICESTORM_LC" else name for name, site in _SITES[family].items()}
    found = re.findall(r"(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", log)
    return {
        names[site]: (int(need), int(there)) for site, need, there in found if site in names and int(need) > int(there)
    }


def fmax_mhz(report: Mapping[str, Any]) -> float:
    """Of the design's one clock."""
    (clock,) = report["fmax"].values()
    return round(clock["achieved"], 2)


def critical_path(report: Mapping[str, Any]) -> dict[str, Any]:
    """The longest path between two registers, as the named things that it passes, with the time spent in each."""
    (clock,) = report["fmax"]
    path = next(path for path in report["critical_paths"] if path["from"] == path["to"] == f"posedge {clock}")["path"]
    steps: list[dict[str, Any]] = []
    for element in path:
        name = design_name(element["net"] if element["type"] == "routing" else element["to"]["cell"])
        if not steps or name not in ("", steps[-1]["name"]):
            steps.append({"name": name, "logic_ns": 0.0, "routing_ns": 0.0})
        steps[-1]["routing_ns" if element["type"] == "routing" else "logic_ns"] += element["delay"]
    kinds = ("logic_ns", "routing_ns")
    return {
        **{kind: round(sum(step[kind] for step in steps), 2) for kind in kinds},
        "from": steps[0]["name"],
        "to": design_name(path[-1]["to"]["cell"]),
        "steps": [{"name": step["name"], **{kind: round(step[kind], 2) for kind in kinds}} for step in steps],
    }
