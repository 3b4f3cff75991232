"""The engine finds the ports of every configuration where its word maps have them."""

from dataclasses import replace

import numpy as np
import pytest
from t3hdl.config import preset
from t3hdl.interface.words import WordMap
from t3sim.engine.t3unit.ports import AT, fault_words, places, shown
from t3sim.engine.t3unit.words import REGISTERS, SLICE, TRACKER, TRIGGER, place
from t3sim.hardware.golden.backend import golden_hardware

SMALL = preset("small")
CONFIGS = (SMALL, replace(SMALL, tracker_banks=1), replace(SMALL, contexts=4), preset("paper"))


@pytest.mark.parametrize("config", CONFIGS)
def test_places_are_those_of_the_word_maps(config):
    hardware = golden_hardware(config)
    at = places(hardware)
    tracker, root = hardware.parts["tracker"].words, hardware.parts["root"].words
    assert at["tracker_now"] == tracker.inputs["now"][0] == 2 * config.tracker_banks + 3
    assert at["tracker_wake_at"] == tracker.outputs["wake_at"][0]
    assert at["root_token_out_valid"] == root.outputs["token_out.0.valid"][0] == config.nodes + 1
    assert at["registers_context"] == hardware.parts["registers"].words.inputs["context.0"][0]
    assert len(set(AT.names)) == len(AT.names)


@pytest.mark.parametrize("config", CONFIGS)
def test_registers_show_every_context_and_the_faults_of_every_part(config):
    hardware = golden_hardware(config)
    words, _ = place(hardware)
    first_in, trigger, tracker = (words[i] for i in (2 * REGISTERS, 2 * TRIGGER + 1, 2 * TRACKER + 1))
    rows = {tuple(row) for row in shown(hardware, words)}
    inputs, outputs = hardware.parts["registers"].words.inputs, hardware.parts["trigger"].words.outputs
    last = f"context.{config.contexts - 1}"
    assert (first_in + inputs[last][0], trigger + outputs[last][0]) in rows
    assert (first_in + inputs["stuck"][0], trigger + outputs["stuck"][0]) in rows
    assert len({target for target, _ in rows}) == len(rows)
    corrected, uncorrectable = fault_words(hardware, words)
    parts = config.slices + config.egress_ports + config.nodes + config.roots + 2
    assert len({*corrected}) == len({*uncorrectable}) == len(corrected) == parts
    assert tracker + hardware.parts["tracker"].words.outputs["corrected"][0] in corrected
    assert words[2 * SLICE + 1] + hardware.parts["slice"].words.outputs["uncorrectable"][0] in uncorrectable
    hardware.close()


def test_other_ports_than_those_compiled_are_refused():
    hardware = golden_hardware(SMALL)
    words = hardware.parts["monitor"].words
    moved = WordMap({**words.inputs, "more": (words.input_words, 1)}, words.outputs, words.input_words + 1, 0)
    other = replace(hardware, parts={**hardware.parts, "monitor": replace(hardware.parts["monitor"], words=moved)})
    with pytest.raises(ValueError, match="^the engine is compiled for other ports of a monitor than this"):
        places(other)
    assert places(hardware).dtype == np.dtype(AT)
