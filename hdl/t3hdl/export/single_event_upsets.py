"""A part whose stored bits can be inverted from outside, for fault injection: never part of the product.

The netlist is the part's own; only the way into each register and each memory row gets an exclusive OR.
"""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Fragment, MemoryData, MemoryInstance, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Signature

from ..common.register_inputs import Chunk, RegisterInputs
from ..common.state_parity import CHECKED

WORD_BITS, BIT_BITS = 16, 9
"""Widths of the ports that name a stored word and a bit of it."""


@dataclass(frozen=True)
class Stored:
    """A register or a row of a memory: its path in the part (``~2``: the second one of that name), its number (from
    1), its bits; and whether its owner checks it (:data:`~t3hdl.common.state_parity.CHECKED`), as that of a memory
    does."""

    path: str
    number: int
    bits: int
    checked: bool


def upsettable_signature(signature: Signature) -> Signature:
    """The ports of an :class:`Upsettable` part: those of ``signature``, then the two that hit a bit."""
    return Signature({**signature.members, "upset_word": In(WORD_BITS), "upset_bit": In(BIT_BITS)})


def stored_words(part: Component) -> tuple[Stored, ...]:
    """Every stored word of a part, in the order of their numbers. The part is elaborated for it."""
    instrument = _Instrument(Signal(WORD_BITS), Signal(BIT_BITS))
    instrument.on_fragment(Fragment.get(part, None))
    return tuple(instrument.stored)


class Upsettable(Component):
    """``part`` with two more input ports; its other ports are the part's own signals.

    Parameters
    ----------
    part : a component in the one clock domain ``sync``, with memories of one write port.

    Members
    -------
    upset_word : In(16) : the :attr:`Stored.number` of a word that is hit in this cycle; 0: none.
    upset_bit : In(9) : the bit that is hit. A bit that the word does not have: nothing happens.

    A word that is hit at t holds what it would hold at t+1, but for the one bit. The data register of a memory with
    a read latency of 1 is a register of its own; a memory read in the cycle of the hit gives what was stored before.

    Raises
    ------
    ValueError
        when it is elaborated, if a memory has several write ports, or there are more words than the port can name.
    """

    def __init__(self, part: Component) -> None:
        super().__init__(upsettable_signature(part.signature))
        for name in part.signature.members:
            setattr(self, name, getattr(part, name))
        self._part = part

    def elaborate(self, platform: Any) -> Fragment:
        """The part's netlist, changed."""
        return _Instrument(self.upset_word, self.upset_bit).on_fragment(Fragment.get(self._part, platform))


class _Instrument(RegisterInputs):
    """Rebuilds a netlist with an inverter before every stored bit."""

    def __init__(self, word: Signal, bit: Signal) -> None:
        super().__init__()
        self._word, self._bit = word, bit
        self.stored: list[Stored] = []

    def _number(self, name: str, bits: int, checked: bool = True) -> int:
        """A number for a new word."""
        number = len(self.stored) + 1
        if number >= 1 << WORD_BITS or bits > 1 << BIT_BITS:
            raise ValueError(f"the part must have fewer than {1 << WORD_BITS} words of at most {1 << BIT_BITS} bits")
        path = ".".join((*self.path, name))
        twins = sum(word.path.split("~")[0] == path for word in self.stored)
        self.stored.append(Stored(f"{path}~{twins + 1}" if twins else path, number, bits, checked))
        return number

    def _mask(self, hit: Value, bits: int) -> Value:
        """What is inverted in a word of so many bits."""
        return Mux(hit, (Const(1) << self._bit)[:bits], Const(0, bits))

    def _hit(self, following: Value, name: str, checked: bool = True) -> Value:
        """What a register named ``name`` takes instead of ``following``."""
        bits = len(following)
        return following ^ self._mask(self._word == self._number(name, bits, checked), bits)

    def taken(self, fragment: Fragment, chunks: list[tuple[Chunk, Value]]) -> list[Value]:
        """Each chunk of a register is a stored word."""
        return [
            self._hit(
                value,
                signal.name if stop is None else f"{signal.name}[{start}:{stop}]",
                CHECKED.keys() <= signal.attrs.keys(),
            )
            for (signal, start, stop), value in chunks
        ]

    def memory(self, memory: MemoryInstance) -> Fragment:
        """The same memory with a port for upsets; it yields to no write, whose word it hits instead."""
        if len(memory._write_ports) != 1:
            raise ValueError(f"the memory {'.'.join(self.path)} must have one write port")
        (write,) = memory._write_ports
        width, depth = len(write._data), memory._data.depth
        m = Module()
        m.submodules.rows = rows = MemoryInstance(data=MemoryData(shape=width, depth=depth, init=[]))
        first, *_ = [self._number(f"row_{row}", width) for row in range(depth)]
        hit, same, row, old = Signal(), Signal(), Signal(len(write._addr)), Signal(width)
        m.d.comb += [
            row.eq(self._word - first),
            hit.eq((self._word >= first) & (self._word < first + depth)),
            same.eq(write._en & (write._addr == row)),
        ]
        changed = Mux(same, write._data, old) ^ self._mask(Const(1), width)
        rows.read_port(domain="comb", addr=row, data=old, en=Const(1), transparent_for=[])
        rows.write_port(domain="sync", addr=write._addr, data=write._data, en=write._en & ~(hit & same))
        rows.write_port(domain="sync", addr=row, data=changed, en=hit)
        for number, port in enumerate(memory._read_ports):
            self._read(m, rows, write, port, number)
        return Fragment.get(m, None)

    def _read(self, m: Module, rows: MemoryInstance, write: Any, port: Any, number: int) -> None:
        """A read port; its data register, if it has one, is a stored word, too."""
        present = Signal(len(port._data), name=f"present_{number}")
        rows.read_port(domain="comb", addr=port._addr, data=present, en=Const(1), transparent_for=[])
        if port._domain == "comb":
            m.d.comb += port._data.eq(present)
            return
        kept = Signal(len(port._data), name=f"data_{number}", reset_less=True)
        sees = write._en & (write._addr == port._addr) if port._transparent_for else Const(0)
        m.d.sync += kept.eq(self._hit(Mux(port._en, Mux(sees, write._data, present), kept), kept.name))
        m.d.comb += port._data.eq(kept)
