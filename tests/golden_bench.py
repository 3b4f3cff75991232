"""A test bench for one part of the golden model: drives ports by name, checks the idle promise in every cycle."""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import Signature
from t3hdl.interface.layouts import ConfigWrite
from t3hdl.interface.signatures import word_map
from t3sim.hardware.abi import Instance, NativeFunction, PartType


def pack(layout: data.StructLayout, **values: int) -> int:
    """The struct with these fields as one integer; fields that are not named are 0."""
    word = 0
    for name, value in values.items():
        field = layout[name]
        assert 0 <= value < 1 << Shape.cast(field.shape).width, (name, value)
        word |= int(value) << field.offset
    return word


def unpack(layout: data.StructLayout, word: int) -> dict[str, int]:
    """The fields of a struct."""
    return {str(name): word >> field.offset & (1 << Shape.cast(field.shape).width) - 1 for name, field in layout}


class Bench:
    """One instance after reset, in its first cycle.

    A port is named without ``.payload`` and ``.valid``: :meth:`tick` presents a stream item or a pulse for one cycle
    (``compute_read=item``); other inputs keep their value until they are set again. ``now`` counts cycles.
    """

    def __init__(self, module: ModuleType, signature: Signature, state: np.ndarray) -> None:
        self.state = state
        part = PartType(
            name=module.__name__,
            words=word_map(signature),
            step=NativeFunction(module.step.address, module.step),
            reset=NativeFunction(module.reset.address, module.reset),
            new=lambda: state.ctypes.data,
        )
        self.instance = Instance(part)
        self.inputs = part.words.inputs
        self.now = 0
        self._seen: dict[str, int] = {}

    def get(self, port: str) -> int:
        """An output at the present cycle."""
        return self.instance.get(port)

    def item(self, port: str) -> int | None:
        """The item that a stream or pulse output shows at the present cycle, None if it is not valid."""
        stream = f"{port}.payload" in self.instance.part.words.outputs
        valid, payload = (f"{port}.valid", f"{port}.payload") if stream else (f"{port}_valid", port)
        return self.get(payload) if self.get(valid) else None

    def tick(self, cycles: int = 1, **ports: int) -> None:
        """Clock ``cycles`` times; items and pulses in ``ports`` are present in the first of these cycles only."""
        once = []
        for name, value in ports.items():
            for valid, payload in ((f"{name}.valid", f"{name}.payload"), (f"{name}_valid", name)):
                if valid in self.inputs and payload in self.inputs:
                    self.instance.set(payload, value)
                    self.instance.set(valid, 1)
                    once.append(valid)
                    break
            else:
                name = name if name in self.inputs else name.replace("_ready", ".ready")
                self.instance.set(name, value)
        for _ in range(cycles):
            self._clock()
            for valid in once:
                self.instance.set(valid, 0)

    def write(self, address: int, value: int) -> None:
        """One cycle with a configuration pulse."""
        self.tick(config=pack(ConfigWrite, address=address, data=value))

    def until(self, port: str, limit: int = 100) -> int:
        """Cycles from now until the output is not 0."""
        for cycles in range(limit):
            if self.get(port):
                return cycles
            self.tick()
        raise AssertionError(f"{port} stayed 0 for {limit} cycles")

    def _clock(self) -> None:
        if "now" in self.inputs:
            self.instance.set("now", self.now)
        promised = self._promised()
        before = self.state.copy()
        for first, bits in self.inputs.values():  # bits above a port's width must not matter
            if bits % 64:
                self.instance.inputs[first + bits // 64] |= np.uint64((1 << 64) - (1 << bits % 64))
        self.instance.step()
        for first, bits in self.instance.part.words.outputs.values():
            assert bits % 64 == 0 or self.instance.outputs[first + bits // 64] < 1 << bits % 64
        self.now += 1
        if promised:
            assert np.array_equal(before, self.state), f"cycle {self.now - 1}: idle, but the state changed"

    def _promised(self) -> bool:
        """Whether ``idle`` promises that this cycle changes nothing (rule 5 of the contract).

        Only levels count as changed inputs: the end of a pulse and a payload without valid are none.
        """
        pulses, streams, sinks, levels = set(), set(), set(), {}
        for name in self.inputs:
            stem = name.removesuffix(".payload").removesuffix(".valid").removesuffix(".ready").removesuffix("_valid")
            if name.endswith(".ready"):
                sinks.add(stem)
            elif name.endswith(".valid"):
                streams.add(stem)
            elif name.endswith("_valid"):
                pulses.add(name)
            elif not (name.endswith(".payload") or f"{name}_valid" in self.inputs or name == "now"):
                levels[name] = self._input(name)
        changed, self._seen = levels != self._seen, levels
        enters = any(self._input(f"{stream}.valid") and self.get(f"{stream}.ready") for stream in streams)
        leaves = any(self._input(f"{sink}.ready") and self.get(f"{sink}.valid") for sink in sinks)
        waits = self.get("idle") and self.now < self.get("wake_at")
        return bool(waits) and not (changed or enters or leaves or any(map(self._input, pulses)))

    def _input(self, name: str) -> int:
        first, bits = self.inputs[name]
        word = int.from_bytes(self.instance.inputs[first : first + -(-bits // 64)].tobytes(), "little")
        return word & (1 << bits) - 1


def fields(layout: data.StructLayout, words: Iterable[int], *names: str) -> list[Any]:
    """The named fields of each struct: one value each for one name, tuples for more."""
    rows = [tuple(unpack(layout, word)[name] for name in names) for word in words]
    return [row[0] for row in rows] if len(names) == 1 else rows
