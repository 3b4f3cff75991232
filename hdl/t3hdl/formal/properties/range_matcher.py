"""The egress gives each store row the route that a naive reading of ranges and descriptors gives it, in order."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from ...config import T3Config, preset
from ...control import register_map as regs
from ...layouts import ChunkKind, MemoryRequest, Route
from ...memory_side.range_matcher import RangeMatcher
from ..harness import Harness
from ..naive_ranges import NaiveRanges
from ..proof import Proof

_PLACE, _AMOUNT, _TARGET = (regs.DESCRIPTOR_LAYOUTS[word] for word in (0, 1, 3))


@dataclass(frozen=True)
class _Map:
    """What was last written: descriptors by their words, and the window of each context."""

    ranges: NaiveRanges
    descriptors: list[dict[int, data.View]]
    first: list[Signal]
    end: list[Signal]
    disarm: Value


def _naive_map(m: Module, part: RangeMatcher) -> _Map:
    """The registers of the map, written as software writes them."""
    config, write = part.parameters, part.config
    ranges = NaiveRanges(m, part.config_valid, write, config.ranges)
    descriptors = []
    for i in range(config.descriptors):
        words = {0: Signal(_PLACE, name=f"place_{i}"), 1: Signal(_AMOUNT, name=f"amount_{i}")}
        words[3] = Signal(_TARGET, name=f"target_{i}")
        for word, register in words.items():
            address = regs.DESCRIPTOR + i * regs.DESCRIPTOR_STRIDE + 8 * word
            with m.If(part.config_valid & (write.address == address)):
                m.d.sync += register.eq(write.data)
        descriptors.append(words)
    control = data.View(regs.Control, write.data[: regs.Control.size])
    action = part.config_valid & (write.address == regs.CONTROL)
    first = [Signal(6, name=f"first_{c}") for c in range(config.contexts)]
    end = [Signal(7, name=f"end_{c}") for c in range(config.contexts)]
    for c in range(config.contexts):
        with m.If(action & control.arm & (control.context == c)):
            m.d.sync += [first[c].eq(control.first), end[c].eq(control.first + control.descriptors)]
        with m.Elif(action & (control.disarm | (control.abort & (control.context == c)))):
            m.d.sync += [first[c].eq(0), end[c].eq(0)]
    return _Map(ranges, descriptors, first, end, action & control.disarm)


def _route(item: Any, chunks: _Map) -> Value:
    """The route of an item, one question after the other."""
    hit, base, attributes = chunks.ranges.first(item.line)
    asks = hit & item.tagged & (item.context == attributes.context)
    fields = {
        "line": item.line,
        "op": item.op,
        "matched": Const(0),
        "remote": Const(0),
        "descriptor": Const(0),
        "peer": Const(0),
    }
    for i, words in reversed(list(enumerate(chunks.descriptors))):
        place, amount, target = words[0], words[1], words[3]
        live = Cat(
            (item.context == c) & (first <= i) & (i < end)
            for c, (first, end) in enumerate(zip(chunks.first, chunks.end, strict=True))
        ).any()
        rows = (place.row0 <= item.row) & (item.row < place.row1)
        cols = (place.col0 <= item.col) & (item.col < place.col1)
        mine = asks & live & rows & cols & (place.kind != ChunkKind.NONE) & (amount.context == item.context)
        remote = place.kind == ChunkKind.REMOTE
        here = {
            "line": Mux(remote, item.line - base + target.peer_base, item.line),
            "op": Mux(remote, place.op, item.op), "matched": Const(1), "remote": remote, "descriptor": Const(i, 6),
            "peer": Mux(remote, place.peer, 0),
        }  # fmt: skip
        fields = {name: Mux(mine, here[name], other) for name, other in fields.items()}
    return Cat((Value.cast(fields[name]) | Const(0, field.width))[: field.width] for name, field in Route)


def _routes(config: T3Config) -> Harness:
    """One item is chosen while it enters; its route is worked out when it is its turn."""
    part = RangeMatcher(config=config)
    harness = Harness(part)
    m, inside = harness.m, harness.inside
    chunks = _naive_map(m, part)
    queued, at_exit = Signal(2), Signal()  # the abstract model: how many wait, and whether a route is given
    enters = part.store.valid & part.store.ready
    turn = (queued != 0) & (~at_exit | part.route.ready)
    m.d.sync += [queued.eq(queued + enters - turn), at_exit.eq(turn | (at_exit & ~part.route.ready))]
    watched, before, leaving = Signal(), Signal(2), Signal()
    item, expected, stray = Signal(MemoryRequest), Signal(Route), Signal()
    own = Cat(
        chunks.ranges.holds(i, item.line) & (attributes.context == item.context)
        for i, attributes in enumerate(chunks.ranges.attributes)
    )
    with m.If(watched & leaving & part.route.ready):
        m.d.sync += watched.eq(0)
    with m.Elif(watched & turn & (before == 0) & ~leaving):
        m.d.sync += [leaving.eq(1), expected.eq(_route(item, chunks)), stray.eq(~own.any())]
    with m.Elif(watched & turn & ~leaving):
        m.d.sync += before.eq(before - 1)
    with m.Elif(~watched & enters & harness.free("look_at_this_item")):
        m.d.sync += [watched.eq(1), leaving.eq(0), before.eq(queued - turn), item.eq(part.store.payload)]
    with m.If(chunks.disarm):
        m.d.sync += [queued.eq(0), at_exit.eq(0), watched.eq(0)]

    route, gone = part.route.payload, watched & leaving
    harness.claim("it is ready while fewer than two wait", part.store.ready == (queued < 2))
    harness.claim("a route is given in the cycle after its turn, and no other", part.route.valid == at_exit)
    harness.claim("an item has the route that the map says", ~gone | (at_exit & (route == expected)))
    harness.claim("what is in no live range of its context matches nothing", ~(gone & stray) | ~route.matched)
    harness.cover("the second descriptor sends an item elsewhere", gone & route.remote & (route.descriptor == 1))
    harness.cover("an item of a range stays here", gone & route.matched & ~route.remote)
    # What makes it inductive: where the chosen item is, and that the part's registers are those of the map.
    head, spare = inside[r"queue\.o__payload"], inside[r"queue\.spare"]
    place = Mux(before == 0, head, spare)
    harness.claim("as many wait", queued == inside[r"queue\.o__valid"] + inside[r"queue\.full"])
    harness.claim("the first place is taken first", inside[r"queue\.o__valid"] | ~inside[r"queue\.full"])
    harness.claim("the chosen item waits", ~watched | leaving | ((before < queued) & (place == Value.cast(item))))
    chunks.ranges.claim_kept(harness)
    for c, (first, end) in enumerate(zip(chunks.first, chunks.end, strict=True)):
        harness.claim(f"the window of context {c}", inside[f"window_{c}"] == Cat(first, end))
    for i, words in enumerate(chunks.descriptors):
        place_of, amount, target = words[0], words[1], words[3]
        harness.claim(
            f"descriptor {i} changes only when it is written",
            (inside[f"chunk_{i}_0"] == Value.cast(place_of))
            & (inside[f"chunk_{i}_1"] == amount.context)
            & (inside[f"chunk_{i}_3"] == target.peer_base),
        )
    return harness


PROOFS = (
    Proof(
        name="matcher.routes",
        invariants=(4, 8),
        says="Every store row leaves the egress once, in order, with the route that the first live range and the first "
        "descriptor of its context's window give it when it is its turn, two cycles after it came if nothing waits; "
        "ranges and descriptors change only when written or aborted.",
        harness=_routes,
        sizes={
            "1 range, 2 descriptors": preset("small", ranges=1, descriptors=2, chunk_window=2),
            "2 ranges, 4 descriptors": preset("small", descriptors=4, chunk_window=2),
            "3 contexts": preset("small", descriptors=2, chunk_window=2, contexts=3),
        },
        method="induction",
        depth=1,
        cover_depth=9,
    ),
)
