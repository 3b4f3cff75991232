"""Proofs of the near-memory unit find a seeded mistake."""

from seeded_mistakes import expect_violated, in_cell


def test_two_updates_of_one_line_in_consecutive_cycles_are_found():
    """Seeded: the request that was issued a cycle ago is not compared, so the next one reads the line too early."""
    expect_violated(
        "nmc.atomic",
        lambda text: in_cell(text, module="top.dut", having=r"connect \A \flight_0 [38:0]", old="_0 [", new="_1 ["),
        "the old line is what the memory holds until the write",
    )
