"""What the ports of linked parts have in a cycle, by the table of connections."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_

from t3hdl.interface.connections import By, End, Link
from t3hdl.interface.layouts import MemoryRequest, Refusal

Read = Callable[[End, str], int]
"""The value of a port, by its path in the word map, at the part of this end."""


def carried(link: Link, read: Read) -> Iterator[tuple[End, str, int]]:
    """Every port that gets a value by ``link``: its end, its path, the value."""
    source, target = link.sources[0], link.target
    if link.kind == "stream":
        for wire in ("payload", "valid"):
            yield target, f"{target.path}.{wire}", read(source, f"{source.path}.{wire}")
        yield source, f"{source.path}.ready", read(target, f"{target.path}.ready")
    elif link.by is By.WIRE:
        if link.kind == "pulse":
            yield target, target.valid().path, read(source, source.valid().path)
        yield target, target.path, read(source, source.path)
    else:
        yield target, target.path, _made(link, read)


def _made(link: Link, read: Read) -> int:
    if link.by in (By.COUNT, By.FIRST):
        given = [end for end in link.sources if read(end, end.valid().path)]
        if link.by is By.COUNT:
            return len(given)
        request = MemoryRequest.from_bits(read(given[0], given[0].path) if given else 0)
        return Refusal.const({name: request[name] for name in Refusal.members}).as_bits()
    values = [read(end, end.path) for end in link.sources]
    if link.by is By.SELECTED:
        return values[read(link.select, link.select.path) % len(values)]
    return reduce(or_, values) if link.by is By.ANY else int(all(values))
