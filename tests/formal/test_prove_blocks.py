"""Proofs of queues and code words find seeded mistakes."""

import re

from tests.formal.seeded_bugs import expect_failure, in_cell


def test_a_queue_that_takes_an_item_while_its_head_leaves_is_found():
    """Seeded: ready although both places are taken, because one is about to be free."""
    expect_failure(
        "blocks.queue",
        lambda text: in_cell(text, module="top.dut", having=r"connect \Y \i__ready", old=r"\full", new=r"\keep"),
        "ready means fewer than two entries",
    )


def test_a_word_bit_that_a_check_leaves_out_is_found():
    """Seeded: a data bit takes part in two checks instead of three."""

    def patch(text):
        mask = max(re.findall(r"11'[01]{10}1", text))
        return text.replace(mask, f"{mask[:-1]}0")

    expect_failure("blocks.secded-11", patch, "one wrong bit is reported")
