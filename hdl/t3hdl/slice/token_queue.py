"""The token queue of a memory slice: counted bursts wait, and those of one tile become one token meanwhile."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..common.secded import check_bits, decode, encode
from ..common.state_parity import CHECKED
from ..interface.layouts import COUNT_BITS, INTERLEAVE_BITS, LENGTH_BITS, Token

TileKey = data.StructLayout({name: field.shape for name, field in Token if name != "n"})
"""What a token says beside its count: tokens with the same name may become one."""

_NAME_BITS, _TOKEN_BITS = TileKey.size, Token.size
_UNUSED_BITS = COUNT_BITS - LENGTH_BITS - 1
"""Bits of a count that are 0 after one burst."""


class TokenQueue(wiring.Component):
    """Counts the lines of one burst per push, in an entry that waits with the same name, else in a new one.

    Push at t comes after a possible pop at t. The entry that is the head at t keeps its payload; of all others the
    oldest with the name and a count below 1016, so that any burst fits, takes the lines. Never more than one qualifies:
    a second entry of a name comes about only when the first is the head or full, and both stay what they are until they
    leave.

    Parameters
    ----------
    depth : entries, at least 2.
    protect : check bits beside every entry; an entry that cannot be corrected is dropped when it becomes the oldest,
        so its lines are never counted. An entry with one wrong bit takes no more lines.

    Members
    -------
    push : In(1) : pulse; counts a burst. Never while ``level`` is ``depth``: the pusher reserves the room beforehand.
    tile, length : In : of what, and its lines beyond the first.
    o : Out(stream(Token)) : the oldest entry. The payload means nothing while ``o.valid`` is 0.
    level : Out : entries held.
    merges, leaves : Out(1) : pulse; the burst goes to an entry that waits, the oldest entry leaves.
    corrected, uncorrectable : Out(1) : the oldest entry had to be corrected, is being dropped.

    Latency: 1. Throughput: one burst and one token per cycle. Reset: empty.

    Raises
    ------
    ValueError
        if ``depth`` is below 2.
    """

    def __init__(self, *, depth: int, protect: bool = False) -> None:
        if depth < 2:
            raise ValueError(f"depth of a queue must be at least 2, not {depth}")
        super().__init__({
            "push": In(1), "tile": In(TileKey), "length": In(LENGTH_BITS),
            "o": Out(stream.Signature(Token)), "level": Out(range(depth + 1)), "merges": Out(1), "leaves": Out(1),
            "corrected": Out(1), "uncorrectable": Out(1),
        })  # fmt: skip
        self._depth, self._protect = depth, protect

    @property
    def latency(self) -> int:
        """Cycles from ``push`` to ``o`` of an empty queue."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """A shift register whose first entry is the head: neither the output nor a comparison waits for a pointer."""
        m = Module()
        width = _TOKEN_BITS + (check_bits(_TOKEN_BITS) if self._protect else 0)
        attrs = CHECKED if self._protect else {}
        entries = [Signal(width, name=f"entry_{i}", attrs=dict(attrs)) for i in range(self._depth)]
        self._show(m, entries[0])
        same, counted = [Const(0)], [entries[0]]
        for i, entry in enumerate(entries[1:], 1):
            fits, grown = self._compare(m, i, entry)
            same.append(fits)
            counted.append(Mux(self.push & fits, grown, entry))
        m.d.comb += [
            self.leaves.eq((self.o.valid & self.o.ready) | self.uncorrectable),
            self.merges.eq(self.push & Cat(same).any()),
        ]
        arriving = self._stored(Cat(self.tile.as_value(), (self.length + 1)[: LENGTH_BITS + 1], Const(0, _UNUSED_BITS)))
        for i, entry in enumerate(entries):
            # The first free entry gets the tile even if another one takes the lines: it stays free then.
            with m.If(self.push & Mux(self.leaves, self.level == i + 1, self.level == i)):
                m.d.sync += entry.eq(arriving)
            with m.Elif(self.leaves):
                m.d.sync += entry.eq(counted[min(i + 1, self._depth - 1)])
            with m.Else():
                m.d.sync += entry.eq(counted[i])
        append = self.push & ~self.merges
        with m.If(append != self.leaves):
            m.d.sync += self.level.eq(Mux(append, self.level + 1, self.level - 1))
        return m

    def _stored(self, word: Value) -> Value:
        return encode(word) if self._protect else word

    def _show(self, m: Module, head: Signal) -> None:
        """The outputs: the head, corrected."""
        held = self.level != 0
        m.d.comb += [self.o.valid.eq(held & ~self.uncorrectable), self.o.payload.eq(head)]
        if self._protect:
            decoded = decode(m, head, _TOKEN_BITS)
            m.d.comb += [
                self.o.payload.eq(decoded.word),
                self.corrected.eq(held & decoded.corrected),
                self.uncorrectable.eq(held & decoded.uncorrectable),
            ]

    def _compare(self, m: Module, i: int, entry: Signal) -> tuple[Signal, Value]:
        """Whether entry number ``i`` can take a burst of ``tile``, and what it is after it.

        The check bits follow the count without a look at the name (the code is linear), so two wrong bits stay found.
        """
        fits = Signal(name=f"fits_{i}")
        n = entry[_NAME_BITS:_TOKEN_BITS]
        sound = ~entry.xor() if self._protect else Const(1)  # every word of the code has an even number of ones
        room = ~n[INTERLEAVE_BITS:].all()
        m.d.comb += fits.eq((self.level > i) & (entry[:_NAME_BITS] == self.tile.as_value()) & room & sound)
        change = Signal(COUNT_BITS, name=f"change_{i}")
        m.d.comb += change.eq(n ^ (n + self.length + 1))
        return fits, entry ^ self._stored(Cat(Const(0, _NAME_BITS), change))
