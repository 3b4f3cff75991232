"""The engine moves words between parts by hand, for speed: every word that it gives a part is that of the table.

All outputs of all parts are made up; a cycle in which no part steps leaves what the engine has copied.
"""

import random

import numpy as np
import pytest
from numba import cfunc
from t3hdl.interface.connections import End, Link, links
from t3hdl.interface.parts import SIMULATED
from t3sim.engine.gpu_state import GpuState
from t3sim.engine.t3unit import program
from t3sim.engine.t3unit.words import FIRST, INSTANCES, instance_counts
from t3sim.hardware.abi import CALL, LoadedHardware, NativeFunction, PartFunctions
from t3sim.hardware.backends import open_hardware
from t3sim.run.allocate import new_gpu
from t3sim.run.plan import RunPlan

from tests.support.connection_values import carried
from tests.support.system_cases import EVEN, request

NOT_COPIED = ("violations", "violation", "stale_updates", "stale_update", "pending")
"""Of the registers: the engine itself notes refused writes (docs/architecture.md), and no program asks for them; it
arms once and aborts never, so no write waits for what is pending."""
NOW, EPOCH = 1234, 5678


@pytest.fixture(scope="module")
def hardware():
    machine = request(EVEN, "t3").machine
    opened = open_hardware(machine.hardware.config(), "golden")
    yield opened
    opened.close()


@cfunc(CALL)
def nothing(state, inputs, outputs):
    """A part that keeps its outputs."""


class Words:
    """The words of all parts of a simulated GPU, by port."""

    def __init__(self, gpu: GpuState, hardware: LoadedHardware) -> None:
        self._words = gpu.words.view(np.uint64)
        self._directory = gpu.words[: 2 * INSTANCES].reshape(-1, 2)
        self._parts = hardware.parts

    def _place(self, end: End, path: str) -> tuple[int, int]:
        """First word and bits of a port."""
        words = self._parts[end.part].words
        first_in, first_out = self._directory[FIRST[end.part] + end.instance]
        side, base = (words.inputs, first_in) if path in words.inputs else (words.outputs, first_out)
        return base + side[path][0], side[path][1]

    def get(self, end: End, path: str) -> int:
        """The value of a port."""
        first, bits = self._place(end, path)
        return int.from_bytes(self._words[first : first + -(-bits // 64)].tobytes(), "little")

    def set(self, end: End, path: str, value: int) -> None:
        """Make up the value of a port."""
        first, bits = self._place(end, path)
        for word in range(first, first + -(-bits // 64)):
            self._words[word] = value & (1 << 64) - 1
            value >>= 64

    def make_up(self, config, rng: random.Random) -> None:
        """Any inputs and outputs, but no command, and no number of a slice that there is not."""
        for name, count in instance_counts(config).items():
            words = self._parts[name].words
            for end in (End(name, instance, "", None) for instance in range(count)):
                for path, (_, bits) in {**words.inputs, **words.outputs}.items():
                    self.set(end, path, rng.getrandbits(bits))
        self.set(End("monitor", 0, "select", None), "select", rng.randrange(config.slices))
        self.set(End("trigger", 0, "command", None), "command.valid", 0)


def cycle_without_steps(gpu: GpuState, words: Words, config) -> None:
    """What the engine does between two steps of the parts; beforehand it has seen their last outputs."""
    gpu.time["now_cycle"], gpu.unit["epoch_cycles"], gpu.dma["commands_done"] = NOW, EPOCH, 0
    gpu.unit["comm_seen"] = any(words.get(End("slice", c, "", None), "comm_seen") for c in range(config.slices))
    gpu.unit["threshold_lines"] = gpu.unit["measure"] = -1
    gpu.fronts["token_take"] = False
    gpu.leaf_tokens[:] = 0
    gpu.leaf_shown[:] = (1 << config.node_inputs) - 1  # the inputs may show anything
    for c in range(config.slices):
        offered = words.get(End("slice", c, "", None), "token.valid")
        gpu.leaf_tokens[c // config.node_inputs] |= offered << c % config.node_inputs
    program.run_cycles(gpu, PartFunctions([NativeFunction(nothing.address, nothing)] * len(SIMULATED)), 1)


def between_parts(config) -> list[Link]:
    """Those that the engine makes: all but the core's own ports, of which it gives the parts the time."""
    return [
        link
        for link in links(config)
        if (link.inside or link.sources[0].path == "now") and link.target.port not in NOT_COPIED
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_engine_copies_what_the_table_says(hardware, seed):
    config = hardware.config
    gpu = new_gpu(RunPlan(request(EVEN, "t3")), 0, hardware, None)
    words = Words(gpu, hardware)
    words.make_up(config, random.Random(seed))
    cycle_without_steps(gpu, words, config)

    def read(end: End, path: str) -> int:
        return NOW + EPOCH if end.part == "core" else words.get(end, path)

    compared = 0
    for link in between_parts(config):
        source = link.sources[0]
        offered = link.kind != "stream" or read(source, f"{source.path}.valid")
        for end, path, value in carried(link, read):
            if path == "token.ready" and end.part == "slice":
                got, value = int(gpu.fronts["token_take"][end.instance]), value & offered  # which the slice then gets
            elif path.endswith(".payload") and not offered:
                continue  # the engine may leave it as it was
            else:
                got = words.get(end, path)
            assert got == value, f"{end.part} {end.instance}: {path}"
            compared += 1
    assert compared > 80


def test_every_input_of_a_part_is_in_the_table(hardware):
    """Each once, and but for ``idle`` and ``wake_at`` every output leads to somewhere."""
    config = hardware.config
    given, used = [], set()

    def read(end: End, path: str) -> int:
        used.add((end.part, end.instance, path))
        return 0

    for link in links(config):
        given += [(end.part, end.instance, path) for end, path, _ in carried(link, read)]
        for end in link.sources:
            used.add((end.part, end.instance, end.path))
    assert len(given) == len(set(given))
    for name, count in instance_counts(config).items():
        if name != "nmc":
            maps = hardware.parts[name].words
            for instance in range(count):
                assert {path for part, number, path in given if (part, number) == (name, instance)} == {*maps.inputs}
                outputs = {path for part, number, path in used if (part, number) == (name, instance)} & {*maps.outputs}
                assert outputs == {*maps.outputs} - {"idle", "wake_at"}
