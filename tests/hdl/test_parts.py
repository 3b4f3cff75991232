"""The table of parts is the only one: what others know of parts they have from it, or is held to it here."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest
from amaranth.lib.wiring import Out
from t3formal.properties import streams, structure
from t3hdl.config import PRESETS, T3Config, preset
from t3hdl.export import verilog
from t3hdl.interface.parts import SIMULATED, TABLE
from t3sim.engine.t3unit import words
from t3sim.hardware.abi import part_words
from t3sim.hardware.golden.backend import MODELS, golden_hardware

from docs.pages import area
from docs.pages import parts as manual
from tb.mutation.campaign import SHARES
from tb.stimulus.parts import STIMULI

ROOT = Path(__file__).parents[2]
SMALL = preset("small")
MADE_OF_NOTHING_ELSE = {name for name, part in TABLE.items() if not part.wires}
SELECTIONS = {"campaign.py": "SHARES", "streams.py": "_SIZES", "structure.py": "_QUICK", "parts.py": "_ORDER"}
"""Files and names of what has a number, a size or an order for several parts; held to the table below."""


@pytest.mark.parametrize("name", TABLE)
def test_the_component_has_the_ports_of_the_table(name):
    for config in (SMALL, preset("small", slices=8, node_inputs=2, tracker_banks=2, egress_ports=2, contexts=1)):
        assert TABLE[name].make(config).signature.members == TABLE[name].ports(config).members


def test_every_part_is_within_another_or_stands_by_itself():
    assert {part.within for part in TABLE.values()} - TABLE.keys() == {"", "network"}
    assert all(part.count(config) >= 0 for part in TABLE.values() for config in PRESETS.values())
    assert {name for name, part in TABLE.items() if not part.count(SMALL)} == {"nmc", "alu", "crossing"}


def test_those_who_make_parts_make_all():
    assert list(verilog.PARTS) == list(TABLE)
    assert sorted(manual._ORDER) == sorted(TABLE)
    assert area.instances(SMALL).keys() == MADE_OF_NOTHING_ELSE - {"alu"}


def test_those_who_simulate_parts_simulate_the_same_ones():
    hardware = golden_hardware(SMALL)
    assert list(part_words(SMALL)) == list(hardware.parts) == list(words.instance_counts(SMALL)) == list(SIMULATED)
    assert all(part.name == name for name, part in hardware.parts.items())
    assert MODELS.keys() == {TABLE[name].signature for name in SIMULATED}
    assert STIMULI.keys() == set(SIMULATED)
    hardware.close()


def test_the_engine_has_room_for_every_instance():
    """At its place, and no two parts at one, in the largest configuration."""
    places = [(getattr(words, name.upper()), count) for name, count in words._MOST.items()]
    assert places[0][0] == 0 and words.INSTANCES == sum(places[-1])
    assert all(first + count == behind for (first, count), (behind, _) in pairwise(places))
    for config in (*PRESETS.values(), T3Config(node_inputs=4, egress_ports=8)):
        assert all(count <= words._MOST[name] for name, count in words.instance_counts(config).items())


def test_those_who_choose_parts_leave_none_out():
    assert SHARES.keys() == MADE_OF_NOTHING_ELSE - {"crossing"}
    offering = {
        name
        for name, part in TABLE.items()
        if any(member.is_signature and member.flow == Out for member in part.ports(SMALL).members.values())
    }
    assert streams._SIZES.keys() == offering - {"unit"}
    assert {*structure._QUICK, *structure._RESETS} <= TABLE.keys()
    benches = {path.stem.removeprefix("tb_") for path in ROOT.glob("tb/**/tb_*.py")}
    assert benches == TABLE.keys() - {"alu", "core"}, "the ALU is in nmc, the core in the unit"


def test_there_is_no_second_list():
    """In no file does a tuple, a list, a set or a dictionary spell out the names of five parts."""
    found = set()
    for path in (path for folder in ("hdl", "sim", "tb", "docs") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
            if len({getattr(name, "value", None) for name in names} & TABLE.keys()) >= 5:
                found.add(path.name)
    assert found == SELECTIONS.keys()
