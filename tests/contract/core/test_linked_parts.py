"""The parts of the unit, simulated apart and linked as the co-simulator does, are the whole T3Core in every cycle."""

import pytest
from t3hdl.config import T3Config
from t3hdl.interface.connections import End, links
from t3hdl.interface.parts import SIMULATED, TABLE
from t3hdl.interface.signatures import core_signature
from t3hdl.interface.words import word_map
from t3sim.hardware.abi import Instance, LoadedHardware
from t3sim.hardware.backends import open_hardware

from tests.contract.core.scene import CONFIG, TINY
from tests.contract.core.test_core_rtl import Cycle, recorded, recorded_block, valid_of
from tests.support.connection_values import carried


class LinkedParts:
    """Instances of every part of one unit; all inputs of a cycle are gathered before any part steps."""

    def __init__(self, hardware: LoadedHardware) -> None:
        counts = {name: TABLE[name].count(hardware.config) for name in SIMULATED}
        self._links = links(hardware.config)
        self._parts = {name: [Instance(hardware.parts[name]) for _ in range(count)] for name, count in counts.items()}
        self._inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}

    def gather(self, inputs: dict[str, int]) -> None:
        """Give every part the inputs of a cycle with these inputs of the unit; ``outputs`` are the unit's."""
        self._inputs = inputs
        for link in self._links:
            for end, path, value in carried(link, self._read):
                if end.part == "core":
                    self.outputs[path] = value
                else:
                    self._parts[end.part][end.instance].set(path, value)

    def _read(self, end: End, path: str) -> int:
        return self._inputs[path] if end.part == "core" else self._parts[end.part][end.instance].get(path)

    def step(self) -> None:
        """One clock of every part."""
        for instances in self._parts.values():
            for part in instances:
                part.step()


def check(trace: list[Cycle], config: T3Config, backend: str) -> None:
    """The linked parts give the outputs of the whole core, but ``idle`` and ``wake_at``, which only the core has."""
    hardware = open_hardware(config, backend)
    linked = LinkedParts(hardware)
    payloads = valid_of(word_map(core_signature(config)).outputs)
    compared = 0
    for cycle, (inputs, outputs) in enumerate(trace):
        linked.gather(inputs)
        assert linked.outputs.keys() == outputs.keys() - {"idle", "wake_at"}
        for name, got in linked.outputs.items():
            if outputs.get(payloads.get(name, ""), 1):
                assert got == outputs[name], f"{name} in cycle {cycle}"
                compared += 1
        linked.step()
    assert compared > 10 * len(trace)
    hardware.close()


@pytest.mark.long  # simulates a whole core, and compiles all of its parts
@pytest.mark.parametrize("parts", ["golden", "rtl"])
def test_linked_parts_are_the_unit(parts):
    check(recorded(), CONFIG, parts)


def test_linked_parts_of_the_golden_model_are_a_tiny_core():
    check(recorded_block(), TINY, "golden")
