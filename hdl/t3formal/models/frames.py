"""Time divided into frames of the same length: what happens in each of them adds up, whatever happens when in it."""

from amaranth.hdl import Module, Mux, Signal, Value

MOST_CYCLES = 144
"""Of a frame: those of a root's round in the largest configuration, 16 nodes times 9 who take turns at 8 banks."""


class Frames:
    """Frames follow each other without a gap; in the cycle after ``begin`` a first one begins, whenever that is.

    Parameters
    ----------
    m : gets the registers.
    begin : of one bit.
    length : cycles of a frame, 1 to :data:`MOST_CYCLES`.

    ``phase`` : cycles of the frame before this one. ``ends`` : this is its last cycle.
    """

    def __init__(self, m: Module, begin: Value, length: Value | int) -> None:
        self._m, self._begin = m, begin
        self.phase, self.ends = Signal(range(MOST_CYCLES), name="phase"), Signal(name="frame_ends")
        m.d.comb += self.ends.eq(self.phase + 1 == length)
        m.d.sync += self.phase.eq(Mux(begin | self.ends, 0, self.phase + 1))

    def seen(self, name: str, condition: Value, ends: Value | None = None) -> tuple[Signal, Value]:
        """Whether the condition was true in an earlier cycle of this frame; and whether it was up to now.

        ``ends`` : the end of what is looked at instead of the frame.
        """
        before = Signal(name=f"{name}_before")
        now = before | condition
        self._m.d.sync += before.eq(now & ~(self._begin | (self.ends if ends is None else ends)))
        return before, now
