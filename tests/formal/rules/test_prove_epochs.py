"""The proofs of epochs, pending accesses and aborts find seeded mistakes in a slice and in the egress matcher."""

import re
from dataclasses import replace
from functools import partial

import pytest
from t3hdl.common.range_table import find_range
from t3hdl.egress import matcher
from t3hdl.slice import slice as memory_slice

from tests.formal.seeded_bugs import expect_failure, in_module, substituted

pytestmark = pytest.mark.long  # seconds for each mistake; `make test` has the proofs themselves


def every_epoch_is_live(m, ranges, request, **parameters):
    """As ``find_range``, but without a look at the epoch."""
    found = find_range(m, ranges, request, **parameters)
    own = found.attributes.valid & (found.attributes.context == request.context)
    return replace(found, live=own & ~found.improper)


def count_what_is_aborted(text, *, slices=1):
    """Every slice pushes a token also if the context is aborted."""
    return substituted(r"(connect \\B) \S+ \[0\](\n    connect \\Y \\push\n)", r"\1 1'1\2", text, number=slices)


def test_an_update_of_an_old_epoch_that_enters_is_found(monkeypatch):
    """Seeded: a slice looks at context and line of an update alone."""
    monkeypatch.setattr(memory_slice, "find_range", every_epoch_is_live)
    expect_failure("slice.passes-compute-write", None, "what is stale comes back in the next cycle, and nothing else")


def test_a_store_of_an_old_epoch_that_is_sent_away_is_found(monkeypatch):
    """Seeded: the egress looks at context and line of a store alone."""
    monkeypatch.setattr(matcher, "find_range", every_epoch_is_live)
    expect_failure("matcher.routes", None, "the chosen item is matched")


def test_an_update_that_loses_its_epoch_in_the_slice_is_found():
    """Seeded: the queue of compute writes keeps no epoch."""
    expect_failure(
        "slice.sends-updates",
        lambda text: substituted(
            r"(connect \\i__payload) \\compute_write_matched \[127:0\]",
            r"\1 { \\compute_write_matched [127:96] 8'00000000 \\compute_write_matched [87:0] }",
            text,
            number=1,
        ),
        "what entered as an update of this name is in the slice, or was sent as one",
    )


def test_a_token_with_an_epoch_of_its_own_is_found():
    """Seeded: tokens have the epoch 0, whatever the access said."""
    tile, without_epoch = (
        r"connect \\tile \\tile \[41:0\]",
        r"connect \\tile { \\tile [41:12] 8'00000000 \\tile [3:0] }",
    )
    expect_failure(
        "slice.counts-updates",
        lambda text: substituted(tile, without_epoch, text, number=1),
        "lines of a tile are in the queue or have left it",
    )


def test_a_report_that_is_lost_in_the_cycle_of_its_transfer_is_found():
    """Seeded: a report counts only while one was outstanding before."""

    def lose(body):
        some = re.findall(r"connect \\A \\outstanding \[1:0\]\n    connect \\B {  }\n    connect \\Y (\$\d+)\n", body)
        outstanding = "|".join(map(re.escape, some))
        or_transfer = rf"(connect \\A (?:{outstanding}) \[0\]\n    connect \\B) \S+ \[0\]"
        return substituted(or_transfer, r"\1 1'0", body, number=len(some))

    expect_failure(
        "slice.pending",
        lambda text: in_module(text, "top.dut", lose),
        "the slice waits for as many reports as come",
    )


def test_two_that_enter_at_once_and_count_as_one_are_found():
    """Seeded: beside one of the other stream, an access of context 0 is not pending."""
    expect_failure(
        "slice.pending",
        lambda text: in_module(
            text, "top.dut.pending", lambda body: body.replace("connect \\B 2'10", "connect \\B 2'01", 1)
        ),
        "the slice counts those of context 0",
    )


def test_a_token_after_an_abort_is_found():
    """Seeded: what is aborted is counted."""
    expect_failure(
        "slice.silent-after-abort",
        count_what_is_aborted,
        "no token of the context after its abort, but those that were there",
    )


def test_a_late_report_that_leaves_a_trace_is_found():
    """Seeded: what is aborted is counted, so that its late reports leave a trace in the tokens."""
    expect_failure("isolation.slice", partial(count_what_is_aborted, slices=2), "the tokens are the same")


def test_an_access_that_a_disarm_drops_is_found():
    """Seeded: a disarm empties the register behind the arbiter, as a reset does."""

    def patch(text):
        return substituted(
            r"(assign \S+ \[0\] \\dram__valid \[0\]\n(?:    .*\n)*?    switch) \\rst \[0\]",
            r"\1 \\disarm [0]",
            text,
            number=1,
        )

    expect_failure("slice.keeps-items", patch, "dram stays until it is taken")
