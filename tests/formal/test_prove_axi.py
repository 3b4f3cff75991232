"""Proofs of the AXI4-Lite port find a seeded mistake."""

from tests.formal.seeded_bugs import expect_failure, in_cell


def test_a_write_that_overtakes_the_response_of_the_one_before_is_found():
    """Seeded: the next write is made while the manager has not taken the last response."""
    expect_failure(
        "axi.writes",
        lambda text: in_cell(
            text, module="top.dut", having=r"connect \A \axi_bvalid [0]", old=r"\axi_bvalid [0]", new="1'0"
        ),
        "the bus gets address, privilege and data of the write, if all bytes are enabled",
    )


def test_the_wrong_turn_is_found():
    """Seeded: when both are there, the one goes first that has just been."""
    expect_failure(
        "axi.reads",
        lambda text: in_cell(text, module="top.dut", having="parameter \\Y_WIDTH 1", old="cell $or ", new="cell $le "),
        "in turns when both are there, writes first after reset",
    )
