"""The proofs of ``idle`` find a part that says idle too early, and speak of every part that has it."""

import re

import pytest
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task
from t3hdl.export.verilog import PARTS


def drop_last_accepted_item(netlist):
    """A matcher is idle also in the cycle in which an item goes to its output register."""
    changed, number = re.subn(r"(connect \\A) \\route__valid \[0\](\n    connect \\B \$)", r"\1 1'1\2", netlist)
    assert number == 1
    return changed


def test_a_part_that_is_idle_too_early_is_found():
    (proof,) = chosen_proofs(("matcher.idle",))
    verdict = check(Task(proof=proof, size="least"), patch=drop_last_accepted_item, covers=False)
    assert verdict.outcome == "violated"
    assert verdict.counterexample.claims == ("the part itself stays",)


@pytest.mark.long
def test_a_trigger_that_does_not_wait_for_its_meter_is_found():
    """Seeded: idle with the last thing that happens, in the cycle in which peak and backlog follow it."""

    def forgets(netlist):
        changed, number = re.subn(r"connect \\B \\settled \[0\]", r"connect \\B 1'1", netlist)
        assert number == 1
        return changed

    (proof,) = chosen_proofs(("trigger.idle",))
    verdict = check(Task(proof=proof, size="least"), patch=forgets, covers=False)
    assert verdict.outcome in ("violated", "not inductive")
    assert set(verdict.counterexample.claims) <= {"core stays", "core.meter stays"}


def test_every_part_has_its_proof():
    """But the ALU, which is in ``nmc``, and the crossing of clocks, which have no ``idle``. The core is in the unit."""
    proven = {proof.name for proof in chosen_proofs(())}
    assert {f"{name}.idle" for name in PARTS} - proven <= {"alu.idle", "crossing.idle", "core.idle"}
