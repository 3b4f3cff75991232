"""The epochs that a context's ranges may not have: those of jobs that did not end, whose late updates would count."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interface import register_map as regs
from ..interface.layouts import EPOCH_BITS

ContextEpochs = data.StructLayout({
    "last": EPOCH_BITS, "job": EPOCH_BITS, "first": EPOCH_BITS, "more": EPOCH_BITS, "valid": 1,
})  # fmt: skip
"""Of a context: the epoch that its ranges got last, that of the job that was armed last; the first one that ranges may
not have, how many after it neither, past 255 at 0, and whether there are any."""


class BarredEpochs(wiring.Component):
    """Remembers the epochs of each context's dropped jobs until another job of the context is complete.

    They are one interval, which each further job that is dropped extends to its own epoch, on the shorter side. So jobs
    that are dropped one after the other bar one epoch each if software counts by one, up or down.

    Parameters
    ----------
    contexts : number of contexts.

    Members
    -------
    attributes : In(RangeAttributes) : what is written to a range.
    barred : Out(1) : the range would be in use with an epoch that its context may not have.
    set_range : In(1) : pulse; the attributes are taken.
    armed : In(contexts) : pulses; a job of the context begins, whose epoch is that of its last range. The next job's
        range may be written while it runs.
    dropped : In(contexts) : pulses; the job of the context, which is active, is dropped.
    complete : In(contexts) : the job of the context is complete.

    Latency: 0 for the judgement; what a pulse does at t is judged by from t+1. Reset: no epoch is barred, the others
    are 0.
    """

    def __init__(self, *, contexts: int) -> None:
        super().__init__({
            "attributes": In(regs.RangeAttributes), "barred": Out(1), "set_range": In(1),
            "armed": In(contexts), "dropped": In(contexts), "complete": In(contexts),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A context at a time; a job that is dropped is not complete."""
        m = Module()
        new, hits = self.attributes, []
        for context in range(len(self.dropped)):
            epochs, mine = Signal(ContextEpochs, name=f"epochs_{context}"), new.valid & (new.context == context)
            after, reach = Signal(EPOCH_BITS, name=f"after_{context}"), Signal(EPOCH_BITS, name=f"reach_{context}")
            above, below = Signal(EPOCH_BITS, name=f"above_{context}"), Signal(EPOCH_BITS, name=f"below_{context}")
            m.d.comb += [
                after.eq(new.epoch - epochs.first), reach.eq(epochs.job - epochs.first),
                above.eq(reach - epochs.more), below.eq(-reach),
            ]  # fmt: skip
            hits.append(mine & epochs.valid & (after <= epochs.more))
            with m.If(self.set_range & mine):
                m.d.sync += epochs.last.eq(new.epoch)
            with m.If(self.armed[context]):
                m.d.sync += epochs.job.eq(epochs.last)
            with m.If(self.dropped[context]):
                m.d.sync += epochs.valid.eq(1)
                with m.If(~epochs.valid):
                    m.d.sync += [epochs.first.eq(epochs.job), epochs.more.eq(0)]
                with m.Elif((reach > epochs.more) & (above <= below)):
                    m.d.sync += epochs.more.eq(reach)
                with m.Elif(reach > epochs.more):
                    m.d.sync += [epochs.first.eq(epochs.job), epochs.more.eq(epochs.more + below)]
            with m.Elif(self.complete[context]):
                m.d.sync += epochs.valid.eq(0)
        m.d.comb += self.barred.eq(Cat(hits).any())
        return m
