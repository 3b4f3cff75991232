"""The page on proofs is made of results that are complete, good and of today's proofs."""

import pytest
from t3formal.models.invariants import INVARIANTS
from t3formal.prover.catalogue import all_proofs
from t3formal.prover.run import tasks

from docs.pages import proofs as proofs_page

RESULTS = proofs_page.kept("proofs.json")["proofs"]
of_this_hardware = pytest.mark.usefixtures("results_of_this_hardware")


@pytest.fixture
def results_of_this_hardware():
    """Asked when a test runs: the digest of the netlist takes seconds, which no collection of tests should."""
    if not proofs_page.are_of_this_hardware():
        pytest.skip("the kept results are of another hardware, as the page says: t3 prove -o docs/results/proofs")


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


def test_a_proof_that_rests_on_a_bounded_one_is_not_counted_as_one_of_every_cycle():
    reach = proofs_page.reach_of_proofs()
    whole = [row for row in RESULTS if reach[row["name"]].cycles is None]
    rest = [row for row in RESULTS if row not in whole]
    assert any(row["method"] != "bounded" for row in rest) and all(row["method"] != "bounded" for row in whole)
    assert f"{len(RESULTS)} tasks, {len(whole)} of them for every cycle" in proofs_page.results_section()


def test_older_results_without_the_proof_of_an_assumption_are_not_counted(monkeypatch):
    without = {"proofs": [row for row in RESULTS if row["name"] != "trigger.blocks"]}
    kept = proofs_page.kept
    monkeypatch.setattr(proofs_page, "kept", lambda name: without if name == "proofs.json" else kept(name))
    assert proofs_page.results_section().startswith(f"{len(without['proofs'])} tasks, in ")


@of_this_hardware
@pytest.mark.parametrize("number", INVARIANTS)
def test_every_invariant_has_a_proof_of_every_cycle(number):
    """But for 9, which speaks of many parts together: only the first cycles of the linked parts are proven."""
    assert any(number in row["invariants"] and (row["method"] != "bounded" or number == 9) for row in RESULTS)
