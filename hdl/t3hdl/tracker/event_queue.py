"""The event queue of a tracker bank: events wait, and lines of one chunk slot are accumulated."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import lowest_bit
from ..common.secded import check_bits, decode, encode
from ..common.state_parity import CHECKED
from ..config import T3Config
from ..interface.layouts import EventKind

LINES_BITS = 16
"""Bits of an event's lines: of a tile's threshold, or of tokens of a chunk added up."""

Event = data.StructLayout({"kind": 1, "slot": 6, "lines": LINES_BITS, "row": 12, "col": 12, "wf": 4})
"""What a tracker bank reports: a finished tile, or (OVERFLOW) lines of tiles that have no entry."""


class EventQueue(wiring.Component):
    """Keeps events in order; an OVERFLOW is added to one of its slot that waits, if there is one.

    Of the OVERFLOW events of the slot that are in the queue and do not leave it in this cycle, the oldest one whose
    sum fits in its lines takes the new ones. (In a tracker every sum fits: no valid configuration has an entry wait for
    more than 64 tokens.) The head is no exception, so this is no stream: ``head.lines`` may grow while it waits.

    Parameters
    ----------
    config : gives the depth ``event_queue``, and ``protect``: check bits beside every entry; an entry that cannot be
        corrected is dropped when it becomes the oldest, so its lines are never counted. An entry with one wrong bit
        is not added to any more.

    Members
    -------
    push, event : In : pulse; an event comes in. Not while ``level`` is ``event_queue``, whatever the event is.
    valid, head : Out : the oldest entry. It means nothing while ``valid`` is 0.
    pop : In(1) : the oldest entry leaves. Not while ``valid`` is 0.
    level : Out : entries held.
    corrected, uncorrectable : Out(1) : the oldest entry had to be corrected, is being dropped.

    Latency: 1. Throughput: one event in and one out per cycle. Reset: empty.
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
        """A shift register whose first entry is the head: neither the output nor a comparison waits for a pointer.

        The pop arrives late: the next state is computed for both cases.
        """
        m = Module()
        width = Event.size + (check_bits(Event.size) if self._protect else 0)
        entries = [Signal(width, name=f"entry_{k}", attrs=dict(CHECKED)) for k in range(self._depth)]
        leaves = Signal()
        m.d.comb += leaves.eq(self.pop | self.uncorrectable)
        self._show(m, entries[0])
        sums = [self._add(m, k, entry) for k, entry in enumerate(entries)]
        stay, leave = (self._following(m, entries, sums, number) for number in (0, 1))
        for register, kept, moved in zip((*entries, self.level), stay, leave, strict=True):
            m.d.sync += register.eq(Mux(leaves, moved, kept))
        return m

    def _following(self, m: Module, entries: list[Signal], sums: list[tuple[Signal, Value]], leave: int) -> list[Value]:
        """The entries and the level after this cycle, if ``leave`` (0 or 1) of them leave in it."""
        fitting, takes = (Signal(self._depth, name=f"{name}_{leave}") for name in ("fitting", "takes"))
        m.d.comb += [
            fitting.eq(Cat(fits if k >= leave else Const(0, 1) for k, (fits, _) in enumerate(sums))),
            takes.eq(lowest_bit(fitting)),
        ]
        merges = self.push & (self.event.kind == EventKind.OVERFLOW)
        after = [Mux(takes[k] & merges, sums[k][1], entry) for k, entry in enumerate(entries)]
        arriving = self._stored(self.event.as_value())
        # The first free entry gets the event even if another one takes its lines: it stays free then.
        following = [
            Mux(self.push & (self.level == k + leave), arriving, after[min(k + leave, self._depth - 1)])
            for k in range(self._depth)
        ]
        append = self.push & ~(merges & fitting.any())
        return [*following, (self.level + append - leave)[: len(self.level)]]

    def _stored(self, word: Value) -> Value:
        return encode(word) if self._protect else word

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

    def _add(self, m: Module, k: int, entry: Signal) -> tuple[Signal, Value]:
        """Whether entry number ``k`` can take the lines of an event of its slot, and what it is with them.

        The check bits follow the sum without a look at the rest (the code is linear), so two wrong bits stay found.
        """
        held = data.View(Event, entry[: Event.size])
        fits, total = Signal(name=f"fits_{k}"), Signal(LINES_BITS + 1, name=f"total_{k}")
        change = Signal(Event, name=f"change_{k}")
        sound = ~entry.xor() if self._protect else Const(1)  # every word of the code has an even number of ones
        m.d.comb += [
            total.eq(held.lines + self.event.lines),
            fits.eq(
                (self.level > k)
                & (held.kind == EventKind.OVERFLOW)
                & (held.slot == self.event.slot)
                & ~total[LINES_BITS]
                & sound
            ),
            change.lines.eq(held.lines ^ total),
        ]
        return fits, entry ^ self._stored(change.as_value())
