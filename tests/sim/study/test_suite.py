"""Which runs a table takes: those that are compared are of one kind."""

import pytest
from t3sim.run.ideal import COMPUTED
from t3sim.study.suite import BASELINE, NEEDS, OVERLAPPED, TP_8_16, Suite


@pytest.mark.parametrize("quick", [False, True])
def test_all_that_a_speedup_or_an_ideal_is_computed_from_is_a_ring_or_mirrored(quick):
    suite = Suite(quick=quick)
    sources = {source for both in COMPUTED.values() for source in both}
    for point in TP_8_16:
        kinds = {suite.experiment(point, policy).mirror for policy in (BASELINE, *OVERLAPPED, *sources)}
        assert kinds == {quick or point.tp != 8}, point.title


def test_the_table_of_sublayers_has_the_runs_of_both_ideals():
    policies = {policy for need in NEEDS["sublayers"] for policy in need.policies}
    assert policies == {BASELINE, *OVERLAPPED, "sequential-nmc"}
