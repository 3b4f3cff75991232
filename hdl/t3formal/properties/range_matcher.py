"""The egress gives each store row the route that a naive reading of ranges and descriptors gives it, in order."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.egress.matcher import Match, RangeMatcher
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, ChunkKind, MemoryRequest, Route

from ..models.naive_ranges import NaiveRanges
from ..prover.harness import Harness
from ..prover.proof import Proof

_PLACE, _AMOUNT, _TARGET = (regs.DESCRIPTOR_LAYOUTS[word] for word in (0, 1, 3))


@dataclass(frozen=True)
class _Map:
    """What was last written: descriptors by their words, and the window of each context.

    ``written`` says of each descriptor whether it is being written; ``contexts`` is how many there are.
    """

    ranges: NaiveRanges
    descriptors: list[dict[int, data.View]]
    written: list[Value]
    first: list[Signal]
    end: list[Signal]
    contexts: int


def _naive_map(m: Module, part: RangeMatcher) -> _Map:
    """The registers of the map, written as software writes them."""
    config, write = part.parameters, part.config
    ranges = NaiveRanges(m, part.config_valid, write, config.ranges)
    descriptors, written = [], []
    for i in range(config.descriptors):
        words = {0: Signal(_PLACE, name=f"place_{i}"), 1: Signal(_AMOUNT, name=f"amount_{i}")}
        words[3] = Signal(_TARGET, name=f"target_{i}")
        writes = {}
        for word, register in words.items():
            address = regs.DESCRIPTOR + i * regs.DESCRIPTOR_STRIDE + 8 * word
            writes[word] = part.config_valid & (write.address == address)
            with m.If(writes[word]):
                m.d.sync += register.eq(write.data)
        descriptors.append(words)
        written.append(writes[0] | writes[1] | writes[3])
    control = data.View(regs.Control, write.data[: regs.Control.size])
    action = control_written(part.config_valid, write)
    first = [Signal(6, name=f"first_{c}") for c in range(config.contexts)]
    end = [Signal(7, name=f"end_{c}") for c in range(config.contexts)]
    for c in range(config.contexts):
        with m.If(action & control.arm & (control.context == c)):
            m.d.sync += [first[c].eq(control.first), end[c].eq(control.first + control.descriptors)]
        with m.Elif(action & (control.disarm | (control.abort & (control.context == c)))):
            m.d.sync += [first[c].eq(0), end[c].eq(0)]
    return _Map(ranges, descriptors, written, first, end, config.contexts)


def _word(fields: dict[str, Any]) -> Value:
    """A route of these fields, the others are 0."""
    return Cat((Value.cast(fields.get(name, 0)) | Const(0, field.width))[: field.width] for name, field in Route)


def _unmatched(item: Any) -> Value:
    return _word({"line": item.line, "op": item.op})


def _by(item: Any, i: int, words: dict[int, data.View], offset: Value) -> Value:
    """The route that descriptor ``i`` gives an item so many lines behind its range's base."""
    place, target = words[0], words[3]
    remote = place.kind == ChunkKind.REMOTE
    return _word({
        "line": Mux(remote, offset + target.peer_base, item.line), "op": Mux(remote, place.op, item.op),
        "matched": Const(1), "remote": remote, "descriptor": Const(i, 6), "peer": Mux(remote, place.peer, 0),
    })  # fmt: skip


def _route(item: Any, chunks: _Map) -> Value:
    """The route of an item, one question after the other."""
    _, base, _ = chunks.ranges.first(item.line)
    asks = item.tagged & chunks.ranges.judge(item, chunks.contexts).live
    route = _unmatched(item)
    for i, words in reversed(list(enumerate(chunks.descriptors))):
        place, amount = words[0], words[1]
        live = Cat(
            (item.context == c) & (first <= i) & (i < end)
            for c, (first, end) in enumerate(zip(chunks.first, chunks.end, strict=True))
        ).any()
        rows = (place.row0 <= item.row) & (item.row < place.row1)
        cols = (place.col0 <= item.col) & (item.col < place.col1)
        own = (place.kind != ChunkKind.NONE) & (amount.context == item.context)
        mine = asks & live & rows & cols & own & ~chunks.written[i]
        route = Mux(mine, _by(item, i, words, item.line - base), route)
    return route


@dataclass(frozen=True)
class _Line:
    """The abstract model: how many wait, whether one is matched, and whether a route is given. ``turn``: the first that
    waits is looked at; ``goes``: the matched one gets its route."""

    queued: Signal
    between: Signal
    at_exit: Signal
    turn: Value
    goes: Value


@dataclass(frozen=True)
class _Chosen:
    """One item: whether it is watched, how many go before it, how far it is, and its route; ``improper``: a range of
    its context and epoch holds its first line, but it is no burst of one range and block; ``stray``: that, or none
    holds it. ``overwritten``: the descriptor of its route is being written."""

    watched: Signal
    before: Signal
    matched: Signal
    leaving: Signal
    item: data.View
    expected: data.View
    stray: Signal
    improper: Signal
    overwritten: Value


def _line(m: Module, part: RangeMatcher) -> _Line:
    queued, between, at_exit = Signal(2), Signal(), Signal()
    goes = between & (~at_exit | part.route.ready)
    turn = (queued != 0) & (~between | goes)
    m.d.sync += [
        queued.eq(queued + (part.store.valid & part.store.ready) - turn),
        between.eq(turn | (between & ~goes)),
        at_exit.eq(goes | (at_exit & ~part.route.ready)),
    ]
    return _Line(queued, between, at_exit, turn, goes)


def _follow(harness: Harness, part: RangeMatcher, chunks: _Map, line: _Line) -> _Chosen:
    """An item is chosen while it enters; its route is worked out when it is its turn."""
    m, turn, enters = harness.m, line.turn, part.store.valid & part.store.ready
    watched, before, matched, leaving = Signal(), Signal(2), Signal(), Signal()
    item, expected, stray, improper = Signal(MemoryRequest), Signal(Route), Signal(), Signal()
    own = Cat(
        chunks.ranges.holds(i, item.line) & (attributes.context == item.context) & (attributes.epoch == item.epoch)
        for i, attributes in enumerate(chunks.ranges.attributes)
    ).any()
    over = chunks.ranges.improper(item)
    overwritten = (
        expected.matched & Cat(written & (expected.descriptor == i) for i, written in enumerate(chunks.written)).any()
    )
    with m.If(watched & leaving & part.route.ready):
        m.d.sync += watched.eq(0)
    with m.Elif(watched & matched & line.goes & ~leaving):
        m.d.sync += leaving.eq(1)
    with m.Elif(watched & matched & ~leaving & overwritten):
        m.d.sync += expected.eq(_unmatched(item))
    with m.Elif(watched & turn & (before == 0) & ~matched):
        m.d.sync += [matched.eq(1), expected.eq(_route(item, chunks)), stray.eq(~own | over), improper.eq(own & over)]
    with m.Elif(watched & turn & ~matched):
        m.d.sync += before.eq(before - 1)
    with m.Elif(~watched & enters & harness.free("look_at_this_item")):
        m.d.sync += [watched.eq(1), matched.eq(0), leaving.eq(0)]
        m.d.sync += [before.eq(line.queued - turn), item.eq(part.store.payload)]
    return _Chosen(watched, before, matched, leaving, item, expected, stray, improper, overwritten)


def _routes(config: T3Config) -> Harness:
    part = RangeMatcher(config=config)
    harness = Harness(part)
    chunks = _naive_map(harness.m, part)
    line = _line(harness.m, part)
    chosen = _follow(harness, part, chunks, line)
    route, gone = part.route.payload, chosen.watched & chosen.leaving
    harness.claim("it is ready while fewer than two wait", part.store.ready == (line.queued < 2))
    harness.claim("a route is given two cycles after its turn, and no other", part.route.valid == line.at_exit)
    harness.claim("an item has the route that the map says", ~gone | (line.at_exit & (route == chosen.expected)))
    harness.claim("what is in no range of its job matches nothing", ~(gone & chosen.stray) | ~route.matched)
    whole = chosen.item.length == BURST_LINES - 1
    harness.cover("a whole block is sent elsewhere", gone & route.remote & whole)
    harness.cover("a burst over a bound matches nothing", gone & chosen.improper & ~route.matched)
    harness.cover("the second descriptor sends an item elsewhere", gone & route.remote & (route.descriptor == 1))
    harness.cover("an item of a range stays here", gone & route.matched & ~route.remote)
    waits = chosen.watched & chosen.matched & ~chosen.leaving
    harness.cover("the descriptor of an item is written while it waits", waits & chosen.overwritten)
    _claim_inside(harness, chunks, line, chosen)
    return harness


def _claim_inside(harness: Harness, chunks: _Map, line: _Line, chosen: _Chosen) -> None:
    """What makes it inductive: where the chosen item is, and that the part's registers are those of the map."""
    inside, item = harness.inside, chosen.item
    watched, matched, leaving, before = chosen.watched, chosen.matched, chosen.leaving, chosen.before
    place = Mux(before == 0, inside[r"queue\.o__payload"], inside[r"queue\.spare"])
    harness.claim("as many wait", line.queued == inside[r"queue\.o__valid"] + inside[r"queue\.full"])
    harness.claim("the first place is taken first", inside[r"queue\.o__valid"] | ~inside[r"queue\.full"])
    waits = (before < line.queued) & (place == Value.cast(item))
    harness.claim("the chosen item waits", ~watched | matched | waits)
    found = data.View(Match, inside["found"])
    route = _unmatched(item)
    for i, words in enumerate(chunks.descriptors):
        route = Mux(found.matched & (found.descriptor == i), _by(item, i, words, found.offset), route)
    same = (found.line == item.line) & (found.op == item.op) & (Value.cast(chosen.expected) == route)
    harness.claim("the chosen item is matched", ~watched | ~matched | leaving | (line.between & same))
    harness.claim("it is matched before it leaves", ~watched | matched | ~leaving)
    stray = watched & matched & chosen.stray
    harness.claim("what is of no live range is not matched", ~stray | ~chosen.expected.matched)
    harness.claim("an item between is there", inside["found_valid"] == line.between)
    there = ~found.matched | (found.descriptor < len(chunks.descriptors))
    harness.claim("an item matches a descriptor that there is", ~line.between | there)
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


PROOFS = (
    Proof(
        name="matcher.routes",
        invariants=(4, 8),
        says="Every store row leaves the egress once, in order, whatever is disarmed, with the route that the first "
        "live range and the first descriptor of its context's window give it when it is its turn, three cycles after "
        "it came if nothing waits; a burst over a bound of a range or over the end of its block matches nothing. "
        "Ranges and descriptors change only when written, aborted or disarmed by force. A descriptor that is written "
        "then, or while the row waits for `route`, gives it none.",
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
