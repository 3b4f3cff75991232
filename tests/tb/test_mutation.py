"""Mutants of netlists: chosen the same everywhere, made at the same cell in benches and proofs, or no mistakes."""

import re
from dataclasses import replace

import pytest
from t3formal.prover.aiger import Graph
from t3formal.prover.catalogue import chosen_proofs
from t3formal.prover.equivalence import Comparison
from t3formal.prover.harness import Harness
from t3formal.prover.mutant_proofs import noticed
from t3formal.prover.mutation import Mutant, Netlist
from t3hdl.config import T3Config, preset

from tb.mutation.benches import MutatedPart, bench_of, found_by_bench
from tb.mutation.campaign import SIZE
from tests.support.system_cases import missing_compiler

CONFIG = preset("small")
ADDRESS_READY, STATE, RESET_VALUE, IDLE = 1, 2, 3, 4


@pytest.fixture(scope="module")
def netlist():
    return Netlist("axi", CONFIG)


def cell_at(netlist: Netlist, port: str, wire: str) -> str:
    """The cell of the part whose ``port`` is connected to ``wire``, perhaps by another name of it."""
    other = re.search(rf"  connect \\{wire} (\S+)\n", netlist.text)
    name = re.escape(other[1] if other else f"\\{wire}")
    body = re.search(rf"  cell \S+ (\$\S+)\n(?:    .*\n)*?    connect \\{port} {name}\n", netlist.text)
    assert body, wire
    return body[1]


@pytest.fixture(scope="module")
def mutants(netlist):
    """Two mistakes, a reset value that becomes what it is, and an ``idle`` that promises too little."""
    reset = re.search(r"  cell \$mux (\$\d+\.reset\.mux\.0)\n(?:    .*\n)*?    connect \\B 64'0+\n", netlist.text)
    assert reset
    made = (
        ("inv", cell_at(netlist, "Y", "axi_awready"), "Y"),
        ("inv", cell_at(netlist, "Q", "access_state"), "Q"),
        ("const0", reset[1], "B"),
        ("const0", cell_at(netlist, "Y", "idle"), "Y"),
    )
    return tuple(
        Mutant(number=number, mode=mode, module="t3_axi", cell=cell, port=port, bits=(0,))
        for number, (mode, cell, port) in enumerate(made, 1)
    )


def test_the_choice_depends_on_the_seed_alone(netlist):
    chosen = netlist.choose(20, seed=3)
    assert [mutant.number for mutant in chosen] == list(range(1, 21))
    assert chosen == Netlist("axi", CONFIG).choose(20, seed=3) != netlist.choose(20, seed=4)
    assert len({str(mutant) for mutant in chosen}) == 20
    assert not any(mutant.port.lower() == "clk" for mutant in chosen)


def test_equivalence(netlist, mutants, tmp_path):
    miter = Comparison(netlist, mutants, tmp_path)
    found = {mutant.number: miter.compare(mutant.number, limit_s=10) for mutant in mutants}
    assert found == {
        ADDRESS_READY: "different",
        STATE: "different",
        RESET_VALUE: "equivalent",
        IDLE: "equivalent but for idle",
    }
    written = tmp_path / netlist.top / "differs.aig"
    Graph(written).write(tmp_path / "same.aig", {})
    assert (tmp_path / "same.aig").read_bytes() == written.read_bytes()


@pytest.mark.long
def test_proofs(netlist, mutants):
    (writes,) = chosen_proofs(("axi.writes",))
    found = dict(noticed(writes, CONFIG, netlist, mutants, limit_s=4))
    assert found == {ADDRESS_READY: "violated", STATE: "violated", RESET_VALUE: None, IDLE: None}
    (queue,) = chosen_proofs(("token-queue.conserves",))
    assert not list(noticed(queue, CONFIG, netlist, mutants, limit_s=4)), "the port has no queue of tokens"


@pytest.mark.parametrize("name", ["command-issuer.hit-once", "block-table.distinct"])
def test_proofs_of_what_this_size_has_not_are_not_asked(name):
    """Of wrong bits in a part without protection; of two blocks in one with four."""
    netlist = Netlist("trigger", SIZE)
    (proof,) = chosen_proofs((name,))
    assert not list(noticed(proof, SIZE, netlist, netlist.choose(60, 1), limit_s=4))


def test_a_harness_that_cannot_be_made_is_no_proof_that_notices_nothing():
    """Any other error than that of a wrong size is a mistake of ours, and ends the campaign."""
    netlist = Netlist("trigger", SIZE)
    (proof,) = chosen_proofs(("block-table.distinct",))

    def misnamed(_config: T3Config) -> Harness:
        raise KeyError("a register that was renamed")

    broken = replace(proof, harness=misnamed)
    with pytest.raises(KeyError, match="renamed"):
        list(noticed(broken, SIZE, netlist, netlist.choose(60, 1), limit_s=4))


def test_what_a_reset_sets(netlist, mutants):
    """A reset value of 0 that becomes 1, one that stays 0; a reset that is always on sets everything, too."""
    (reset,) = chosen_proofs(("axi.reset",))
    value = mutants[RESET_VALUE - 1]
    changed = (replace(value, number=1, mode="const1"), value, replace(value, number=5, mode="const1", port="S"))
    found = dict(noticed(reset, CONFIG, netlist, changed, limit_s=4))
    assert found == {1: "violated", RESET_VALUE: None, 5: None}


@pytest.mark.long
@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler())
def test_bench(netlist, mutants):
    part = MutatedPart(netlist, mutants, CONFIG)
    with bench_of("axi", CONFIG) as bench:
        found = [bool(found_by_bench(bench, part, number, 1)) for number in range(5)]
    assert found == [False, True, True, False, False]
