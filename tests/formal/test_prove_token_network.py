"""The proofs of the token network find seeded mistakes."""

import re

import pytest

from tests.formal.seeded_bugs import expect_failure, in_cell

pytestmark = pytest.mark.long  # seconds for each mistake; `make test` has the proofs themselves


def test_a_merge_that_ignores_a_large_count_is_found():
    """Seeded: tokens are added although `back` has the top bit of its count, so that their sum may not fit."""
    expect_failure(
        "token-network.takes-turns",
        lambda text: in_cell(
            text, module="top.dut.output_0", having=r"connect \A \back [51]", old=r"\back [51]", new="1'0"
        ),
        "output_0 takes a token without room only into one of its tile",
    )


def test_a_token_that_stays_behind_after_it_moved_is_found():
    """Seeded: `back` moves to `front` and is not emptied."""
    before = r"(assign (\$\d+) \[0\] \\back_valid \[0\]\n    switch \\moving \[0\]\n      case 1'1\n)"
    emptied = before + r"        assign \2 \[0\] 1'0\n"
    expect_failure(
        "token-network.conserves",
        lambda text: re.sub(emptied, r"\1", text),
        "root_0.output_0 holds what was moved there and not moved on",
    )
