"""The queues between the parts: every output is a function of registers, so modules can be separated at any queue."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class InputQueue(wiring.Component):
    """The depth-2 queue in which every stream input of a part ends (docs/hardware/rules.md, rule 2).

    Two registers, no multiplexer in front of the head: the least that gives full throughput with a registered ready.

    Parameters
    ----------
    shape : shape of the payload.

    Members
    -------
    i : In(stream) : ready while fewer than 2 entries are held.
    o : Out(stream) : the oldest entry; ``o.ready`` pops it.

    Latency: 1 (an item that transfers at t is at ``o`` at t+1 at the earliest). Throughput: one item per cycle.
    Reset: empty, payload 0.
    """

    def __init__(self, shape: Any) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        self._shape = shape

    @property
    def latency(self) -> int:
        """Cycles from ``i`` to ``o`` of an empty queue."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """``full`` implies ``o.valid``."""
        m = Module()
        full, pushes, keep = (Signal(name=name) for name in ("full", "pushes", "keep"))
        m.d.comb += [
            self.i.ready.eq(~full),
            pushes.eq(self.i.valid & ~full),
            keep.eq(self.o.valid & ~self.o.ready),
        ]
        m.d.sync += [
            self.o.valid.eq(keep | full | pushes),
            full.eq(keep & (full | pushes)),
        ]
        self._hold(m, full, pushes, keep)
        return m

    def _hold(self, m: Module, full: Signal, pushes: Signal, keep: Signal) -> None:
        """The payloads: ``o.payload`` is the first register, ``spare`` the second one."""
        spare = Signal(self._shape, name="spare")
        # What is taken does not wait for `keep`, which arrives late; `spare` is undefined while `full` is 0.
        with m.If(~keep & (full | pushes)):
            m.d.sync += self.o.payload.eq(Mux(full, spare, self.i.payload))
        with m.If(pushes):
            m.d.sync += spare.eq(self.i.payload)


class PingPongQueue(InputQueue):
    """An :class:`InputQueue` for wide items whose ``i.valid`` or ``o.ready`` comes late: those move no payload.

    Items are written to two registers in turn; the next one samples the input in every cycle. The cost is a
    multiplexer in front of the head. Parameters, members, latency, throughput, reset: those of :class:`InputQueue`.
    """

    def _hold(self, m: Module, full: Signal, pushes: Signal, keep: Signal) -> None:
        """The payloads: ``turn`` is the number of the register that holds the head."""
        items = [Signal(self._shape, name=f"item_{number}") for number in range(2)]
        turn = Signal(name="turn")
        m.d.comb += self.o.payload.eq(Mux(turn, items[1], items[0]))
        m.d.sync += turn.eq(turn ^ (self.o.valid & ~keep))
        for number, item in enumerate(items):
            with m.If(~full & (turn ^ self.o.valid == number)):
                m.d.sync += item.eq(self.i.payload)
