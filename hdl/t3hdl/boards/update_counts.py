"""Updates of each DMA block that memory took: the self-test's own count."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .gemm import BLOCK_NUMBERS

UPDATE_BITS = 6
"""Enough for the updates of a DMA block."""


class UpdateCounts(wiring.Component):
    """A counter for each block.

    Members
    -------
    count, block : In : one more update of this block.
    forget : In(1) : the counter of ``asked`` becomes 0; nothing may be counted in that cycle.
    asked : In : whose count is wanted.
    updates : Out(6) : that count, two cycles later.
    """

    def __init__(self) -> None:
        super().__init__({
            "count": In(1), "block": In(range(BLOCK_NUMBERS)),
            "forget": In(1), "asked": In(range(BLOCK_NUMBERS)), "updates": Out(UPDATE_BITS),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Read, and written one cycle later; a read sees the write of its cycle."""
        m = Module()
        m.submodules.counts = counts = Memory(shape=UPDATE_BITS, depth=BLOCK_NUMBERS, init=[])
        write = counts.write_port()
        old, shown = counts.read_port(transparent_for=[write]), counts.read_port(transparent_for=[write])
        counting, block = Signal(), Signal(range(BLOCK_NUMBERS))
        m.d.sync += [counting.eq(self.count), block.eq(self.block), self.updates.eq(shown.data)]
        m.d.comb += [
            old.addr.eq(self.block),
            shown.addr.eq(self.asked),
            write.en.eq(counting | self.forget),
            write.addr.eq(Mux(self.forget, self.asked, block)),
            write.data.eq(Mux(self.forget, 0, old.data + 1)),
        ]
        return m
