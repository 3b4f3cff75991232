"""Tracker and trigger alone as a design that tests itself, for devices that have no room for the unit."""

from typing import Any

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import T3Config
from ..layouts import TIME_BITS
from ..tracking.tracker import Tracker
from ..triggering.trigger import Trigger
from . import gemm
from .commands import CommandChecker
from .program import Run
from .referee import Referee
from .run_control import RunControl
from .sequencer import Sequencer
from .tokens import TokenTraffic
from .tracker_registers import TrackerRegisters
from .traffic import CONTEXT
from .update_counts import UPDATE_BITS, UpdateCounts
from .walk import Noise

_TRACKER_STATUS = ("maintenance", "abort_busy", "unmatched", "over_count", "over_total", "updates", "tiles")
_TRIGGER_STATUS = ("triggers", "done_mask", "stuck")


class TrackerTest(wiring.Component):
    """Plays the rounds of :class:`~t3hdl.boards.selftest.SelfTest` as tokens, one per update, to tracker and trigger.

    There is no memory: the checksum of a round is that of its commands' blocks in their order (rotated by 5, XOR the
    block's number). Parameters, members and errors are those of SelfTest.
    """

    def __init__(
        self, *, config: T3Config, clock_hz: int, baud: int = 115200, debounce_cycles: int | None = None,
        failed_rounds: int = 128,
    ) -> None:  # fmt: skip
        gemm.check_fits(config)
        super().__init__({"button": In(1), "running": Out(1), "passed": Out(1), "failed": Out(1), "tx": Out(1, init=1)})
        self._tracker, self._trigger = Tracker(config=config), Trigger(config=config)
        self._registers = TrackerRegisters()
        self._sequencer = Sequencer(config=config, unit=False)
        self._runs, self._noise, self._counts = RunControl(), Noise(), UpdateCounts()
        self._tokens = TokenTraffic(config=config)
        self._commands = CommandChecker(config=config, counters=1, counted_bits=UPDATE_BITS)
        self._referee = Referee(
            clock_hz=clock_hz, baud=baud, failed_rounds=failed_rounds, sources=2,
            debounce_cycles=clock_hz // 100 if debounce_cycles is None else debounce_cycles,
        )  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Tracker and trigger, and what drives and checks them."""
        m = Module()
        referee, sequencer, tokens, commands = self._referee, self._sequencer, self._tokens, self._commands
        m.submodules.tracker, m.submodules.trigger = self._tracker, self._trigger
        m.submodules.registers, m.submodules.sequencer, m.submodules.referee = self._registers, sequencer, referee
        m.submodules.runs, m.submodules.noise, m.submodules.counts = self._runs, self._noise, self._counts
        m.submodules.tokens = ResetInserter(referee.begin)(tokens)
        m.submodules.commands = ResetInserter(referee.begin)(commands)
        m.d.comb += [getattr(self, name).eq(getattr(referee, name)) for name in ("running", "passed", "failed", "tx")]
        m.d.comb += [part.seed.eq(referee.seed) for part in (sequencer, tokens, commands)]
        m.d.comb += [
            referee.button.eq(self.button),
            referee.end.eq(sequencer.end),
            referee.timed.eq(self._runs.timed),
            referee.report_valid.eq(sequencer.report_valid),
            referee.report.eq(sequencer.report),
            referee.failures[0].eq(sequencer.failure),
            referee.failures[1].eq(commands.failure),
            sequencer.begin.eq(referee.begin),
            self._noise.load.eq(referee.begin),
            self._noise.seed.eq(referee.seed),
        ]
        self._connect_tracker(m)
        self._connect_registers(m)
        self._connect_checker(m)
        return m

    def _connect_tracker(self, m: Module) -> None:
        """As in the core."""
        tracker, trigger, now = self._tracker, self._trigger, Signal(TIME_BITS)
        m.d.sync += now.eq(now + 1)
        for source, sink in zip(self._tokens.token, tracker.token, strict=True):
            wiring.connect(m, source, sink)
        wiring.connect(m, trigger.command, self._commands.command)
        m.d.comb += [
            trigger.tile_done_valid.eq(tracker.tile_done_valid),
            trigger.tile_done.eq(tracker.tile_done),
            trigger.chunk_done_valid.eq(tracker.chunk_done_valid),
            trigger.chunk_done.eq(tracker.chunk_done),
            trigger.poison_valid.eq(tracker.poison_valid),
            trigger.poison_slot.eq(tracker.poison_slot),
            trigger.abort_busy.eq(tracker.abort_busy),
            trigger.command_done_valid.eq(self._commands.done_valid),
            trigger.command_done.eq(CONTEXT),
            tracker.load_valid.eq(trigger.load_valid),
            tracker.load.eq(trigger.load),
            tracker.now.eq(now),
            trigger.now.eq(now),
        ]

    def _connect_registers(self, m: Module) -> None:
        registers, tracker, trigger = self._registers, self._tracker, self._trigger
        wiring.connect(m, self._sequencer.request, registers.request)
        for name in ("response_valid", "response_error", "response_data"):
            m.d.comb += getattr(self._sequencer, name).eq(getattr(registers, name))
        for part in (tracker, trigger):
            m.d.comb += [part.config_valid.eq(registers.config_valid), part.config.eq(registers.config)]
        m.d.comb += [getattr(registers, name).eq(getattr(tracker, name)) for name in _TRACKER_STATUS]
        m.d.comb += [getattr(registers, name).eq(getattr(trigger, name)) for name in _TRIGGER_STATUS]
        m.d.comb += [
            registers.init_done.eq(tracker.init_done & trigger.init_done),
            registers.context.eq(trigger.context[CONTEXT]),
        ]

    def _connect_checker(self, m: Module) -> None:
        runs, tokens, commands, counts = self._runs, self._tokens, self._commands, self._counts
        checksum = Signal(32)
        m.d.comb += [
            runs.begin.eq(self._referee.begin),
            runs.run.eq(self._sequencer.run),
            runs.working.eq(tokens.busy | commands.busy),
            self._sequencer.busy.eq(runs.busy),
            tokens.play.eq(runs.run[Run.PLAY]),
            commands.check.eq(runs.run[Run.CHECK]),
            tokens.drop.eq(self._referee.inject),
            tokens.noise.eq(self._noise.bits[3:]),
            counts.count.eq(tokens.taken),
            counts.block.eq(gemm.block(tokens.address)),
            counts.forget.eq(runs.forget),
            counts.asked.eq(Mux(runs.forget, runs.forgotten, commands.block)),
            commands.updates[0].eq(counts.updates),
            self._referee.checksum.eq(checksum),
        ]
        with m.If(commands.done_valid):
            m.d.sync += checksum.eq(checksum.rotate_left(5) ^ commands.block)
        with m.If(self._referee.begin):
            m.d.sync += checksum.eq(0)
