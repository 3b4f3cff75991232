"""Makes the chunks of an armed output live, in the order of their descriptors, as slots become free."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from . import register_map as regs
from .broadcast import control_pulses
from .config import T3Config
from .layouts import ChunkKind, ConfigWrite, SlotLoad

Descriptor = data.StructLayout({f"word{w}": layout for w, layout in enumerate(regs.DESCRIPTOR_LAYOUTS)})
"""All words of a descriptor."""


class DescriptorLoader(wiring.Component):
    """The descriptor table, and the state machine that reads one descriptor at a time.

    Parameters
    ----------
    config : gives ``descriptors``.

    Members
    -------
    config_valid, config : In : configuration writes (DESCRIPTOR, CONTROL).
    free_any, free_slot : In : a slot for the next chunk.
    start : Out(1) : the blocks of ``slot`` must be cleared; until ``started``.
    started, cleared : In : pulses; the walker has begun, has entered its last operation.
    write : Out(1) : pulse; the slot tables take ``descriptor``.
    slot, number, descriptor : Out : the chunk that ``start`` and ``write`` are about, and its descriptor's number.
    load_valid, load : Out : pulse; the tracker takes the chunk, one cycle after ``write``.
    armed, live : Out : armed; descriptors made live or skipped since arm.
    waiting : Out(1) : nothing will change without a pulse or a free slot.

    Latency: 8 cycles from arm or a free slot to ``start``. Throughput: one descriptor per 10 cycles plus the walk, or 9
    for a skipped one. Reset: not armed; the descriptor table is undefined until it is written, and outlives a disarm.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite),
            "free_any": In(1), "free_slot": In(6),
            "start": Out(1), "started": In(1), "cleared": In(1),
            "write": Out(1), "slot": Out(6), "number": Out(6), "descriptor": Out(Descriptor),
            "load_valid": Out(1), "load": Out(SlotLoad),
            "armed": Out(1), "live": Out(7), "waiting": Out(1),
        })  # fmt: skip
        self._parameters = config

    def _table(self, m: Module) -> Any:
        """The descriptor table, a row per register address; returns its read port."""
        m.submodules.table = table = memory.Memory(shape=64, depth=self._parameters.descriptors * 8, init=[])
        write = table.write_port()
        block = regs.DESCRIPTOR.bit_length() - 1
        m.d.comb += [
            write.addr.eq(self.config.address[3:]),
            write.data.eq(self.config.data),
            write.en.eq(self.config_valid & (self.config.address[block:] == regs.DESCRIPTOR >> block)),
        ]
        return table.read_port()

    def elaborate(self, platform: Any) -> Module:
        """WAIT, READ, then SKIP, or START, CLEAR, LOAD."""
        m = Module()
        control = control_pulses(m, self.config_valid, self.config)
        read = self._table(m)
        following, count, word = Signal(7), Signal(7), Signal(3)
        words = [self.descriptor[f"word{w}"] for w in range(regs.DESCRIPTOR_WORDS)]
        kind = words[0].kind
        m.d.comb += [
            read.addr.eq(Cat(word, self.number)),
            read.en.eq(0),
        ]
        m.d.sync += self.load_valid.eq(self.write)
        with m.If(self.load_valid):
            m.d.sync += self.live.eq(self.live + 1)
        with m.FSM(name="loader"):
            with m.State("WAIT"):
                more = self.armed & (following != count) & self.free_any
                m.d.comb += self.waiting.eq(~more & ~self.load_valid)
                with m.If(more):
                    m.d.sync += [self.slot.eq(self.free_slot), self.number.eq(following), word.eq(0)]
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += read.en.eq(word != regs.DESCRIPTOR_WORDS)
                m.d.sync += word.eq(word + 1)
                for w, register in enumerate(words):
                    with m.If(word == w + 1):
                        m.d.sync += register.eq(read.data)
                with m.If(word == regs.DESCRIPTOR_WORDS):
                    with m.If((kind == ChunkKind.DMA) | (kind == ChunkKind.LOCAL)):
                        m.next = "START"
                    with m.Else():
                        m.next = "SKIP"
            with m.State("SKIP"):
                m.d.sync += [following.eq(following + 1), self.live.eq(self.live + 1)]
                m.next = "WAIT"
            with m.State("START"):
                m.d.comb += self.start.eq(1)
                with m.If(self.started):
                    m.next = "CLEAR"
            with m.State("CLEAR"), m.If(self.cleared):
                m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += self.write.eq(1)
                m.d.sync += following.eq(following + 1)
                m.next = "WAIT"
        with m.If(control.arm):
            m.d.sync += [self.armed.eq(1), following.eq(0), count.eq(control.descriptors), self.live.eq(0)]
        self._fill(m)
        return m

    def _fill(self, m: Module) -> None:
        """``load`` may follow ``write`` by a cycle: the next descriptor is chosen and read later."""
        place, amounts = self.descriptor.word0, self.descriptor.word1
        m.d.comb += [
            self.load.valid.eq(1),
            self.load.slot.eq(self.slot),
            self.load.descriptor.eq(self.number),
            *(self.load[field].eq(place[field]) for field in ("row0", "row1", "col0", "col1")),
            *(self.load[field].eq(amounts[field]) for field in ("addends", "expected", "context", "epoch")),
        ]
