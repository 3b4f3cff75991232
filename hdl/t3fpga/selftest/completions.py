"""Things that must get a number of updates, and must be said to be complete once, and then only."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .report.failures import Failure, FailureCode
from .update_counts import UpdateCounts

Detail = data.StructLayout({"updates": 8, "expected": 8, "name": 16})
"""Of a failure: updates taken, updates that there must be, and what it is about."""


class Completions(wiring.Component):
    """Counts updates of each of these things, judges a completion when it comes, and each thing when it is examined.

    Parameters
    ----------
    numbers : how many things.
    bits : width of their counts.

    Members
    -------
    updated, update : In : one more update of this number.
    completed, examined, forgotten : In(1) : pulses, at most one of them: ``number`` is said to be complete; everything
        must have happened to it; its counts become 0, and no update may come.
    number, expected : In : the thing, and the updates that it must get; 0 if it must not be completed.
    wrong : In(1) : with ``completed``: what was said does not fit.
    name : In(16) : for ``failure``.
    failure : Out : pulse.
    shown, entry : Out : pulse, three cycles after ``examined``: its updates and, on top, whether it is complete.

    Latency: 3. Throughput: one update, and one of the pulses, per cycle.
    """

    def __init__(self, *, numbers: int, bits: int) -> None:
        super().__init__({
            "updated": In(1), "update": In(range(numbers)),
            "completed": In(1), "examined": In(1), "forgotten": In(1),
            "number": In(range(numbers)), "expected": In(bits), "wrong": In(1), "name": In(16),
            "failure": Out(Failure), "shown": Out(1), "entry": Out(bits + 1),
        })  # fmt: skip
        self._numbers, self._bits = numbers, bits

    def elaborate(self, platform: Any) -> Module:
        """What was asked waits for the counts, which come two cycles later."""
        m = Module()
        m.submodules.updates = updates = UpdateCounts(numbers=self._numbers, bits=self._bits)
        m.submodules.completions = completions = UpdateCounts(numbers=self._numbers, bits=1)
        for counts in (updates, completions):
            m.d.comb += [counts.forget.eq(self.forgotten), counts.asked.eq(self.number)]
        m.d.comb += [
            updates.count.eq(self.updated),
            updates.number.eq(self.update),
            completions.count.eq(self.completed),
            completions.number.eq(self.number),
        ]
        names = ("completed", "examined", "wrong", "expected", "name")
        layout = data.StructLayout({name: self.signature.members[name].shape for name in names})
        asked, waiting = Signal(layout), Signal(layout)
        m.d.sync += [waiting.eq(asked), *(asked[name].eq(getattr(self, name)) for name in names)]
        self._judge(m, waiting, updates.updates, completions.updates)
        return m

    def _judge(self, m: Module, asked: Any, updates: Value, complete: Value) -> None:
        short, due, detail = Signal(), Signal(), Signal(Detail)
        m.d.comb += [
            short.eq(updates != asked.expected),
            due.eq(asked.expected != 0),
            detail.updates.eq(updates),
            detail.expected.eq(asked.expected),
            detail.name.eq(asked.name),
        ]
        m.d.sync += [
            self.shown.eq(asked.examined),
            self.entry.eq(Cat(updates, complete)),
            self.failure.valid.eq(0),
            self.failure.detail.eq(detail),
        ]

        def fail(what: FailureCode) -> list[Any]:
            return [self.failure.valid.eq(1), self.failure.what.eq(what)]

        with m.If(asked.completed):
            with m.If(asked.wrong | ~due):
                m.d.sync += fail(FailureCode.SLOT)
            with m.Elif(complete):
                m.d.sync += fail(FailureCode.TWICE)
            with m.Elif(short):
                m.d.sync += fail(FailureCode.EARLY)
        with m.If(asked.examined):
            with m.If(short):
                m.d.sync += fail(FailureCode.LOST)
            with m.Elif(due & ~complete):
                m.d.sync += fail(FailureCode.MISSING)
