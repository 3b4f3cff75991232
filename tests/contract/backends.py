"""The implementations of a part, behind one interface: Amaranth's simulator, compiled RTL, golden model.

Ports are named as in :func:`t3hdl.interface.words.word_map`: ``now``, ``dram.payload``, ``token.0.ready``.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Fragment, Module, Value
from amaranth.lib.memory import MemoryData
from amaranth.lib.wiring import Component, In, Signature
from amaranth.sim import Simulator
from t3hdl.config import T3Config
from t3hdl.export.verilog import PARTS
from t3sim.hardware.abi import Instance, PartType
from t3sim.hardware.golden.backend import golden_hardware, initial_state
from t3sim.hardware.rtl.backend import CompiledPart, compiled_part

from tests.support.system_cases import missing_compiler

BACKENDS = ("amaranth", "rtl", "golden")


class Backend(Protocol):
    """One instance of a part after reset, in its first cycle."""

    signature: Signature

    def set(self, port: str, value: int) -> None:
        """Drive an input; it keeps its value."""

    def get(self, port: str) -> int:
        """An output in the present cycle."""

    def clock(self) -> None:
        """One clock edge."""

    def reset(self) -> None:
        """Back to the state after reset, with all inputs 0."""

    def state(self) -> Any:
        """All that the part keeps, comparable by ``==``; None if it cannot be seen."""


class AmaranthBackend:
    """A component in Amaranth's simulator.

    ``signals`` has its ports, ``registers`` every register and memory row, ``fragment`` the design; ``context`` reads
    and sets their values.
    """

    def __init__(self, component: Component) -> None:
        self.component, self.signature = component, component.signature
        self.signals = {
            ".".join(map(str, path)): Value.cast(value) for path, _, value in component.signature.flatten(component)
        }
        self._driven = [
            ".".join(map(str, path)) for path, member, _ in component.signature.flatten(component) if member.flow == In
        ]
        top, self._domain = Module(), ClockDomain("sync")
        top.domains += self._domain
        top.submodules.part = self.fragment = Fragment.get(component, None)
        self.registers = list(_registers(self.fragment))
        self._simulator = Simulator(top)
        self._simulator.add_testbench(self._hand_over)
        self._simulator.advance()

    async def _hand_over(self, context: Any) -> None:
        """A testbench that only lends its context: the clock is driven by hand, so that scenarios need no ``await``."""
        self.context = context
        await context.delay(1)

    def set(self, port: str, value: int) -> None:
        self.context.set(self.signals[port], value)

    def get(self, port: str) -> int:
        return self.context.get(self.signals[port])

    def clock(self) -> None:
        self.context.set(self._domain.clk, 1)
        self.context.set(self._domain.clk, 0)

    def reset(self) -> None:
        for port in self._driven:
            self.set(port, 0)
        self.context.set(self._domain.rst, 1)
        self.clock()
        self.context.set(self._domain.rst, 0)

    def restart(self) -> None:
        """Back to power-up: memories and faults, too."""
        self._simulator.reset()
        self._simulator.advance()

    def invert(self, place: Value, *bits: int) -> None:
        """Invert these bits of one of ``registers``: a single-event upset."""
        self.context.set(place, self.context.get(place) ^ sum(1 << bit for bit in bits))

    def state(self) -> list[int]:
        return [self.context.get(register) for register in self.registers]


def _registers(fragment: Any) -> Iterator[Value]:
    """Every register and every memory row of an elaborated design."""
    for domain, statements in fragment.statements.items():
        if domain != "comb":
            yield from {id(signal): signal for signal in statements._lhs_signals()}.values()
    memory = getattr(fragment, "_data", None)
    if isinstance(memory, MemoryData):
        yield from (Value.cast(memory[row]) for row in range(memory.depth))
    for sub, *_ in fragment.subfragments:
        yield from _registers(sub)


class InstanceBackend:
    """A part behind the interface of :mod:`t3sim.hardware.abi`; ``memory``: its state, if it can be seen.

    Bits of an input word above the port's width hold ones: they must not matter. Those of an output word must be 0.
    """

    def __init__(self, part: PartType, signature: Signature, memory: np.ndarray | None = None) -> None:
        self.signature, self.memory = signature, memory
        self.instance = Instance(part)
        self._words = part.words

    def set(self, port: str, value: int) -> None:
        self.instance.set(port, value)

    def get(self, port: str) -> int:
        return self.instance.get(port)

    def clock(self) -> None:
        for first, bits in self._words.inputs.values():
            if bits % 64:
                self.instance.inputs[first + bits // 64] |= np.uint64((1 << 64) - (1 << bits % 64))
        self.instance.step()
        for first, bits in self._words.outputs.values():
            assert bits % 64 == 0 or self.instance.outputs[first + bits // 64] < 1 << bits % 64

    def reset(self) -> None:
        self.instance.inputs[:] = 0
        self.instance.reset()

    def state(self) -> bytes | None:
        return None if self.memory is None else self.memory.tobytes()


@lru_cache(maxsize=8)
def _simulated(name: str, config: T3Config) -> AmaranthBackend:
    """Kept, because to make a simulator takes longer than most scenarios."""
    return AmaranthBackend(PARTS[name](config))


@lru_cache(maxsize=32)
def _compiled(name: str, config: T3Config) -> CompiledPart:
    return compiled_part(config, name)


def open_part(backend: str, name: str, config: T3Config) -> Backend:
    """The part ``name`` of :data:`~t3hdl.export.verilog.PARTS` in this configuration, from one of :data:`BACKENDS`.

    There is one instance of each part and configuration in Amaranth's simulator: another call restarts it.
    """
    if backend == "amaranth":
        simulated = _simulated(name, config)
        simulated.restart()
        return simulated
    signature = PARTS[name](config).signature
    if backend == "golden":
        memory = initial_state(name, config)
        part = replace(golden_hardware(config).parts[name], new=lambda: memory.ctypes.data)
        return InstanceBackend(part, signature, memory)
    if missing_compiler():
        pytest.skip(missing_compiler())
    return InstanceBackend(_compiled(name, config).part_type, signature)
