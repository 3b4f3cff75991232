"""The page on proofs is made of results that are complete, good and of today's proofs."""

import pytest
from t3formal.models.invariants import INVARIANTS
from t3formal.prover.catalogue import all_proofs
from t3formal.prover.run import tasks

from docs.pages import proofs as proofs_page

RESULTS = proofs_page.kept("proofs.json")["proofs"]
of_this_hardware = pytest.mark.skipif(
    not proofs_page.are_of_this_hardware(),
    reason="the kept results are of another hardware, as the page says: t3 prove -o docs/results/proofs",
)


def test_the_page_says_of_which_hardware_the_results_are():
    assert proofs_page.are_of_this_hardware() != ("Of another hardware than this tree's" in proofs_page.page())


@of_this_hardware
def test_every_proof_was_carried_out_at_every_size():
    carried_out = [(row["name"], row["size"]) for row in RESULTS]
    assert carried_out == [(task.proof.name, task.size) for task in tasks(all_proofs())], (
        "t3 prove -o docs/results/proofs"
    )


def test_everything_is_proven_and_every_cover_reached():
    assert [row["name"] for row in RESULTS if row["outcome"] != "proven" or None in row["covers"].values()] == []


@of_this_hardware
def test_what_a_proof_says_is_what_was_proven():
    says = {proof.name: (proof.says, list(proof.invariants), proof.method, proof.depth) for proof in all_proofs()}
    for row in RESULTS:
        assert (row["says"], row["invariants"], row["method"], row["depth"]) == says[row["name"]], row["name"]


@of_this_hardware
@pytest.mark.parametrize("number", INVARIANTS)
def test_every_invariant_has_a_proof_of_every_cycle(number):
    """But for 9, which speaks of many parts together: only the first cycles of the linked parts are proven."""
    assert any(number in row["invariants"] and (row["method"] != "bounded" or number == 9) for row in RESULTS)
