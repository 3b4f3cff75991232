"""What proofs assume is owed: by a claim that is proven elsewhere, without a circle, or by the integrator."""

import gc
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable
from t3formal.models.assumptions import ASSUMPTIONS
from t3formal.prover.catalogue import all_proofs
from t3formal.prover.reach import reaches

pytestmark = pytest.mark.long  # elaborates every proof at all its sizes


@pytest.fixture(scope="module")
def stated():
    """The names of assumptions and claims of each proof, at all its sizes together."""
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)  # nothing is made of these harnesses
        for proof in all_proofs():
            assumptions, claims = names[proof.name] = set(), set()
            for config in proof.sizes.values():
                harness = proof.harness(config)
                assumptions.update(harness.assumptions)
                claims.update(harness.claims)
        del harness
        gc.collect()
    return names


def test_every_assumption_is_in_the_list(stated):
    unlisted = {
        name: sorted(assumed - ASSUMPTIONS.keys())
        for name, (assumed, _) in stated.items()
        if not assumed <= ASSUMPTIONS.keys()
    }
    assert not unlisted


def test_every_assumption_in_the_list_is_made(stated):
    made = set().union(*(assumed for assumed, _ in stated.values()))
    assert not ASSUMPTIONS.keys() - made


def test_somebody_owes_each_of_them():
    assert not [name for name, owed in ASSUMPTIONS.items() if not owed.claims and not owed.integrator]


def test_what_is_owed_by_a_proof_is_claimed_there(stated):
    missing = {
        (name, proof, claim)
        for name, owed in ASSUMPTIONS.items()
        for proof, claim in owed.claims
        if proof not in stated or claim not in stated[proof][1]
    }
    assert not missing


def test_no_proof_rests_on_itself_and_all_know_their_weakest_link(stated):
    """A proof needs those that owe what it assumes, those need others: there is an order in which all can be shown."""
    proofs = {proof.name: proof for proof in all_proofs()}
    bounds = {name: proof.depth if proof.method == "bounded" else None for name, proof in proofs.items()}
    found = reaches(bounds, {name: assumed for name, (assumed, _) in stated.items()}, ASSUMPTIONS)
    for name, reach in found.items():
        assert reach.cycles == bounds[reach.by], name
        assert reach.by == name or reach.cycles is not None, name
    limit = bounds["trigger.blocks"]
    assert limit is not None
    for name in ("block-table.fires-once", "ready-lists.in-order"):
        assert (found[name].cycles, found[name].by) == (limit, "trigger.blocks")
