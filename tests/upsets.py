"""Wrong bits in memories and registers of a part, as radiation or a worn cell makes them."""

import re
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Value
from amaranth.lib.memory import MemoryData


def _stored(fragment: Any, path: str) -> Iterator[tuple[str, Value]]:
    """Path and value of every register (``part.name``) and memory row (``part.memory[row]``)."""
    for domain, statements in fragment.statements.items():
        if domain != "comb":
            for signal in {id(signal): signal for signal in statements._lhs_signals()}.values():
                yield f"{path}{signal.name}", signal
    memory = getattr(fragment, "_data", None)
    if isinstance(memory, MemoryData):
        for row in range(memory.depth):
            yield f"{path.rstrip('.')}[{row}]", Value.cast(memory[row])
    for sub, name, *_ in fragment.subfragments:
        yield from _stored(sub, f"{path}{name}.")


def flip(bench: Any, pattern: str, *bits: int) -> None:
    """Inverts ``bits`` of the one register or memory row whose path ends in ``pattern`` (a regular expression)."""
    found = [(path, value) for path, value in _stored(bench.fragment, "") if re.search(rf"(^|\.){pattern}$", path)]
    assert len(found) == 1, f"{pattern} names {[path for path, _ in found]}"
    value = found[0][1]
    bench.ctx.set(value, bench.ctx.get(value) ^ sum(1 << bit for bit in bits))
