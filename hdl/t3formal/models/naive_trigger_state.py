"""The registers of :class:`~t3formal.models.naive_trigger.NaiveTrigger`, named as in docs/hardware/trigger.md."""

import enum
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BACKLOG_BITS, TIME_BITS, DmaCommand, SlotLoad, Stuck, TileDone, TileTwice

Chunk = data.StructLayout({
    "place": regs.Place, "amount": regs.Amount, "buffer": regs.Buffer, "target": regs.Target, "tiles": regs.Tiles,
    "last": regs.Last,
})  # fmt: skip
"""The six words of a descriptor, without the bits that have no name."""

Waiting = data.StructLayout({"slot": 6, "number": 6, "by_chunk": 1})
"""A block in a ready list."""


class Walk(enum.IntEnum):
    """What is done to a block."""

    TILE = 0
    FLUSH = 1
    CLEAR = 2
    SCAN = 3


class Loading(enum.IntEnum):
    """States of the loader."""

    WAIT = 0
    READ = 1
    SKIP = 2
    START = 3
    CLEAR = 4
    LOAD = 5


class Issuing(enum.IntEnum):
    """States of the command issuer."""

    FETCH = 0
    LOOKUP = 1
    BUILD = 2


Step = data.StructLayout({
    "valid": 1, "op": 2, "slot": 6, "number": 16, "inside": 1, "tiles": 16, "dma": 1, "context": 4, "last": 1,
    "tile": TileDone, "descriptor": 6, "mark": 16,
})  # fmt: skip
"""An operation in a stage of the block pipeline. ``inside``: the block lies in the chunk. ``last``: of its walk.

``mark``: number of the tile's mark in its slot's share.
"""


class NaiveState:
    """Every register that a disarm clears. ``new`` makes one."""

    def __init__(self, config: T3Config) -> None:
        self.every: list[Any] = []
        self.contexts = [ContextRegisters(self, f"c{c}", config) for c in range(config.contexts)]
        self.slots = [SlotRegisters(self, f"s{s}", config) for s in range(config.chunk_window)]
        self.loading, self.reading = self.new(3, "loading"), self.new(3, "reading")
        self.loader_turn, self.loader_context = self.new(4, "loader_turn"), self.new(4, "loader_context")
        self.loader_slot, self.loader_number = self.new(6, "loader_slot"), self.new(7, "loader_number")
        self.chunk = self.new(Chunk, "chunk")
        self.load_valid, self.load = self.new(1, "load_valid"), self.new(SlotLoad, "load")
        self.walking, self.walk = self.new(1, "walking"), self.new(2, "walk")
        self.walk_dropped = self.new(1, "walk_dropped")
        self.walk_slot, self.walk_number = self.new(6, "walk_slot"), self.new(16, "walk_number")
        self.walk_end = self.new(16, "walk_end")
        self.stage_a, self.stage_b, self.stage_c = (self.new(Step, f"stage_{name}") for name in "abc")
        self.issuing, self.issuer_turn = self.new(2, "issuing"), self.new(4, "issuer_turn")
        self.issuer_context, self.held = self.new(4, "issuer_context"), self.new(Waiting, "held")
        self.command_valid, self.command = self.new(1, "command_valid"), self.new(DmaCommand, "command")
        self.built, self.stall = self.new(TIME_BITS, "built"), self.new(TIME_BITS, "stall")
        self.triggers, self.peak = self.new(32, "triggers"), self.new(13, "peak")
        self.backlog = self.new(BACKLOG_BITS, "backlog")
        self.live, self.chunks_done = self.new(7, "live"), self.new(7, "chunks_done")
        self.done_mask, self.poisoned = self.new(64, "done_mask"), self.new(64, "poisoned")
        self.quiesced = self.new(1, "quiesced")
        self.since, self.scanning = self.new(TIME_BITS, "since"), self.new(1, "scanning")
        self.tile_twice, self.too_large = self.new(TileTwice, "tile_twice"), self.new(1, "too_large")
        self.noted, self.stuck = self.new(Stuck, "noted"), self.new(Stuck, "stuck")

    def new(self, shape: Any, name: str) -> Any:
        """A register that is 0 after reset and disarm."""
        register = Signal(shape, name=f"naive_{name}")
        self.every.append(register)
        return register


class ContextRegisters:
    """A context's state. ``waiting``: its ready list, oldest first."""

    def __init__(self, state: NaiveState, name: str, config: T3Config) -> None:
        self.armed = state.new(1, f"{name}_armed")
        self.following, self.end = state.new(7, f"{name}_following"), state.new(7, f"{name}_end")
        self.slots, self.ready = state.new(7, f"{name}_slots"), state.new(13, f"{name}_ready")
        self.outstanding = state.new(16, f"{name}_outstanding")
        room = config.chunk_window * config.blocks
        self.waiting = [state.new(Waiting, f"{name}_waiting_{i}") for i in range(room)]


class SlotRegisters:
    """A slot's state and its descriptor, for each of its blocks the tile count and whether it has fired, for each
    wavefront tile of its share whether it was complete."""

    def __init__(self, state: NaiveState, name: str, config: T3Config) -> None:
        self.used, self.dma, self.done = (state.new(1, f"{name}_{bit}") for bit in ("used", "dma", "done"))
        self.all_issued, self.pending = state.new(1, f"{name}_all_issued"), state.new(1, f"{name}_pending")
        self.poisoned, self.unissued = state.new(1, f"{name}_poisoned"), state.new(7, f"{name}_unissued")
        self.context, self.descriptor = state.new(4, f"{name}_context"), state.new(6, f"{name}_descriptor")
        self.chunk = state.new(Chunk, f"{name}_chunk")
        self.counts = [state.new(16, f"{name}_count_{i}") for i in range(config.blocks)]
        self.fired = [state.new(1, f"{name}_fired_{i}") for i in range(config.blocks)]
        marks = 1 << config.share_bits + config.wavefront_bits
        self.marks = [state.new(1, f"{name}_mark_{i}") for i in range(marks)]


def pick(items: list[Any], number: Value) -> Value:
    """``items[number]``, 0 if there is none."""
    value: Value = Value.cast(0)
    for i, item in enumerate(items):
        value = Mux(number == i, Value.cast(item), value)
    return value


def lowest(requests: list[Value]) -> Value:
    """The number of the first request; what it is without one means nothing."""
    value: Value = Value.cast(0)
    for i, request in reversed(list(enumerate(requests))):
        value = Mux(request, i, value)
    return value


def in_turn(m: Module, requests: list[Value], turn: Value) -> Signal:
    """The number of the first request at or after ``turn``, in cyclic order."""
    winner = Signal(4)
    n = len(requests)
    for start in range(n):
        for i in reversed(range(start, start + n)):
            with m.If((turn == start) & requests[i % n]):
                m.d.comb += winner.eq(i % n)
    return winner


def any_of(conditions: list[Value]) -> Value:
    """Whether one of them is true."""
    value: Value = Value.cast(0)
    for condition in conditions:
        value = value | condition
    return value


def block_row(number: Value, target: Any) -> Value:
    """The block row in a block's number."""
    return number & ((1 << target.row_blocks_log) - 1)
