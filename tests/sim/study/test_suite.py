"""Which runs a table takes: those that are compared are of one kind."""

from typing import get_args

import pytest
from opent3.studies import _by_the_published_rule
from t3sim.inputs.machine.files import load_machine
from t3sim.run.ideal import COMPUTED
from t3sim.study.suite import (
    BASELINE,
    FULL_RING,
    FULL_VARIANTS,
    NEEDS,
    OVERLAPPED,
    TABLES,
    TP_8_16,
    Suite,
    Variant,
)


@pytest.mark.parametrize("quick", [False, True])
def test_all_that_a_speedup_or_an_ideal_is_computed_from_is_a_ring_or_mirrored(quick):
    suite = Suite(quick=quick)
    sources = {source for both in COMPUTED.values() for source in both}
    for point in TP_8_16:
        kinds = {suite.experiment(point, policy).mirror for policy in (BASELINE, *OVERLAPPED, *sources)}
        assert kinds == {quick or point.tp != 8}, point.title


def test_only_policies_that_track_run_on_the_asked_hardware():
    suite = Suite(hardware="rtl")
    asked = {policy: suite.experiment(TP_8_16[0], policy).hardware for policy in (*FULL_RING, "sequential-pipelined")}
    assert {policy for policy, hardware in asked.items() if hardware == "rtl"} == set(OVERLAPPED)


def test_the_table_of_sublayers_has_the_runs_of_both_ideals():
    policies = {policy for need in NEEDS["sublayers"] for policy in need.policies}
    assert policies == {BASELINE, *OVERLAPPED, "sequential-nmc"}


def test_published_numbers_are_of_the_paper_s_rule_and_ours_stands_beside_them():
    settings = _by_the_published_rule({})
    suite = Suite(settings=settings)
    rules = {variant: suite.machine_of(variant).arbiter.mca for variant in get_args(Variant)}
    assert rules == {"base": "paper", "fit": "paper", "cus": "paper", "backlog": "backlog"}
    for table in ("sublayers", "mca", "traffic", "tp32", "end-to-end"):
        both = {need.machine: need.points for need in NEEDS[table] if "t3-mca" in need.policies}
        assert set(both["backlog"]) <= {point for need in NEEDS[table] for point in need.points}, table


@pytest.mark.parametrize(
    ("machine", "settings", "cus", "kernel_cus"),
    [("h100-like", {}, 264, 264), ("paper", {}, 160, 160), ("paper", {"gpu.cus": 100, "kernel.cus": 50}, 200, 100)],
)
def test_twice_the_cus_are_twice_those_of_the_machine(machine, settings, cus, kernel_cus):
    found = Suite(machine=machine, settings=settings).machine_of("cus")
    assert (found.gpu.cus, found.kernel.cus) == (cus, kernel_cus)
    assert found.settings == {"gpu.cus": cus, "kernel.cus": kernel_cus}, "as records have them"


def test_only_t3_mca_is_simulated_anew_for_our_rule():
    suite = Suite(settings=_by_the_published_rule({}))
    point = TP_8_16[0]
    keys = {policy: {suite.experiment(point, policy, variant).key for variant in FULL_VARIANTS} for policy in FULL_RING}
    assert {policy: len(found) for policy, found in keys.items()} == dict.fromkeys(FULL_RING, 1) | {"t3-mca": 2}


def test_another_rule_for_the_published_numbers_is_refused():
    with pytest.raises(ValueError, match=r"--set arbiter\.mca must be paper here, not backlog"):
        _by_the_published_rule({"arbiter.mca": "backlog"})
    legal = {"arbiter.mca": "paper", "link.gb_s": 75}
    assert _by_the_published_rule(legal) == legal


def test_the_machine_of_accel_sim_has_the_paper_s_rule():
    assert load_machine("paper-accelsim").arbiter.mca == "paper"
    assert len(Suite(machine="paper-accelsim", settings=_by_the_published_rule({})).experiments(TABLES)) > 150
