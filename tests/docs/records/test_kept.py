"""Kept records of an earlier simulator: what a page says of them, and how their results are confirmed."""

import json
from pathlib import Path
from types import SimpleNamespace

import opent3
import pytest
from click.testing import CliRunner
from t3sim.run.ideal import COMPUTED
from t3sim.study.sources import digest_for

from docs.pages import RESULTS
from docs.pages.played import confirm
from docs.pages.shared.kept import CONFIRMED, EARLIER, Confirmed, digest_of, made_by

POINTS = [opent3.custom_point(512, 256, 512, 4), opent3.custom_point(256, 512, 512, 4)]
FILES = {
    "map": "map.json",
    "axes": "map.json",
    "sweep": "sweep.json",
    "rtl": "sweep.json",
    "reproduction": "reproduce.json",
}
CELLS = {"what": "cells", "drawn": 22, "total": 304}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Folders with a map of two GEMMs, launched twice, one of changed machines, and a sweep of two machines."""
    root = tmp_path_factory.mktemp("kept")
    opent3.arbitration_map(["none"], POINTS, launches=2, out=root / "map")
    opent3.arbitration_map(["starvation"], POINTS[:1], quick=True, out=root / "axes")
    opent3.sweep(opent3.on_machines(["paper", "paper-accelsim"]), POINTS[:1], ("t3",), out=root / "sweep")
    return root


def earlier(records, folder: Path, name: str, change=lambda content: None) -> Path:
    """The folder, with a copy of the record ``name``, changed, as of an earlier simulator."""
    content = json.loads((records / name / FILES[name]).read_text(encoding="utf-8"))
    content["sources"] = "0123456789abcdef"
    change(content)
    (folder / FILES[name]).write_text(json.dumps(content), encoding="utf-8")
    return folder


def kept(folder: Path) -> Confirmed:
    """What was confirmed there."""
    return Confirmed.model_validate_json((folder / CONFIRMED).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "results"), [("map", 2), ("sweep", 4)])
def test_results_that_come_out_again_are_said_to(records, tmp_path, name, results):
    folder = earlier(records, tmp_path, name)
    assert confirm.confirm(folder, 1)[1] == []
    found = kept(folder)
    assert (found.drawn, found.total, found.sources) == (1, results, digest_for("golden"))
    assert found.record_digest == digest_of(folder / FILES[name])
    told, differences = confirm.confirm(folder, 99)
    assert (told, differences) == (f"the same in {results} of {results} {found.what}", [])
    assert kept(folder).sentence.endswith(f"; today's gives the same numbers for all {results} {found.what}.")
    confirm.confirm(folder, 1)
    assert kept(folder).drawn == results, "fewer do not count less"


def test_a_machine_with_changed_settings_comes_out_again(records, tmp_path):
    folder = earlier(records, tmp_path, "axes")
    assert confirm.confirm(folder, 99)[1] == [] and kept(folder).total > 1


def test_runs_in_rtl_come_out_again(records, tmp_path):
    """How often the RTL was evaluated for it is no result; how long its clock ran is one."""

    def rtl(content):
        return next(run["result"]["rtl"] for run in content["variants"][0]["runs"] if run["result"]["rtl"])

    opent3.sweep(opent3.on_machines(["toy"]), POINTS[:1], ("t3",), hardware="rtl", out=records / "rtl")
    folder = earlier(records, tmp_path, "rtl", lambda content: rtl(content).update(cycles_evaluated=1))
    assert confirm.confirm(folder, 99)[1] == [] and kept(folder).sources == digest_for("rtl")
    earlier(records, tmp_path, "rtl", lambda content: rtl(content).update(cycles=1))
    assert "rtl, cycles: kept 1, now" in confirm.confirm(folder, 99)[1][0]


@pytest.mark.parametrize("name", ["reproduction", "reproduction-accelsim"])
def test_every_simulated_run_of_a_reproduction_can_be_drawn(name):
    path, record, _, results = confirm._results(RESULTS / name)
    simulated = [run.result for run in record.runs if run.result.policy not in COMPUTED]
    same = {(run.workload.m, run.workload.n, run.workload.k_total, run.workload.tp, run.policy, run.mirror,
             json.dumps(run.settings, sort_keys=True)) for run in simulated}  # fmt: skip
    assert path.name == FILES["reproduction"] and len(results) == len(same)


def test_a_record_of_todays_simulator_needs_no_confirmation(records):
    run = CliRunner().invoke(confirm.main, [str(records / "map")])
    assert run.exit_code == 0 and "of today's simulator" in run.output
    assert not (records / "map" / CONFIRMED).exists()


def _longer(content):
    content["machines"][0]["cells"][1]["policies"]["t3"]["gemm"] *= 1.000001


def _blocked(content):
    content["machines"][0]["cells"][0]["policies"]["t3-mca"]["compute"]["blocked"]["tracker"] += 1


def _slower(content):
    content["variants"][1]["runs"][1]["result"]["time_ns"]["gemm"] += 1


def _unobserved(content):
    content["variants"][0]["runs"][0]["result"]["contention"] = None


def _unknown(content):
    content["variants"][0]["runs"][1]["result"]["identities"]["another"] = None


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("map", _longer, "policies, t3, gemm: kept"),
        ("map", _blocked, "policies, t3-mca, compute, blocked, tracker: kept"),
        ("sweep", _slower, "time_ns, gemm: kept"),
        ("sweep", _unobserved, "contention: kept None, now"),
        ("sweep", _unknown, "identities, another: kept None, and now absent"),
    ],
)
def test_a_result_that_differs_is_named_and_nothing_is_kept(records, tmp_path, name, change, where):
    folder = earlier(records, tmp_path, name, change)
    (folder / CONFIRMED).write_text("{}", encoding="utf-8")
    run = CliRunner().invoke(confirm.main, [str(folder), "--draw", "99"])
    assert run.exit_code == 1 and where in run.output and not (folder / CONFIRMED).exists()


def test_runs_that_break_an_identity_confirm_nothing(records, tmp_path, monkeypatch):
    monkeypatch.setattr(confirm, "failures", lambda run: ["lines do not add up"])
    assert "lines do not add up" in confirm.confirm(earlier(records, tmp_path, "map"), 1)[1][0]


def test_what_a_record_from_before_has_not_is_no_difference(records, tmp_path):
    def older(content):
        for cell in content["machines"][0]["cells"]:
            del cell["pipeline"]
            for policy in cell["policies"].values():
                del policy["reduce_scatter"]

    assert confirm.confirm(earlier(records, tmp_path, "map", older), 99)[1] == []


def test_a_folder_without_a_record_is_refused(tmp_path):
    run = CliRunner().invoke(confirm.main, [str(tmp_path)])
    assert run.exit_code == 1 and "has no map.json, sweep.json or reproduce.json" in run.output


@pytest.mark.parametrize(
    ("change", "says"),
    [({}, True), ({"record_digest": "0" * 64}, False), ({"sources": "0123456789abcdef"}, False), (None, False)],
)
def test_a_page_says_what_was_confirmed_of_this_record_with_this_simulator(tmp_path, change, says):
    path = tmp_path / "map.json"
    path.write_text("{}", encoding="utf-8")
    if change is not None:
        content = {"record_digest": digest_of(path), "sources": digest_for("golden"), **CELLS, **change}
        path.with_name(CONFIRMED).write_text(json.dumps({"schema": 1, **content}), encoding="utf-8")
    (text,) = made_by(SimpleNamespace(sources="other", hardware="golden"), path)
    sentence = (
        "These results are from an earlier version of the simulator; today's gives the same numbers for 22 of the 304 "
        "cells, drawn at random (had one in 10 changed, such a draw would show it with a probability of 91 %)."
    )
    assert text == (sentence if says else EARLIER)
    assert made_by(SimpleNamespace(sources=digest_for("golden"), hardware="golden"), path) == []


@pytest.mark.parametrize(
    ("drawn", "total", "chance"), [(1, 10, 0.1), (5, 10, 0.5), (10, 10, 1), (2, 20, 1 - 153 / 190)]
)
def test_the_chance_to_see_a_change_is_that_of_a_draw_without_replacement(drawn, total, chance):
    found = Confirmed(record_digest="", sources="", what="cells", drawn=drawn, total=total)
    assert found.chance == pytest.approx(chance)
