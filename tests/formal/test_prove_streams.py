"""The proofs of streams find an item that is changed while it waits."""

from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Task


def overwrite_what_waits(netlist):
    """Seeded: the matcher's output register takes the next item when the one in it has not been taken yet."""
    ready = "connect \\B \\route__ready [0]\n    connect \\Y \\output_free"
    assert netlist.count(ready) == 1
    return netlist.replace(ready, ready.replace(r"\route__ready [0]", "1'1"))


def test_an_item_that_changes_while_it_waits_is_found():
    (proof,) = chosen_proofs(("matcher.keeps-items",))
    verdict = check(Task(proof=proof, size="least"), patch=overwrite_what_waits, covers=False)
    assert verdict.outcome == "violated"
    assert verdict.counterexample.claims == ("route stays until it is taken",)
