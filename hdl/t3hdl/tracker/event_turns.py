"""Whose events the tracker counts next: one of a bank, or the pending lines of a chunk slot in all banks."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import RoundRobin, one_hot_index
from ..config import T3Config


class EventTurns(wiring.Component):
    """Takes one thing per cycle, in turns: a finished tile of a bank, or what is pending for a slot.

    The slots have turns of their own; the next one is chosen a cycle before, so that no choice waits for another. A
    slot with pending lines is collected within (``chunk_window`` + 1) x (``tracker_banks`` + 1) cycles.

    Parameters
    ----------
    config : gives ``tracker_banks`` and ``chunk_window``.

    Members
    -------
    events : In(tracker_banks) : banks with a finished tile.
    pending : In(chunk_window) : slots with pending lines in some bank.
    ends : In(chunk_window) : slots whose pending lines are dropped in this cycle.
    taken : Out(tracker_banks) : the bank whose tile is taken, one-hot.
    collect, slot : Out : what is pending for ``slot`` is collected.
    waiting : Out(1) : a slot is chosen.

    Latency: 0 for a tile, 1 for a slot. Throughput: one per cycle. Reset: bank 0 and slot 0 have the turn.
    """

    def __init__(self, *, config: T3Config) -> None:
        banks, window = config.tracker_banks, config.chunk_window
        super().__init__({
            "events": In(banks), "pending": In(window), "ends": In(window),
            "taken": Out(banks), "collect": Out(1), "slot": Out(6), "waiting": Out(1),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """The turn of banks and collection, and that of the slots."""
        m = Module()
        banks = self._parameters.tracker_banks
        m.submodules.turn = turn = RoundRobin(requesters=banks + 1)
        m.submodules.slots = slots = RoundRobin(requesters=self._parameters.chunk_window)
        chosen = Signal.like(self.pending, name="chosen")
        m.d.comb += [
            turn.requests.eq(Cat(self.events, self.waiting)),
            turn.take.eq(1),
            self.taken.eq(turn.grant[:banks]),
            # A net of its own: bits that are neighbours would be one port of the last bank, and a module of its own.
            self.collect.eq(turn.grant[banks:].any()),
            chosen.eq(Mux(self.waiting, 1 << self.slot, 0)),
            # In a cycle in which it is looked at, the slot that is chosen is being collected.
            slots.requests.eq(self.pending & ~chosen & ~self.ends),
            slots.take.eq(~self.waiting | self.collect),
        ]
        with m.If(slots.take):
            m.d.sync += [self.waiting.eq(slots.requests.any()), self.slot.eq(one_hot_index(slots.grant))]
        with m.Else():
            m.d.sync += self.waiting.eq(~(chosen & self.ends).any())
        return m
