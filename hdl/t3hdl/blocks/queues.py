"""The queues between the parts: every output is a function of registers, so parts can be cut apart anywhere."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .ram import Ram


class InputQueue(wiring.Component):
    """The depth-2 queue in which every stream input of a part ends (docs/hardware.md, rule 2).

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
        """``o.payload`` is the first register, ``spare`` the second one; ``full`` implies ``o.valid``."""
        m = Module()
        spare, full = Signal(self._shape), Signal()
        push, keep = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~full),
            push.eq(self.i.valid & ~full),
            keep.eq(self.o.valid & ~self.o.ready),
        ]
        m.d.sync += [
            self.o.valid.eq(keep | full | push),
            full.eq(keep & (full | push)),
        ]
        with m.If(~keep & full):
            m.d.sync += self.o.payload.eq(spare)
        with m.Elif(~keep & push):
            m.d.sync += self.o.payload.eq(self.i.payload)
        with m.If(keep & push):
            m.d.sync += spare.eq(self.i.payload)
        return m


class Fifo(wiring.Component):
    """A queue of any depth between two parts.

    Parameters
    ----------
    shape : shape of the payload.
    depth : entries, at least 2.
    protect : check bits beside every entry; an entry that cannot be corrected is dropped when it becomes the oldest.

    Members
    -------
    i : In(stream) : ready while fewer than ``depth`` entries are held.
    o : Out(stream) : the oldest entry; ``o.ready`` pops it. The payload means nothing while ``o.valid`` is 0.
    level : Out : entries held.
    corrected, uncorrectable : Out(1) : the oldest entry had to be corrected, is being dropped.

    Latency: 1. Throughput: one item per cycle. Reset: empty.

    Raises
    ------
    ValueError
        if ``depth`` is below 2.
    """

    def __init__(self, shape: Any, *, depth: int, protect: bool = False) -> None:
        if depth < 2:
            raise ValueError(f"depth of a queue must be at least 2, not {depth}")
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "level": Out(range(depth + 1)),
            "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._shape, self._depth, self._protect = shape, depth, protect

    @property
    def latency(self) -> int:
        """Cycles from ``i`` to ``o`` of an empty queue."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """A ring: ``first`` names the oldest entry, ``last`` the newest; storage is read only where it was written."""
        m = Module()
        m.submodules.storage = storage = Ram(self._shape, depth=self._depth, latency=0, protect=self._protect)
        first, last = (
            Signal(range(self._depth)),
            Signal(range(self._depth), init=self._depth - 1),
        )
        append, leaves = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(self.level != self._depth),
            append.eq(self.i.valid & self.i.ready),
            leaves.eq((self.o.valid & self.o.ready) | storage.uncorrectable),
            storage.write_row.eq(self._after(last)),
            storage.write_data.eq(self.i.payload),
            storage.write.eq(append),
            storage.read_row.eq(first),
            storage.read.eq(self.level != 0),
            self.o.valid.eq((self.level != 0) & ~storage.uncorrectable),
            self.o.payload.eq(storage.data),
            self.corrected.eq(storage.corrected),
            self.uncorrectable.eq(storage.uncorrectable),
        ]
        with m.If(append):
            m.d.sync += last.eq(self._after(last))
        with m.If(leaves):
            m.d.sync += first.eq(self._after(first))
        with m.If(append != leaves):
            m.d.sync += self.level.eq(Mux(append, self.level + 1, self.level - 1))
        return m

    def _after(self, pointer: Signal) -> Value:
        return Mux(pointer == self._depth - 1, 0, pointer + 1)
