"""Whole models, the paper's evaluation and the map in Python, with toy GEMMs: the same as the commands make."""

from pathlib import Path

import opent3
import pytest
from click.testing import CliRunner
from opent3 import many
from t3sim.cli import main as cli
from t3sim.study.store import Store

from tests.support.toy_evaluation import toy_suite

POINT = opent3.Point(model="t-nlg", sublayer="op", tp=8)


@pytest.fixture(autouse=True, scope="module")
def toys():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many, "Suite", lambda **choices: toy_suite(patch, **{**choices, "machine": "toy"}))
        yield


def t3(*arguments: object) -> str:
    result = CliRunner(env={"OMP_NUM_THREADS": "1"}).invoke(cli.main, [str(item) for item in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def printed(table) -> str:
    from t3sim.cli.console import plain_console

    console = plain_console()
    with console.capture() as capture:
        console.print(table)
    return capture.get()


@pytest.mark.long
def test_a_model_is_the_commands_and_its_frames_add_up():
    result = opent3.model("t-nlg", 8, "prompt", jobs=1)
    assert printed(result.table()) in t3("model", "--phase", "prompt")
    frame, operators = result.frame(), result.operator_frame()
    assert list(frame["policy"]) == ["sequential", "t3", "t3-mca"] == list(result.speedups)
    assert (frame["total_ns"] == frame["sublayers_ns"] + frame["other_ns"]).all()
    assert operators["total_ns"].sum() == pytest.approx(frame["other_ns"][0])
    assert (operators["flop"] >= 0).all() and (operators["bytes"] > 0).all()
    assert list(result.record_frame()["policy"]) == ["sequential", "t3", "t3-mca"] * 2
    assert result.failures == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "name must be the name of a model, or a model, as of own_model, not 3"),
        ({"name": "t-nlgg"}, "did you mean 't-nlg'"),
        ({"tp": "8"}, "tp must be a whole number, not '8'"),
        ({"phase": "prompt", "optimizer": True}, "--optimizer belongs to --phase training"),
        ({"machine": opent3.load_machine("toy")}, "machine must be the name of a preset, or a machine file"),
        ({"jobs": 0}, "jobs must be at least 1"),
    ],
)
def test_a_model_that_cannot_be_is_a_value_error_before_anything_runs(monkeypatch, arguments, message):
    monkeypatch.setattr("opent3.models.run_all", lambda *_: pytest.fail("ran"))
    with pytest.raises(ValueError, match=message):
        opent3.model(**arguments)


def test_a_model_of_the_users_own_has_its_own_phase(tmp_path, monkeypatch):
    from tests.support.model_configs import write_config

    own = opent3.own_model(write_config(tmp_path, "llama-3-8b"), "prompt", 1, 128)
    monkeypatch.setattr("opent3.models.run_all", lambda *_: pytest.fail("ran"))
    with pytest.raises(ValueError, match="phase must be that of the model, 'prompt', or None, not 'training'"):
        opent3.model(own, 2, "training")


@pytest.mark.long
def test_a_reproduction_is_the_commands(tmp_path: Path):
    out = tmp_path / "api"
    result = opent3.reproduce(["sublayers"], quick=True, hardware="golden", out=out)
    text = t3("reproduce", "--only", "sublayers", "--quick", "--hardware", "golden", "--out", tmp_path / "command")
    assert (out / "reproduce.json").read_bytes() == (tmp_path / "command" / "reproduce.json").read_bytes()
    assert printed(result.table()) in text
    assert (out / "traffic.json").read_text() == result.traffic.text()
    traffic = result.traffic_frame()
    assert set(traffic["policy"]) == {"sequential", "sequential-nmc", "t3", "t3-mca"} and traffic["rs_write"].sum() > 0
    frame = result.frame()
    assert list(frame.columns[:1]) == ["name"] and set(frame["verdict"]) >= {"not run"}
    runs = result.run_frame()
    assert len(runs) == len(result.record.runs) and (runs["result.time_ns.total"] > 0).all()
    assert result.model_frame().empty and result.failures == []


def test_a_table_that_is_not_there_is_a_value_error():
    with pytest.raises(ValueError, match="--only must name tables of sublayers.*, not tp32"):
        opent3.reproduce(["tp32"], quick=True)
    with pytest.raises(ValueError, match="tables must be a list of names of tables, not 'mca'"):
        opent3.reproduce("mca")


@pytest.mark.long
def test_a_map_is_the_commands(tmp_path: Path):
    out = tmp_path / "api"
    result = opent3.arbitration_map(["release", "dispatch"], [POINT], machine="toy", out=out)
    text = t3("map", "--machine", "toy", "--models", "t-nlg", "--sublayers", "op", "--tp", "8", "--axes",
              "release,dispatch", "--out", tmp_path / "command")  # fmt: skip
    assert (out / "map.json").read_bytes() == (tmp_path / "command" / "map.json").read_bytes()
    assert printed(result.table()) in text
    frame = result.frame()
    assert frame["machine"][0] == "base" and len(frame) == len(result.record.machines) > 2
    assert (frame["policies.t3-mca.speedup"] / frame["policies.t3.speedup"]).tolist() == pytest.approx(frame["gain"])
    assert result.failures == []


def test_a_map_of_what_is_not_there_is_a_value_error():
    with pytest.raises(ValueError, match="--axes must be none alone, or name some of"):
        opent3.arbitration_map(["moon"])
    with pytest.raises(ValueError, match="points must be a list of Point"):
        opent3.arbitration_map(["none"], [3])  # type: ignore[list-item]
    assert len(opent3.map_points()) == 12 and len(opent3.map_points(quick=True)) == 8


@pytest.fixture
def nothing_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(many, "Store", lambda: Store(tmp_path / "results"))


@pytest.mark.long
def test_every_result_is_told_once_kept_ones_first(nothing_kept):
    seen: list[opent3.Finished] = []
    machines = opent3.vary({"link.gb_s": [11, 12]})
    opent3.sweep({"link.gb_s=11": machines["link.gb_s=11"]}, [POINT], ["t3-mca"], jobs=1)
    opent3.sweep(machines, [POINT], ["t3-mca", "ideal-overlap"], jobs=1, on_result=seen.append)
    assert [item.kept for item in seen] == [True, True, False, False]
    told = {(item.machine.settings["link.gb_s"], item.record.policy) for item in seen}
    assert told == {(rate, policy) for rate in (11, 12) for policy in ("sequential", "t3-mca")}
    assert {item.record.workload.model for item in seen} == {"t-nlg"}, "not the names under which they are kept"


@pytest.mark.long
def test_what_is_raised_on_a_result_ends_the_work_and_what_is_finished_is_kept(nothing_kept):
    machines = opent3.vary({"link.gb_s": [21, 22]})

    def enough(item: opent3.Finished) -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        opent3.sweep(machines, [POINT], ["t3"], jobs=1, on_result=enough)
    seen: list[bool] = []
    opent3.sweep(machines, [POINT], ["t3"], jobs=1, on_result=lambda item: seen.append(item.kept))
    assert seen.count(True) == 1 and len(seen) == 4
