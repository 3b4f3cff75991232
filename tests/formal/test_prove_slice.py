"""The proofs of the memory slice find seeded mistakes."""

import re

import pytest

from tests.formal.seeded_bugs import expect_failure, in_cell

pytestmark = pytest.mark.long  # seconds for each mistake; `make test` has the proofs themselves


def test_a_token_queue_that_is_full_by_one_is_found():
    """Seeded: a tracked head may go while taken and reserved places are as many as there are."""
    expect_failure(
        "slice.reserves-tokens",
        lambda text: in_cell(
            text, module="top.dut", having=r"connect \A \none_left [0]", old=r"\none_left [0]", new="1'0"
        ),
        "compute_write waits for a place for its token, and only if it is tracked",
        "comm_write waits for a place for its token, and only if it is tracked",
    )


def test_a_starvation_limit_that_is_one_cycle_late_is_found():
    """Seeded: communication goes when it has waited for longer than the limit, not for the limit."""
    limit = r"cell \$ge (\S+\n(?:    .*\n)*?    connect \\B \\deadline \[47:0\]\n)"

    def patch(text):
        others, head, arbiter = text.partition("\nmodule \\top.dut.arbiter\n")
        return others + head + re.sub(limit, r"cell $gt \1", arbiter)

    expect_failure("slice.keeps-to-limit", patch, "its end is the slice's")


def test_a_threshold_that_holds_again_though_compute_stays_away_is_found():
    """Seeded: it does not hold for the one burst with which communication has been alone for long enough."""
    expect_failure(
        "slice.keeps-to-limit",
        lambda text: in_cell(text, module="top.dut.arbiter", having=r"connect \A \alone ", old="$ge ", new="$eq "),
        "it goes below its limit when compute has nothing",
    )


def test_an_absence_of_compute_that_is_taken_for_granted_is_found():
    """Seeded: the count of lines without compute is at its end with the first of them."""
    expect_failure(
        "slice.keeps-to-limit",
        lambda text: in_cell(text, module="top.dut.arbiter", having=r"connect \A \alone_total", old="$gt ", new="$lt "),
        "the count is the slice's",
    )
