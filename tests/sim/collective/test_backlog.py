"""The rule of the backlog, on figures that are worked out by hand."""

from dataclasses import replace

import pytest
from t3sim.collective.backlog import Backlog

RULE = Backlog(gpus=8, gemm_ns=400.0, stages=4, ring_ns=200.0, block_ns=10.0, stage_ns=50.0, stage_blocks=5)
"""300 ns of GEMM after the first stage are 100 more than the link takes, which is twice what a stage takes it."""


def test_communication_may_wait_if_it_has_the_time():
    assert RULE.slack_ns == RULE.patience_ns == 100.0
    assert RULE.communication_may_wait


@pytest.mark.parametrize(
    "other",
    [
        {"ring_ns": 201.0},
        {"stage_ns": 51.0},
        {"stages": 3},  # 267 ns are left after the first
        {"stages": 1},
        {"gpus": 2},  # all communication is stores of the neighbour's GEMM
    ],
    ids=str,
)
def test_and_may_not_with_less(other):
    assert not replace(RULE, **other).communication_may_wait


def test_a_single_stage_leaves_nothing():
    """However long the GEMM: what it stores comes at its end."""
    assert replace(RULE, stages=1, gemm_ns=1e6).slack_ns == -200.0
