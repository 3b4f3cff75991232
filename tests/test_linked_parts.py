"""The parts of the unit, simulated apart and linked as the co-simulator does, are the whole T3Core in every cycle."""

import pytest
from t3hdl.config import T3Config
from t3hdl.interface.layouts import MemoryRequest, Violation
from t3hdl.interface.signatures import core_signature, word_map
from t3sim.hardware.abi import Hardware, Instance
from t3sim.hardware.backends import open_hardware
from test_core import CONFIG, TINY
from test_core_rtl import Cycle, recorded, recorded_block, valid_of

_STATUS = {
    "tracker": (
        "entries",
        "peak_entries",
        "overflowed",
        "unmatched",
        "over_count",
        "over_total",
        "maintenance",
        "abort_busy",
        "debug_data",
        "updates",
        "tiles",
    ),
    "trigger": (
        "armed",
        "live",
        "chunks_done",
        "done_mask",
        "poisoned",
        "quiesced",
        "quiet",
        "stuck",
        "triggers",
        "command_stall",
        "peak_ready",
    ),
    "monitor": ("threshold", "chosen"),
}
_BUS = ("bus_valid", "bus_write", "bus_privileged", "bus_address", "bus_data", "nmc_flags")


class LinkedParts:
    """Instances of every part of one unit; all inputs of a cycle are gathered before any part steps."""

    def __init__(self, hardware: Hardware) -> None:
        config = hardware.config
        self.config = config
        self.slices = [Instance(hardware.slice) for _ in range(config.slices)]
        self.matchers = [Instance(hardware.matcher) for _ in range(config.egress_ports)]
        self.leaves = [Instance(hardware.leaf) for _ in range(config.nodes)]
        self.root, self.tracker, self.trigger, self.monitor, self.registers = (
            Instance(part)
            for part in (hardware.root, hardware.tracker, hardware.trigger, hardware.monitor, hardware.registers)
        )

    def parts(self) -> list[Instance]:
        single = [self.root, self.tracker, self.trigger, self.monitor, self.registers]
        return [*self.slices, *self.matchers, *self.leaves, *single]

    def init_done(self) -> int:
        return self.tracker.get("init_done") & self.trigger.get("init_done")

    def output(self, name: str) -> int | None:
        """An output of the unit; None for idle and wake_at, which only the whole unit has."""
        for part, names in _STATUS.items():
            if name in names:
                return getattr(self, part).get(name)
        head, *rest = name.split(".")
        if head == "init_done":
            return self.init_done()
        if head.startswith(("bus_", "response_", "interrupt")):
            return self.registers.get(name)
        if head == "command":
            return self.trigger.get(name)
        if head in ("route", "store"):
            return self.matchers[int(rest[0])].get(f"{head}.{rest[1]}")
        if head in ("idle", "wake_at"):
            return None
        return self.slices[int(rest[0])].get(".".join([head, *rest[1:]]))

    def step(self, inputs: dict[str, int]) -> None:
        """One cycle with these inputs of the unit."""
        self._gather(inputs)
        for part in self.parts():
            part.step()

    def _gather(self, inputs: dict[str, int]) -> None:
        for name, value in inputs.items():
            self._drive(name, value)
        for number, part in enumerate(self.slices):
            leaf, port = self.leaves[number // self.config.node_inputs], number % self.config.node_inputs
            _connect(part, "token", leaf, f"token_in.{port}")
            for level in ("threshold", "measure"):
                part.set(level, self.monitor.get(level))
        for number, leaf in enumerate(self.leaves):
            _connect(leaf, "token_out.0", self.root, f"token_in.{number}")
        for bank in range(self.config.tracker_banks):
            _connect(self.root, f"token_out.{bank}", self.tracker, f"token.{bank}")
        for pulse in ("tile_done", "chunk_done"):
            _pulse(self.tracker, self.trigger, pulse)
        for name in ("poison_valid", "poison_slot", "abort_busy"):
            self.trigger.set(name, self.tracker.get(name))
        _pulse(self.trigger, self.tracker, "load")
        self.monitor.set("tile_done_valid", self.tracker.get("tile_done_valid"))
        self.monitor.set("comm_seen", int(any(part.get("comm_seen") for part in self.slices)))
        self.monitor.set("served", self.slices[self.monitor.get("select") % len(self.slices)].get("served"))
        for part in (*self.slices, *self.matchers, self.tracker, self.trigger, self.monitor):
            _pulse(self.registers, part, "config")
        self.registers.set("init_done", self.init_done())
        for source, names in _STATUS.items():
            for name in names:
                if name in self.registers.part.words.inputs:
                    self.registers.set(name, getattr(self, source).get(name))
        for context in range(self.config.contexts):
            self.registers.set(f"context.{context}", self.trigger.get(f"context.{context}"))
        self._gather_violations()

    def _gather_violations(self) -> None:
        """How many writes the slices refuse in this cycle, and the first of them."""
        pulses = [(part, name) for part in self.slices for name in ("compute_refused", "comm_refused")]
        refused = [part.get(name) for part, name in pulses if part.get(f"{name}_valid")]
        self.registers.set("violations", len(refused))
        if refused:
            request = MemoryRequest.from_bits(refused[0])
            fields = {name: request[name] for name in Violation.members}
            self.registers.set("violation", Violation.const(fields).as_bits())

    def _drive(self, name: str, value: int) -> None:
        head, *rest = name.split(".")
        if head == "now":
            for part in (*self.slices, self.tracker, self.trigger, self.monitor):
                part.set("now", value)
        elif head in _BUS:
            self.registers.set(name, value)
        elif head.startswith("command"):
            self.trigger.set(name, value)
        elif head in ("store", "route"):
            self.matchers[int(rest[0])].set(f"{head}.{rest[1]}", value)
        else:
            self.slices[int(rest[0])].set(".".join([head, *rest[1:]]), value)


def _connect(source: Instance, output: str, target: Instance, port: str) -> None:
    for wire in ("payload", "valid"):
        target.set(f"{port}.{wire}", source.get(f"{output}.{wire}"))
    source.set(f"{output}.ready", target.get(f"{port}.ready"))


def _pulse(source: Instance, target: Instance, name: str) -> None:
    target.set(f"{name}_valid", source.get(f"{name}_valid"))
    target.set(name, source.get(name))


def check(trace: list[Cycle], config: T3Config, backend: str) -> None:
    """The linked parts give the outputs of the whole core."""
    hardware = open_hardware(config, backend)
    linked = LinkedParts(hardware)
    payloads = valid_of(word_map(core_signature(config)).outputs)
    compared = 0
    for cycle, (inputs, outputs) in enumerate(trace):
        for name, value in outputs.items():
            got = linked.output(name)
            if got is not None and outputs.get(payloads.get(name, ""), 1):
                assert got == value, f"{name} in cycle {cycle}"
                compared += 1
        linked.step(inputs)
    assert compared > 10 * len(trace)
    hardware.close()


@pytest.mark.long  # simulates a whole core, and compiles all of its parts
@pytest.mark.parametrize("backend", ["golden", "rtl"])
def test_linked_parts_are_the_unit(backend):
    check(recorded(), CONFIG, backend)


def test_linked_parts_of_the_golden_model_are_a_tiny_core():
    check(recorded_block(), TINY, "golden")
