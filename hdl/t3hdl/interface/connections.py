"""Which port of which part leads to which: one table for the wires of the core, in hardware and in software.

Every part is a Moore machine, so what a target has in a cycle follows from what registers of its sources have in the
same cycle, with no more logic between than :class:`By` names. ``core`` stands for the core's own ports: an input of the
core is a source in here. What is not in the table is the core's own: ``idle`` and ``wake_at`` (docs/hardware/rules.md,
rule 5), and the reset that a disarm gives to the nodes of the token network, which have no configuration port.
"""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from amaranth.lib.wiring import Out, Signature

from ..config import T3Config
from .parts import TABLE


class By(enum.Enum):
    """How a target follows from its sources."""

    WIRE = "the source itself, or one source for all targets"
    ANY = "bit by bit, 1 if that of a source is"
    ALL = "1 if every source is"
    SELECTED = "the source whose number a port gives"
    COUNT = "how many of the sources, which are pulses, are given"
    FIRST = "the target's fields of the first of the sources, which are pulses, that is given"


@dataclass(frozen=True)
class Connection:
    """Ports, as ``part.port``, of all instances of a part; of an array of ports, all its items.

    With ``WIRE`` item and item, counted over all instances, are connected; otherwise all sources make the one target.
    A further target has what the first one has. A stream is connected in both directions; with the name of a pulse both
    ``x_valid`` and ``x`` are meant. ``select`` : the port that gives the number of the source. ``by_item`` : the part
    whose arrays are counted the other way: the first items of all its instances, then the second ones.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    by: By = By.WIRE
    select: str = ""
    by_item: str = ""


@dataclass(frozen=True)
class End:
    """One port of one instance of a part; ``item`` : its number in an array of ports."""

    part: str
    instance: int
    port: str
    item: int | None

    @property
    def path(self) -> str:
        """The port as word maps call it."""
        return self.port if self.item is None else f"{self.port}.{self.item}"

    def valid(self) -> "End":
        """The port of a pulse that says whether it is given."""
        return End(self.part, self.instance, f"{self.port}_valid", self.item)


@dataclass(frozen=True)
class Link:
    """One target with all its sources; ``kind`` : ``stream``, ``pulse`` or ``level``, as of docs/reference/parts.md."""

    sources: tuple[End, ...]
    target: End
    by: By
    select: End | None
    kind: str

    @property
    def inside(self) -> bool:
        """Between two parts, not between a part and the core's own ports."""
        return "core" not in (self.target.part, self.sources[0].part)


def _wire(source: str, *targets: str) -> Connection:
    return Connection((source,), targets)


def _same(source: str, target: str, *ports: str) -> tuple[Connection, ...]:
    """Ports with the same name at both ends."""
    return tuple(_wire(f"{source}.{port}", f"{target}.{port}") for port in ports)


_REFUSED = ("slice.compute_refused", "slice.comm_refused")
_STALE = ("slice.compute_stale", "slice.comm_stale")
_PROTECTED = tuple(
    name for name, part in TABLE.items() if ("corrected", Out(1)) in [*part.ports(T3Config()).members.items()]
)

CONNECTIONS: dict[str, tuple[Connection, ...]] = {
    "slices, between memory, GPU, link and token network": (
        *_same("core", "slice", "compute_read", "compute_write", "comm_read", "comm_write"),
        *_same("slice", "core", "dram"),
        _wire("slice.token", "leaf.token_in"),
        *_same("core", "slice", "update_done", "occupancy", "now"),
        *_same("slice", "core", "compute_refused", "comm_refused", "compute_stale", "comm_stale"),
    ),
    "matchers, at the egress": (
        *_same("core", "matcher", "store"),
        *_same("matcher", "core", "route"),
    ),
    "from a token to the command: finished tiles and chunks forwards, live chunks back": (
        Connection(("leaf.token_out",), ("root.token_in",), by_item="root"),
        Connection(("root.token_out",), ("tracker.token",), by_item="root"),
        *_same("trigger", "core", "command"),
        *_same("tracker", "trigger", "tile_done", "chunk_done", "poison_valid", "poison_slot", "abort_busy"),
        *_same("trigger", "tracker", "load"),
        *_same("core", "tracker", "now"),
        *_same("core", "trigger", "now", "command_done"),
        *_same("tracker", "core", "entries"),
    ),
    "measurement of the occupancy, and of communication's backlog": (
        _wire("tracker.tile_done_valid", "monitor.tile_done_valid"),
        Connection(("slice.comm_seen",), ("monitor.comm_seen",), By.ANY),
        Connection(("slice.served",), ("monitor.served",), By.SELECTED, "monitor.select"),
        *_same("core", "monitor", "now"),
        *_same("trigger", "monitor", "backlog"),
        *_same("monitor", "slice", "threshold", "measure", "behind"),
    ),
    "bus": (
        *_same("core", "registers", "bus_valid", "bus_write", "bus_privileged", "bus_address", "bus_data"),
        *_same("registers", "core", "bus_ready", "response_valid", "response_error", "response_data", "interrupt"),
    ),
    "what a driver writes": (
        _wire(
            "registers.config", "slice.config", "matcher.config", "tracker.config", "trigger.config", "monitor.config"
        ),
    ),
    "what a driver reads": (
        Connection(("tracker.init_done", "trigger.init_done"), ("core.init_done", "registers.init_done"), By.ALL),
        *_same("core", "registers", "nmc_flags", "nmc_uncorrectable"),
        *_same(
            "tracker", "registers", "unmatched", "over_count", "over_total", "peak_entries", "overflowed",
            "maintenance", "abort_busy", "debug_data", "updates", "tiles",
        ),
        *_same(
            "trigger", "registers", "armed", "live", "chunks_done", "done_mask", "poisoned", "quiesced", "quiet",
            "stuck", "tile_twice", "too_large", "triggers", "command_stall", "peak_ready", "context",
        ),
        *_same("monitor", "registers", "threshold", "chosen"),
        Connection(("slice.pending",), ("registers.pending",), By.ANY),
    ),
    "what logic beside the unit sees without the bus": (
        *_same("trigger", "core", "armed", "live", "chunks_done", "done_mask", "quiet", "context"),
        *_same("monitor", "core", "threshold", "chosen"),
    ),
    "what went wrong": (
        Connection(_REFUSED, ("registers.violations",), By.COUNT),
        Connection(_REFUSED, ("registers.violation",), By.FIRST),
        Connection(_STALE, ("registers.stale_updates",), By.COUNT),
        Connection(_STALE, ("registers.stale_update",), By.FIRST),
        *(
            Connection(tuple(f"{part}.{fault}" for part in _PROTECTED), (f"registers.{fault}",), By.ANY)
            for fault in ("corrected", "uncorrectable")
        ),
    ),
}  # fmt: skip
"""The whole core, by purpose."""


def links(config: T3Config) -> tuple[Link, ...]:
    """Every connection of one core: purpose by purpose, and in each instance by instance.

    Raises ValueError if the ends of a connection do not fit together.
    """
    ports = {name: part.ports(config) for name, part in TABLE.items()}
    found: list[Link] = []
    for connections in CONNECTIONS.values():
        group = [link for connection in connections for link in _links(connection, config, ports)]
        found += sorted(group, key=lambda link: max(link.sources[0].instance, link.target.instance))
    return tuple(found)


def links_from(found: Iterable[Link], part: str, instance: int = 0) -> list[Link]:
    """Those with a source in this instance."""
    return [link for link in found if any((s.part, s.instance) == (part, instance) for s in link.sources)]


def links_to(found: Iterable[Link], part: str, instance: int = 0) -> list[Link]:
    """Those whose target is in this instance."""
    return [link for link in found if (link.target.part, link.target.instance) == (part, instance)]


def _links(connection: Connection, config: T3Config, ports: dict[str, Signature]) -> Iterator[Link]:
    sources = [
        end
        for part, names in groupby(connection.sources, lambda name: name.partition(".")[0])
        for end in _ends([name.partition(".")[2] for name in names], part, config, ports[part], connection.by_item)
    ]
    select = None
    if connection.select:
        part, _, port = connection.select.partition(".")
        (select,) = _ends([port], part, config, ports[part])
    kind = _kind(sources[0], ports)
    for name in connection.targets:
        part, _, port = name.partition(".")
        targets = _ends([port], part, config, ports[part], connection.by_item)
        if connection.by is not By.WIRE:
            made = [(tuple(sources), target) for target in targets]
        elif len(sources) == 1:
            made = [((sources[0],), target) for target in targets]
        else:
            made = [((source,), target) for source, target in zip(sources, targets, strict=True)]
        yield from (Link(each, target, connection.by, select, kind) for each, target in made)


def _ends(names: list[str], part: str, config: T3Config, ports: Signature, by_item: str = "") -> list[End]:
    """These ports of every instance, instance by instance; of an array, item by item; the part ``by_item`` the other
    way."""
    instances = 1 if part == "core" else TABLE[part].count(config)
    ends = [
        End(part, instance, name, item)
        for instance in range(instances)
        for name in names
        for item in _items(name, ports)
    ]
    return sorted(ends, key=lambda end: end.item or 0) if part == by_item else ends


def _items(name: str, ports: Signature) -> list[int | None]:
    dimensions = ports.members[name].dimensions
    return [*range(dimensions[0])] if dimensions else [None]


def _kind(end: End, ports: dict[str, Signature]) -> str:
    members = ports[end.part].members
    if members[end.port].is_signature:
        return "stream"
    return "pulse" if f"{end.port}_valid" in members else "level"
