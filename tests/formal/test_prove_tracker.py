"""Proofs of the tracker and its parts find seeded mistakes."""

import re

import pytest

from tests.formal.seeded_bugs import expect_failure


def without_forwarding(text):
    """The read port of every table of entries misses a write of the same cycle."""
    return re.sub(r"(TRANSPARENCY_MASK) 1'1", r"\1 1'0", text)


@pytest.mark.slow
def test_a_row_that_is_read_while_it_is_written_is_found():
    """Seeded: the second of two tokens in a row does not see what the first one has counted."""
    row = ("bank 0: way 0 of the row that was read", "bank 0: marks of the row that was read")
    expect_failure("tracker.as-naive", without_forwarding, *row)


@pytest.mark.slow
def test_a_row_that_changes_while_its_token_is_stalled_is_found():
    """Seeded: the row of the token behind is read although nothing moves on."""
    expect_failure(
        "tracker-bank.conserves",
        lambda text: text.replace(
            "connect \\A \\$signal [0]\n    connect \\B \\matched [0]", "connect \\A 1'1\n    connect \\B \\matched [0]"
        ),
        "R has the row as it is stored",
    )


def test_lines_that_are_added_to_an_event_that_leaves_are_found():
    """Seeded: the oldest event takes lines also in the cycle in which it leaves."""
    expect_failure(
        "event-queue.conserves",
        lambda text: text.replace(r"\fits_1 [0] 1'0 }", r"\fits_1 [0] \fits_0 [0] }"),
        "lines of a slot are in the queue or have left it",
    )


def test_a_chunk_that_is_done_with_too_many_lines_is_found():
    """Seeded: done when the lines are at least what is left."""
    expect_failure(
        "chunk-counters.done-once",
        lambda text: re.sub(r"cell \$eq (\S+)((?:\n    [^\n]*)*\n    connect \\B \\event\b)", r"cell $ge \1\2", text),
        "a chunk is done once, with the line that makes all",
    )
