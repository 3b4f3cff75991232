"""Address-range match: which output buffer a line belongs to, and at the egress, which chunk and where it goes."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..blocks.broadcast import ControlPulses, control_pulses, written
from ..blocks.parity import keep
from ..blocks.queues import InputQueue
from ..config import T3Config
from ..control import register_map as regs
from ..layouts import LINE_BITS, NEVER, ChunkKind, ConfigWrite, MemoryRequest, Route
from ..signatures import matcher_signature

Range = data.StructLayout({"base": LINE_BITS, "limit": LINE_BITS, "attributes": regs.RangeAttributes})
"""One output buffer: lines [base, limit) and what an access to them means."""

_CHUNK_WORDS = (
    data.StructLayout({"row0": 12, "row1": 12, "col0": 12, "col1": 12, "kind": 2, "op": 3, "peer": 8}),
    data.StructLayout({"context": 4}),
    None,
    data.StructLayout({"peer_base": LINE_BITS}),
)
"""What the egress keeps of each word of a descriptor."""

_Window = data.StructLayout({"first": 6, "end": 7})
"""Descriptors [first, end) of a context."""


class RangeTable(wiring.Component):
    """The RANGE registers. They outlive a disarm.

    Parameters
    ----------
    entries : number of ranges.

    Members
    -------
    config_valid, config : In : configuration writes (RANGE; an abort makes the ranges of its context invalid).
    ranges : Out(Range).array(entries) : the registers; one that is damaged is not valid.
    damaged : Out(1) : a parity bit is wrong.

    Latency: a register written at t is visible at t+1. Reset: 0, no range is valid.
    """

    def __init__(self, *, entries: int, protect: bool) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite), "ranges": Out(Range).array(entries), "damaged": Out(1),
        })  # fmt: skip
        self._protect = protect

    def elaborate(self, platform: Any) -> Module:
        """One address comparison per register."""
        m = Module()
        control = control_pulses(m, self.config_valid, self.config)
        damaged = []
        for i, entry in enumerate(self.ranges):
            address = regs.RANGE + i * regs.RANGE_STRIDE
            attributes = Signal(regs.RangeAttributes, name=f"attributes_{i}")
            fresh = data.View(regs.RangeAttributes, self.config.data[: regs.RangeAttributes.size])
            aborted = control.abort & (attributes.context == control.context)
            sound = [
                self._register(m, f"{name}_{i}", getattr(entry, name), address + 8 * word)
                for word, name in enumerate(("base", "limit"))
            ]
            sound.append(keep(
                m, attributes.as_value(),
                write=aborted | written(self.config_valid, self.config, address + 16),
                value=Mux(aborted, Cat(Const(0, 1), attributes.as_value()[1:]), fresh.as_value()),
                protect=self._protect,
            ))  # fmt: skip
            m.d.comb += [
                entry.attributes.eq(attributes),
                entry.attributes.valid.eq(attributes.valid & Cat(sound).all()),
            ]
            damaged.append(~Cat(sound).all())
        m.d.comb += self.damaged.eq(Cat(damaged).any())
        return m

    def _register(self, m: Module, name: str, output: Value, address: int) -> Value:
        """A bound of a range; returns whether it is as written."""
        register = Signal(LINE_BITS, name=name)
        m.d.comb += output.eq(register)
        write = written(self.config_valid, self.config, address)
        return keep(m, register, write=write, value=self.config.data[:LINE_BITS], protect=self._protect)


@dataclass(frozen=True)
class RangeHit:
    """The range of a line; ``base`` and ``attributes`` are 0 when there is none."""

    hit: Signal
    base: Signal
    attributes: data.View


def find_range(m: Module, ranges: Any, line: Value) -> RangeHit:
    """The lowest valid range with base <= ``line`` < limit, in the same cycle."""
    found = RangeHit(Signal(), Signal(LINE_BITS), Signal(regs.RangeAttributes))
    for i, entry in reversed(list(enumerate(ranges))):
        inside = Signal(name=f"inside_{i}")
        m.d.comb += inside.eq(entry.attributes.valid & (entry.base <= line) & (line < entry.limit))
        with m.If(inside):
            m.d.comb += [found.hit.eq(1), found.base.eq(entry.base), found.attributes.eq(entry.attributes)]
    return found


@dataclass(frozen=True)
class _Chunk:
    """A descriptor as the egress keeps it."""

    place: data.View
    context: Value
    peer_base: Value
    sound: Value


class RangeMatcher(wiring.Component):
    """At the GPU's egress: turns a store row of a remote chunk into a packet for the peer, lets others stay.

    Parameters
    ----------
    config : the hardware configuration (``ranges``, ``descriptors``, ``contexts``, ``protect``).

    Members
    -------
    store : In(stream(MemoryRequest)) : one row of a wavefront tile, by its first line.
    route : Out(stream(Route)) : where it goes, in the order of ``store``.
    config_valid, config : In : configuration writes (ranges, descriptors, CONTROL).
    corrected, uncorrectable : Out(1) : sticky; the first is always 0, the second: a register is damaged, and what it
        describes matches nothing. Cleared by a disarm.
    idle, wake_at : Out : rule 5 of docs/hardware.md; ``wake_at`` is ``NEVER``.

    Latency: 2. Throughput: one row per cycle. Reset: empty, not armed, every range and descriptor 0. Disarm empties
    queue, output and windows and keeps ranges and descriptors.
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
        return 2

    def elaborate(self, platform: Any) -> Module:
        """Queue, match, output register."""
        m = Module()
        config = self._parameters
        control = control_pulses(m, self.config_valid, self.config)
        windows, sound_windows = self._windows(m, control)
        chunks, sound_chunks = self._descriptors(m)
        m.submodules.ranges = table = RangeTable(entries=config.ranges, protect=config.protect)
        queue = InputQueue(MemoryRequest)
        m.submodules.queue = ResetInserter(control.disarm)(queue)

        advance = Signal()
        m.d.comb += [
            table.config_valid.eq(self.config_valid),
            table.config.eq(self.config),
            queue.i.valid.eq(self.store.valid),
            queue.i.payload.eq(self.store.payload),
            self.store.ready.eq(queue.i.ready),
            advance.eq(~self.route.valid | self.route.ready),
            queue.o.ready.eq(advance),
        ]
        result = self._match(
            m, queue.o.payload, table.ranges, chunks, data.View(_Window, Array(windows)[queue.o.payload.context])
        )
        with m.If(advance):
            m.d.sync += self.route.valid.eq(queue.o.valid)
            with m.If(queue.o.valid):
                m.d.sync += self.route.payload.eq(result)
        with m.If(control.disarm):
            m.d.sync += [self.route.valid.eq(0), self.route.payload.eq(0)]

        # Idle: an item that was taken may go on to `route` in the next cycle; after that only transfers move anything.
        quiet = Signal(init=0)
        m.d.sync += quiet.eq(~(self.store.valid & self.store.ready))
        damaged = Signal()
        m.d.comb += [
            damaged.eq(table.damaged | ~sound_windows | ~sound_chunks),
            self.idle.eq(quiet & ~(damaged & ~self.uncorrectable)),
            self.wake_at.eq(NEVER),
        ]
        m.d.sync += self.uncorrectable.eq((self.uncorrectable | damaged) & ~control.disarm)
        return m

    def _windows(self, m: Module, control: ControlPulses) -> tuple[list[Value], Value]:
        """Of each of 16 contexts first and end of its window, and whether all are sound. A damaged one is empty."""
        windows, sound = [], []
        for c in range(16):
            if c >= self._parameters.contexts:
                windows.append(Const(0, _Window.size))
                continue
            window = Signal(_Window.size, name=f"window_{c}")
            mine = control.context == c
            opens = control.arm & mine
            good = keep(
                m, window, write=opens | (control.abort & mine) | control.disarm,
                value=Mux(opens, Cat(control.first, (control.first + control.descriptors)[:7]), 0),
                protect=self._parameters.protect,
            )  # fmt: skip
            windows.append(Mux(good, window, 0))
            sound.append(good)
        return windows, Cat(sound).all()

    def _descriptors(self, m: Module) -> tuple[list[_Chunk], Value]:
        """The copy of the descriptors, written by configuration writes, and whether all of them are sound."""
        chunks, all_sound = [], []
        for i in range(self._parameters.descriptors):
            words, sound = {}, []
            for word, layout in enumerate(_CHUNK_WORDS):
                if layout is None:
                    continue
                source = data.View(
                    regs.DESCRIPTOR_LAYOUTS[word], self.config.data[: regs.DESCRIPTOR_LAYOUTS[word].size]
                )
                register = Signal(layout, name=f"chunk_{i}_{word}")
                address = regs.DESCRIPTOR + i * regs.DESCRIPTOR_STRIDE + 8 * word
                sound.append(keep(
                    m, register.as_value(), write=written(self.config_valid, self.config, address),
                    value=Cat(source[name] for name in layout.members), protect=self._parameters.protect,
                ))  # fmt: skip
                words[word] = register
            chunks.append(_Chunk(words[0], words[1].context, words[3].peer_base, Cat(sound).all()))
            all_sound.extend(sound)
        return chunks, Cat(all_sound).all()

    def _match(self, m: Module, item: data.View, ranges: Any, chunks: list[_Chunk], window: data.View) -> data.View:
        """The route of ``item``, whose context has ``window``, in the same cycle."""
        place = find_range(m, ranges, item.line)
        first, end = Signal(6), Signal(7)
        m.d.comb += [first.eq(window.first), end.eq(window.end)]
        inside = ((Const(1) << end) - 1) & ~((Const(1) << first) - 1)
        hits = Cat(
            chunk.sound & (chunk.place.kind != ChunkKind.NONE) & (chunk.context == item.context)
            & (chunk.place.row0 <= item.row) & (item.row < chunk.place.row1)
            & (chunk.place.col0 <= item.col) & (item.col < chunk.place.col1)
            for chunk in chunks
        )  # fmt: skip
        hit, number = Signal(len(chunks)), Signal(range(len(chunks)))
        m.d.comb += hit.eq(hits & inside)
        for i in reversed(range(len(chunks))):
            with m.If(hit[i]):
                m.d.comb += number.eq(i)
        chunk, peer_base = (
            Array(chunk.place for chunk in chunks)[number],
            Array(chunk.peer_base for chunk in chunks)[number],
        )
        result = Signal(Route)
        in_range = place.hit & item.tagged & (item.context == place.attributes.context)
        m.d.comb += [
            result.matched.eq(in_range & hit.any()),
            result.remote.eq(result.matched & (chunk.kind == ChunkKind.REMOTE)),
            result.descriptor.eq(Mux(result.matched, number, 0)),
            result.op.eq(Mux(result.remote, chunk.op, item.op)),
            result.peer.eq(Mux(result.remote, chunk.peer, 0)),
            result.line.eq(Mux(result.remote, item.line - place.base + peer_base, item.line)),
        ]
        return result
