"""The tracker alone as a design that tests itself, for devices that have no room for the trigger either."""

from typing import Any

from amaranth.hdl import Module, ResetInserter, Signal
from t3hdl.config import T3Config

from .. import gemm
from ..chunk_loader import ChunkLoader
from ..program import Parts, Run
from .token_test import TokenTest
from .tracker_checker import TrackerChecker


class TrackerOnlyTest(TokenTest):
    """Plays the rounds of :class:`~t3fpga.selftest.selftest.SelfTest` as tokens, one per update, to a tracker.

    The report has finished chunks in the place of triggers, and the checksum of
    :class:`~t3fpga.selftest.tracker.tracker_checker.TrackerChecker`. Parameters, members and errors are those of
    SelfTest; a tracker that has no room for every tile of a round is refused, too: there not every tile would be
    completed.
    """

    def __init__(self, *, config: T3Config, **options: Any) -> None:
        if not gemm.never_overflows(config):
            raise ValueError(
                "the tracker's self-test needs an entry for every tile of a round: tracker_ways or tracker_sets must "
                f"be larger, not {config.tracker_ways} and {config.tracker_sets}"
            )
        super().__init__(config=config, parts=Parts.TRACKER, sources=2, completed="chunks", **options)
        self._loader = ChunkLoader()
        self._checker = TrackerChecker(config=config)

    def elaborate(self, platform: Any) -> Module:
        """Loader and checker around the tracker."""
        m = super().elaborate(platform)
        result_checker, tracker, registers, runs, tokens = (
            self._result_checker,
            self._tracker,
            self._registers,
            self._runs,
            self._tokens,
        )
        m.submodules.loader = ResetInserter(result_checker.begin)(self._loader)
        m.submodules.checker = ResetInserter(result_checker.begin)(self._checker)
        loader, checker = self._loader, self._checker
        chunks = Signal(8)
        m.d.sync += chunks.eq(chunks + checker.chunk_done_valid)
        with m.If(result_checker.begin):
            m.d.sync += chunks.eq(0)
        m.d.comb += [
            loader.seed.eq(result_checker.seed),
            loader.config_valid.eq(registers.config_valid),
            loader.config.eq(registers.config),
            tracker.load_valid.eq(loader.load_valid),
            tracker.load.eq(loader.load),
            checker.seed.eq(result_checker.seed),
            checker.taken.eq(tokens.taken),
            checker.address.eq(tokens.address),
            checker.tile_done_valid.eq(tracker.tile_done_valid),
            checker.tile_done.eq(tracker.tile_done),
            checker.chunk_done_valid.eq(tracker.chunk_done_valid),
            checker.chunk_done.eq(tracker.chunk_done),
            checker.forget.eq(runs.run[Run.ZERO]),
            checker.examine.eq(runs.run[Run.CHECK]),
            runs.working.eq(tokens.busy | checker.busy),
            registers.init_done.eq(tracker.init_done),
            registers.triggers.eq(chunks),
            *(sink.eq(failure) for sink, failure in zip(result_checker.failures[1:], checker.failures, strict=True)),
            result_checker.checksum.eq(checker.checksum),
        ]
        return m
