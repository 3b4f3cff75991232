"""The published figures: bands, verdicts, and that each of them is measured."""

import pytest
from pydantic import ValidationError
from t3sim.study.evaluation import MEASURES
from t3sim.study.published import Figure, published
from t3sim.study.suite import TABLES

BASE = {"table": "sublayers", "title": "a", "unit": "x", "value": 1.3, "source": "evaluation"}


def figure(**values) -> Figure:
    return Figure.model_validate(BASE | values)


@pytest.mark.parametrize(
    ("band", "measured", "verdict"),
    [
        ({"tolerance": 0.03}, 1.30, "inside"),
        ({"tolerance": 0.03}, 1.33, "inside"),
        ({"tolerance": 0.03}, 1.27, "inside"),
        ({"tolerance": 0.03}, 1.3301, "outside"),
        ({"tolerance": 0.03}, 1.2699, "outside"),
        ({"tolerance": 0.03}, None, "not run"),
        ({"low": 1.38, "high": 1.42}, 1.40, "inside"),
        ({"low": 1.38, "high": 1.42}, 1.37, "outside"),
        ({"high": 5.0}, -40.0, "inside"),
        ({"high": 5.0}, 5.1, "outside"),
        ({"low": 15.0}, 40.0, "inside"),
        ({"low": 15.0}, 14.9, "outside"),
    ],
)
def test_verdict_of_a_band(band, measured, verdict):
    assert figure(**band, band="target").verdict(measured) == verdict


def test_a_figure_without_a_band_is_neither_hit_nor_missed():
    assert figure().verdict(7.0) == "no band"
    assert figure(reconciled=False, note="two figures differ").verdict(1.3) == "unreconciled"
    assert figure(reconciled=False, note="two figures differ").verdict(None) == "not run"


@pytest.mark.parametrize(
    "values",
    [
        {"tolerance": 0.1, "low": 1.0, "band": "target"},
        {"tolerance": 0.1},
        {"band": "target"},
        {"reconciled": False},
        {"reconciled": False, "note": "why", "tolerance": 0.1, "band": "target"},
        {"extra": 1},
    ],
)
def test_a_figure_that_contradicts_itself_is_refused(values):
    with pytest.raises(ValidationError):
        figure(**values)


def test_every_figure_belongs_to_a_table_that_measures():
    assert {item.table for item in published().values()} <= set(MEASURES) <= set(TABLES)


def test_targets_of_the_project_are_the_stated_ones():
    stated = {
        "ideal-geomean": (1.32, 1.38), "ideal-max": (1.48, 1.52), "t3-geomean": (1.16, 1.24), "t3-max": (1.34, 1.44),
        "t3-mca-geomean": (1.27, 1.33), "t3-mca-max": (1.43, 1.51), "tp32-geomean": (1.25, 1.33),
        "traffic-geomean": (-25, -19), "traffic-max": (-40, -32), "gemm-reads": (1.41, 1.71),
        "nmc-rs-tp8": (5.5, 8.5), "nmc-rs-tp16": (1.5, 4.5), "training-t3-mca-geomean": (8, 12),
        "prompt-t3-mca-geomean": (10, 14), "t3-mca-off-ideal": (None, 5), "output-writes": (-11, -9),
    }  # fmt: skip
    found = {name: item.interval for name, item in published().items() if item.band == "target"}
    assert found.keys() == stated.keys()
    for name, limits in stated.items():
        assert found[name] == pytest.approx(limits), name


def test_a_cause_is_told_for_the_machine_on_which_it_was_found():
    item = figure(note="no band was set", cause={"paper": "the link is slow"})
    assert item.remark("paper") == "no band was set; the link is slow"
    assert item.remark("paper-accelsim") == item.remark("") == "no band was set"
