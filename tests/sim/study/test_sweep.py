"""``t3 sweep``: combinations of machine values, the named assumptions, and what is written of them."""

import pytest
from click.testing import CliRunner
from opent3 import many
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST
from t3sim.inputs.machine.files import load_machine
from t3sim.run.provenance import Provenance
from t3sim.study.suite import Suite, sweep_points
from t3sim.study.sweep import BASE, Sweep, SweepRecord, Variant, assumptions, axes_of, chosen_assumptions, product_of
from t3sim.study.traffic_record import TrafficRecord

from tests.support.toy_evaluation import toy_suite

TOY = ("--machine", "toy", "--models", "t-nlg", "--sublayers", "op,fc2", "--tp", "8")


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setattr(many, "Suite", lambda **choices: toy_suite(monkeypatch, **choices))


def t3(*arguments: str):
    return CliRunner().invoke(cli.main, ["sweep", *arguments])


@pytest.mark.long
def test_a_sweep_writes_every_combination(toys, tmp_path):
    out = tmp_path / "out"
    result = t3(*TOY, "--vary", "link.gb_s=10,20", "--vary", "hbm.refresh=true,false", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == {
        "config.toml", "sweep.json", "sweep.png", "sweep.svg", "traffic.json", MANIFEST,
    }  # fmt: skip
    first = load_machine("toy", {"link.gb_s": 10, "hbm.refresh": True})
    assert Provenance.of(load_machine(out / "config.toml")).machine == Provenance.of(first).machine
    record = SweepRecord.model_validate_json((out / "sweep.json").read_bytes())
    assert [item.settings for item in record.variants] == [
        {"link.gb_s": gb_s, "hbm.refresh": refresh} for gb_s in (10, 20) for refresh in (True, False)
    ]
    assert record.failures == []
    slow, fast = record.variants[0], record.variants[2]
    assert len(slow.runs) == 2 * 4, "two sublayers under sequential and the three policies"
    times = [sum(run.result.time_ns.all_gather for run in item.runs) for item in (slow, fast)]
    assert times[0] > 1.2 * times[1]
    assert fast.changes["t3"] == pytest.approx(100 * (fast.geomeans.speedups["t3"] / slow.geomeans.speedups["t3"] - 1))
    assert all(change == 0 for change in slow.changes.values())
    for item in record.variants:
        assert item.name in result.stdout


@pytest.mark.long
def test_a_sweep_over_the_hardware(toys, tmp_path):
    """A tracker without room for what is in flight sends chunks as a whole, later."""
    out = tmp_path / "out"
    toy = ("--machine", "toy", "--models", "t-nlg", "--sublayers", "op", "--tp", "8", "--policies", "t3")
    result = t3(*toy, "--set", "dma.block=tile", "--vary", "hardware.tracker_ways=1,16", "--out", str(out))
    assert result.exit_code == 0, result.output
    record = SweepRecord.model_validate_json((out / "sweep.json").read_bytes())
    assert [item.settings for item in record.variants] == [{"hardware.tracker_ways": ways} for ways in (1, 16)]
    late, prompt = ([run.result for run in item.runs if run.result.policy == "t3"] for item in record.variants)
    assert late[0].provenance.hardware != prompt[0].provenance.hardware
    assert sum(run.blocks.by_chunk for run in late) > sum(run.blocks.by_chunk for run in prompt) == 0


@pytest.mark.long
def test_assumptions_are_held_against_the_base(toys, tmp_path):
    out = tmp_path / "out"
    result = t3(*TOY, "--assumptions", "--variants", "link-75,block-tile", "--out", str(out))
    assert result.exit_code == 0, result.output
    pictures = {f"sensitivity.{kind}" for kind in ("png", "svg")}
    assert {path.name for path in out.iterdir()} == {
        "config.toml",
        "sensitivity.json",
        "traffic.json",
        *pictures,
        MANIFEST,
    }
    record = SweepRecord.model_validate_json((out / "sensitivity.json").read_bytes())
    assert [item.name for item in record.variants] == [BASE, "link-75", "block-tile"]
    assert set(record.variants[1].changes) == {"ideal-overlap", "t3", "t3-mca", "gemm_reads", "data_movement"}
    block = record.variants[2]
    assert block.changes["ideal-overlap"] == 0, "the trigger's block does not concern the sequential run"
    traffic = TrafficRecord.model_validate_json((out / "traffic.json").read_bytes())
    curves = {(run.machine, run.policy, run.workload.sublayer): run.curve for run in traffic.runs}
    assert curves["block-tile", "sequential", "op"] == curves[BASE, "sequential", "op"], "one simulation, one curve"
    assert len({curves[item.name, "t3-mca", "op"] for item in record.variants}) == 3
    assert len(traffic.curves) == len(set(curves.values())) < len(traffic.runs)
    assert assumptions()["link-75"].why in " ".join(result.stdout.split())


@pytest.mark.parametrize("name", assumptions())
def test_every_assumption_is_a_change_of_the_paper_machine(name):
    variant = assumptions()[name]
    assert variant.why.endswith(".")
    base, changed = load_machine("paper"), load_machine(variant.machine or "paper", variant.settings)
    assert base.model_dump(exclude={"name", "sources"}) != changed.model_dump(exclude={"name", "sources"})


def test_assumptions_that_a_policy_cannot_see_cost_no_run():
    point = sweep_points(("t-nlg",), ("8",), ("op",))

    def experiments(names: list[str]) -> int:
        work = Sweep(suite=Suite(), variants=chosen_assumptions(names), points=point, policies=("t3", "t3-mca"))
        return len(work.experiments())

    assert experiments(["threshold-5"]) == 3 + 1, "the base, and t3-mca once more"
    assert experiments(["link-75"]) == 3 + 3


def test_values_are_read_as_on_the_command_line():
    found = product_of(axes_of(["link.gb_s=75,150.5", "dma.block=tile,chunk"]))
    assert list(found) == [
        "link.gb_s=75, dma.block=tile",
        "link.gb_s=75, dma.block=chunk",
        "link.gb_s=150.5, dma.block=tile",
        "link.gb_s=150.5, dma.block=chunk",
    ]
    tiles = product_of(axes_of(["gpu.tiles=[[64, 64]],[[128, 64]]"]))
    assert list(tiles) == ["gpu.tiles=[[64, 64]]", "gpu.tiles=[[128, 64]]"]
    assert product_of(axes_of(["hbm.refresh =true"]))["hbm.refresh=true"].settings == {"hbm.refresh": True}
    assert found["link.gb_s=75, dma.block=tile"] == Variant(settings={"link.gb_s": 75, "dma.block": "tile"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --vary KEY=V1,V2 (repeatable) or --assumptions"),
        (("--vary", "link.gb_s=75", "--assumptions"), "give either --vary"),
        (("--variants", "link"), "--variants must name some of link-75, "),
        (("--vary", "link.gb_s"), "--vary must have the form section.key=value,value"),
        (("--vary", "link.gb_s="), "--vary must have the form section.key=value,value"),
        (("--vary", "link.gb_s=75,75"), "--vary must have the form section.key=value,value"),
        (("--vary", "link.gb_s=75", "--vary", "link.gb_s=80"), "--vary must name each key once"),
        (("--vary", "link.gbs=75"), "unknown key link.gbs; did you mean 'gb_s'?"),
        (("--vary", "gpu.cus=0"), "gpu.cus"),
        (
            ("--vary", "link.gb_s=5,9", "--machine", "toy"),
            "op TP 8 on machine toy with link.gb_s=5: a chunk",
        ),
        (("--variants", "link-75", "--machine", "toy"), "mega-gpt-2 op TP 8 on machine toy: a chunk"),
        (("--vary", "hardware.tracker_bank=4,8"), "unknown key hardware.tracker_bank; did you mean 'tracker_banks'?"),
        (("--vary", "hardware.tracker_banks=4,9"), "hardware.tracker_banks: input should be less than or equal to 8"),
        (("--vary", "hardware.tracker_banks=4,6"), "tracker_banks must be a power of two, not 6"),
        (("--vary", "gpu.cus=80,2026-11-23"), "gpu.cus"),
        (("--vary", "gpu.cus=12:00:00"), "gpu.cus"),
        (("--vary", "link.gb_s=75,inf"), "link.gb_s: input should be a finite number (given: inf)"),
        (("--vary", f"gpu.cus={'[' * 2000}"), "--vary must not nest lists so deeply"),
        (("--vary", "gpu.cus=" + ",".join(map(str, range(1, 300)))), "makes 299 machines; at most 256"),
        (("--vary", "link.gb_s=75", "--tp", "8,x"), "--tp must be numbers of GPUs"),
        (("--vary", "link.gb_s=75", "--models", ""), "choose at least one model"),
        (("--vary", "link.gb_s=75", "--models", "t-nlg,t-nlg"), "--models must name each once"),
        (("--vary", "link.gb_s=75", "--models", "tnlg"), "did you mean 't-nlg'?"),
        (("--vary", "link.gb_s=75", "--policies", "t4"), "policy must be one of sequential"),
        (("--vary", "link.gb_s=75", "--out", "tests"), "--out must be a new folder"),
    ],
)
def test_errors_are_one_message(arguments, message):
    result = t3(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
