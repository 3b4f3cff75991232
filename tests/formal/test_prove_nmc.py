"""Proofs of the near-memory unit find a seeded mistake."""

from tests.formal.seeded_bugs import expect_failure, in_cell


def test_two_updates_of_one_line_in_consecutive_cycles_are_found():
    """Seeded: what comes is compared with line 0 and not with the queue's head, so it reads the line too early."""
    head, zero = r"\B \head [38:0]", rf"\B 39'{0:039b}"
    expect_failure(
        "nmc.atomic",
        lambda text: in_cell(text, module="top.dut.interlock", having=r"connect \A \line [38:0]", old=head, new=zero),
        "the old line is what the memory holds until the write",
    )
