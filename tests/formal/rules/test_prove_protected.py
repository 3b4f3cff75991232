"""Proofs of protected parts whose bits are hit find seeded mistakes."""

from dataclasses import replace

from amaranth.hdl import Const
from t3hdl.common.secded import decode

from tests.formal.seeded_bugs import expect_failure


def test_an_entry_of_the_token_queue_that_leaves_although_it_is_lost_is_found(monkeypatch):
    """Seeded: the token queue does not look whether its oldest entry can be corrected."""

    def careless(m, stored, width):
        return replace(decode(m, stored, width), uncorrectable=Const(0, 1))

    monkeypatch.setattr("t3hdl.slice.token_queue.decode", careless)
    expect_failure(
        "token-queue.entries-hit-twice",
        None,
        "no token of a tile that was never pushed",
        "no line leaves that did not come",
        "lines are lost only with a report",
    )


def test_an_event_that_leaves_with_its_wrong_bit_is_found(monkeypatch):
    """Seeded: the event queue finds a wrong bit, says so, and gives the word as it is stored."""

    def uncorrected(m, stored, width):
        return replace(decode(m, stored, width), word=stored[:width])

    monkeypatch.setattr("t3hdl.tracker.event_queue.decode", uncorrected)
    expect_failure(
        "event-queue.entries-hit-once",
        None,
        "no tile of a slot that was never pushed",
        "one wrong bit loses no line",
        "no line leaves that did not come",
    )


def test_a_memory_that_does_not_correct_is_found(monkeypatch):
    """Seeded: likewise of a table."""

    def uncorrected(m, stored, width):
        return replace(decode(m, stored, width), word=stored[:width])

    monkeypatch.setattr("t3hdl.common.ram.decode", uncorrected)
    expect_failure("blocks.memory-hit-once", None, "one wrong bit is corrected")
