"""A bench for one part of the T3 unit, RTL or golden model, which checks in every cycle what holds for every part.

That is: outputs depend on registers only (seen in Amaranth's simulator alone: compiled RTL and golden model change
theirs at a clock); a valid output stays, with its payload, until its transfer; and a part that says ``idle`` keeps its
promise (docs/hardware/rules.md, rules 1 and 5).
"""

import random
from collections import deque
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import Component, In
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ConfigWrite
from t3hdl.interface.words import pack, unpack

from tests.contract.backends import AmaranthBackend, Backend, open_part


class Bench:
    """Steps a part cycle by cycle and checks the rules.

    A stream or pulse is called by its name without ``.payload`` and ``.valid``, or ``_valid``; its items are ``dict``
    of fields where the payload is a struct, else ``int``. ``send[stream]`` holds the items to offer (with random gaps
    of probability ``gap``), each until it is taken; ``accept[stream]`` is the probability of ready, 1 at first;
    ``sent`` and ``got`` list the items that were transferred, as (cycle, item). ``now`` counts the cycles. ``moore`` is
    False for a piece of a part whose outputs depend on its inputs.
    """

    def __init__(self, backend: Backend, *, seed: int = 1, moore: bool = True) -> None:
        print(f"seed {seed}")
        self.backend, self.random, self._moore = backend, random.Random(seed), moore
        self.now = self.idle_checks = 0
        self.gap = 0.0
        self._shapes: dict[str, Any] = {}
        inputs, outputs = [], []
        for path, member, _ in backend.signature.flatten(backend.signature.create()):
            name = ".".join(map(str, path))
            self._shapes[name] = member.shape
            (inputs if member.flow == In else outputs).append(name)
        self._inputs = dict.fromkeys(inputs, 0)
        self._outputs = outputs
        self._sources = [name.removesuffix(".valid") for name in inputs if name.endswith(".valid")]
        self._sinks = [name.removesuffix(".ready") for name in inputs if name.endswith(".ready")]
        self._pulses = [name for name in inputs if name.endswith("_valid")]
        of_pulses = {name.removesuffix("_valid") for name in self._pulses}
        self._levels = [
            name
            for name in inputs
            if name != "now"
            and name not in self._pulses
            and name not in of_pulses
            and not name.endswith((".payload", ".valid", ".ready"))
        ]
        self.send: dict[str, deque] = {name: deque() for name in self._sources}
        self.sent: dict[str, list] = {name: [] for name in self._sources}
        self.got: dict[str, list] = {name: [] for name in self._sinks}
        self.accept = dict.fromkeys(self._sinks, 1.0)
        self._offered: set[str] = set()
        self._changed: set[str] = set()
        self._held: dict[str, int] = {}
        self._last_levels: list[int] | None = None

    def __getitem__(self, port: str) -> int:
        """The value of an output in this cycle, as an integer."""
        return self.backend.get(port)

    def fields(self, port: str) -> Any:
        """The value of an output in this cycle, as a dictionary if it is a struct."""
        return _plain(self._shapes[port], self[port])

    def item(self, name: str) -> Any:
        """The item that a stream or a pulse shows in this cycle; None if it is not valid."""
        stream = f"{name}.payload" in self._shapes
        valid, payload = (f"{name}.valid", f"{name}.payload") if stream else (f"{name}_valid", name)
        if not self[valid]:
            return None
        return self.fields(payload) if payload in self._shapes else True

    def set(self, port: str, value: Any) -> None:
        """Drive an input that is neither stream nor pulse; it keeps its value."""
        word = _word(self._shapes[port], value)
        if word != self._inputs[port]:
            self._inputs[port] = word
            if self._moore:
                self._changed.add(port)  # driven in the cycle, after a look at the outputs without it
            else:
                self.backend.set(port, word)

    def step(self, count: int = 1, **inputs: Any) -> None:
        """``count`` cycles; pulses among ``inputs`` come in the first of them, other inputs keep their values.

        A pulse is named as its payload (``config={...}``), or ``X_valid=1`` if it has none or keeps it.
        """
        pulses = [f"{name}_valid" for name in inputs if f"{name}_valid" in self._inputs]
        pulses += [name for name in inputs if name in self._pulses]
        for name, value in inputs.items():
            self.set(name, value)
        for name in pulses:
            self.set(name, inputs.get(name, 1))
        for _ in range(count):
            self._cycle()
            for name in pulses:
                self.set(name, 0)

    def write(self, address: int, value: Any, layout: Any = None) -> None:
        """One configuration write; ``value`` is an integer or the fields of ``layout``."""
        word = value if layout is None else layout.const(value).as_bits()
        self.step(config={"address": address, "data": word})

    def control(self, **fields: int) -> int:
        """A write of CONTROL; returns its cycle."""
        self.write(regs.CONTROL, fields, regs.Control)
        return self.now - 1

    def until(self, port: str, limit: int = 100) -> int:
        """Cycles from now until the output is not 0."""
        for cycles in range(limit):
            if self[port]:
                return cycles
            self.step()
        raise AssertionError(f"{port} stayed 0 for {limit} cycles")

    def settle(self, limit: int = 2000) -> None:
        """Until all items are sent and the part is idle."""
        while any(self.send.values()) or not self["idle"]:
            self.step()
            limit -= 1
            assert limit, "the part does not settle"

    def reset(self) -> None:
        """Reset the part, with all inputs 0; what is to be sent is forgotten."""
        self.backend.reset()
        self._inputs = dict.fromkeys(self._inputs, 0)
        self._offered.clear()
        self._changed.clear()
        self._held.clear()
        self._last_levels = None
        for items in self.send.values():
            items.clear()

    def _cycle(self) -> None:
        before = self._sample()
        self._drive()
        outputs = self._sample()
        assert not self._moore or outputs == before, "rule 1: an output follows an input in the same cycle"
        self._check_held(outputs)
        moved = self._transfer(outputs)
        promised = self._promised(outputs, moved)
        state = self.backend.state() if promised else None
        self.backend.clock()
        if state is not None:
            self.idle_checks += 1
            assert self.backend.state() == state, f"rule 5: idle in cycle {self.now}, but the state changed"
        self.now += 1

    def _sample(self) -> dict[str, int]:
        return {name: self.backend.get(name) for name in self._outputs}

    def _drive(self) -> None:
        if "now" in self._inputs:
            self.set("now", self.now)
        for name in self._sources:
            items = self.send[name]
            # An item once offered stays until it is taken.
            offered = bool(items) and (name in self._offered or not self.gap or self.random.random() >= self.gap)
            if offered:
                self.set(f"{name}.payload", items[0])
                self._offered.add(name)
            self.set(f"{name}.valid", int(offered))
        for name in self._sinks:
            chance = self.accept[name]
            self.set(f"{name}.ready", int(chance == 1 or (chance > 0 and self.random.random() < chance)))
        for port in self._changed:
            self.backend.set(port, self._inputs[port])
        self._changed.clear()

    def _check_held(self, outputs: dict[str, int]) -> None:
        for name, payload in self._held.items():
            assert outputs[f"{name}.valid"], f"rule 1: {name}.valid fell before the transfer"
            assert outputs[f"{name}.payload"] == payload, f"rule 1: {name}.payload changed while it waited"

    def _transfer(self, outputs: dict[str, int]) -> bool:
        moved = False
        for name in self._sources:
            if self._inputs[f"{name}.valid"] and outputs[f"{name}.ready"]:
                self.sent[name].append((self.now, self.send[name].popleft()))
                self._offered.discard(name)
                moved = True
        for name in self._sinks:
            self._held.pop(name, None)
            if outputs[f"{name}.valid"]:
                payload = outputs[f"{name}.payload"]
                if self._inputs[f"{name}.ready"]:
                    self.got[name].append((self.now, _plain(self._shapes[f"{name}.payload"], payload)))
                    moved = True
                elif not self._disarming():
                    self._held[name] = payload
        return moved

    def _disarming(self) -> bool:
        """Whether this cycle's configuration write is a disarm, which drops what waits."""
        if not self._inputs.get("config_valid"):
            return False
        write = _plain(ConfigWrite, self._inputs["config"])
        return write["address"] == regs.CONTROL and bool(
            regs.Control.from_bits(write["data"] & (1 << regs.Control.size) - 1).disarm
        )

    def _promised(self, outputs: dict[str, int], moved: bool) -> bool:
        """Whether ``idle`` promises that this cycle changes nothing."""
        if "idle" not in outputs:
            return False
        levels = [self._inputs[name] for name in self._levels]
        same, self._last_levels = levels == self._last_levels, levels
        pulse = any(self._inputs[name] for name in self._pulses)
        return same and not pulse and not moved and bool(outputs["idle"]) and self.now < outputs["wake_at"]


def _plain(shape: Any, word: int) -> Any:
    """A struct's word as a dictionary of integers; any other as it is."""
    return unpack(shape, word) if isinstance(shape, data.Layout) else word


def _word(shape: Any, value: Any) -> int:
    """The word of an integer, or of a struct's fields. Raises ValueError for a value that does not fit."""
    if isinstance(value, dict):
        return pack(shape, **value)
    if not 0 <= value < 1 << Shape.cast(shape).width:
        raise ValueError(f"{value:#x} does not fit")
    return int(value)


def bench_of(backend: str, name: str, config: T3Config | None = None, *, seed: int = 1, **overrides: Any) -> Bench:
    """A bench around the part ``name`` of ``config``, by default the preset "small" with ``overrides``."""
    return Bench(open_part(backend, name, config or preset("small", **overrides)), seed=seed)


def bench_around(component: Component, *, seed: int = 1) -> Bench:
    """A bench around a component that is no part of its own: a queue, a table."""
    return Bench(AmaranthBackend(component), seed=seed)
