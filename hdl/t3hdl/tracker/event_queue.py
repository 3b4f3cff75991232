"""The event queue of a tracker bank: finished tiles wait until they are counted for their chunks."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.secded import check_bits, decode, encode
from ..common.state_parity import CHECKED
from ..config import T3Config

LINES_BITS = 16
"""Bits of a tile's threshold."""

Event = data.StructLayout({"slot": 6, "lines": LINES_BITS, "row": 12, "col": 12, "wf": 4})
"""A tile that is finished, with its threshold; or (OVERFLOW) lines of a tile that has no entry."""


class EventQueue(wiring.Component):
    """Keeps finished tiles in order.

    Parameters
    ----------
    config : gives the depth ``event_queue``, and ``protect``: check bits beside every entry; an entry that cannot be
        corrected is dropped when it becomes the oldest, so its lines are never counted.

    Members
    -------
    push, event : In : pulse; a tile comes in. Not while ``level`` is ``event_queue``.
    valid, head : Out : the oldest entry. It means nothing while ``valid`` is 0.
    pop : In(1) : the oldest entry leaves. Not while ``valid`` is 0.
    level : Out : entries held.
    corrected, uncorrectable : Out(1) : the oldest entry had to be corrected, is being dropped.

    Latency: 1. Throughput: one tile in and one out per cycle. Reset: empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "push": In(1), "event": In(Event), "valid": Out(1), "head": Out(Event), "pop": In(1),
            "level": Out(range(config.event_queue + 1)), "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._depth, self._protect = config.event_queue, config.protect

    @property
    def latency(self) -> int:
        """Cycles from ``push`` to ``valid`` of an empty queue."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """A shift register whose first entry is the head: the output waits for no pointer.

        The pop arrives late: the next state is computed for both cases.
        """
        m = Module()
        width = Event.size + (check_bits(Event.size) if self._protect else 0)
        entries = [Signal(width, name=f"entry_{k}", attrs=dict(CHECKED)) for k in range(self._depth)]
        leaves = Signal()
        m.d.comb += leaves.eq(self.pop | self.uncorrectable)
        self._show(m, entries[0])
        stay, leave = (self._following(entries, number) for number in (0, 1))
        for register, kept, moved in zip((*entries, self.level), stay, leave, strict=True):
            m.d.sync += register.eq(Mux(leaves, moved, kept))
        return m

    def _following(self, entries: list[Signal], leave: int) -> list[Value]:
        """The entries and the level after this cycle, if ``leave`` (0 or 1) of them leave in it."""
        arriving = encode(self.event.as_value()) if self._protect else self.event.as_value()
        following = [
            Mux(self.push & (self.level == k + leave), arriving, entries[min(k + leave, self._depth - 1)])
            for k in range(self._depth)
        ]
        return [*following, (self.level + self.push - leave)[: len(self.level)]]

    def _show(self, m: Module, head: Signal) -> None:
        """The outputs: the head, corrected."""
        held = self.level != 0
        m.d.comb += [self.valid.eq(held & ~self.uncorrectable), self.head.eq(head)]
        if self._protect:
            decoded = decode(m, head, Event.size)
            m.d.comb += [
                self.head.eq(decoded.word),
                self.corrected.eq(held & decoded.corrected),
                self.uncorrectable.eq(held & decoded.uncorrectable),
            ]
