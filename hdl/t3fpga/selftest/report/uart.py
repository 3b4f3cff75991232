"""A serial transmitter: 8 data bits, no parity, one stop bit."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

_BITS = 10
"""Start bit, eight data bits, stop bit."""


class Uart(wiring.Component):
    """Sends bytes, low bit first.

    Parameters
    ----------
    clock_hz, baud : a bit lasts ``clock_hz / baud`` cycles, rounded.

    Members
    -------
    i : In(stream(8)) : the bytes.
    tx : Out(1) : the line; 1 while nothing is sent.

    Raises
    ------
    ValueError
        if the rounded bit is more than 2 % too long or too short: with the receiver's error, 5 % spoil a byte.
    """

    def __init__(self, *, clock_hz: int, baud: int) -> None:
        self._divisor = round(clock_hz / baud)
        if self._divisor < 2 or abs(self._divisor * baud / clock_hz - 1) > 0.02:
            raise ValueError(f"a clock of {clock_hz} Hz cannot be divided to within 2 % of {baud} baud")
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform: Any) -> Module:
        """A shift register, a counter of its bits, and a counter of cycles."""
        m = Module()
        bits, left, cycles = (
            Signal(_BITS, init=(1 << _BITS) - 1),
            Signal(range(_BITS + 1)),
            Signal(range(self._divisor)),
        )
        last = Signal()
        m.d.comb += self.i.ready.eq(left == 0)
        m.d.sync += [
            self.tx.eq(bits[0]),
            last.eq(cycles == self._divisor - 2),
            cycles.eq(Mux(last, 0, cycles + 1)),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [bits.eq(Cat(0, self.i.payload, 1)), left.eq(_BITS), cycles.eq(0), last.eq(0)]
        with m.Elif(last):
            m.d.sync += bits.eq(Cat(bits[1:], 1))
            with m.If(left != 0):
                m.d.sync += left.eq(left - 1)
        return m
