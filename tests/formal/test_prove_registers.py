"""Proofs of the registers find a seeded mistake."""

import pytest
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task
from t3hdl.common import broadcast

from tests.formal.seeded_bugs import expect_failure, in_cell

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
