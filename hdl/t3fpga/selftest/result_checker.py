"""Round after round: the seed, the verdict, the lamps, the line of text, and the button."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.interface.layouts import EPOCH_BITS

from .report.button import Button
from .report.failures import Failure, FailureCode, FirstFailure
from .report.report import Report
from .report.uart import Uart
from .rounds import FIRST_SEED, Seed, after

_SETTLE = 8
"""Cycles at the end of a round in which failures of its last step arrive."""
_BLINK_BIT = 5
"""A round takes 9 ms at 115200 baud, its line of text, so 32 rounds are about 0.3 s."""


class ResultChecker(wiring.Component):
    """Begins rounds, and ends them with a line of text.

    Parameters
    ----------
    clock_hz, baud : of the serial line.
    debounce_cycles : how long the button must be still.
    failed_rounds : good rounds that follow a failed one until the lamp goes out.
    sources : of failures.
    completed : what the third number of the report is called.

    Members
    -------
    button : In(1) : asynchronous. Once pressed, the next round is played with ``inject``.
    running, passed, failed, tx : Out(1) : see :class:`~t3fpga.selftest.selftest.SelfTest`.
    begin : Out(1) : pulse; a round begins with ``seed``; everything of the one before must be dropped.
    seed, inject : Out : of the round.
    end : In(1) : pulse; the round is over.
    timed : In(1) : count a cycle.
    failures : In(Failure).array(sources) : pulses.
    report_valid, report : In : pulse; updates, tiles, and what is called ``completed``, in this order.
    checksum : In(32) : at the end of the round.
    """

    def __init__(
        self, *, clock_hz: int, baud: int, debounce_cycles: int, failed_rounds: int, sources: int,
        completed: str = "triggers",
    ) -> None:  # fmt: skip
        super().__init__({
            "button": In(1), "running": Out(1), "passed": Out(1), "failed": Out(1), "tx": Out(1, init=1),
            "begin": Out(1), "seed": Out(Seed), "inject": Out(1), "end": In(1), "timed": In(1),
            "failures": In(Failure).array(sources), "report_valid": In(1), "report": In(16), "checksum": In(32),
        })  # fmt: skip
        self._uart = Uart(clock_hz=clock_hz, baud=baud)
        self._button = Button(cycles=debounce_cycles)
        self._printer = Report(completed=completed)
        self._first = FirstFailure(sources=sources)
        self._failed_rounds = failed_rounds

    def elaborate(self, platform: Any) -> Module:
        """Begin, wait for the end, wait for the line before, print."""
        m = Module()
        m.submodules.uart, m.submodules.button, m.submodules.first = uart, button, first = (
            self._uart,
            self._button,
            self._first,
        )
        m.submodules.printer = printer = self._printer
        wiring.connect(m, printer.o, uart.i)
        for source, sink in zip(self.failures, first.i, strict=True):
            m.d.comb += sink.eq(source)
        wanted, settle, left = Signal(), Signal(range(_SETTLE)), Signal(range(self._failed_rounds + 1))
        seed, numbers = Signal(32, init=FIRST_SEED), Signal.like(printer.numbers)
        good = Signal()
        m.d.comb += [
            self.seed.eq(Cat(seed, numbers.round[:EPOCH_BITS])),
            button.button.eq(self.button),
            first.clear.eq(self.begin),
            self.tx.eq(uart.tx),
            self.running.eq(numbers.round[_BLINK_BIT]),
            self.failed.eq(left != 0),
            good.eq(first.what == FailureCode.PASS),
            printer.numbers.eq(numbers),
            printer.numbers.seed.eq(seed),
            printer.numbers.checksum.eq(self.checksum),
            printer.numbers.detail.eq(first.detail),
            printer.what.eq(first.what),
        ]
        with m.FSM():
            with m.State("BEGIN"):
                m.d.comb += self.begin.eq(1)
                m.d.sync += [settle.eq(0), self.inject.eq(wanted), wanted.eq(0), numbers.cycles.eq(0)]
                m.next = "PLAY"
            with m.State("PLAY"):
                m.d.sync += numbers.cycles.eq(numbers.cycles + self.timed)
                with m.If(self.end):
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += settle.eq(settle + 1)
                with m.If(settle == _SETTLE - 1):
                    m.next = "PRINT"
            with m.State("PRINT"):
                m.d.comb += printer.valid.eq(1)
                with m.If(printer.ready):
                    m.d.sync += [
                        self.passed.eq(good),
                        left.eq(Mux(good, left - (left != 0), self._failed_rounds)),
                        seed.eq(after(seed)),
                        numbers.round.eq(numbers.round + 1),
                    ]
                    m.next = "BEGIN"
        with m.If(button.pressed):
            m.d.sync += wanted.eq(1)
        with m.If(self.report_valid):
            m.d.sync += [
                numbers.updates.eq(numbers.tiles),
                numbers.tiles.eq(numbers.completed),
                numbers.completed.eq(self.report),
            ]
        return m
