"""What the self-tests of a tracker that stands alone have in common, with a trigger behind it or without."""

from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface.layouts import TIME_BITS
from t3hdl.tracker.tracker import Tracker

from . import gemm
from .program import Parts, Run
from .referee import Referee
from .run_control import RunControl
from .sequencer import Sequencer
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
        self._referee = Referee(
            clock_hz=clock_hz, baud=baud, failed_rounds=failed_rounds, sources=1 + sources, completed=completed,
            debounce_cycles=clock_hz // 100 if debounce_cycles is None else debounce_cycles,
        )  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """The tracker, and what drives it."""
        m = Module()
        referee, sequencer, tokens = self._referee, self._sequencer, self._tokens
        m.submodules.tracker, m.submodules.registers = self._tracker, self._registers
        m.submodules.sequencer, m.submodules.referee = sequencer, referee
        m.submodules.runs, m.submodules.noise = self._runs, self._noise
        m.submodules.tokens = ResetInserter(referee.begin)(tokens)
        m.d.comb += [getattr(self, name).eq(getattr(referee, name)) for name in ("running", "passed", "failed", "tx")]
        m.d.comb += [
            referee.button.eq(self.button),
            referee.end.eq(sequencer.end),
            referee.timed.eq(self._runs.timed),
            referee.report_valid.eq(sequencer.report_valid),
            referee.report.eq(sequencer.report),
            referee.failures[0].eq(sequencer.failure),
            sequencer.begin.eq(referee.begin),
            sequencer.seed.eq(referee.seed),
            self._noise.load.eq(referee.begin),
            self._noise.seed.eq(referee.seed),
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
            runs.begin.eq(self._referee.begin),
            runs.run.eq(self._sequencer.run),
            self._sequencer.busy.eq(runs.busy),
            tokens.seed.eq(self._referee.seed),
            tokens.play.eq(runs.run[Run.PLAY]),
            tokens.drop.eq(self._referee.inject),
            tokens.noise.eq(self._noise.bits[3:]),
        ]

    def _connect_registers(self, m: Module) -> None:
        registers, tracker = self._registers, self._tracker
        wiring.connect(m, self._sequencer.request, registers.request)
        for name in ("response_valid", "response_error", "response_data"):
            m.d.comb += getattr(self._sequencer, name).eq(getattr(registers, name))
        m.d.comb += [tracker.config_valid.eq(registers.config_valid), tracker.config.eq(registers.config)]
        m.d.comb += [getattr(registers, name).eq(getattr(tracker, name)) for name in _STATUS]
