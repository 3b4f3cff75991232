"""``opent3.sweep`` and what it is given."""

import numpy as np
import opent3
import pytest
from opent3 import many
from t3sim.run.request import CAUSES
from t3sim.study.store import Store

from tests.support.toy_evaluation import toy_suite

POINTS = [opent3.Point(model="t-nlg", sublayer=name, tp=8) for name in ("op", "fc2")]


@pytest.mark.long
def test_a_sweep_has_a_row_for_each_run(monkeypatch, tmp_path):
    monkeypatch.setattr(many, "Suite", lambda **choices: toy_suite(monkeypatch, **choices))
    monkeypatch.setattr(many, "Store", lambda: Store(tmp_path / "results"))  # in which nothing has run yet
    seen = []
    machines = opent3.vary({"link.gb_s": [10, 20]})
    out = tmp_path / "out"
    result = opent3.sweep(machines, POINTS, ["t3-mca"], machine="toy", jobs=1, on_status=seen.append, out=out)
    frame = result.frame()
    assert list(frame["variant"]) == ["link.gb_s=10"] * 4 + ["link.gb_s=20"] * 4
    assert list(frame["policy"]) == ["sequential", "t3-mca"] * 4
    times = frame["time_ns.total"]
    assert list(frame["speedup"][1::2]) == [times[i] / times[i + 1] for i in range(0, 8, 2)]
    means = result.geomean_frame()
    assert means["speedups.t3-mca"][0] == pytest.approx((frame["speedup"][1] * frame["speedup"][3]) ** 0.5)
    assert seen[-1].done == seen[-1].total
    assert result.failures == []
    assert type(result.record).model_validate_json((out / "sweep.json").read_bytes()) == result.record
    assert type(result.traffic).model_validate_json((out / "traffic.json").read_bytes()) == result.traffic
    curves = result.traffic_frame().groupby(["variant", "sublayer", "policy"])[list(CAUSES)].sum().sum(axis=1)
    totals = frame.set_index(["variant", "workload.sublayer", "policy"])["traffic_bytes_per_gpu.total"]
    assert curves.sort_index().tolist() == pytest.approx(totals.sort_index().tolist(), rel=1e-3), "all of one GPU"


def test_the_machine_as_it_is_alone_is_a_sweep(monkeypatch, tmp_path):
    """Nothing is changed one at a time."""
    monkeypatch.setattr(many, "Suite", lambda **choices: toy_suite(monkeypatch, **choices))
    out = tmp_path / "out"
    opent3.sweep({"base": opent3.assumptions()["base"]}, POINTS[:1], ["t3"], machine="toy", jobs=1, out=out)
    names = {path.name for path in out.iterdir()}
    assert {"sweep.json", "sweep.png"} <= names and "sensitivity.json" not in names


def test_machines_are_all_combinations():
    machines = opent3.vary({"link.gb_s": [75, 150.5], "dma.block": ["tile"], "gpu.tiles": [[[64, 64]]]})
    assert list(machines) == [
        "link.gb_s=75, dma.block=tile, gpu.tiles=[[64, 64]]",
        "link.gb_s=150.5, dma.block=tile, gpu.tiles=[[64, 64]]",
    ]
    settings = machines["link.gb_s=75, dma.block=tile, gpu.tiles=[[64, 64]]"].settings
    assert settings == {"link.gb_s": 75, "dma.block": "tile", "gpu.tiles": [[64, 64]]}


def test_assumptions_begin_with_the_machine_as_it_is():
    assert list(opent3.assumptions(["link-75"])) == ["base", "link-75"]
    with pytest.raises(ValueError, match="must name some of"):
        opent3.assumptions(["nothing"])


def test_a_sweep_of_too_many_machines_or_an_illegal_value_is_refused():
    with pytest.raises(ValueError, match="makes 300 machines; at most 256"):
        opent3.vary({"gpu.cus": list(range(1, 301))})
    with pytest.raises(ValueError, match=r"gpu\.cus"):
        opent3.sweep(opent3.vary({"gpu.cus": [0]}), POINTS, machine="toy")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at least one machine value"),
        ({"link.gb_s": []}, "different values, at least one"),
        ({"link.gb_s": [10, 10]}, "different values"),
        ({"link.gb_s": [10, "10"]}, "different values"),
        ({"link.gb_s": "10"}, "must have a list of values"),
        ({"link.gb_s": 10}, "must have a list of values"),
        ({f"gpu.k{i}": list(range(10)) for i in range(30)}, "at most 256"),
    ],
)
def test_values_that_make_no_machines_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        opent3.vary(values)


def test_a_sweep_may_be_over_machine_files(tmp_path):
    mine = opent3.new_machine(tmp_path / "mine", "toy")
    found = opent3.on_machines(["toy", mine])
    assert {name: variant.machine for name, variant in found.items()} == {"toy": "toy", str(mine): str(mine)}
    for names, message in (
        (["toy", "toy"], "each machine once"),
        (["nope"], "machine must be one of"),
        ("toy", "list"),
    ):
        with pytest.raises(ValueError, match=message):
            opent3.on_machines(names)


def test_values_of_numpy_are_numbers():
    assert opent3.vary({"link.gb_s": np.arange(10, 30, 10)})["link.gb_s=20"].settings == {"link.gb_s": 20}


MACHINES = opent3.vary({"link.gb_s": [10]})


@pytest.mark.parametrize(
    ("machines", "points", "policies", "message"),
    [
        ({}, POINTS, ["t3"], "at least one machine, and has none: name one"),
        (MACHINES, [], ["t3"], "at least one point, and has none: name one"),
        (MACHINES, POINTS, [], "at least one policy, and has none: name one"),
        (MACHINES, POINTS * 2, ["t3"], "each point once, and t-nlg op TP 8 comes again: leave it out"),
        (MACHINES, POINTS, ["t3", "t3-mca", "t3"], "each policy once, and t3 comes again: leave it out"),
    ],
)
def test_an_empty_or_doubled_sweep_is_refused(machines, points, policies, message):
    with pytest.raises(ValueError, match=f"^a sweep must have {message}$"):
        opent3.sweep(machines, points, policies, machine="toy")


@pytest.mark.parametrize("sublayer", ["1x2", "512x256x1024x2", "512x256x", "axbxc", "-512x256x1024", "fc2", ""])
def test_a_gemm_that_is_not_named_by_its_three_sizes_is_refused(sublayer):
    with pytest.raises(
        ValueError,
        match=f"the sublayer of model custom must be M, N and K in elements, as 512x256x1024, not '{sublayer}': "
        r"make the point with custom_point\(m, n, k, tp\)$",
    ):
        opent3.sweep(MACHINES, [opent3.Point(model="custom", sublayer=sublayer, tp=4)], ["t3"], machine="toy")


def test_no_jobs_are_refused():
    with pytest.raises(ValueError, match="jobs must be at least 1, not 0"):
        opent3.sweep(opent3.vary({"link.gb_s": [10]}), POINTS, machine="toy", jobs=0)
