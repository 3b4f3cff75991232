"""The Python API takes what its annotations say: everything else is a ValueError that says what was expected."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import opent3
import pytest

from tests.contract.nmc.golden_alu import golden_alu

TOY = opent3.custom_workload(m=256, n=64, k=64, tp=4)
POINT = opent3.Point(model="t-nlg", sublayer="fc2", tp=8)
LINKS = opent3.vary({"link.gb_s": [100]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": "2"}, "--threads must be a whole number, not '2'"),
        ({"threads": 2.0}, "--threads must be a whole number, not 2.0"),
        ({"threads": True}, "--threads must be a whole number, not True"),
        ({"seed": "1"}, "--seed must be a whole number, not '1'"),
        ({"data_lines": 2.5}, "--data-lines must be a whole number, not 2.5"),
        ({"mirror": "yes"}, "mirror must be True or False, not 'yes'"),
        ({"events": 1}, "events must be True or False, not 1"),
        ({"hardware": 3}, "--hardware must be one of rtl, golden, not 3"),
        ({"machine": 3}, "machine must be one of a100-like"),
        ({"settings": "a=b"}, "settings must be a dictionary of values by names, not 'a=b'"),
        ({"settings": {3: 4}}, "a name in settings must be a text, not 3"),
        ({"workload": "t-nlg"}, "workload must be a Workload, as of custom_workload or model_workload, not 't-nlg'"),
        ({"policy": 3}, "policies must be a list of names of policies, not of 3"),
        ({"out": 3}, "out must be a path, not 3"),
    ],
)
def test_a_run(options, message):
    given: dict[str, Any] = {"workload": TOY, "policy": "t3", "machine": "toy", "hardware": "golden", **options}
    with pytest.raises(ValueError) as error:
        opent3.run(**given)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("policies", ["t3", 3, None, [["t3"]], ["t3", 3]])
def test_a_comparisons_policies(policies):
    with pytest.raises(ValueError, match="policies must be a list of names of policies"):
        opent3.compare(TOY, policies)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": "2"}, "jobs must be a whole number, not '2'"),
        ({"jobs": 0}, "jobs must be at least 1, not 0"),
        ({"seed": "1"}, "seed must be a whole number, not '1'"),
        ({"scheduler": 3}, "scheduler must be the address of a Dask scheduler, or None, not 3"),
        ({"own": 3}, "own must be a model, as of own_model, or None, not 3"),
        ({"points": 3}, "points must be a list of Point, as of own_points, not 3"),
        ({"points": [3]}, "points must be a list of Point, as of own_points, not of 3"),
        ({"points": [replace(POINT, model=["t-nlg"])]}, "model of a Point must be a text, not ['t-nlg']"),
        ({"points": [replace(POINT, sublayer=["op"])]}, "sublayer of a Point must be a text, not ['op']"),
        ({"points": [replace(POINT, tp=[8])]}, "tp of a Point must be a whole number, not [8]"),
        ({"policies": "t3"}, "policies must be a list of names of policies, not 't3'"),
        ({"variants": 3}, "variants must be a dictionary of values by names, not 3"),
        ({"variants": {"a": 3}}, "variants must be a list of machines, as of vary, not of 3"),
        ({"settings": 3}, "settings must be a dictionary of values by names, not 3"),
        ({"out": 3}, "out must be a path, not 3"),
    ],
)
def test_a_sweep(options, message):
    given: dict[str, Any] = {"variants": LINKS, "points": [POINT], "machine": "toy", **options}
    with pytest.raises(ValueError) as error:
        opent3.sweep(**given)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("values", [3, {3: [1]}, {"link.gb_s": 3}, {"link.gb_s": "75"}])
def test_values_to_vary(values):
    with pytest.raises(ValueError, match="must"):
        opent3.vary(values)


@pytest.mark.parametrize("value", [Decimal(75), {75}, date(2026, 1, 1), 75j, b"75", [np.int64(75)]])
def test_a_value_to_vary_is_one_that_a_record_can_hold(value):
    with pytest.raises(ValueError) as error:
        opent3.vary({"link.gb_s": [value]})
    rule = "link.gb_s must have numbers, texts, truth values or lists of them"
    assert str(error.value) == f"{rule}, not {value!r}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random": -1}, "random must be in 0 to 1000, not -1"),
        ({"random": 1001}, "random must be in 0 to 1000, not 1001"),
        ({"random": "9"}, "random must be a whole number, not '9'"),
        ({"launches": 9}, "--launches must be in 1 to 8, not 9"),
        ({"points": [3]}, "points must be a list of Point, as of map_points, not of 3"),
        ({"points": [replace(POINT, model=["t-nlg"])]}, "model of a Point must be a text, not ['t-nlg']"),
    ],
)
def test_a_map(options, message, monkeypatch):
    monkeypatch.setattr("opent3.studies.run_all", lambda *_: pytest.fail("it ran"))
    with pytest.raises(ValueError) as error:
        opent3.arbitration_map(["none"], machine="toy", **options)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["m", "n", "k", "tp"])
@pytest.mark.parametrize("value", ["64", 64.0, True, None])
def test_sizes(name, value):
    sizes: dict[str, Any] = {"m": 256, "n": 64, "k": 64, "tp": 4, name: value}
    with pytest.raises(ValueError, match=f"--{name} must be a whole number, not "):
        opent3.custom_workload(**sizes)


def test_numpys_integers_are_whole_numbers():
    sizes: Any = {"m": np.int64(256), "n": np.uint8(64), "k": 64, "tp": np.int16(4)}
    assert opent3.custom_workload(**sizes) == TOY and type(opent3.custom_workload(**sizes).m) is int


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: opent3.own_model(3, "prompt", 1, 64), "path must be a path, not 3"),
        (lambda: opent3.own_model("a.json", 3, 1, 64), "--phase must be one of "),
        (lambda: opent3.own_model("a.json", "prompt", 1.5, 64), "--batch must be a whole number, not 1.5"),
        (lambda: opent3.own_model("a.json", "prompt", 1, "64"), "--sequence must be a whole number, not '64'"),
        (lambda: opent3.model_workload("t-nlg", 3, tp=8), "--sublayer must be one of op, fc2, fc1, ip, not 3"),
        (lambda: opent3.model_workload(["t-nlg"], "fc2", tp=8), "--model must be one of "),
        (lambda: opent3.sublayer_workload(None, "fc2", 8), "model must be a model, as of own_model, not None"),
        (lambda: opent3.own_points(None, [8]), "model must be a model, as of own_model, not None"),
        (lambda: opent3.model_points("t-nlg", [8], ["fc2"]), "models must be a list of names of models, not 't-nlg'"),
        (lambda: opent3.model_points(["t-nlg"], 8, ["fc2"]), "degrees must be a list of numbers of GPUs, not 8"),
        (lambda: opent3.model_points(["t-nlg"], [8], "fc2"), "sublayers must be a list of names of sublayers, not "),
        (lambda: opent3.custom_points(256, 64, 64, 8), "degrees must be a list of numbers of GPUs, not 8"),
        (lambda: opent3.read_result(None), "path must be a path, not None"),
    ],
)
def test_models_points_and_records(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"around": "1"}, "--around must be a whole number, not '1'"),
        ({"around": 1.0}, "--around must be a whole number, not 1.0"),
        ({"from_ns": "0", "to_ns": 9}, "--from-ns must be a number of ns, not '0'"),
        ({"from_ns": 0, "to_ns": "9"}, "--to-ns must be a number of ns, not '9'"),
        ({"gpu": "0"}, "--gpu must be a whole number, not '0'"),
        ({"form": "ghw"}, "--format must be one of vcd, fst, not 'ghw'"),
        ({"internals": "no"}, "internals must be True, False or None, not 'no'"),
        ({"golden": 0}, "golden must be True, False or None, not 0"),
    ],
)
def test_waves(options, message, tmp_path):
    given: dict[str, Any] = {"workload": TOY, "out": tmp_path / "out", "machine": "toy", "hardware": "golden"}
    with pytest.raises(ValueError) as error:
        opent3.waves(**given, **options)
    assert str(error.value).startswith(message) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1.5}, "seed must be a whole number, not 1.5"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"protect": "yes"}, "protect must be True, False or None, not 'yes'"),
        ({"count": "9"}, "count must be a whole number, not '9'"),
    ],
)
def test_faults(options, message, monkeypatch):
    monkeypatch.setattr("t3sim.faults.campaign.run_campaign", lambda *_: pytest.fail("it ran"))
    with pytest.raises(ValueError) as error:
        opent3.faults(**options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "1"}, "seed must be a whole number, not '1'"),
        ({"protect": None}, "protect must be True or False, not None"),
        ({"number": 1.0}, "number must be a whole number, not 1.0"),
    ],
)
def test_one_fault(options, message):
    given: dict[str, Any] = {"kind": "lost", "number": 0, **options}
    with pytest.raises(ValueError) as error:
        opent3.fault(**given)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads must be at least 1, not 0"),
        ({"threads": "2"}, "threads must be a whole number, not '2'"),
        ({"alone_every": 0}, "alone_every must be at least 1, not 0"),
        ({"random": "9"}, "random must be a whole number, not '9'"),
        ({"seed": 1.5}, "seed must be a whole number, not 1.5"),
        ({"dtype": ["fp16"]}, "dtype must be the name of a dtype, or None, not ['fp16']"),
        ({"op": ["add"]}, "op must be the name of an operation, or None, not ['add']"),
        ({"preset": ["paper"]}, "preset must be the name of a preset, not ['paper']"),
        ({"settings": 3}, "settings must be a list of texts, as tracker_sets=512, not 3"),
        ({"settings": [3]}, "settings must be a list of texts, as tracker_sets=512, not of 3"),
        (
            {"settings": "tracker_sets=512"},
            "settings must be a list of texts, as tracker_sets=512, not 'tracker_sets=512'",
        ),
        ({"random": None, "exhaustive": "yes"}, "exhaustive must be True or False, not 'yes'"),
        ({"random": None, "cases": 3}, "cases must be lines of text, or None, not 3"),
    ],
)
def test_the_alu(options, message, monkeypatch):
    monkeypatch.setattr("t3sim.validation.alu.open_alu", lambda config: pytest.fail("it compiled"))
    given: dict[str, Any] = {"random": 1, **options}
    with pytest.raises(ValueError) as error:
        opent3.validate_alu(**given)
    assert str(error.value) == message


def test_a_case_of_the_alu_is_a_line_of_text(monkeypatch):
    monkeypatch.setattr("t3sim.validation.alu.open_alu", lambda config: nullcontext(golden_alu()))
    (row,) = opent3.validate_alu(iter(["3C00 3C00 4000 00"]), dtype="fp16", op="add")
    assert (row.cases, row.differences) == (1, 0)
    with pytest.raises(ValueError, match="a line of cases must be a text, not 3"):
        opent3.validate_alu([3], dtype="fp16", op="add")  # type: ignore[list-item]


@pytest.mark.parametrize("names", ["link-75", 3, [3]])
def test_assumptions(names):
    with pytest.raises(ValueError, match="names must be a list of names of assumptions, not"):
        opent3.assumptions(names)
    assert [*opent3.assumptions(name for name in ["link-75"])] == ["base", "link-75"]
