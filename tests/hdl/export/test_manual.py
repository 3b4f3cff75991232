"""The manual's pages say what the code says, and their links lead somewhere."""

import gc
import re
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree

import pytest
from amaranth.lib.wiring import Component, Out
from t3hdl.config import PARAMETERS, PRESET_USES, PRESETS, T3Config, preset
from t3hdl.export.module_ports import module_ports
from t3hdl.export.verilog import PARTS

from docs.pages import GUIDES, REFERENCE
from docs.pages import parts as manual

ROOT = Path(__file__).parents[3]
INTEGRATION = re.sub(r"```.*?```", "", (GUIDES / "integration.md").read_text(encoding="utf-8"), flags=re.DOTALL)
pytestmark = pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")


@pytest.fixture(autouse=True)
def parts_are_gone_while_warnings_are_off():
    """Parts are made for their ports, and never elaborated."""
    yield
    gc.collect()


@pytest.mark.parametrize("name", PARTS)
def test_every_port_is_in_the_table_of_its_part(name):
    component = PARTS[name](preset("small"))
    title = manual._title(name, type(component).__name__)
    section = manual.PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    patterns = [word.replace("*", r"\w+") for word in re.findall(r"`([\w*]+)`", section)]
    for port in module_ports(component):
        stem = port.name.split("__")[0]
        names = (stem, stem.removesuffix("_valid"))
        assert any(re.fullmatch(pattern, each) for pattern in patterns for each in names), port.name


def test_parameters_are_those_that_change_a_part():
    assert manual.parameters_of("nmc") == ("nmc_lanes", "nmc_latency", "dtypes", "protect")
    assert manual.parameters_of("leaf") == ("node_inputs", "leaf_outputs", "tracker_banks", "protect")
    assert "egress_ports" in manual.parameters_of("unit")
    assert "egress_ports" not in manual.parameters_of("tracker")


def test_every_parameter_is_in_the_table():
    """With meaning, legal values and what depends on it, and its value in every preset, whose use is said."""
    section = manual.PAGE.read_text(encoding="utf-8").split("\n## Parameters\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    uses = {row[0].strip("`"): row[1] for row in rows if row[0].startswith("`") and len(row) == 2}
    assert list(uses) == list(PRESETS) and uses == PRESET_USES
    named = [row for row in rows if row[0].startswith("`") and len(row) > 2]
    about, values = named[: len(named) // 2], named[len(named) // 2 :]
    assert [row[0] for row in about] == [row[0] for row in values] == [f"`{each.name}`" for each in fields(T3Config)]
    for name, _, legal, meaning, parts in about:
        assert legal and len(meaning) > 10 and parts, name
    shown = {row[0].strip("`"): row[1:] for row in values}
    assert shown["slices"] == [str(config.slices) for config in PRESETS.values()]
    assert shown["dtypes"][-1] == "fp16" and shown["protect"] == ["false"] * len(PRESETS)
    parts = {row[0].strip("`"): row[4].split(", ") for row in about}
    assert parts["node_inputs"] == ["`leaf`", "number of `leaf`", "`root`", "`tracker`"]
    assert {"number of `slice`", "number of `leaf`"} <= set(parts["slices"])
    assert "number of `matcher`" in parts["egress_ports"] and "`unit`" not in parts["egress_ports"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_legal_values_are_those_that_the_configuration_takes(name):
    """Both bounds, or every choice, are in themselves legal, and nothing beyond is."""
    about = PARAMETERS[name]
    if about.choices:
        beyond = ("fp8",) if name == "dtypes" else "fp8"
    elif about.low is None:
        beyond = 2
    else:
        assert str(about.low) in about.legal and about.unit
        for bound in (about.low, about.high):
            about.check(name, bound)
        for value in (about.low - 1, about.high + 1, *([3] if about.power_of_two else [])):
            with pytest.raises(ValueError, match=f"^{name} must be .*not {value}$"):
                about.check(name, value)
        beyond = about.high + 1
    with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
        preset("paper", **{name: beyond})


class Silent(Component):
    """A part whose docstring says nothing of its port."""

    nameless: Out(1)


def test_what_the_code_does_not_say_is_an_error():
    with pytest.raises(manual.ManualError, match="port nameless of Silent has no meaning: add it"):
        manual._meaning(Silent, "nameless")
    with pytest.raises(manual.ManualError, match="does not say its Latency, Reset, Throughput"):
        manual._facts(Silent)


def test_integration_guide_names_every_port_of_unit_and_nmc():
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", INTEGRATION))))
    for name in ("unit", "nmc"):
        for member in PARTS[name](preset("small")).signature.members:
            assert member.startswith("axi_") or {member, member.removesuffix("_valid")} & named, member


@pytest.mark.parametrize("page", [GUIDES / "integration.md", REFERENCE / "parts.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """To files, and to headings of them."""
    for target in re.findall(r"\]\((?!http)([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path if path else page).resolve()
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^a-z0-9_ -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, target


def test_names_in_the_integration_guide_exist():
    """Registers and functions of the driver."""
    driver = (ROOT / "hdl/driver/t3.h").read_text(encoding="utf-8")
    registers = (REFERENCE / "registers.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"\bt3_\w+(?=\()", INTEGRATION)) | set(
        re.findall(r"`(t3_(?!unit|nmc|cross)\w+)`", INTEGRATION)
    ):
        assert re.search(rf"\b{name}\b", driver), name
    for name in set(re.findall(r"`([A-Z][A-Z_]+)(?:\.\w+)?`", INTEGRATION)):
        assert re.search(rf"\b{name}\b", registers) or name in ("READ", "STORE", "ADD", "READ_CLEAR", "NEVER"), name


def test_diagram_is_an_image_for_any_background():
    """It parses, scales, says what it shows, and has a background of its own or colours for both."""
    drawing = ElementTree.parse(GUIDES / "integration.svg").getroot()
    assert drawing.get("viewBox")
    text = (GUIDES / "integration.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    assert drawing.find("{http://www.w3.org/2000/svg}title") is not None
    for part in ("MemorySlice", "RangeMatcher", "TokenNetwork", "Tracker", "Trigger", "ControlRegisters", "NmcUnit"):
        assert part in text
    assert "integration.svg" in INTEGRATION
