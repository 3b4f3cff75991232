"""The proofs of structure find a path that should not be there, within a cycle and across many."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.check import check
from t3formal.prover.proof import Proof, Task
from t3formal.prover.structure import Structure
from t3hdl.config import preset


class Chain(wiring.Component):
    """``late`` is ``first`` of two cycles before, or what ``second`` was when ``opens`` was last 1."""

    first: In(2)
    second: In(2)
    opens: In(1)
    late: Out(2)
    both: Out(2)

    def elaborate(self, platform):
        m = Module()
        before = Signal(2)
        kept = Signal(2)
        with m.If(self.opens):
            m.d.sync += kept.eq(self.second)
        m.d.sync += [before.eq(self.first), self.late.eq(before)]
        m.d.comb += self.both.eq(self.late ^ kept)
        return m


def verdict(**rule):
    def make(config):
        structure = Structure(Chain())
        structure.claim("claimed", **rule)
        structure.cover("covered", of="both", on="opens")
        return structure

    sizes = {"small": preset("small")}
    proof = Proof(
        name="chain.test", invariants=(), says="A test.", harness=make, sizes=sizes, method="structure", quick=False
    )
    return check(Task(proof=proof, size="small"))


@pytest.mark.parametrize(
    "rule",
    [
        {"of": "late|both"},
        {"of": "late", "on": "first", "across": True},
        {"of": "both", "on": "first|second|opens", "across": True},
        {"of": "both", "on": "first|kept", "across": True, "ends": "kept"},
    ],
)
def test_what_does_not_depend_is_proven(rule):
    proven = verdict(**rule)
    assert (proven.outcome, proven.covers, proven.latches) == ("proven", {"covered": 2}, 6)


def test_what_depends_is_shown_register_by_register():
    broken = verdict(of="both", on="second|opens", across=True)
    assert (broken.outcome, broken.frames, broken.counterexample.claims) == ("violated", 3, ("claimed",))
    assert [line.split() for line in broken.counterexample.events] == [
        ["0", "first"],
        ["1", "before"],
        ["2", "late"],
        ["2", "both"],
    ]


def test_nothing_to_depend_on_is_vacuous():
    structure = Structure(Chain())
    structure.claim("claimed", of="late", on="first", across=True)
    structure.cover("covered", of="late", on="second")
    proof = Proof(
        name="chain.test",
        invariants=(),
        says="A test.",
        harness=lambda config: structure,
        sizes={"small": preset("small")},
        method="structure",
    )
    assert check(Task(proof=proof, size="small")).outcome == "vacuous"


def accept_when_head_is_popped(netlist):
    """Seeded: an input queue is ready when its head leaves in the same cycle: ready waits for the ready behind it."""
    ready = "connect \\A \\full [0]\n    connect \\Y \\i__ready"
    assert ready in netlist
    return netlist.replace(ready, ready.replace(r"\full [0]", r"\keep [0]"))


def test_a_path_through_a_part_is_found():
    (proof,) = chosen_proofs(("leaf.moore",))
    found = check(Task(proof=proof, size="small"), patch=accept_when_head_is_popped)
    assert (found.outcome, found.frames) == ("violated", 1)
    assert found.counterexample.events[0].split()[1].endswith("ready")


class Counter(wiring.Component):
    """``high`` has initial bits of both kinds; ``kept`` is not reset."""

    step: In(1)
    high: Out(3, init=5)
    kept: Out(2)

    def elaborate(self, platform):
        m = Module()
        kept = Signal(2, reset_less=True)
        m.d.sync += [self.high.eq(self.high + self.step), kept.eq(kept + self.step)]
        m.d.comb += self.kept.eq(kept)
        return m


@pytest.mark.parametrize(("but", "outcome"), [("$^", "violated"), ("kept", "proven")])
def test_a_register_that_a_reset_leaves_is_found(but, outcome):
    def make(config):
        structure = Structure(Counter())
        structure.claim_reset("all are reset", but=but)
        structure.cover("covered", of="kept|high", on="step")
        return structure

    proof = Proof(
        name="counter.test", invariants=(), says="A test.", harness=make, sizes={"small": preset("small")},
        method="structure", quick=False,
    )  # fmt: skip
    found = check(Task(proof=proof, size="small"))
    assert found.outcome == outcome
    if outcome == "violated":
        assert [event.split()[1] for event in found.counterexample.events] == ["kept"]
