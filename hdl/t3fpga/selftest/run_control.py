"""What the RUN steps of a programme start, and when they are over."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .gemm import BLOCK_NUMBERS
from .program import Run

QUIET_CYCLES = 256
"""After so many cycles without an access at the memory none waits in a slice: communication is let through after 40."""


class RunControl(wiring.Component):
    """A run is over when nothing has moved for a while.

    Members
    -------
    begin : In(1) : pulse; a round begins.
    run : In(3) : pulses, a bit per :class:`~t3fpga.selftest.program.Run`.
    working : In(1) : something moves.
    busy : Out(1) : the run is not over; from the second cycle after its pulse.
    forget, forgotten : Out : after ZERO: the counter of this block becomes 0.
    timed : Out(1) : from PLAY to CHECK.
    """

    def __init__(self) -> None:
        super().__init__({
            "begin": In(1), "run": In(len(Run)), "working": In(1), "busy": Out(1),
            "forget": Out(1), "forgotten": Out(range(BLOCK_NUMBERS)), "timed": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A counter of quiet cycles, and one of blocks."""
        m = Module()
        active, still = Signal(), Signal(range(QUIET_CYCLES + 1))
        m.d.comb += self.busy.eq(~still[-1])
        m.d.sync += [
            active.eq(self.run.any() | self.working),
            still.eq(Mux(active, 0, still + ~still[-1])),
            self.forgotten.eq(self.forgotten + 1),
        ]
        with m.If(self.run[Run.ZERO]):
            m.d.sync += [self.forget.eq(1), self.forgotten.eq(0)]
        with m.Elif(self.forgotten == BLOCK_NUMBERS - 1):
            m.d.sync += self.forget.eq(0)
        with m.If(self.run[Run.PLAY]):
            m.d.sync += self.timed.eq(1)
        with m.If(self.run[Run.CHECK] | self.begin):
            m.d.sync += self.timed.eq(0)
        return m
