"""The match at the egress: which output buffer and which chunk a store row belongs to, and where it goes."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Fragment, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ..common.broadcast import ControlPulses, control_pulses, written
from ..common.choose import chosen, lowest_bit, one_hot_index
from ..common.parity import write_with_parity
from ..common.queues import InputQueue
from ..common.range_table import RangeTable, find_range
from ..common.state_parity import under_state_parity
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import LINE_BITS, NEVER, ChunkKind, MemoryRequest, Route
from ..interface.signatures import matcher_signature

_CHUNK_WORDS = (
    data.StructLayout({"row0": 12, "row1": 12, "col0": 12, "col1": 12, "kind": 2, "op": 3, "peer": 8}),
    data.StructLayout({"context": 4}),
    None,
    data.StructLayout({"peer_base": LINE_BITS}),
)
"""What the egress keeps of each word of a descriptor."""

_Window = data.StructLayout({"first": 6, "end": 7})
"""Descriptors [first, end) of a context."""


@dataclass(frozen=True)
class _Chunk:
    """A descriptor as the egress keeps it."""

    place: data.View
    context: Value
    peer_base: Value
    sound: Value
    written: Value


Match = data.StructLayout({"line": LINE_BITS, "op": 3, "offset": LINE_BITS, "matched": 1, "descriptor": 6})
"""A row, its lines from its range's base, and the descriptor that it matches; that one's contents come later."""


class RangeMatcher(wiring.Component):
    """At the GPU's egress: turns a store row of a remote chunk into a packet for the peer, lets others stay.

    Parameters
    ----------
    config : the hardware configuration (``ranges``, ``descriptors``, ``contexts``, ``protect``).

    Members
    -------
    store : In(stream(MemoryRequest)) : a burst of a row of a wavefront tile, by its first line.
    route : Out(stream(Route)) : where it goes, in the order of ``store``.
    config_valid, config : In : configuration writes (ranges, descriptors, CONTROL).
    corrected, uncorrectable : Out(1) : sticky; the first is always 0, the second: a register is damaged. What a damaged
        range, descriptor or window describes matches nothing. Cleared by a disarm.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is ``NEVER``.

    Latency: 3. Throughput: one row per cycle. Reset: empty, not armed, every range and descriptor 0. Disarm empties
    the windows and keeps ranges, descriptors, and the rows that were taken.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(matcher_signature(config))
        self._parameters = config

    @property
    def parameters(self) -> T3Config:
        """The hardware configuration (``config`` is the port of the configuration writes)."""
        return self._parameters

    @property
    def latency(self) -> int:
        """Cycles from ``store`` to ``route`` when nothing waits."""
        return 3

    def elaborate(self, platform: Any) -> Module | Fragment:
        """With ``protect`` a parity watches the registers that have none of their own."""
        return under_state_parity(self._parts, platform, protect=self._parameters.protect)

    def _parts(self, wrong: Value) -> Module:
        """Queue, match, register with the descriptor's number, its contents, output register."""
        m = Module()
        config = self._parameters
        control = control_pulses(m, self.config_valid, self.config)
        windows, sound_windows = self._windows(m, control)
        chunks = self._descriptors(m)
        m.submodules.ranges = table = RangeTable(entries=config.ranges, protect=config.protect)
        queue = InputQueue(MemoryRequest)
        m.submodules.queue = queue
        m.d.comb += [
            table.config_valid.eq(self.config_valid),
            table.config.eq(self.config),
            queue.i.valid.eq(self.store.valid),
            queue.i.payload.eq(self.store.payload),
            self.store.ready.eq(queue.i.ready),
        ]
        found, found_valid = Signal(Match, name="found"), Signal(name="found_valid")
        output_free, found_free = Signal(name="output_free"), Signal(name="found_free")
        m.d.comb += [
            output_free.eq(~self.route.valid | self.route.ready),
            found_free.eq(~found_valid | output_free),
            queue.o.ready.eq(found_free),
        ]
        item = queue.o.payload
        window = chosen(Cat(item.context == c for c in range(config.contexts)), windows)
        match = self._match(m, item, table.ranges, chunks, window)
        route = self._route(m, found, chunks)
        with m.If(found_free):
            m.d.sync += found_valid.eq(queue.o.valid)
            with m.If(queue.o.valid):
                m.d.sync += found.eq(match)
        with m.Elif(Cat(chunk.written for chunk in chunks).bit_select(found.descriptor, 1)):
            m.d.sync += found.matched.eq(0)
        with m.If(output_free):
            m.d.sync += self.route.valid.eq(found_valid)
            with m.If(found_valid):
                m.d.sync += self.route.payload.eq(route)

        # Idle: nothing can move up before `route` transfers.
        damaged = Signal()
        m.d.comb += [
            damaged.eq(table.damaged | ~sound_windows | ~Cat(chunk.sound for chunk in chunks).all()),
            self.idle.eq(
                (self.route.valid | ~found_valid)
                & (found_valid | ~queue.o.valid)
                & ~(wrong | (damaged & ~self.uncorrectable))
            ),
            self.wake_at.eq(NEVER),
        ]
        m.d.sync += self.uncorrectable.eq(((self.uncorrectable | damaged) & ~control.disarm) | wrong)
        return m

    def _windows(self, m: Module, control: ControlPulses) -> tuple[list[Value], Value]:
        """Of each context first and end of its window, and whether all are sound. A damaged one is empty."""
        windows, sound = [], []
        for c in range(self._parameters.contexts):
            window = Signal(_Window.size, name=f"window_{c}")
            mine = control.context == c
            armed_now = control.arm & mine
            good = write_with_parity(
                m,
                window,
                write=armed_now | (control.abort & mine) | control.disarm,
                value=Mux(armed_now, Cat(control.first, (control.first + control.descriptors)[:7]), 0),
                protect=self._parameters.protect,
            )
            windows.append(Mux(good, window, 0))
            sound.append(good)
        return windows, Cat(sound).all()

    def _descriptors(self, m: Module) -> list[_Chunk]:
        """The copy of the descriptors, changed by configuration writes."""
        chunks = []
        for i in range(self._parameters.descriptors):
            words, sound, writes = {}, [], []
            for word, layout in enumerate(_CHUNK_WORDS):
                if layout is None:
                    continue
                source = data.View(
                    regs.DESCRIPTOR_LAYOUTS[word], self.config.data[: regs.DESCRIPTOR_LAYOUTS[word].size]
                )
                register = Signal(layout, name=f"chunk_{i}_{word}")
                writes.append(
                    written(self.config_valid, self.config, regs.DESCRIPTOR + i * regs.DESCRIPTOR_STRIDE + 8 * word)
                )
                sound.append(write_with_parity(
                    m, register.as_value(), write=writes[-1],
                    value=Cat(source[name] for name in layout.members), protect=self._parameters.protect,
                ))  # fmt: skip
                words[word] = register
            chunks.append(_Chunk(words[0], words[1].context, words[3].peer_base, Cat(sound).all(), Cat(writes).any()))
        return chunks

    def _match(self, m: Module, item: data.View, ranges: Any, chunks: list[_Chunk], window: Value) -> data.View:
        """The range and the descriptor of ``item``, whose context has ``window``, in the same cycle.

        A descriptor that is being written matches nothing: its contents would not be those that were compared.
        """
        place = find_range(m, ranges, item, contexts=self._parameters.contexts)
        look = Signal(_Window)
        m.d.comb += look.eq(window)
        hits = Signal(len(chunks))
        m.d.comb += hits.eq(Cat(
            chunk.sound & ~chunk.written & (look.first < i + 1) & (i < look.end)
            & (chunk.place.kind != ChunkKind.NONE) & (chunk.context == item.context)
            & _within(chunk.place.row0, item.row, chunk.place.row1)
            & _within(chunk.place.col0, item.col, chunk.place.col1)
            for i, chunk in enumerate(chunks)
        ))  # fmt: skip
        match = Signal(Match)
        m.d.comb += [
            match.line.eq(item.line),
            match.op.eq(item.op),
            match.offset.eq(place.offset),
            match.matched.eq(place.live & item.tagged & hits.any()),
            match.descriptor.eq(one_hot_index(lowest_bit(hits))),
        ]
        return match

    def _route(self, m: Module, found: data.View, chunks: list[_Chunk]) -> data.View:
        """The route of a match: what its descriptor says, in the same cycle."""
        number = found.descriptor[: (len(chunks) - 1).bit_length()]
        place, peer_base, sound = (
            Array(getattr(chunk, name) for chunk in chunks)[number] for name in ("place", "peer_base", "sound")
        )
        result = Signal(Route)
        m.d.comb += [
            result.matched.eq(found.matched & sound),
            result.remote.eq(result.matched & (place.kind == ChunkKind.REMOTE)),
            result.descriptor.eq(Mux(result.matched, found.descriptor, 0)),
            result.op.eq(Mux(result.remote, place.op, found.op)),
            result.peer.eq(Mux(result.remote, place.peer, 0)),
            result.line.eq(Mux(result.remote, found.offset + peer_base, found.line)),
        ]
        return result


def _within(first: Value, value: Value, end: Value) -> Value:
    """``first`` <= ``value`` < ``end``. Of a <= synthesis makes a subtraction and a test for zero behind it."""
    return ~(value < first) & (value < end)
