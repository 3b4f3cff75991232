"""Address-range match: which output buffer a line belongs to, and at the egress, which chunk and where it goes."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from . import register_map as regs
from .broadcast import ControlPulses, control_pulses, written
from .config import T3Config
from .layouts import LINE_BITS, NEVER, ChunkKind, ConfigWrite, MemoryRequest, Route
from .queues import InputQueue
from .signatures import matcher_signature

Range = data.StructLayout({"base": LINE_BITS, "limit": LINE_BITS, "attributes": regs.RangeAttributes})
"""One output buffer: lines [base, limit) and what an access to them means."""

_Chunk = data.StructLayout({
    "row0": 12, "row1": 12, "col0": 12, "col1": 12,
    "kind": 2, "op": 3, "peer": 8, "context": 4, "peer_base": LINE_BITS,
})  # fmt: skip
"""What the egress needs of a descriptor."""


class RangeTable(wiring.Component):
    """The RANGE registers. They outlive a disarm.

    Parameters
    ----------
    entries : number of ranges.

    Members
    -------
    config_valid, config : In : configuration writes.
    ranges : Out(Range).array(entries) : the registers.

    Latency: a register written at t is visible at t+1. Reset: 0, no range is valid.
    """

    def __init__(self, *, entries: int) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite), "ranges": Out(Range).array(entries),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """One address comparison per register."""
        m = Module()
        for i, entry in enumerate(self.ranges):
            for word, register in enumerate((entry.base, entry.limit, entry.attributes)):
                address = regs.RANGE + i * regs.RANGE_STRIDE + 8 * word
                with m.If(written(self.config_valid, self.config, address)):
                    m.d.sync += register.eq(self.config.data)
        return m


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


class RangeMatcher(wiring.Component):
    """At the GPU's egress: turns a store row of a remote chunk into a packet for the peer, lets others stay.

    Parameters
    ----------
    config : the hardware configuration (``ranges``, ``descriptors``).

    Members
    -------
    store : In(stream(MemoryRequest)) : one row of a wavefront tile, by its first line.
    route : Out(stream(Route)) : where it goes, in the order of ``store``.
    config_valid, config : In : configuration writes (ranges, descriptors, CONTROL).
    idle, wake_at : Out : rule 5 of docs/hardware.md; ``wake_at`` is ``NEVER``.

    Latency: 2. Throughput: one row per cycle. Reset: empty, not armed, every range and descriptor 0. Disarm empties
    queue and output and keeps ranges and descriptors.
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
        control = control_pulses(m, self.config_valid, self.config)
        chunks = self._descriptors(m)
        count = self._armed_descriptors(m, control)
        m.submodules.ranges = table = RangeTable(entries=self._parameters.ranges)
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
        result = self._match(m, queue.o.payload, table.ranges, chunks, count)
        with m.If(advance):
            m.d.sync += self.route.valid.eq(queue.o.valid)
        with m.If(advance & queue.o.valid):
            m.d.sync += self.route.payload.eq(result)
        with m.If(control.disarm):
            m.d.sync += [self.route.valid.eq(0), self.route.payload.eq(0)]

        # Idle: an item that was taken may go on to `route` in the next cycle; after that only transfers move anything.
        m.d.comb += self.wake_at.eq(NEVER)
        m.d.sync += self.idle.eq(~(self.store.valid & self.store.ready))
        return m

    def _descriptors(self, m: Module) -> list[data.View]:
        """The copy of the descriptors, written by configuration writes."""
        chunks = []
        for i in range(self._parameters.descriptors):
            chunk = Signal(_Chunk, name=f"chunk_{i}")
            for word, names in enumerate((
                ("row0", "row1", "col0", "col1", "kind", "op", "peer"), ("context",), (), ("peer_base",),
            )):  # fmt: skip
                layout = regs.DESCRIPTOR_LAYOUTS[word]
                source = data.View(layout, self.config.data[: layout.size])
                address = regs.DESCRIPTOR + i * regs.DESCRIPTOR_STRIDE + 8 * word
                with m.If(written(self.config_valid, self.config, address)):
                    m.d.sync += [chunk[name].eq(source[name]) for name in names]
            chunks.append(chunk)
        return chunks

    def _armed_descriptors(self, m: Module, control: ControlPulses) -> Signal:
        """Descriptors that may match: CONTROL.descriptors while armed, else 0."""
        count = Signal(range(self._parameters.descriptors + 1))
        with m.If(control.arm):
            m.d.sync += count.eq(control.descriptors)
        with m.If(control.disarm):
            m.d.sync += count.eq(0)
        return count

    def _match(self, m: Module, item: data.View, ranges: Any, chunks: list[data.View], count: Signal) -> data.View:
        """The route of ``item``, in the same cycle."""
        place = find_range(m, ranges, item.line)
        hits = Cat(
            (i < count) & (chunk.kind != ChunkKind.NONE) & (chunk.context == item.context)
            & (chunk.row0 <= item.row) & (item.row < chunk.row1)
            & (chunk.col0 <= item.col) & (item.col < chunk.col1)
            for i, chunk in enumerate(chunks)
        )  # fmt: skip
        hit, first = Signal(len(chunks)), Signal(range(len(chunks)))
        m.d.comb += hit.eq(hits)
        for i in reversed(range(len(chunks))):
            with m.If(hit[i]):
                m.d.comb += first.eq(i)
        chunk = Array(chunks)[first]
        result = Signal(Route)
        in_range = place.hit & item.tagged & (item.context == place.attributes.context)
        m.d.comb += [
            result.matched.eq(in_range & hit.any()),
            result.remote.eq(result.matched & (chunk.kind == ChunkKind.REMOTE)),
            result.descriptor.eq(Mux(result.matched, first, 0)),
            result.op.eq(Mux(result.remote, chunk.op, item.op)),
            result.peer.eq(Mux(result.remote, chunk.peer, 0)),
            result.line.eq(Mux(result.remote, item.line - place.base + chunk.peer_base, item.line)),
        ]
        return result
