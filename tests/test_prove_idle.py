"""The proofs of ``idle`` find a part that says idle too early, and speak of every part that has it."""

import pytest
from t3hdl.config import preset
from t3hdl.emit.verilog import PARTS
from t3hdl.formal.catalogue import chosen_proofs
from t3hdl.formal.check import check
from t3hdl.formal.proof import Task


def forget_the_item_just_taken(netlist):
    """A matcher is idle also in the cycle in which an item goes from its queue to its output register."""
    assert netlist.count(r"connect \A \quiet [0]") == 1
    return netlist.replace(r"connect \A \quiet [0]", r"connect \A 1'1")


def test_a_part_that_is_idle_too_early_is_found():
    (proof,) = chosen_proofs(("matcher.idle",))
    verdict = check(Task(proof=proof, size="least"), patch=forget_the_item_just_taken, covers=False)
    assert verdict.outcome == "violated"
    assert verdict.counterexample.claims == ("the part itself stays",)


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_every_part_that_has_idle_has_its_proof():
    config = preset("small")
    parts = {name for name, make in PARTS.items() if "idle" in make(config).signature.members}
    assert {f"{name}.idle" for name in parts} - {proof.name for proof in chosen_proofs(())} <= {
        "core.idle",
        "unit.idle",
    }
