"""Proofs of the linked parts find a seeded mistake."""

import re

import pytest

from tests.formal.seeded_bugs import expect_failure


@pytest.mark.slow
def test_an_update_that_is_counted_before_the_memory_takes_it_is_found():
    """Seeded: the slice counts an update in every cycle in which it offers it."""

    def patch(text):
        return re.sub(r"(connect \\A \$\d+ \[0\]\n    connect \\B) \\dram__ready \[0\]", r"\1 1'1", text)

    expect_failure("linked.read-after-count", patch, "no command before the last of them")
