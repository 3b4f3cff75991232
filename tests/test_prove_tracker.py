"""Proofs of the tracker and its parts find seeded mistakes."""

import re

import pytest
from seeded_mistakes import expect_violated


def without_forwarding(text):
    """The read port of every table of entries misses a write of the same cycle."""
    return re.sub(r"(TRANSPARENCY_MASK) 1'1", r"\1 1'0", text)


@pytest.mark.slow
def test_a_row_that_is_read_while_it_is_written_is_found():
    """Seeded: the second of two tokens in a row does not see what the first one has counted."""
    expect_violated("tracker.first-cycles", without_forwarding, "bank 0: way 0 of the row that was read")
