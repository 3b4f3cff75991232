"""A button's contact bounces: one pulse per press."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out


class Button(wiring.Component):
    """Gives a pulse when the button is pressed.

    Parameters
    ----------
    cycles : time for which the contact must be the same before it counts.

    Members
    -------
    button : In(1) : 1 = pressed; asynchronous.
    pressed : Out(1) : pulse.
    """

    def __init__(self, *, cycles: int) -> None:
        super().__init__({"button": In(1), "pressed": Out(1)})
        self._cycles = cycles

    def elaborate(self, platform: Any) -> Module:
        """A counter of the cycles in which the contact differs from what counts."""
        m = Module()
        contact, counts, same = Signal(), Signal(), Signal(range(self._cycles + 1))
        m.submodules.synchronizer = FFSynchronizer(self.button, contact)
        m.d.sync += self.pressed.eq(0)
        with m.If(contact == counts):
            m.d.sync += same.eq(0)
        with m.Elif(same == self._cycles - 1):
            m.d.sync += [counts.eq(contact), self.pressed.eq(contact), same.eq(0)]
        with m.Else():
            m.d.sync += same.eq(same + 1)
        return m
