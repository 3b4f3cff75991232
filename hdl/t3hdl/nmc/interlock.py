"""Which lines in flight are that of a queue's head, compared when a request comes and not when it leaves."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interface.layouts import LINE_BITS


class LineInterlock(wiring.Component):
    """Compares the line of a request that enters a queue of two with those in flight, and follows them all.

    Flights lie in a shift register of which each entry loads its predecessor, the first one the queue's head. So a
    request that waits needs no further comparison: its marks, one for each flight, move along with the flights.

    Parameters
    ----------
    flights : entries of the shift register.

    Members
    -------
    push, line : In : a request with this line enters the queue in this cycle.
    head_valid, head, pop : In : the queue's oldest request is there, its line, and it leaves in this cycle.
    full : In : the queue has a second request.
    lines, move : In : the line of each flight, and whether the flight is replaced by its predecessor in this cycle.
    same : Out(flights) : bit i: flight i has the line of the queue's head. Means nothing where there is no flight.

    Latency: none; ``same`` is a register. Throughput: one request per cycle. Reset: means nothing.
    """

    def __init__(self, flights: int) -> None:
        self._flights = flights
        super().__init__({
            "push": In(1), "line": In(LINE_BITS), "head_valid": In(1), "head": In(LINE_BITS), "pop": In(1),
            "full": In(1), "lines": In(data.ArrayLayout(LINE_BITS, flights)), "move": In(flights),
            "same": Out(flights),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Marks of the request that enters, of the second one in the queue, and of the head."""
        m = Module()
        same_line = data.StructLayout({"head": 1, "flights": self._flights})
        entering = Signal(same_line)
        second = Signal(same_line)
        behind = Signal(same_line)
        behind_moved = self._moved(behind.head, behind.flights)
        m.d.comb += [
            entering.head.eq(self.line == self.head),
            entering.flights.eq(Cat(self.line == self.lines[i] for i in range(self._flights))),
            behind.eq(Mux(self.full, second, entering)),
        ]
        with m.If(self.head_valid | self.push):
            m.d.sync += [second.head.eq(behind.head), second.flights.eq(behind_moved)]
            with m.If(self.head_valid & ~self.pop):
                m.d.sync += self.same.eq(self._moved(1, self.same))
            with m.Else():
                m.d.sync += self.same.eq(behind_moved)
        return m

    def _moved(self, head: Any, flights: Value) -> Value:
        """A request's marks in the next cycle; ``head``: whether it has the line of the head."""
        return Cat(head, flights)[: self._flights] & self.move | flights & ~self.move
