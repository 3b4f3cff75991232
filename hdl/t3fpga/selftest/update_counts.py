"""Updates of each DMA block, or of each of other things, that were taken: the self-test's own count."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .gemm import BLOCK_NUMBERS

UPDATE_BITS = 6
"""Enough for the updates of a DMA block."""


class UpdateCounts(wiring.Component):
    """A counter for each number.

    Parameters
    ----------
    numbers : how many counters; default: one for each DMA block.
    bits : width of a counter.

    Members
    -------
    count, number : In : one more for this number.
    forget : In(1) : the counter of ``asked`` becomes 0; nothing may be counted in that cycle, nor in the one before.
    asked : In : whose count is wanted.
    updates : Out : that count, two cycles later, without what is counted in the cycle of ``asked``.
    """

    def __init__(self, *, numbers: int = BLOCK_NUMBERS, bits: int = UPDATE_BITS) -> None:
        super().__init__({
            "count": In(1), "number": In(range(numbers)),
            "forget": In(1), "asked": In(range(numbers)), "updates": Out(bits),
        })  # fmt: skip
        self._numbers, self._bits = numbers, bits

    def elaborate(self, platform: Any) -> Module:
        """Read, and written one cycle later; a read sees the write of its cycle."""
        m = Module()
        m.submodules.counts = counts = Memory(shape=self._bits, depth=self._numbers, init=[])
        write = counts.write_port()
        old, shown = counts.read_port(transparent_for=[write]), counts.read_port(transparent_for=[write])
        counting, number = Signal(), Signal(range(self._numbers))
        m.d.sync += [counting.eq(self.count), number.eq(self.number), self.updates.eq(shown.data)]
        m.d.comb += [
            old.addr.eq(self.number),
            shown.addr.eq(self.asked),
            write.en.eq(counting | self.forget),
            write.addr.eq(Mux(self.forget, self.asked, number)),
            write.data.eq(Mux(self.forget, 0, old.data + 1)),
        ]
        return m
