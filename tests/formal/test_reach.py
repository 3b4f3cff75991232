"""How far a proof holds follows from what it rests on: the weakest link, a circle, an assumption of nobody."""

from graphlib import CycleError

import pytest
from t3formal.models.assumptions import Obligation
from t3formal.prover.reach import Reach, reaches

OWED = {
    "far": Obligation(says="", claims=(("neighbour.far", "always"),)),
    "near": Obligation(says="", claims=(("neighbour.near", "at first"), ("neighbour.far", "always"))),
    "outside": Obligation(says="", integrator="somebody"),
}


def test_a_chain_reaches_as_far_as_its_weakest_link():
    bounds = {"part.first": None, "part.second": 9, "part.third": None, "neighbour.far": None, "neighbour.near": 12}
    assumed = {
        "part.first": {"near"}, "part.second": {"near"}, "part.third": {"far"}, "neighbour.far": {"outside"},
        "neighbour.near": set(),
    }  # fmt: skip
    outside = frozenset({"outside"})
    assert reaches(bounds, assumed, OWED) == {
        "part.first": Reach(cycles=12, by="neighbour.near", trusted=outside),
        "part.second": Reach(cycles=9, by="part.second", trusted=outside),
        "part.third": Reach(cycles=None, by="part.third", trusted=outside),
        "neighbour.far": Reach(cycles=None, by="neighbour.far", trusted=outside),
        "neighbour.near": Reach(cycles=12, by="neighbour.near", trusted=frozenset()),
    }


def test_a_link_behind_a_link_counts():
    owed = OWED | {"middle": Obligation(says="", claims=(("part.middle", "so far"),))}
    bounds = {"part.end": None, "part.middle": None, "neighbour.near": 12, "neighbour.far": None}
    assumed = {"part.end": {"middle"}, "part.middle": {"near"}, "neighbour.near": set(), "neighbour.far": set()}
    found = reaches(bounds, assumed, owed)["part.end"]
    assert (found.cycles, found.by) == (12, "neighbour.near")


def test_a_circle_is_refused():
    owed = {
        "one": Obligation(says="", claims=(("part.two", ""),)),
        "two": Obligation(says="", claims=(("part.one", ""),)),
    }
    with pytest.raises(CycleError):
        reaches({"part.one": None, "part.two": None}, {"part.one": {"one"}, "part.two": {"two"}}, owed)


def test_what_nobody_owes_is_refused():
    with pytest.raises(KeyError, match="unknown"):
        reaches({"part.one": None}, {"part.one": {"unknown"}}, OWED)
