"""Parts connected as the table of connections says."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Array, Module, Value
from amaranth.lib import wiring

from ..interface.connections import By, End, Link

Parts = Mapping[str, Sequence[Any]]
"""The instances of each part, or what has their ports."""


def from_inside(component: wiring.Component) -> SimpleNamespace:
    """The ports of a module as its parts see them: each stream flows the other way."""
    ports = SimpleNamespace()
    for name, member in component.signature.members.items():
        found = getattr(component, name)
        if member.is_signature:
            found = [wiring.flipped(each) for each in found] if member.dimensions else wiring.flipped(found)
        setattr(ports, name, found)
    return ports


def port(parts: Parts, end: End) -> Any:
    """The port at this end."""
    found = getattr(parts[end.part][end.instance], end.port)
    return found if end.item is None else found[end.item]


def connect(m: Module, links: Iterable[Link], parts: Parts) -> None:
    """Makes these connections; a target that has the sources of the target before it takes what that one has."""
    before: tuple[Link, Any] | None = None
    for link in links:
        target = port(parts, link.target)
        if link.by is By.FIRST:
            _first(m, link, target, parts)
        elif link.kind == "stream":
            wiring.connect(m, port(parts, link.sources[0]), target)
        elif link.by is By.WIRE:
            if link.kind == "pulse":
                m.d.comb += port(parts, link.target.valid()).eq(port(parts, link.sources[0].valid()))
            m.d.comb += target.eq(port(parts, link.sources[0]))
        elif before is not None and before[0].sources == link.sources and before[0].by is link.by:
            m.d.comb += target.eq(before[1])
        else:
            m.d.comb += target.eq(_gathered(link, parts))
        before = link, target


def moving(links: Iterable[Link], parts: Parts) -> list[Value]:
    """For each stream whether it transfers, for each pulse whether it is given; each source once."""
    ends: dict[End, str] = {}
    for link in links:
        for end in link.sources:
            if link.kind == "pulse":
                ends.setdefault(end.valid(), link.kind)
            elif link.kind == "stream" or end.port.endswith("_valid"):
                ends.setdefault(end, link.kind)
    found = [(port(parts, end), kind) for end, kind in ends.items()]
    return [each.valid & each.ready if kind == "stream" else each for each, kind in found]


def _gathered(link: Link, parts: Parts) -> Value:
    if link.by is By.COUNT:
        return sum((port(parts, end.valid()) for end in link.sources), start=0)
    values = [port(parts, end) for end in link.sources]
    if link.by is By.SELECTED:
        assert link.select is not None
        return Array(values)[port(parts, link.select)]
    return reduce(or_ if link.by is By.ANY else and_, values)


def _first(m: Module, link: Link, target: Any, parts: Parts) -> None:
    for end in reversed(link.sources):
        with m.If(port(parts, end.valid())):
            m.d.comb += [target[name].eq(port(parts, end)[name]) for name in target.shape().members]
