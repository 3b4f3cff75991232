"""The proofs of the egress matcher and of the occupancy monitor find seeded mistakes."""

import pytest
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task

from tests.formal.seeded_bugs import expect_failure, in_cell

pytestmark = pytest.mark.long  # seconds for each mistake; `make test` has the proofs themselves


def test_a_range_that_is_one_line_too_long_is_found():
    """Seeded: the line after the last one of a range is taken for one of it."""
    expect_failure(
        "matcher.routes",
        lambda text: in_cell(text, module="top.dut", having=r"connect \B \ranges__0 [77:39]", old="$lt ", new="$le "),
        "the chosen item is matched",
    )


def test_a_monitor_that_does_not_wait_for_the_last_grants_is_found():
    """Seeded: it settles for three cycles instead of four."""
    expect_failure(
        "monitor.chooses",
        lambda text: in_cell(text, module="top.dut", having=r"connect \A \settle [1:0]", old="2'11", new="2'10"),
        "its state follows the cycles",
    )


def test_a_patience_that_is_one_cycle_too_long_is_not_proven_away():
    """Seeded: blocks are late when they have waited for longer than they may. From reset it takes longer than a search
    goes; it is no longer proven."""
    (proof,) = chosen_proofs(("monitor.chooses",))
    verdict = check(
        Task(proof=proof, size="1 slice"),
        patch=lambda text: in_cell(
            text, module="top.dut", having=r"connect \B \deadline [47:0]", old="$ge ", new="$gt "
        ),
        covers=False,
    )
    assert verdict.outcome == "not inductive"
    assert "it is late when they have waited too long" in verdict.counterexample.claims
