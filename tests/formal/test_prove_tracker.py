"""Proofs of the tracker and its parts find seeded mistakes."""

import re

import pytest

from tests.formal.seeded_bugs import expect_failure, in_cell, in_module, substituted


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
        lambda text: substituted(
            r"connect \\A \\\$signal\S* \[0\]\n    connect \\B \\matched \[0\]",
            r"connect \\A 1'1\n    connect \\B \\matched [0]",
            text,
            number=1,
        ),
        "R has the row as it is stored",
    )


def test_a_tile_that_takes_the_place_of_another_is_found():
    """Seeded: a tile that comes while one leaves is put where it would be if none left."""
    expect_failure(
        "event-queue.in-order",
        lambda text: in_cell(text, module="top.dut", having=r"connect \A \level [1:0]", old="2'10", new="2'01"),
        "a tile waits at its place, as it came",
    )


def test_a_sum_that_begins_with_what_was_collected_is_found():
    """Seeded: a sum that is not pending is not 0."""
    expect_failure(
        "pending-lines.conserve",
        lambda text: substituted(
            r"connect \\S \S+ \[0\]\n    connect \\A (\{ \S+ \\lines )",
            r"connect \\S 1'1\n    connect \\A \1",
            text,
            number=1,
        ),
        "the sum is what was added and not collected",
    )


def test_lines_of_a_slot_without_a_chunk_that_are_counted_are_found():
    """Seeded: lines are added whether their slot is valid or not, so they may be counted for its next chunk."""
    expect_failure(
        "pending-lines.conserve",
        lambda text: in_cell(text, module="top.dut", having=r"connect \Y $3", old=r"\live [1:0]", new="2'11"),
        "the sum is what was added and not collected",
        "it is not after it was collected",
    )


def test_a_slot_that_is_collected_twice_in_a_row_is_found():
    """Seeded: the slot that is being collected may be the next one to be chosen, though nothing is left of it."""
    inverter_of_chosen = r"(cell \$not \S+\n(?:    parameter [^\n]*\n)*    connect \\A )\$2 \[1:0\]"
    expect_failure(
        "event-turns.in-time",
        lambda text: in_module(text, "top.dut", lambda body: re.sub(inverter_of_chosen, r"\g<1>2'00", body)),
        "a slot that is chosen is pending",
    )


def test_a_slot_that_waits_for_ever_is_found():
    """Seeded: the slots' turn never moves, so the lowest pending one is always preferred."""
    expect_failure(
        "event-turns.in-time",
        lambda text: in_module(text, "top.dut.slots", lambda body: body.replace(r"\take [0]", "1'0")),
        "others before it take their time",
        "it is chosen after all others",
        "the slots' turn counts those before",
        size="3 slots, 2 banks",
    )


def test_a_chunk_that_is_done_with_too_many_lines_is_found():
    """Seeded: done when the lines are at least what is left."""
    expect_failure(
        "chunk-counters.done-once",
        lambda text: re.sub(r"cell \$eq (\S+)((?:\n    [^\n]*)*\n    connect \\B \\event\b)", r"cell $ge \1\2", text),
        "a chunk is done once, with the line that makes all",
    )
