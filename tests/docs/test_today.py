"""The page of today's machines: its figures are those of the kept sweep, and the sweep that of today's simulator."""

import opent3
import pytest
from t3sim.run.records import read_record
from t3sim.study.sweep import SweepRecord

from docs.pages import today

KEPT = read_record(today.KEPT, SweepRecord)


def test_every_machine_of_today_is_there_with_its_values():
    assert [variant.name for variant in KEPT.variants] == list(today.MACHINES) and len(today.MACHINES) >= 5
    for variant in KEPT.variants:
        machine = opent3.load_machine(variant.name)
        assert all(
            run.result.provenance.machine == type(run.result.provenance).of(machine).machine for run in variant.runs
        ), f"{variant.name} has other values now: python -m docs.pages.today"
    assert KEPT.failures == []


def test_the_page_has_the_figures_of_the_sweep():
    lines = [line.strip("|").split("|") for line in today.text(KEPT, today.KEPT).splitlines() if line.startswith("|")]
    table = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}
    assert table[""] == [f"`{variant.name}`" for variant in KEPT.variants]
    for column, variant in enumerate(KEPT.variants):
        runs = {run.result.policy: run.result for run in variant.runs}
        for policy, result in runs.items():
            assert table[f"`{policy}`"][column] == f"{result.time_ns.total / 1e3:.0f}"
        assert table["GEMM"][column] == f"{runs['sequential'].time_ns.gemm / 1e3:.0f}"
        gains = [run.speedup for run in variant.runs if run.result.policy in ("t3", "t3-mca")]
        assert float(table["best speedup"][column]) == pytest.approx(max(gains), abs=1e-3)
        assert 0 < float(table["of the matrix rate"][column].removesuffix(" %")) <= 100


@pytest.mark.long
def test_a_machine_of_today_gives_today_what_is_kept():
    (name, *_) = sorted(today.MACHINES, key=lambda name: name != "b200-like")
    now = opent3.sweep(opent3.on_machines([name]), [opent3.custom_point(**today.SIZE)], today.POLICIES).record
    kept = next(variant for variant in KEPT.variants if variant.name == name)
    times = [{run.result.policy: run.result.time_ns.total for run in item.runs} for item in (now.variants[0], kept)]
    assert times[0] == times[1], "after a change of the simulator: python -m docs.pages.today"
