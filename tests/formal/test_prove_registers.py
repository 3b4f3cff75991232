"""Proofs of the registers find a seeded mistake."""

from functools import partial

import pytest
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task
from t3hdl.common import broadcast

from tests.formal.seeded_bugs import expect_failure, in_cell, in_module, substituted

pytestmark = pytest.mark.long  # seconds for each mistake; `make test` has the proofs themselves


def test_a_first_descriptor_that_is_not_locked_is_found():
    """Seeded: the window of an active context begins behind its first descriptor."""
    expect_failure(
        "registers.rules",
        lambda text: in_cell(
            text, module="top.dut.locks", having=r"connect \A \window_0 [6:0]", old="cell $le ", new="cell $lt "
        ),
        "locked configuration does not change",
    )


def test_a_bit_for_control_that_other_registers_have_is_found(monkeypatch):
    """Seeded: the parts take bit 12 of the address for CONTROL, which descriptors have, too."""
    monkeypatch.setattr(broadcast, "_CONTROL_BIT", 12)
    (proof,) = chosen_proofs(("registers.rules",))
    verdict = check(Task(proof=proof, size="small"), covers=False)
    assert verdict.outcome == "violated"
    assert verdict.counterexample.claims == ("what the parts take for a write of CONTROL is one",)


def test_an_arm_of_a_pending_context_is_found():
    """Seeded: an arm is refused while the context is active or being aborted alone."""
    expect_failure(
        "registers.rules",
        lambda text: text.replace("connect \\B \\pending [1:0]", "connect \\B 2'00", 1),
        "an error: arm of a pending context",
    )


def test_a_disarm_that_drops_what_is_pending_is_found():
    """Seeded: a disarm looks at active contexts, aborts and commands alone."""

    def patch(text):
        first, arm, disarm = text.partition("connect \\B \\pending [1:0]")
        return first + arm + disarm.replace("connect \\B \\pending [1:0]", "connect \\B 2'00", 1)

    expect_failure("registers.rules", patch, "an error: disarm without force while something is under way")


def test_a_range_that_turns_stores_into_reads_is_found():
    """Seeded: READ is taken for an update, and STORE is not."""
    expect_failure(
        "registers.rules",
        lambda text: in_cell(
            text, module="top.dut", having=r"connect \A \bus_data [15:13]", old="cell $ge ", new="cell $ne "
        ),
        "an error: a range in use with an operation of no update, or a context that does not exist",
        "nothing else is an error",
    )


def test_an_abort_that_ends_before_it_has_begun_is_found():
    """Seeded: the parts are looked at before they can have seen the abort."""
    expect_failure(
        "registers.aborts",
        lambda text: in_cell(
            text, module="top.dut.aborts", having=r"connect \A \tables_busy [0]", old=r"\begun [0]", new="1'0"
        ),
        *(f"one of context {c} ends only when nothing of it is in flight, or with a disarm" for c in range(2)),
    )


def test_registers_that_sleep_over_the_end_of_an_abort_are_found():
    """Seeded: they are idle in the cycle in which the end of an abort becomes an interrupt."""

    ended = r"(cell \$reduce_or \S+\n(?:    .*\n)*?    connect \\A) \S+ \[1:0\]"
    never = partial(substituted, ended, r"\1 2'00", number=1)
    expect_failure("registers.idle", lambda text: in_module(text, "top.dut.aborts", never), "events stays")
