"""A line that passes a pipeline in parts of the same size, one per cycle."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value


class Beats:
    """Serializer and deserializer around a pipeline that takes a line in ``count`` beats, low bits first.

    Parameters
    ----------
    m : gets the registers.
    count : beats of a line; lines come at least as many cycles apart.
    stages : cycles from operands to results of the pipeline.
    valid_history : bit i: a line came i cycles ago; ``stages`` + ``count`` bits.
    """

    def __init__(self, m: Module, *, count: int, stages: int, valid_history: Value) -> None:
        self._m, self._count, self._stages, self._valid_history = m, count, stages, valid_history

    def at(self, stage: int) -> Value:
        """Whether some beat has passed that many stages."""
        return reduce(or_, self._valid_history[stage : stage + self._count])

    def held(self, name: str, value: Value) -> Value:
        """``value``, which comes with the first beat, in all beats of the line."""
        if self._count == 1:
            return value
        kept, now = Signal(len(value), name=f"{name}_kept"), Signal(len(value), name=f"{name}_now")
        self._m.d.comb += now.eq(Mux(self._valid_history[0], value, kept))
        self._m.d.sync += kept.eq(now)
        return now

    def split(self, name: str, line: Value) -> Value:
        """The operands of a beat; those of the first one are the low bits of ``line``, the others wait."""
        if self._count == 1:
            return line
        size = len(line) // self._count
        waiting, left = Signal(len(line) - size, name=f"{name}_waiting"), Signal(len(line), name=f"{name}_left")
        self._m.d.comb += left.eq(Mux(self._valid_history[0], line, waiting))
        with self._m.If(self.at(0)):
            self._m.d.sync += waiting.eq(left[size:])
        return left[:size]

    def joined(self, name: str, results: Value) -> Value:
        """The results of the last ``count`` beats: a line, when the last one of it is there."""
        if self._count == 1:
            return results
        line = Signal(len(results) * self._count, name=f"{name}_line")
        earlier = Signal(len(line) - len(results), name=f"{name}_earlier")
        self._m.d.comb += line.eq(Cat(earlier, results))
        with self._m.If(self.at(self._stages)):
            self._m.d.sync += earlier.eq(line[len(results) :])
        return line

    def merged(self, name: str, results: Value) -> Value:
        """The bitwise OR of the results of this beat and the earlier ones of its line."""
        if self._count == 1:
            return results
        earlier, so_far = Signal(len(results), name=f"{name}_earlier"), Signal(len(results), name=f"{name}_so_far")
        self._m.d.comb += so_far.eq(results | Mux(self._valid_history[self._stages], 0, earlier))
        with self._m.If(self.at(self._stages)):
            self._m.d.sync += earlier.eq(so_far)
        return so_far
