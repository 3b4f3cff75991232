"""What the self-tests of a tracker that stands alone have in common, with a trigger behind it or without."""

from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface.layouts import TIME_BITS
from t3hdl.tracker.tracker import Tracker

from .. import gemm
from ..program import Parts, Run
from ..result_checker import ResultChecker
from ..run_control import RunControl
from ..sequencer import Sequencer
from .tokens import TokenTraffic
from .tracker_registers import TrackerRegisters
from .walk import Noise

_STATUS = ("maintenance", "abort_busy", "unmatched", "over_count", "over_total", "updates", "tiles")


class TokenTest(wiring.Component):
    """Plays the rounds of :class:`~t3fpga.selftest.selftest.SelfTest` as tokens, one per update, to a tracker.

    Parameters
    ----------
    parts : what the programme of a round is for.
    sources : of failures, besides the sequencer.
    completed : what the third number of the report is called.
    options : of SelfTest but for ``config``: clock_hz, baud, debounce_cycles, failed_rounds.

    Members and errors are those of SelfTest. A derived class adds the checker, and what loads chunks into the tracker.
    """

    def __init__(
        self, *, config: T3Config, parts: Parts, sources: int, completed: str, clock_hz: int, baud: int = 115200,
        debounce_cycles: int | None = None, failed_rounds: int = 128,
    ) -> None:  # fmt: skip
        gemm.check_fits(config)
        super().__init__({"button": In(1), "running": Out(1), "passed": Out(1), "failed": Out(1), "tx": Out(1, init=1)})
        self._tracker, self._registers = Tracker(config=config), TrackerRegisters()
        self._sequencer = Sequencer(config=config, parts=parts)
        self._runs, self._noise = RunControl(), Noise()
        self._tokens = TokenTraffic(config=config)
        self._now = Signal(TIME_BITS)
        self._result_checker = ResultChecker(
            clock_hz=clock_hz,
            baud=baud,
            failed_rounds=failed_rounds,
            sources=1 + sources,
            completed=completed,
            debounce_cycles=clock_hz // 100 if debounce_cycles is None else debounce_cycles,
        )

    def elaborate(self, platform: Any) -> Module:
        """The tracker, and what drives it."""
        m = Module()
        result_checker, sequencer, tokens = self._result_checker, self._sequencer, self._tokens
        m.submodules.tracker, m.submodules.registers = self._tracker, self._registers
        m.submodules.sequencer, m.submodules.result_checker = sequencer, result_checker
        m.submodules.runs, m.submodules.noise = self._runs, self._noise
        m.submodules.tokens = ResetInserter(result_checker.begin)(tokens)
        m.d.comb += [
            getattr(self, name).eq(getattr(result_checker, name)) for name in ("running", "passed", "failed", "tx")
        ]
        m.d.comb += [
            result_checker.button.eq(self.button),
            result_checker.end.eq(sequencer.end),
            result_checker.timed.eq(self._runs.timed),
            result_checker.report_valid.eq(sequencer.report_valid),
            result_checker.report.eq(sequencer.report),
            result_checker.failures[0].eq(sequencer.failure),
            sequencer.begin.eq(result_checker.begin),
            sequencer.seed.eq(result_checker.seed),
            self._noise.load.eq(result_checker.begin),
            self._noise.seed.eq(result_checker.seed),
        ]
        self._connect_tokens(m)
        self._connect_registers(m)
        return m

    def _connect_tokens(self, m: Module) -> None:
        runs, tokens, tracker = self._runs, self._tokens, self._tracker
        m.d.sync += self._now.eq(self._now + 1)
        for source, sink in zip(tokens.token, tracker.token, strict=True):
            wiring.connect(m, source, sink)
        m.d.comb += [
            tracker.now.eq(self._now),
            runs.begin.eq(self._result_checker.begin),
            runs.run.eq(self._sequencer.run),
            self._sequencer.busy.eq(runs.busy),
            tokens.seed.eq(self._result_checker.seed),
            tokens.play.eq(runs.run[Run.PLAY]),
            tokens.drop.eq(self._result_checker.inject),
            tokens.noise.eq(self._noise.bits[3:]),
        ]

    def _connect_registers(self, m: Module) -> None:
        registers, tracker = self._registers, self._tracker
        wiring.connect(m, self._sequencer.request, registers.request)
        for name in ("response_valid", "response_error", "response_data"):
            m.d.comb += getattr(self._sequencer, name).eq(getattr(registers, name))
        m.d.comb += [tracker.config_valid.eq(registers.config_valid), tracker.config.eq(registers.config)]
        m.d.comb += [getattr(registers, name).eq(getattr(tracker, name)) for name in _STATUS]
