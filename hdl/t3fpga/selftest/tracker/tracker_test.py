"""Tracker and trigger alone as a design that tests itself, for devices that have no room for the unit."""

from typing import Any

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from t3hdl.config import T3Config
from t3hdl.trigger.trigger import Trigger

from .. import gemm
from ..commands import CommandChecker
from ..program import Parts, Run
from ..traffic import CONTEXT
from ..update_counts import UPDATE_BITS, UpdateCounts
from .token_test import TokenTest

_STATUS = ("triggers", "done_mask", "stuck", "tile_twice", "too_large")


class TrackerTest(TokenTest):
    """Plays the rounds of :class:`~t3fpga.selftest.selftest.SelfTest` as tokens, one per update, to both.

    There is no memory: the checksum of a round is that of its commands' blocks in their order (rotated by 5, XOR the
    block's number). Parameters, members and errors are those of SelfTest.
    """

    def __init__(self, *, config: T3Config, **options: Any) -> None:
        super().__init__(config=config, parts=Parts.TRIGGER, sources=1, completed="triggers", **options)
        self._trigger = Trigger(config=config)
        self._counts = UpdateCounts()
        self._commands = CommandChecker(config=config, counters=1, counted_bits=UPDATE_BITS)

    def elaborate(self, platform: Any) -> Module:
        """The trigger behind the tracker, and what checks its commands."""
        m = super().elaborate(platform)
        m.submodules.trigger, m.submodules.counts = self._trigger, self._counts
        m.submodules.commands = ResetInserter(self._result_checker.begin)(self._commands)
        self._connect_trigger(m)
        self._connect_checker(m)
        return m

    def _connect_trigger(self, m: Module) -> None:
        """As in the core."""
        tracker, trigger, registers = self._tracker, self._trigger, self._registers
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
            trigger.now.eq(self._now),
            trigger.config_valid.eq(registers.config_valid),
            trigger.config.eq(registers.config),
            registers.init_done.eq(tracker.init_done & trigger.init_done),
            registers.context.eq(trigger.context[CONTEXT]),
        ]
        m.d.comb += [getattr(registers, name).eq(getattr(trigger, name)) for name in _STATUS]

    def _connect_checker(self, m: Module) -> None:
        runs, tokens, commands, counts = self._runs, self._tokens, self._commands, self._counts
        checksum = Signal(32)
        m.d.comb += [
            runs.working.eq(tokens.busy | commands.busy),
            commands.seed.eq(self._result_checker.seed),
            commands.check.eq(runs.run[Run.CHECK]),
            counts.count.eq(tokens.taken),
            counts.number.eq(gemm.block(tokens.address)),
            counts.forget.eq(runs.forget),
            counts.asked.eq(Mux(runs.forget, runs.forgotten, commands.block)),
            commands.updates[0].eq(counts.updates),
            self._result_checker.failures[1].eq(commands.failure),
            self._result_checker.checksum.eq(checksum),
        ]
        with m.If(commands.done_valid):
            m.d.sync += checksum.eq(checksum.rotate_left(5) ^ commands.block)
        with m.If(self._result_checker.begin):
            m.d.sync += checksum.eq(0)
