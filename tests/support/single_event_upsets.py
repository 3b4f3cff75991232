"""Wrong bits in memories and registers of a part, as radiation or a worn cell makes them; a look at such a place."""

import re
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Value
from amaranth.lib.memory import MemoryData


def _places(fragment: Any, path: str) -> Iterator[tuple[str, Value]]:
    """Path and value of every signal (``part.name``) and memory row (``part.memory[row]``)."""
    for statements in fragment.statements.values():
        for signal in {id(signal): signal for signal in statements._lhs_signals()}.values():
            yield f"{path}{signal.name}", signal
    memory = getattr(fragment, "_data", None)
    if isinstance(memory, MemoryData):
        for row in range(memory.depth):
            yield f"{path.rstrip('.')}[{row}]", Value.cast(memory[row])
    for sub, name, *_ in fragment.subfragments:
        yield from _places(sub, f"{path}{name}.")


def find(fragment: Any, pattern: str) -> Value:
    """The one signal or memory row whose path ends in ``pattern`` (a regular expression)."""
    found = [(path, value) for path, value in _places(fragment, "") if re.search(rf"(^|\.){pattern}$", path)]
    assert len(found) == 1, f"{pattern} names {[path for path, _ in found]}"
    return found[0][1]


def invert(backend: Any, pattern: str, *bits: int) -> None:
    """Inverts ``bits`` of a register or memory row of an ``AmaranthBackend``; ``pattern`` as of :func:`find`."""
    backend.invert(find(backend.fragment, pattern), *bits)
