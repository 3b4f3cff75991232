"""Which contexts are being aborted: from the request until nothing of their job is in flight."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class AbortState(wiring.Component):
    """A bit per context.

    Parameters
    ----------
    contexts : number of contexts.

    Members
    -------
    abort, context : In : pulse; the abort of ``context`` is being given to the parts.
    disarm : In(1) : pulse; ends every abort.
    tables_busy : In(1) : the tracker sweeps its tables, or drops what is left of an aborted context.
    in_flight : In(contexts) : tracked accesses, or commands, of the context are not done.
    aborting : Out(contexts) : the abort is in progress.
    settled : Out(1) : ``aborting`` has not just become less, and with the inputs of the cycle before it stays.

    Latency: 1; an abort ends two cycles after its request at the earliest, when the tracker has begun. Reset: 0.
    """

    def __init__(self, *, contexts: int) -> None:
        super().__init__({
            "abort": In(1), "context": In(4), "disarm": In(1), "tables_busy": In(1), "in_flight": In(contexts),
            "aborting": Out(contexts), "settled": Out(1, init=1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """For one cycle after a request the inputs do not show it yet."""
        m = Module()
        requested, begun = Signal(len(self.aborting), name="requested"), Signal(name="begun")
        kept = self.in_flight | (self.tables_busy | begun).replicate(len(self.aborting))
        m.d.comb += requested.eq(Mux(self.abort, 1 << self.context, 0)[: len(requested)])
        m.d.sync += [
            begun.eq(self.abort),
            self.aborting.eq(((self.aborting & kept) | requested) & ~self.disarm.replicate(len(requested))),
            self.settled.eq(~(self.abort | begun | (self.aborting & ~kept).any())),
        ]
        return m
