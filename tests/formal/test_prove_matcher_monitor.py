"""The proofs of the egress matcher and of the occupancy monitor find seeded mistakes."""

import pytest

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
