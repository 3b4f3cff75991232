"""Proofs of the registers find a seeded mistake."""

from seeded_mistakes import expect_violated, in_cell


def test_a_first_descriptor_that_is_not_locked_is_found():
    """Seeded: the window of an active context begins behind its first descriptor."""
    expect_violated(
        "registers.rules",
        lambda text: in_cell(
            text, module="top.dut.locks", having=r"connect \A \window_0 [6:0]", old="cell $le ", new="cell $lt "
        ),
        "locked configuration does not change",
    )
