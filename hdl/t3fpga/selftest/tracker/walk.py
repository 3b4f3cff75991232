"""Every address of the memory once, in the order and at the pace that the seed says."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..gemm import ADDRESS_BITS, LINES

_TAPS = 0x8020_0003
"""x^32 + x^22 + x^2 + x + 1, as the mask of a Galois register that shifts right."""


class Noise(wiring.Component):
    """A linear feedback shift register of 32 bits, of which each user takes others.

    Members
    -------
    load, seed : In : starts from this seed, which must not be 0.
    bits : Out(32) : other ones in every cycle.
    """

    def __init__(self) -> None:
        super().__init__({"load": In(1), "seed": In(32), "bits": Out(32, init=1)})

    def elaborate(self, platform: Any) -> Module:
        """One shift per cycle."""
        m = Module()
        m.d.sync += self.bits.eq((self.bits >> 1) ^ Mux(self.bits[0], _TAPS, 0))
        with m.If(self.load):
            m.d.sync += self.bits.eq(self.seed)
        return m


class Pace(wiring.Component):
    """When to go on: at once, in random cycles, half of them, seldom, or in bursts, for 32 cycles each.

    Members
    -------
    noise : In(5) : bits of :class:`Noise`.
    go : Out(1) : a function of registers.
    """

    def __init__(self) -> None:
        super().__init__({"noise": In(5), "go": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        """A mode, chosen anew every 32 cycles."""
        m = Module()
        beat, mode = Signal(5), Signal(2)
        m.d.sync += beat.eq(beat + 1)
        with m.If(beat == 0):
            m.d.sync += mode.eq(self.noise[:2])
        with m.Switch(mode):
            with m.Case(0):
                m.d.sync += self.go.eq(1)
            with m.Case(1):
                m.d.sync += self.go.eq(self.noise[2])
            with m.Case(2):
                m.d.sync += self.go.eq(self.noise[2:5] == 0)
            with m.Case(3):
                m.d.sync += self.go.eq(beat[3])
        return m


class Walk(wiring.Component):
    """Gives each of the memory's addresses once: ``first``, and then ``step`` (odd) further each time, modulo 256.

    Members
    -------
    start, first, step : In : starts a walk.
    go : In(1) : another address may follow.
    o : Out(stream(8)) : the addresses.
    busy : Out(1) : from the cycle after ``start`` until the last address was taken.
    """

    def __init__(self) -> None:
        super().__init__({
            "start": In(1), "first": In(ADDRESS_BITS), "step": In(ADDRESS_BITS), "go": In(1),
            "o": Out(stream.Signature(ADDRESS_BITS)), "busy": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """The next address, and how many are left."""
        m = Module()
        following, left = Signal(ADDRESS_BITS), Signal(range(LINES + 1))
        more = Signal()
        m.d.comb += [more.eq(left != 0), self.busy.eq(more | self.o.valid)]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If((self.o.ready | ~self.o.valid) & more & self.go):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.eq(following),
                following.eq(following + self.step),
                left.eq(left - 1),
            ]
        with m.If(self.start):
            m.d.sync += [left.eq(LINES), following.eq(self.first)]
        return m


def stride(plain: Value, step: Value) -> Value:
    """The step of a walk: 1 in the order of the GEMM, else an odd number."""
    return Mux(plain, 1, Cat(1, step[1:]))
