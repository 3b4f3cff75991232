"""The reference pages name everything that exists, and nothing else."""

import importlib
import inspect
import re
from pathlib import Path

import opent3
import pytest
from pydantic import BaseModel
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.machine.machine import SECTIONS, unit_of
from t3sim.inputs.workload import MODELS
from t3sim.run.result import Result
from t3sim.study.arbitration.axes import known_axes
from t3sim.study.arbitration.record import ArbitrationMap, Cell, MappedMachine, PolicyCell, StreamWaits
from t3sim.study.charts import CHARTS
from t3sim.study.layer.operators import PHASES, layer_operators, model_operators, optimizer_operator
from t3sim.study.layer.work import ATTENTIONS
from t3sim.study.reproduction import FigureRecord, ModelRecord, Reproduction, RunRecord
from t3sim.study.suite import TABLES
from t3sim.study.sweep import Geomeans, SweepRecord, SweptRun, SweptVariant
from t3sim.study.traffic_record import Curve, CurveUse, TrafficRecord

from docs.pages import DOCS, GUIDES
from docs.pages import machine as machine_page
from tests.support.sample_result import IDENTITIES, TRACKED_IDENTITIES, sample_result

ROOMS = ("hdl", "sim", "tb", "tests", "docs", ".ci")


def table_of(page: str, heading: str) -> list[list[str]]:
    """Cells of the table below a heading."""
    section = page.split(f"\n{heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return rows[2:]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_of_a_machine_says_what_it_means_and_every_number_its_range(section):
    page = machine_page.PAGE.read_text(encoding="utf-8")
    rows = {key.strip("`"): (unit, limits, meaning) for key, unit, limits, meaning in table_of(page, f"## [{section}]")}
    assert set(rows) == set(SECTIONS[section].model_fields)
    for key, (unit, limits, meaning) in rows.items():
        assert meaning, key
        assert bool(unit) == bool(unit_of(section, key)), key
        assert not unit or limits or key == "tiles", key


def test_example_of_the_machine_page_is_a_machine(tmp_path: Path):
    page = (GUIDES / "machine.md").read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    (tmp_path / "mine.toml").write_text(example[1])
    machine = load_machine(tmp_path / "mine.toml")
    assert (machine.gpu.cus, machine.hardware.config().tracker_sets) == (104, 512)


def leaves(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Dotted names of all fields, each stream's as `….name`."""
    names = set()
    for name, field in model.model_fields.items():
        inner = [kind for kind in _kinds(field.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if name in ("compute", "communication"):
            names |= {f"{prefix}{name}", *leaves(inner[0], "….")}
        elif inner:
            names |= leaves(inner[0], f"{prefix}{name}.")
        else:
            names.add(f"{prefix}{field.alias or name}")
    return names


def test_the_page_of_the_python_api_names_every_function_of_it_and_no_other():
    page = (GUIDES / "python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+)(?:\([^`]*\))?`", page))
    functions = {name for name in opent3.__all__ if inspect.isfunction(getattr(opent3, name))}
    helpers = {
        "caution", "hardware_with", "is_compiled", "machine_summaries", "notes", "parse_settings", "preset_names",
        "requests_of", "size_text", "varied",
    }  # fmt: skip
    assert functions - named == helpers


@pytest.mark.parametrize("name", ["opent3", "t3sim"])
def test_what_a_page_calls_in_python_is_there(name):
    used = {
        (path.name, call)
        for path in (*DOCS.rglob("*.md"), DOCS.parent / "README.md")
        for call in re.findall(rf"\b{name}\.([A-Za-z_.]+)\(", path.read_text(encoding="utf-8"))
    }
    assert used or name == "t3sim"
    for page, call in used:
        module, _, function = f"{name}.{call}".rpartition(".")
        assert hasattr(importlib.import_module(module), function), (page, call)


def _kinds(annotation: object) -> list[object]:
    """``annotation`` and all that it is made of: a model, a list of models, either or None."""
    parts = [part for argument in getattr(annotation, "__args__", ()) for part in _kinds(argument)]
    return parts or [annotation]


def test_results_page_has_every_field():
    page = (GUIDES / "results.md").read_text(encoding="utf-8")
    found = {name for field, *_ in table_of(page, "## result.json") for name in re.findall(r"`([^`]+)`", field)}
    stalls = {"contention.cu_stall_ns.loads", "contention.cu_stall_ns.stores"}
    assert found - stalls | {"contention.cu_stall_ns"} == leaves(Result)
    assert sample_result("t3").model_dump(by_alias=True).keys() == {name.split(".")[0] for name in found} - {"…"}


def test_results_page_has_every_identity():
    """Which a run has indeed: test_identities.py holds the samples against one."""
    page = (GUIDES / "results.md").read_text(encoding="utf-8")
    found = {name for cell, _ in table_of(page, "## Identities") for name in re.findall(r"`([^`]+)`", cell)}
    assert found == {*IDENTITIES, *TRACKED_IDENTITIES}


def test_end_to_end_page_has_every_model():
    page = (GUIDES / "end-to-end.md").read_text(encoding="utf-8")
    found = {row[0].strip("`"): row[1:7] for row in table_of(page, "## Models")}
    assert found == {
        name: [
            str(facts.hidden),
            str(facts.layers),
            str(facts.heads),
            str(facts.vocabulary),
            f"{facts.sequence // 1024}K x {facts.batch}",
            ", ".join(map(str, facts.tp)),
        ]
        for name, facts in MODELS.items()
    }


def test_end_to_end_page_has_every_operator():
    page = (GUIDES / "end-to-end.md").read_text(encoding="utf-8")
    found = {row[0].strip("`") for row in table_of(page, "## Operators")}
    listed = [op.name for phase in PHASES for how in ATTENTIONS for op in layer_operators("gpt-3", 32, phase, how)]
    listed += [op.name for op in model_operators("gpt-3", 32, "training")]
    assert found - {"operator", "---"} == {*listed, optimizer_operator("gpt-3", 32).name}


@pytest.mark.parametrize(
    ("page", "models"),
    [
        ("reproduce.md", (Reproduction, FigureRecord, RunRecord, ModelRecord)),
        ("sweep.md", (SweepRecord, SweptVariant, SweptRun, Geomeans, TrafficRecord, CurveUse, Curve)),
        ("map.md", (ArbitrationMap, MappedMachine, Cell, PolicyCell, StreamWaits)),
    ],
)
def test_pages_of_reports_have_every_field(page, models):
    names = re.findall(r"`(?:….)?([\w.]+)`", (GUIDES / page).read_text(encoding="utf-8"))
    named = {part for name in names for part in name.split(".")}
    for model in models:
        assert {field.alias or name for name, field in model.model_fields.items()} <= named, model.__name__


def test_map_page_has_every_axis_with_its_values():
    rows = table_of((GUIDES / "map.md").read_text(encoding="utf-8"), "## Axes")
    keys = {axis.strip("`"): set(re.findall(r"`([^`]+)`", values)) for axis, values in rows}
    assert list(keys) == list(known_axes().axes)
    for axis, values in known_axes().axes.items():
        changed = {key for value in values.values() for key in value.settings}
        assert keys[axis] == (changed if axis not in ("threshold", "rule") else {"[arbiter]"}), axis


def test_reproduce_page_has_every_table_and_chart():
    page = (GUIDES / "reproduce.md").read_text(encoding="utf-8")
    assert {row[0].strip("`") for row in table_of(page, "## What runs")} == set(TABLES)
    for charts in CHARTS.values():
        for name in charts:
            assert f"`{name}`" in page


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md", "contributing.md"])
def test_places_that_a_page_names_exist(page):
    """A page may leave out the beginning of a path."""
    root = DOCS.parent
    places = [f"/{path.relative_to(root)}" for room in ROOMS for path in (root / room, *(root / room).rglob("*"))]
    text = (DOCS / page).read_text(encoding="utf-8")
    named = {name.rstrip("/") for name in re.findall(r"`([a-z0-9_/.]+)`", text) if re.search(r"/|\.py$", name)}
    assert len(named) > 20
    assert [name for name in sorted(named) if not any(place.endswith(f"/{name}") for place in places)] == []
