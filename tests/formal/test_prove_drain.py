"""What is added up to ``drain_cycles`` is what is proven of the parts, and a sum that is too small is found."""

import pytest
from t3formal.models.drain_steps import (
    QUEUE,
    RESERVE_MOVES,
    bank_frame,
    needed_cycles,
    node_frame,
    stages,
    sweep_cycles,
)
from t3formal.models.frames import MOST_CYCLES, Frames
from t3formal.properties import drain
from t3formal.properties.tracker import latency
from t3formal.prover.catalogue import chosen_proofs
from t3hdl.common.queues import InputQueue
from t3hdl.config import PARAMETERS, PRESETS, T3Config, preset

from tests.formal.seeded_bugs import expect_failure

LATE = ("in drain_cycles all tokens are dropped, with two moves to spare", "it is not later than its frames are")
WIDEST = preset("paper", slices=64, node_inputs=4)
"""With as many nodes and banks as there may be."""


def harnesses(name):
    (proof,) = chosen_proofs((name,))
    return [(config, proof.harness(config)) for config in proof.sizes.values()]


def test_the_frames_of_a_bank_are_those_of_its_lemma(monkeypatch):
    lengths = []

    class Noted(Frames):
        def __init__(self, m, begin, length):
            lengths.append(length)
            super().__init__(m, begin, length)

    monkeypatch.setattr(latency, "Frames", Noted)
    configs = [config for config, _ in harnesses("tracker-bank.keeps-moving")]
    assert lengths == [bank_frame(config) for config in configs]
    assert {config.tracker_banks for config in configs} >= {config.tracker_banks for config in PRESETS.values()}


def test_the_sweep_is_as_long_as_its_proof_says():
    for config, harness in harnesses("tracker.sweeps-end"):
        assert f"a sweep ends within {sweep_cycles(config)} cycles" in harness.claims


@pytest.mark.parametrize("node", ["root", "leaf"])
def test_a_round_of_a_node_has_a_frame_for_each_input(node):
    """The lemma says so of the node's own inputs, and its harness has a counter of as many frames."""
    for config, harness in harnesses(f"token-network.{node}-keeps-moving"):
        assert node_frame(config.node_inputs, 1) == len(harness.dut.token_in)


def test_frames_of_nodes_are_no_longer_than_the_lemmas_speak_of():
    assert WIDEST.nodes == 16 and WIDEST.tracker_banks == PARAMETERS["tracker_banks"].high
    assert max(stage.frame for stage in stages(WIDEST) if stage.name != "leaf") == MOST_CYCLES


def test_an_input_queue_has_as_many_places_as_are_counted():
    harness = next(harness for _, harness in harnesses("blocks.queue"))
    assert isinstance(harness.dut, InputQueue) and "ready means fewer than two entries" in harness.claims
    assert QUEUE == 2


@pytest.mark.parametrize("config", [*PRESETS.values(), WIDEST], ids=[*PRESETS, "widest"])
def test_drain_cycles_are_the_steps_and_the_reserve_to_the_cycle(config):
    """So neither a step nor the formula changes alone. Two cycles are left of rounding up a sweep's ends."""
    assert config.drain_cycles == needed_cycles(config) + RESERVE_MOVES * config.drain_turns + 2


def test_every_preset_is_proven():
    assert set(PRESETS.values()) <= set(drain.PROOFS[0].sizes.values())


def test_a_formula_that_forgets_the_last_moves_is_found(monkeypatch):
    """Seeded: six places behind the root's instead of eight, and one cycle less."""
    enough = T3Config.drain_cycles.fget
    less = property(lambda config: enough(config) - 2 * config.drain_turns)
    monkeypatch.setattr(T3Config, "drain_cycles", less)
    expect_failure("drain.adds-up", None, LATE[0])


@pytest.mark.parametrize(("name", "longer"), [
    ("bank_frame", lambda config: bank_frame(config) + 1),
    ("sweep_cycles", lambda config: sweep_cycles(config) + 3),
])  # fmt: skip
def test_a_step_that_takes_longer_than_the_formula_knows_is_found(monkeypatch, name, longer):
    """Seeded: banks have their turn a cycle later, or a sweep takes three cycles more."""
    monkeypatch.setattr(f"t3formal.models.drain_steps.{name}", longer)
    monkeypatch.setattr(f"t3formal.properties.drain.{name}", longer, raising=False)
    expect_failure("drain.adds-up", None, *LATE)
