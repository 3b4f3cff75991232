"""The registers and memories of a part by name, for invariants that speak of them."""

import re
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Fragment, MemoryInstance, Shape, Signal, Value


@dataclass(frozen=True)
class Table:
    """The ports of a memory: the signals ``write``, ``row`` and ``word`` of its write ports, the words it reads.

    ``asks``: the signals ``read`` and ``row`` of the ports that give ``reads`` one cycle later.
    """

    writes: tuple[tuple[Value, Value, Value], ...]
    reads: tuple[Value, ...]
    asks: tuple[tuple[Value, Value], ...]
    memory: MemoryInstance

    def stored(self, row: Any) -> Signal:
        """What is in a row now, for invariants: a further read port, which the hardware does not have."""
        content = self.memory._data
        word, bits = Signal(Shape.cast(content.shape).width, name="stored"), (content.depth - 1).bit_length()
        address = Cat(row, Const(0, bits))[:bits]
        self.memory.read_port(domain="comb", addr=address, data=word, en=Const(1), transparent_for=[])
        return word


class Inside:
    """What a part is made of.

    ``registers`` : all flip-flops by path (``core.chunks.total_3``), without the words that memories read.
    ``tables`` : all memories by path.
    """

    def __init__(self, fragment: Fragment) -> None:
        self.registers: dict[str, Signal] = {}
        self.signals: dict[str, Signal] = {}
        self.tables: dict[str, Table] = {}
        self._visit(fragment, "")

    def __getitem__(self, pattern: str) -> Signal:
        """The one register or wire whose path ends in ``pattern``, a regular expression. Raises KeyError otherwise."""
        found = {path: signal for path, signal in self.signals.items() if re.search(rf"(^|\.){pattern}$", path)}
        if len({id(signal) for signal in found.values()}) != 1:
            raise KeyError(f"{pattern!r} must name one signal inside the part, not {sorted(found)}")
        return next(iter(found.values()))

    def table(self, pattern: str) -> Table:
        """The one memory whose path ends in ``pattern``, a regular expression. Raises KeyError otherwise."""
        found = {path: table for path, table in self.tables.items() if re.search(rf"(^|\.){pattern}$", path)}
        if len(found) != 1:
            raise KeyError(f"{pattern!r} must name one memory inside the part, not {sorted(found)}")
        return next(iter(found.values()))

    def _visit(self, fragment: Fragment, path: str) -> None:
        for domain, statements in fragment.statements.items():
            for signal in statements._lhs_signals():
                if not isinstance(signal, Signal):
                    continue  # a reset of another clock domain
                name = self._unused(f"{path}{signal.name}", signal)
                self.signals[name] = signal
                if domain != "comb":
                    self.registers[name] = signal
        if isinstance(fragment, MemoryInstance):
            self.tables[path.removesuffix(".")] = Table(
                tuple((Value.cast(p._en), Value.cast(p._addr), Value.cast(p._data)) for p in fragment._write_ports),
                tuple(Value.cast(p._data) for p in fragment._read_ports if p._domain != "comb"),
                tuple((Value.cast(p._en), Value.cast(p._addr)) for p in fragment._read_ports if p._domain != "comb"),
                fragment,
            )
        for number, (sub, name, _) in enumerate(fragment.subfragments):
            self._visit(sub, f"{path}{name or number}.")

    def _unused(self, name: str, signal: Signal) -> str:
        """``name``, with a number behind it when another signal is called the same."""
        unused, number = name, 0
        while self.signals.get(unused, signal) is not signal:
            number += 1
            unused = f"{name}${number}"
        return unused
