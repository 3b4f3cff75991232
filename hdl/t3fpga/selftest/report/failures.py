"""What can be wrong with a round, and the first thing that was."""

from enum import IntEnum
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out


class FailureCode(IntEnum):
    """Verdict on a round. The detail beside it has 32 bits, eight digits in the report.

    Of a tracker alone LOST, TWICE, EARLY, MISSING and SLOT are about a tile or chunk, and the detail is
    :data:`~t3fpga.selftest.completions.Detail`.
    """

    PASS = 0
    TIMEOUT = 1
    """A step took too long: address of its register, or number of its run."""
    LOST = 2
    """The watchdog found a block that waits: descriptor, block, tiles expected, tiles seen, two digits each."""
    BUS = 3
    """A register access was refused or not answered: its address."""
    STATUS = 4
    """A register does not have the value that it must have: address, its low 16 bits."""
    ROUTE = 5
    """A store went the wrong way at the egress: its address in the memory."""
    COMMAND = 6
    """A field of a DMA command is wrong, or no such command is due: row and column of its first tile."""
    TWICE = 7
    """A block was sent before: as above."""
    EARLY = 8
    """A block was sent before all its updates were performed: as above."""
    MEMORY = 9
    """A line does not hold what it must hold: its address in the memory, then the lane (one digit)."""
    MISSING = 10
    """Blocks were not sent: a bit for each of them, by its number (:func:`~t3fpga.selftest.gemm.block`)."""
    SLOT = 11
    """What a tracker alone says to be complete is not in the slot that it names, or is not there at all."""


Failure = data.StructLayout({"valid": 1, "what": 4, "detail": 32})
"""A pulse when something is wrong."""


class FirstFailure(wiring.Component):
    """Keeps the first failure since ``clear``; LOST replaces TIMEOUT, because it says more.

    Members
    -------
    clear : In(1) : forgets.
    i : In(Failure).array(sources) : pulses; of several in one cycle the first counts.
    what, detail : Out : PASS and 0 if there was none.
    """

    def __init__(self, *, sources: int) -> None:
        super().__init__({
            "clear": In(1), "i": In(Failure).array(sources), "what": Out(4), "detail": Out(32),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """A register, and one in front of it."""
        m = Module()
        chosen = Signal(Failure)
        m.d.sync += chosen.valid.eq(0)
        for source in reversed(self.i):
            with m.If(source.valid):
                m.d.sync += chosen.eq(source)
        first = self.what == FailureCode.PASS
        better = (self.what == FailureCode.TIMEOUT) & (chosen.what == FailureCode.LOST)
        with m.If(self.clear):
            m.d.sync += [self.what.eq(FailureCode.PASS), self.detail.eq(0)]
        with m.Elif(chosen.valid & (first | better)):
            m.d.sync += [self.what.eq(chosen.what), self.detail.eq(chosen.detail)]
        return m
