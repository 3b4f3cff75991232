"""Kept records of an earlier simulator: what a page says of them, and how their results are confirmed."""

import json
from types import SimpleNamespace

import opent3
import pytest
from click.testing import CliRunner
from t3sim.study.sources import digest_for

from docs.pages.played import confirm
from docs.pages.shared.kept import CONFIRMED, EARLIER, Confirmed, digest_of, made_by

POINTS = [opent3.custom_point(512, 256, 512, 4), opent3.custom_point(256, 512, 512, 4)]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A folder with a map of two GEMMs, launched twice, and one with a sweep of two machines."""
    root = tmp_path_factory.mktemp("kept")
    opent3.arbitration_map(["none"], POINTS, launches=2, out=root / "map")
    opent3.sweep(opent3.on_machines(["paper", "paper-accelsim"]), POINTS[:1], ("t3",), out=root / "sweep")
    return root


def rewritten(path, change):
    """The record in ``path``, changed, as of an earlier simulator."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["sources"] = "0123456789abcdef"
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path.parent


def earlier(records, tmp_path, name, change=lambda content: None):
    """A copy of the record ``name``."""
    path = tmp_path / f"{name}.json"
    path.write_bytes((records / name / path.name).read_bytes())
    return rewritten(path, change)


@pytest.mark.parametrize(("name", "results"), [("map", 2), ("sweep", 4)])
def test_results_that_come_out_again_are_said_to(records, tmp_path, name, results):
    folder = earlier(records, tmp_path, name)
    assert confirm.confirm(folder, 1, 0) == []
    kept = Confirmed.model_validate_json((folder / CONFIRMED).read_text(encoding="utf-8"))
    assert (kept.drawn, kept.all, kept.sources) == (1, results, digest_for("golden"))
    assert kept.record == digest_of(folder / f"{name}.json")
    assert confirm.confirm(folder, 99, 0) == []
    whole = Confirmed.model_validate_json((folder / CONFIRMED).read_text(encoding="utf-8"))
    assert whole.sentence == f"Today's gives the same for all of its {results} {whole.what}."


def test_a_record_of_todays_simulator_needs_no_confirmation(records):
    assert confirm.confirm(records / "map", 1, 0) == [] and not (records / "map" / CONFIRMED).exists()


def _longer(content):
    content["machines"][0]["cells"][1]["policies"]["t3"]["gemm"] *= 1.000001


def _slower(content):
    content["variants"][1]["runs"][1]["result"]["time_ns"]["gemm"] += 1


def _blocked(content):
    content["machines"][0]["cells"][0]["policies"]["t3-mca"]["compute"]["blocked"]["tracker"] += 1


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("map", _longer, "policies, t3, gemm: kept"),
        ("map", _blocked, "policies, t3-mca, compute, blocked, tracker: kept"),
        ("sweep", _slower, "time_ns, gemm: kept"),
    ],
)
def test_a_result_that_differs_is_named_and_nothing_is_kept(records, tmp_path, name, change, where):
    folder = earlier(records, tmp_path, name, change)
    run = CliRunner().invoke(confirm.main, [str(folder), "--draw", "99"])
    assert run.exit_code == 1 and where in run.output and not (folder / CONFIRMED).exists()


def test_what_a_record_from_before_has_not_is_no_difference(records, tmp_path):
    def older(content):
        for cell in content["machines"][0]["cells"]:
            del cell["pipeline"]
            for policy in cell["policies"].values():
                del policy["reduce_scatter"]

    assert confirm.confirm(earlier(records, tmp_path, "map", older), 99, 0) == []


def test_a_folder_without_a_record_is_refused(tmp_path):
    run = CliRunner().invoke(confirm.main, [str(tmp_path)])
    assert run.exit_code == 1 and "has no map.json, sweep.json or reproduce.json" in run.output


@pytest.mark.parametrize(
    ("change", "says"),
    [({}, True), ({"record": "0" * 64}, False), ({"sources": "0123456789abcdef"}, False), (None, False)],
)
def test_a_page_says_what_was_confirmed_of_this_record_with_this_simulator(tmp_path, change, says):
    path = tmp_path / "map.json"
    path.write_text("{}", encoding="utf-8")
    if change is not None:
        content = {"record": digest_of(path), "sources": digest_for("golden"), "what": "cells", "drawn": 22, "all": 304,
                   "seed": 0, **change}  # fmt: skip
        path.with_name(CONFIRMED).write_text(json.dumps({"schema": 1, **content}), encoding="utf-8")
    (text,) = made_by(SimpleNamespace(sources="other", hardware="golden"), path)
    sentence = (
        " Today's gives the same for 22 of its 304 cells, drawn by chance: had one in ten changed, 90 % of such draws "
        "would show it."
    )
    assert text == (EARLIER + sentence if says else EARLIER)
    assert made_by(SimpleNamespace(sources=digest_for("golden"), hardware="golden"), path) == []
