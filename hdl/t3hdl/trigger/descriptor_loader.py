"""Makes the chunks of the armed contexts live, in the order of their descriptors, as slots become free."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import RoundRobin, one_hot_index
from ..common.protected_register import ProtectedRegister, protected_register
from ..common.ram import Ram
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import ChunkKind, ConfigWrite, SlotLoad

Descriptor = data.StructLayout({f"word{w}": layout for w, layout in enumerate(regs.DESCRIPTOR_LAYOUTS)})
"""All words of a descriptor."""

_Chosen = data.StructLayout({"slot": 6, "number": 6, "context": 4})
"""Which descriptor is being made live, for whom, and where."""


class DescriptorLoader(wiring.Component):
    """The descriptor table, and the state machine that reads one descriptor at a time.

    Parameters
    ----------
    config : gives ``contexts``, ``descriptors``, ``protect``.

    Members
    -------
    config_valid, config : In : configuration writes (DESCRIPTOR).
    abort, abort_context : In : pulse; nothing becomes live for this context.
    hold : In(1) : no new descriptor is begun.
    restart : In(1) : pulse; what is being loaded is dropped, and the load restarts.
    too_large : In(1) : the chunk that was read has more tiles than its slot has marks. Counts in LOAD.
    loadable, following : In : contexts with a descriptor to be made live; its number for each.
    free_any, free_slot : In : a slot for the next chunk.
    start : Out(1) : the blocks of ``slot`` must be cleared; until ``started``.
    started, cleared : In : pulses; the walker has begun, has entered its last operation.
    loading, skip : Out(1) : pulses; the descriptor of ``context`` becomes live, is skipped, unless aborted.
    write : Out(1) : pulse; the slot tables take the descriptor.
    reading : Out(1) : the descriptor is being read; its first word is there from the third cycle on.
    slot, number, context, descriptor : Out : the chunk that the pulses are about, and its descriptor's number.
    load_valid, load : Out : pulse; the tracker takes the chunk, one cycle after ``write``.
    refused : Out(1) : pulse, with ``loading`` unless aborted; the chunk is too large: ``slot`` holds no chunk.
    lost : Out(1) : pulse; the identity of the descriptor being loaded is lost. The load restarts.
    uncorrectable_error : Out(1) : pulse, one cycle after ``loading``; of the descriptor: ``slot`` holds no chunk.
    live : Out(7) : descriptors made live or skipped, modulo 128.
    waits : Out(1) : no descriptor is being loaded.
    ready : Out(1) : a descriptor would be begun but for ``hold``.
    corrected : Out(1) : a single-bit error of a word is corrected.

    Latency: 8 cycles from arm or a free slot to ``start``. Throughput: one descriptor per 10 cycles plus the walk, or 9
    for a skipped one. Reset: waits; the descriptor table is undefined until it is written, and outlives a disarm.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite),
            "abort": In(1), "abort_context": In(4), "hold": In(1), "restart": In(1), "too_large": In(1),
            "loadable": In(config.contexts), "following": In(6).array(config.contexts),
            "free_any": In(1), "free_slot": In(6),
            "start": Out(1), "started": In(1), "cleared": In(1),
            "loading": Out(1), "skip": Out(1), "write": Out(1),
            "reading": Out(1), "refused": Out(1),
            "slot": Out(6), "number": Out(6), "context": Out(4), "descriptor": Out(Descriptor),
            "load_valid": Out(1), "load": Out(SlotLoad), "uncorrectable_error": Out(1), "lost": Out(1),
            "live": Out(7), "waits": Out(1), "ready": Out(1), "corrected": Out(1),
        })  # fmt: skip
        self._parameters = config

    def _table(self, m: Module) -> Ram:
        """The descriptor table, a row per register address."""
        protect = self._parameters.protect
        m.submodules.table = table = Ram(64, depth=self._parameters.descriptors * 8, protect=protect)
        block = regs.DESCRIPTOR.bit_length() - 1
        m.d.comb += [
            table.write_row.eq(self.config.address[3:]),
            table.write_data.eq(self.config.data),
            table.write.eq(self.config_valid & (self.config.address[block:] == regs.DESCRIPTOR >> block)),
        ]
        return table

    def elaborate(self, platform: Any) -> Module:
        """WAIT, READ, then SKIP, or START, CLEAR, LOAD; a descriptor with an uncorrectable error goes to LOAD at once.

        If its identity is lost, it is dropped as by an abort, and the load restarts.
        """
        m = Module()
        m.submodules.turn = turn = RoundRobin(requesters=self._parameters.contexts)
        table = self._table(m)
        winner = Signal(4)
        word = Signal(3)
        data_error = Signal()
        has_word = Signal()
        chosen, words = self._descriptor_registers(m)
        damaged = Cat(register.uncorrectable for register in words).any()
        lost = ~self.waits & chosen.uncorrectable
        aborted = self.abort & (self.abort_context == self.context)
        dropped = aborted | lost | self.restart
        m.d.comb += [
            self.ready.eq(self.loadable.any() & self.free_any),
            turn.requests.eq(self.loadable),
            turn.take.eq(self.waits & self.ready & ~self.hold),
            winner.eq(one_hot_index(turn.grant)),
            table.read_row.eq(Cat(word, self.number)),
            self.lost.eq(lost),
        ]
        with m.If(damaged):
            m.d.sync += data_error.eq(1)
        with m.FSM(name="loader"):
            with m.State("WAIT"):
                m.d.comb += self.waits.eq(1)
                with m.If(turn.take):
                    m.d.sync += [word.eq(0), data_error.eq(0)]
                    m.d.comb += [
                        chosen.following.context.eq(winner),
                        chosen.following.slot.eq(self.free_slot),
                        chosen.following.number.eq(Array(self.following)[winner]),
                    ]
                    with m.If(~(self.abort & (self.abort_context == winner))):
                        m.next = "READ"
            with m.State("READ"):
                m.d.comb += [self.reading.eq(1), has_word.eq(word != 0)]
                m.d.sync += word.eq(word + 1)
                self._read(m, table, words, word, bad=data_error | damaged | (has_word & table.uncorrectable))
                with m.If(has_word & table.uncorrectable):
                    m.d.sync += data_error.eq(1)
                self._end(m, dropped)
            with m.State("SKIP"):
                m.d.comb += self.skip.eq(~lost & ~self.restart)
                m.next = "WAIT"
            with m.State("START"):
                m.d.comb += self.start.eq(~lost & ~self.restart)
                with m.If(self.started):
                    m.next = "CLEAR"
                self._end(m, dropped)
            with m.State("CLEAR"):
                with m.If(self.cleared):
                    m.next = "LOAD"
                self._end(m, dropped)
            with m.State("LOAD"):
                m.d.comb += [
                    self.loading.eq(~lost & ~self.restart),
                    self.write.eq(self.loading & ~data_error & ~damaged),
                    self.refused.eq(self.write & self.too_large & ~aborted),
                ]
                m.next = "WAIT"
        any_corrected = Cat(register.corrected for register in (chosen, *words)).any()
        m.d.comb += self.corrected.eq(any_corrected | (has_word & table.corrected))
        self._finish(m, aborted)
        return m

    def _descriptor_registers(self, m: Module) -> tuple[ProtectedRegister, list[ProtectedRegister]]:
        """Protected registers of the descriptor being loaded: its identity and its words."""
        protect = self._parameters.protect
        chosen = protected_register(m, _Chosen, name="chosen", protect=protect)
        m.d.comb += [getattr(self, field).eq(chosen.value[field]) for field in _Chosen.members]
        words = []
        for name, layout in Descriptor.members.items():
            words.append(protected_register(m, layout, name=name, protect=protect))
            m.d.comb += self.descriptor[name].eq(words[-1].value)
        return chosen, words

    def _read(self, m: Module, table: Ram, words: list[ProtectedRegister], word: Value, *, bad: Value) -> None:
        """In READ: asks for word number ``word``, takes the one before; after the last one it is known what comes."""
        m.d.comb += table.read.eq(word != len(words))
        for w, register in enumerate(words):
            with m.If(word == w + 1):
                m.d.comb += register.following.eq(table.data)
        with m.If(word == len(words)):
            m.next = "SKIP"
            with m.If(self._is_live()):
                m.next = "START"
            with m.If(bad):
                m.next = "LOAD"

    def _end(self, m: Module, dropped: Value) -> None:
        """In a state: an abort of the context leaves it for WAIT."""
        with m.If(dropped):
            m.next = "WAIT"

    def _is_live(self) -> Value:
        """Whether the descriptor that was read is to be made live."""
        kind, amounts = self.descriptor.word0.kind, self.descriptor.word1
        return ((kind == ChunkKind.DMA) | (kind == ChunkKind.LOCAL)) & (amounts.context == self.context)

    def _finish(self, m: Module, aborted: Value) -> None:
        """One cycle after LOAD: the tracker's pulse, or why there is none. The next descriptor is read later."""
        place, amounts = self.descriptor.word0, self.descriptor.word1
        m.d.sync += [
            self.load_valid.eq(self.write & ~self.too_large & ~aborted),
            self.uncorrectable_error.eq(self.loading & ~self.write & ~aborted),
        ]
        with m.If(self.load_valid | self.refused | self.uncorrectable_error | (self.skip & ~aborted)):
            m.d.sync += self.live.eq(self.live + 1)
        m.d.comb += [
            self.load.valid.eq(1),
            self.load.slot.eq(self.slot),
            self.load.descriptor.eq(self.number),
            *(self.load[field].eq(place[field]) for field in ("row0", "row1", "col0", "col1")),
            *(self.load[field].eq(amounts[field]) for field in ("addends", "expected", "context", "epoch")),
        ]
