"""Software in hardware: carries out the programme of a round, step by step."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Stuck

from .program import STEPS, Kind, Parts, Patch, Run, Word, rom
from .report.failures import Failure, FailureCode
from .rounds import Seed, dtype_of, op_of

BusRequest = data.StructLayout({"write": 1, "address": 16, "data": 64})
"""A register access; answered by a pulse."""

TIMEOUT_BITS = 15
"""A step that takes 2**15 cycles has failed."""


class Sequencer(wiring.Component):
    """Runs the programme of the seed's GPU once per ``begin``. A step that fails is reported, and the next one follows.

    Parameters
    ----------
    config : the hardware configuration.
    parts : what the programme is for.

    Members
    -------
    begin : In(1) : starts the programme.
    seed : In : of the round; chooses the programme, and gives operation, data type and epoch.
    request : Out(stream(BusRequest)), response_valid, response_error, response_data : In : the registers.
    run : Out(3) : pulse; a bit per :class:`~t3fpga.selftest.program.Run`.
    busy : In(1) : what was started goes on; looked at from the second cycle after the pulse of ``run`` on.
    end : Out(1) : pulse; the programme is over.
    failure : Out : pulse; a step failed.
    report_valid, report : Out : pulse; a number for the report.
    """

    def __init__(self, *, config: T3Config, parts: Parts) -> None:
        super().__init__({
            "begin": In(1), "seed": In(Seed),
            "request": Out(stream.Signature(BusRequest)),
            "response_valid": In(1), "response_error": In(1), "response_data": In(64),
            "run": Out(len(Run)), "busy": In(1), "end": Out(1),
            "failure": Out(Failure), "report_valid": Out(1), "report": Out(16),
        })  # fmt: skip
        self._config, self._words = config, rom(config, parts)

    def elaborate(self, platform: Any) -> Module:
        """One state machine; what a read answers is compared in two steps."""
        m = Module()
        m.submodules.rom = memory = Memory(
            shape=Word, depth=len(self._words), init=self._words, attrs={"ram_style": "block"}
        )
        port = memory.read_port()
        word, counter, timer = Signal(Word), Signal(range(STEPS)), Signal(TIMEOUT_BITS + 1)
        late = timer[-1]
        answer, different = Signal(64), Signal(32)
        m.d.comb += [
            port.addr.eq(Cat(counter, self.seed.gpu)),
            self.request.payload.write.eq(word.kind == Kind.WRITE),
            self.request.payload.address.eq(word.address),
            self.request.payload.data.eq(self._patched(word)),
        ]
        m.d.sync += [
            timer.eq(timer + ~late),
            self.run.eq(0),
            self.end.eq(0),
            self.failure.valid.eq(0),
            self.report_valid.eq(0),
            different.eq((answer ^ word.data[32:]) & word.data[:32]),
        ]

        with m.FSM() as fsm:
            m.d.comb += port.en.eq(fsm.ongoing("FETCH"))
            with m.State("IDLE"):
                m.d.sync += counter.eq(0)
                with m.If(self.begin):
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += timer.eq(0)
                m.next = "READ"
            with m.State("READ"):  # block RAM is slow
                m.d.sync += word.eq(port.data)
                m.next = "DECODE"
            with m.State("DECODE"):
                m.d.sync += counter.eq(counter + 1)
                with m.If(word.kind == Kind.END):
                    m.d.sync += self.end.eq(1)
                    m.next = "IDLE"
                with m.Elif(word.kind == Kind.RUN):
                    m.d.sync += self.run.eq(Cat(word.address[:2] == run for run in Run))
                    m.next = "START"
                with m.Else():
                    m.next = "REQUEST"
            with m.State("START"):
                m.next = "STARTED"
            with m.State("STARTED"):
                m.next = "RUN"
            with m.State("RUN"):
                with m.If(~self.busy | late):
                    m.next = "FETCH"
                with m.If(self.busy & late):
                    m.d.sync += self._fail(FailureCode.TIMEOUT, word.address)
            self._access(m, word, answer, different, late)
        return m

    def _access(self, m: Module, word: Any, answer: Signal, different: Value, late: Value) -> None:
        """The states of a step that reads or writes a register."""
        with m.State("REQUEST"):
            m.d.comb += self.request.valid.eq(1)
            with m.If(self.request.ready):
                m.next = "RESPONSE"
        with m.State("RESPONSE"):
            m.d.sync += answer.eq(self.response_data)
            with m.If(self.response_valid & ~self.response_error):
                m.next = "COMPARE"
            with m.Elif(self.response_valid | late):
                m.d.sync += self._fail(FailureCode.BUS, word.address)
                m.next = "FETCH"
        with m.State("COMPARE"):
            m.next = "JUDGE"
        with m.State("JUDGE"):
            self._judge(m, word, answer, different, late)

    def _judge(self, m: Module, word: Any, answer: Value, different: Value, late: Value) -> None:
        """What the answer to a step's access means."""
        m.next = "FETCH"
        m.d.sync += self.report.eq(answer[:16])
        with m.Switch(word.kind):
            with m.Case(Kind.POLL), m.If(different.any()):
                with m.If(late):
                    m.d.sync += self._fail(FailureCode.TIMEOUT, word.address)
                with m.Else():
                    m.next = "REQUEST"
            with m.Case(Kind.EQUAL):
                m.d.sync += self.report_valid.eq(word.patch == Patch.REPORT)
                with m.If(different.any()):
                    m.d.sync += self._fail(FailureCode.STATUS, Cat(answer[:16], word.address))
            with m.Case(Kind.STUCK):
                stuck = data.View(Stuck, answer[: Stuck.size])
                with m.If(stuck.valid):
                    detail = Cat(stuck.seen[:8], stuck.expected[:8], stuck.block, Const(0, 2), stuck.descriptor)
                    m.d.sync += self._fail(FailureCode.LOST, detail)

    def _fail(self, what: FailureCode, detail: Any) -> list[Any]:
        return [self.failure.valid.eq(1), self.failure.what.eq(what), self.failure.detail.eq(detail)]

    def _patched(self, word: Any) -> Value:
        """A step's data with the round's operation, data type and epoch, which are 0 in the ROM."""
        patches = {step["patch"] for step in self._words if step["kind"] == Kind.WRITE}
        values = {"op": op_of(self.seed), "dtype": dtype_of(self.seed, self._config), "epoch": self.seed.epoch}
        places = {
            Patch.RANGE: (regs.RangeAttributes, ("op", "dtype", "epoch")),
            Patch.PLACE: (regs.Place, ("op",)),
            Patch.AMOUNT: (regs.Amount, ("dtype", "epoch")),
        }
        result = word.data
        for patch, (layout, names) in places.items():
            for name in names if patch in patches else ():
                result = result | Mux(word.patch == patch, values[name] << layout[name].offset, 0)
        return result[:64]
