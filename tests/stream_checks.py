"""A bench for one part in Amaranth's simulator, which checks in every cycle what holds for every part.

That is: outputs depend on registers only; a valid output stays, with its payload, until its transfer; and a part
that says ``idle`` keeps its promise (docs/hardware.md, rules 1 and 5).
"""

import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from amaranth.hdl import Fragment, Value
from amaranth.lib import data
from amaranth.lib.memory import MemoryData
from amaranth.lib.wiring import In
from amaranth.sim import Simulator
from t3hdl.interface import register_map as regs


def _registers(fragment: Any) -> Iterator[Any]:
    """Every register bit and every memory row of an elaborated design."""
    for domain, statements in fragment.statements.items():
        if domain != "comb":
            yield from {id(signal): signal for signal in statements._lhs_signals()}.values()
    memory = getattr(fragment, "_data", None)
    if isinstance(memory, MemoryData):
        yield from (Value.cast(memory[row]) for row in range(memory.depth))
    for sub, *_ in fragment.subfragments:
        yield from _registers(sub)


def _members(part: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, member and object of every port and stream; those of an array are called ``name.0`` and so on."""
    for name, member in part.signature.members.items():
        value = getattr(part, name)
        if not member.dimensions:
            yield name, member, value
        for index in range(member.dimensions[0] if member.dimensions else 0):
            yield f"{name}.{index}", member, value[index]


def _plain(value: Any) -> Any:
    """A payload as a dictionary of integers."""
    return {name: value[name] for name in value.shape().members} if isinstance(value, data.Const) else value


class Bench:
    """Steps ``part`` cycle by cycle and checks the rules.

    ``send[port]`` holds the items to offer (random gaps with probability ``gap``), ``accept[port]`` is the
    probability of ready, ``got[port]`` lists the items that left as (cycle, payload). ``now`` counts the cycles.
    """

    def __init__(self, ctx: Any, part: Any, fragment: Any, *, seed: int, pulses: tuple[str, ...] = ()) -> None:
        self.ctx, self.part, self.fragment, self.random = ctx, part, fragment, random.Random(seed)
        self.now = self.idle_checks = 0
        self.gap = 0.0
        members = list(_members(part))
        self._sources = {name: value for name, m, value in members if m.is_signature and m.flow == In}
        self._sinks = {name: value for name, m, value in members if m.is_signature and m.flow != In}
        self._ports = {name: value for name, m, value in members if m.is_port and m.flow == In}
        self._outputs = {
            ".".join(str(step) for step in path): Value.cast(value)
            for path, member, value in part.signature.flatten(part)
            if member.flow != In
        }
        self._pulses = [name for name in self._ports if "_valid" in name or name in pulses]
        # Streams and pulses count by what transfers; what else may change is the level of the other inputs.
        unlevel = {"now", *self._pulses, *(name.replace("_valid", "") for name in self._pulses)}
        self._levels = [port for name, port in self._ports.items() if name not in unlevel]
        self._registers = list(_registers(fragment)) if hasattr(part, "idle") else []
        self.send: dict[str, deque] = {name: deque() for name in self._sources}
        self.got: dict[str, list] = {name: [] for name in self._sinks}
        self.sent: dict[str, list] = {name: [] for name in self._sources}
        self.accept = dict.fromkeys(self._sinks, 1.0)
        self._held: dict[str, int] = {}
        self._last_levels: list[int] | None = None

    async def step(self, count: int = 1, **inputs: Any) -> None:
        """``count`` cycles with these values at the ports that are no streams (a pulse lasts one cycle)."""
        for _ in range(count):
            await self._cycle(inputs)
            for name in inputs:
                if name in self._pulses:
                    inputs = {**inputs, name: 0}

    async def write(self, address: int, value: Any, layout: Any = None) -> None:
        """One configuration write; ``value`` is an integer or the fields of ``layout``."""
        word = value if layout is None else layout.const(value).as_bits()
        await self.step(config_valid=1, config={"address": address, "data": word})
        self.ctx.set(self.part.config_valid, 0)

    def __getitem__(self, name: str) -> int:
        """The value of an output now."""
        return self.ctx.get(self._outputs[name])

    async def _cycle(self, inputs: dict[str, Any]) -> None:
        before = self._sample()
        self._drive(inputs)
        outputs = self._sample()
        assert outputs == before, "rule 1: an output follows an input in the same cycle"
        self._check_held(outputs)
        moved = self._transfer(outputs)
        registers = self._promised(outputs, moved)
        await self.ctx.tick()
        if registers is not None:
            self.idle_checks += 1
            changed = [r for r, value in zip(self._registers, registers, strict=True) if self.ctx.get(r) != value]
            assert not changed, f"rule 5: idle in cycle {self.now}, but these changed: {changed}"
        self.now += 1

    def _sample(self) -> dict[str, int]:
        return {name: self.ctx.get(value) for name, value in self._outputs.items()}

    def _drive(self, inputs: dict[str, Any]) -> None:
        for name, value in inputs.items():
            self.ctx.set(self._ports[name], value)
        if "now" in self._ports:
            self.ctx.set(self._ports["now"], self.now)
        for name, port in self._sources.items():
            items = self.send[name]
            # An item once offered stays until it is taken.
            offered = bool(items) and (name in self._held or self.random.random() >= self.gap)
            self.ctx.set(port.valid, offered)
            if offered:
                self.ctx.set(port.payload, items[0])
                self._held[name] = 1
        for name, port in self._sinks.items():
            self.ctx.set(port.ready, self.random.random() < self.accept[name])

    def _check_held(self, outputs: dict[str, int]) -> None:
        for name in self._sinks:
            if name in self._held:
                assert outputs[f"{name}.valid"], f"rule 1: {name}.valid fell before the transfer"
                assert outputs[f"{name}.payload"] == self._held[name], f"rule 1: {name}.payload changed while it waited"

    def _transfer(self, outputs: dict[str, int]) -> bool:
        moved = False
        for name, port in self._sources.items():
            if self.ctx.get(port.valid) and outputs[f"{name}.ready"]:
                self.sent[name].append((self.now, self.send[name].popleft()))
                self._held.pop(name)
                moved = True
        for name, port in self._sinks.items():
            self._held.pop(name, None)
            if outputs[f"{name}.valid"] and self.ctx.get(port.ready):
                self.got[name].append((self.now, _plain(self.ctx.get(port.payload))))
                moved = True
            elif outputs[f"{name}.valid"] and not self._disarming():
                self._held[name] = outputs[f"{name}.payload"]
        return moved

    def _disarming(self) -> bool:
        if not hasattr(self.part, "config_valid") or not self.ctx.get(self.part.config_valid):
            return False
        write = self.ctx.get(self.part.config)
        return write.address == regs.CONTROL and bool(
            regs.Control.from_bits(write.data & (1 << regs.Control.size) - 1).disarm
        )

    def _promised(self, outputs: dict[str, int], moved: bool) -> list[int] | None:
        """The registers before this cycle, if the part promises to keep them."""
        if not self._registers:
            return None
        levels = [self.ctx.get(port) for port in self._levels]
        same, self._last_levels = levels == self._last_levels, levels
        pulse = any(self.ctx.get(self._ports[name]) for name in self._pulses)
        if same and not pulse and not moved and outputs["idle"] and self.now < outputs["wake_at"]:
            return [self.ctx.get(register) for register in self._registers]
        return None


def run(
    part: Any, scenario: Callable[[Bench], Awaitable[None]], *, seed: int = 1, pulses: tuple[str, ...] = ()
) -> None:
    """Runs ``scenario`` with a fresh bench around ``part``."""
    print(f"seed {seed}")
    fragment = Fragment.get(part, None)

    async def testbench(ctx: Any) -> None:
        await scenario(Bench(ctx, part, fragment, seed=seed, pulses=pulses))

    simulator = Simulator(fragment)
    simulator.add_clock(1e-9)
    simulator.add_testbench(testbench)
    simulator.run()
