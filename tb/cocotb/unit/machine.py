"""The machine around a T3 unit: caches and links that make requests, DRAM queues and a DMA engine that take them."""

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from t3hdl.config import NO_LIMIT, T3Config
from t3hdl.interface.layouts import DmaCommand, MemoryRequest, Route
from t3hdl.interface.words import unpack

from tb.words import Ports

REQUESTS = ("compute_read", "compute_write", "comm_read", "comm_write")
DONE_RATE = 0.2
"""Share of cycles in which a command that is under way is reported done."""
Fields = dict[str, int]


@dataclass
class Sent:
    """An item on its way into the unit; ``expect`` judges what comes out for it."""

    port: str
    word: int
    context: int
    """The context of the job that sends it."""
    expect: Callable[[str, Fields], None]


@dataclass
class _Flow:
    """A stream's phases of flow, of trickle and of standstill."""

    rng: random.Random
    rate: float = 1.0

    def __call__(self) -> bool:
        if self.rng.random() < 0.01:
            self.rate = self.rng.choice((0.05, 0.3, 0.7, 1.0, 1.0))
        return self.rng.random() < self.rate


@dataclass
class _Source:
    """An input stream: what waits to be sent, and the item that is offered."""

    flow: _Flow
    waiting: deque[Sent] = field(default_factory=deque)
    offered: bool = False
    inside: deque[Sent] = field(default_factory=deque)
    """Items that were taken and have not come out."""


class Machine:
    """Plays all streams of a unit, and judges every item that comes out by the one that went in.

    ``send`` queues an item for a port; ``commands`` are given to ``on_command`` and reported done to the unit a random
    time later, in any order. Call it once per cycle with the unit's output words; it gives the input words.
    """

    def __init__(self, ports: Ports, config: T3Config, rng: random.Random) -> None:
        self._inputs, self._outputs, self._rng = ports.words.inputs, ports.words.outputs, rng
        self._config = config
        names = [f"{port}.{s}" for port in REQUESTS for s in range(config.slices)]
        names += [f"store.{port}" for port in range(config.egress_ports)]
        self._sources = {name: _Source(_Flow(rng)) for name in names}
        self._sinks = {f"dram.{s}": _Flow(rng) for s in range(config.slices)}
        self._sinks |= {f"route.{port}": _Flow(rng) for port in range(config.egress_ports)}
        self._sinks["command"] = _Flow(rng)
        self._in_memory: list[list[int]] = [[] for _ in range(config.slices)]
        self._under_way: list[int] = []
        self._vector = 0
        self.on_command: Callable[[Fields], None] = lambda command: None
        self.now = 0
        self._sent: Counter[int] = Counter()
        self.tracked = 0
        self.refused = {"refused": 0, "stale": 0}

    def send(self, sent: Sent) -> None:
        """Queue an item behind those that wait at the same port."""
        self._sources[sent.port].waiting.append(sent)
        self._sent[sent.context] += 1

    def inside(self, context: int) -> bool:
        """Whether an item that was sent for this context's job has not come out yet."""
        return self._sent[context] > 0

    def __call__(self, outputs: int) -> int:
        """One cycle."""
        self._outs = outputs
        self.now += 1
        self._drive("now", self.now)
        for name, source in self._sources.items():
            self._offer(name, source)
        for name, flow in self._sinks.items():
            ready = flow()
            self._drive(f"{name}.ready", ready)
            if ready and self._get(f"{name}.valid"):
                self._take(name, self._get(f"{name}.payload"))
        for number in range(self._config.slices):
            self._give_back(number)
            self._report_performed(number)
        self._report_command()
        return self._vector

    def _offer(self, name: str, source: _Source) -> None:
        """Offer the next item, which is taken in this cycle if the unit is ready."""
        if not source.waiting:
            return self._drive(f"{name}.valid", 0)
        if not source.offered:
            source.offered = source.flow()
            self._drive(f"{name}.valid", source.offered)
        if source.offered:
            self._drive(f"{name}.payload", source.waiting[0].word)
            if self._get(f"{name}.ready"):
                source.inside.append(source.waiting.popleft())
                source.offered = False
        return None

    def _take(self, name: str, word: int) -> None:
        kind, _, number = name.partition(".")
        if kind == "command":
            self._under_way.append(unpack(DmaCommand, word)["context"])
            return self.on_command(unpack(DmaCommand, word))
        if kind == "route":
            return self._judge(self._sources[f"store.{number}"].inside.popleft(), "route", unpack(Route, word))
        request = unpack(MemoryRequest, word)
        self._in_memory[int(number)].append(word)
        self.tracked += request["tagged"] * (request["length"] + 1)
        for port in REQUESTS:
            inside = self._sources[f"{port}.{number}"].inside
            if inside and unpack(MemoryRequest, inside[0].word)["tag"] == request["tag"]:
                return self._judge(inside.popleft(), "dram", request)
        raise AssertionError(f"dram.{number} gave an item out of order, or one that was never sent: {request}")

    def _judge(self, sent: Sent, where: str, fields: Fields) -> None:
        self._sent[sent.context] -= 1
        sent.expect(where, fields)

    def _give_back(self, number: int) -> None:
        """Refused writes come back one cycle after they were taken: they are the last that went in."""
        for side in ("compute", "comm"):
            for why in self.refused:
                if self._get(f"{side}_{why}_valid.{number}"):
                    self._take_back(why, f"{side}_write.{number}", self._get(f"{side}_{why}.{number}"))

    def _take_back(self, why: str, port: str, word: int) -> None:
        request = unpack(MemoryRequest, word)
        inside = self._sources[port].inside
        tags = [unpack(MemoryRequest, sent.word)["tag"] for sent in inside]
        assert request["tag"] in tags, f"{port} gets back what was never sent: {request}"
        place = tags.index(request["tag"])
        sent = inside[place]
        del inside[place]
        self.refused[why] += 1
        self._judge(sent, why, request)

    def _report_performed(self, number: int) -> None:
        memory = self._in_memory[number]
        performed = bool(memory) and self._rng.random() < 0.5
        self._drive(f"update_done_valid.{number}", performed)
        if performed:
            self._drive(f"update_done.{number}", memory.pop(self._rng.randrange(min(4, len(memory)))))
        if self._rng.random() < 0.02:
            self._drive(f"occupancy.{number}", self._rng.choice((0, 5, 31, 126, NO_LIMIT)))

    def _report_command(self) -> None:
        done = bool(self._under_way) and self._rng.random() < DONE_RATE
        self._drive("command_done_valid", done)
        if done:
            self._drive("command_done", self._under_way.pop(self._rng.randrange(len(self._under_way))))

    def _drive(self, port: str, value: int) -> None:
        first, bits = self._inputs[port]
        shift = 64 * first
        mask = (1 << bits) - 1
        held = self._vector >> shift & mask
        if held != value:
            self._vector ^= (held ^ int(value)) << shift

    def _get(self, port: str) -> int:
        first, bits = self._outputs[port]
        return self._outs >> 64 * first & (1 << bits) - 1
