"""The queues between the parts: every output is a function of registers, so parts can be cut apart anywhere."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import COUNT_BITS, Token
from .parity import keep
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


def _check_depth(depth: int) -> None:
    if depth < 2:
        raise ValueError(f"depth of a queue must be at least 2, not {depth}")


class _Ring(wiring.Component):
    """A ring of ``depth`` entries: append at the tail, or rewrite the entry at the tail, and pop at the head.

    ``valid``: there is a head. With ``protect`` a head that cannot be corrected is not valid, and is dropped.
    """

    def __init__(self, shape: Any, depth: int, protect: bool) -> None:
        super().__init__({
            "append": In(1), "rewrite": In(1), "item": In(shape), "pop": In(1),
            "valid": Out(1), "head": Out(shape), "level": Out(range(depth + 1)),
            "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._shape, self._depth, self._protect = shape, depth, protect

    def _after(self, pointer: Signal) -> Value:
        return Mux(pointer == self._depth - 1, 0, pointer + 1)

    def elaborate(self, platform: Any) -> Module:
        """``first`` and ``last`` name the oldest and the newest entry; storage is read only where it was written."""
        m = Module()
        m.submodules.storage = storage = Ram(self._shape, depth=self._depth, latency=0, protect=self._protect)
        first, last = (
            Signal(range(self._depth)),
            Signal(range(self._depth), init=self._depth - 1),
        )
        leaves = self.pop | storage.uncorrectable
        m.d.comb += [
            storage.write_row.eq(Mux(self.rewrite, last, self._after(last))),
            storage.write_data.eq(self.item),
            storage.write.eq(self.append | self.rewrite),
            storage.read_row.eq(first),
            storage.read.eq(self.level != 0),
            self.valid.eq((self.level != 0) & ~storage.uncorrectable),
            self.head.eq(storage.data),
            self.corrected.eq(storage.corrected),
            self.uncorrectable.eq(storage.uncorrectable),
        ]
        with m.If(self.append):
            m.d.sync += last.eq(self._after(last))
        with m.If(leaves):
            m.d.sync += first.eq(self._after(first))
        with m.If(self.append != leaves):
            m.d.sync += self.level.eq(Mux(self.append, self.level + 1, self.level - 1))
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
        _check_depth(depth)
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
        """Stream rules around a ring."""
        m = Module()
        m.submodules.ring = ring = _Ring(self._shape, self._depth, self._protect)
        m.d.comb += [
            self.i.ready.eq(ring.level != self._depth),
            ring.append.eq(self.i.valid & self.i.ready),
            ring.item.eq(self.i.payload),
            self.o.valid.eq(ring.valid),
            self.o.payload.eq(ring.head),
            ring.pop.eq(self.o.valid & self.o.ready),
            self.level.eq(ring.level),
            self.corrected.eq(ring.corrected),
            self.uncorrectable.eq(ring.uncorrectable),
        ]
        return m


class TokenQueue(wiring.Component):
    """The token queue of a slice: a token of the same tile as the last entry is added to that entry.

    Push at t comes after a possible pop at t. The entry that is the head at t keeps its payload, so the last entry
    takes the token only when two or more entries are held at t.

    Parameters
    ----------
    depth : entries, at least 2.
    protect : check bits beside every entry; an entry that cannot be corrected is dropped when it becomes the oldest,
        so its updates are never counted.

    Members
    -------
    push : In(1) : pulse; takes ``item``. Never while ``level`` is ``depth``: the pusher reserves the room beforehand.
    item : In(Token) : the token; its ``n`` is added to the last entry, or becomes the ``n`` of a new one.
    o : Out(stream(Token)) : the oldest entry. The payload means nothing while ``o.valid`` is 0.
    level : Out : entries held.
    corrected, uncorrectable : Out(1) : the oldest entry had to be corrected, is being dropped.

    Latency: 1. Throughput: one token per cycle. Reset: empty.

    Raises
    ------
    ValueError
        if ``depth`` is below 2.
    """

    def __init__(self, *, depth: int, protect: bool = False) -> None:
        _check_depth(depth)
        super().__init__({
            "push": In(1), "item": In(Token), "o": Out(stream.Signature(Token)), "level": Out(range(depth + 1)),
            "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._depth, self._protect = depth, protect

    @property
    def latency(self) -> int:
        """Cycles from ``push`` to ``o`` of an empty queue."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """``newest`` is a copy of the last entry, so that the ring needs no second read port.

        A damaged copy takes no token: a place for a new entry was reserved in any case.
        """
        m = Module()
        m.submodules.ring = ring = _Ring(Token, self._depth, self._protect)
        newest = Signal(Token)
        n = Signal(COUNT_BITS + 1)
        merge = Signal()
        item = self.item
        sound = keep(m, newest.as_value(), write=self.push, value=ring.item.as_value(), protect=self._protect)
        same = (newest.as_value() ^ item.as_value())[:-COUNT_BITS] == 0
        m.d.comb += [
            n.eq(newest.n + item.n),
            merge.eq((ring.level >= 2) & same & ~n[-1] & sound),
            ring.append.eq(self.push & ~merge),
            ring.rewrite.eq(self.push & merge),
            ring.item.eq(item),
            ring.item.n.eq(Mux(merge, n, item.n)),
            ring.pop.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(ring.valid),
            self.o.payload.eq(ring.head),
            self.level.eq(ring.level),
            self.corrected.eq(ring.corrected),
            self.uncorrectable.eq(ring.uncorrectable),
        ]
        return m
