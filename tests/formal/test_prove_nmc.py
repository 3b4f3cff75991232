"""Proofs of the near-memory unit find seeded mistakes."""

from math import floor

import pytest

from tests.formal.seeded_bugs import expect_failure, in_cell, in_module


def test_two_updates_of_one_line_in_consecutive_cycles_are_found():
    """Seeded: what comes is compared with line 0 and not with the queue's head, so it reads the line too early."""
    head, zero = r"\B \head [38:0]", rf"\B 39'{0:039b}"
    expect_failure(
        "nmc.atomic",
        lambda text: in_cell(text, module="top.dut.interlock", having=r"connect \A \line [38:0]", old=head, new=zero),
        "the old line is what the memory holds until the write",
    )


@pytest.mark.parametrize("name", ["nmc.atomic", "nmc.keeps-items"])
def test_one_flight_too_few_is_found(monkeypatch, name):
    """Seeded: latency // beats flights, rounded down, so with several beats a request is lost before its write."""
    monkeypatch.setattr("t3hdl.nmc.nmc.ceil", floor)
    expect_failure(
        name,
        None,
        "the old line is what the memory holds until the write",
        "the write goes to the line of the request",
        "the ALU gets its operation and operand",
        size="8 lanes",
    )


def test_a_line_that_comes_while_the_alu_is_busy_is_found():
    """Seeded: the unit looks at two of the three cycles in which the ALU takes no line."""

    def shorter(body):
        looked_at = r"parameter \A_WIDTH {}", r"    parameter \Y_WIDTH 1", r"    connect \A \issued [{}:0]"
        three, two = ("\n".join(looked_at).format(width, width - 1) for width in (3, 2))
        assert body.count(three) == 1
        return body.replace(three, two)

    expect_failure(
        "nmc.answers",
        lambda text: in_module(text, "top.dut", shorter),
        "a line comes when the ALU takes one again",
        size="4 lanes",
    )
