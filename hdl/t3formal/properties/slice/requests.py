"""What goes through a memory slice: every access once, in order, changed only as its range says; invariant 4."""

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import BURST_LINES, INTERLEAVE_BITS, LINE_BITS, MemoryRequest, Op
from t3hdl.slice.arbiter import Sources
from t3hdl.slice.slice import MemorySlice

from ...models.naive_ranges import Judgement, NaiveRanges
from ...models.queue_places import places
from ...prover.harness import Harness
from ...prover.proof import Proof

_PORTS = tuple(Sources.members)
_TAG, _PORT_BITS = MemoryRequest["tag"].offset, 2
"""The lowest bits of ``tag`` name the port, so that it is seen on ``dram`` where an access came from."""


def _with(item: Any, **changed: Any) -> data.View:
    """``item`` with some fields changed."""
    fields = (
        (Value.cast(changed.get(name, item[name])) | Const(0, field.width))[: field.width]
        for name, field in MemoryRequest
    )
    return data.View(MemoryRequest, Cat(*fields))


def _taken(item: Any, judged: Judgement, stream: bool) -> data.View:
    """What a write becomes that enters."""
    tracked, attributes = judged.tracked, judged.attributes
    return _with(
        item,
        stream=stream,
        tagged=tracked,
        op=Mux(tracked & (item.op == Op.STORE), attributes.op, item.op),
        dtype=Mux(tracked, attributes.dtype, item.dtype),
    )


def _passes(config: T3Config, *, name: str) -> Harness:
    """At port ``name`` one item is chosen while it enters; how many are before it and what it becomes is followed."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    ranges = NaiveRanges(harness.m, part.config_valid, part.config, config.ranges)
    ranges.claim_kept(harness)
    for number, other in enumerate(_PORTS):
        free = harness.free(f"{other}_item", MemoryRequest).as_value()
        item = data.View(MemoryRequest, Cat(free[:_TAG], Const(number, _PORT_BITS), free[_TAG + _PORT_BITS :]))
        harness.drive(getattr(part, other).payload, item)
    _come_from_their_ports(harness)
    port = getattr(part, name)
    stream, taken = name.startswith("comm"), port.valid & port.ready
    if name.endswith("read"):
        _follow(harness, name, taken, _with(port.payload, stream=stream, tagged=0), None)
        return harness
    judged = ranges.judge(port.payload, config.contexts)
    _gives_back(harness, name, taken, judged, ranges)
    _keeps_to_its_lines(harness, taken & ~judged.refused, port.payload, ranges)
    _follow(harness, name, taken & ~judged.refused, _taken(port.payload, judged, stream), judged)
    return harness


def _gives_back(harness: Harness, name: str, taken: Value, judged: Judgement, ranges: NaiveRanges) -> None:
    """What is refused comes back once, in the next cycle, at the pulse that says why, and nothing else does."""
    stream, causes = name.removesuffix("_write"), {"refused": judged.violates, "stale": judged.stale}
    same = harness.past(_with(getattr(harness.dut, name).payload, stream=stream == "comm").as_value())
    pulses = {cause: getattr(harness.dut, f"{stream}_{cause}_valid") for cause in causes}
    for cause, comes in causes.items():
        valid, back = pulses[cause], getattr(harness.dut, f"{stream}_{cause}")
        harness.claim(
            f"what is {cause} comes back in the next cycle, and nothing else", valid == harness.past(taken & comes)
        )
        harness.claim(f"what is {cause} comes back as it was", ~valid | (back.as_value() == same))
        harness.cover(f"an item comes back that is {cause}", valid)
    _covers_improper(harness, taken & judged.violates, name, ranges)
    harness.claim("nothing comes back for two reasons", ~(pulses["refused"] & pulses["stale"]))


def _covers_improper(harness: Harness, refused: Value, name: str, ranges: NaiveRanges) -> None:
    """Each way in which a burst of which the first line is nobody else's is refused nevertheless."""
    burst = getattr(harness.dut, name).payload
    refused = refused & ~ranges.foreign(burst.line, burst.context)
    leaves = burst.line[:INTERLEAVE_BITS] + burst.length >= BURST_LINES
    last = (burst.line + burst.length)[:LINE_BITS]
    others = ranges.foreign(last, burst.context)
    harness.cover("a burst leaves its block", refused & leaves)
    harness.cover("the last line of a burst alone is another's", refused & ~leaves & others & (last == ranges.base[0]))
    ends = ranges.attributes[0].valid & (last == ranges.limit[0]) & (ranges.base[0] <= burst.line)
    harness.cover("a range ends before the last line of a burst", refused & ~leaves & ends)


def _keeps_to_its_lines(harness: Harness, enters: Value, burst: data.View, ranges: NaiveRanges) -> None:
    """What the ranges say of a burst's first line they say of all its lines: any one of them is looked at."""
    number = harness.chosen("line_of_the_burst", INTERLEAVE_BITS)
    line = (burst.line + number)[:LINE_BITS]
    writes = enters & (burst.op != Op.READ) & (number <= burst.length)
    harness.claim(
        "a write enters with all its lines in one aligned block",
        ~writes | (line[INTERLEAVE_BITS:] == burst.line[INTERLEAVE_BITS:]),
    )
    harness.claim(
        "a write enters with no line in another context's range", ~writes | ~ranges.foreign(line, burst.context)
    )
    (first, _, attributes), (here, _, its) = ranges.first(burst.line), ranges.first(line)
    same = (first == here) & (attributes.as_value() == its.as_value())
    harness.claim("a write enters with all its lines in the same range, or all in none", ~writes | same)
    harness.cover("the last line of a whole block enters in a range", writes & here & (number == BURST_LINES - 1))


def _come_from_their_ports(harness: Harness) -> None:
    """What makes it inductive: no queue holds an item of another port."""
    inside = harness.inside
    for number, name in enumerate(_PORTS):
        queued = places(inside, name)
        harness.claim(f"the second place of {name} is behind the first", queued[0][0] | ~queued[1][0])
        for place, (valid, item) in enumerate(queued):
            port = item[_TAG : _TAG + _PORT_BITS]
            harness.claim(f"place {place} of {name} came from there", ~valid | (port == number))


def _follow(harness: Harness, name: str, enters: Value, becomes: data.View, judged: Judgement | None) -> None:
    """Follows the chosen item of a port to ``dram``; no disarm stops it."""
    m, inside, part, number = harness.m, harness.inside, harness.dut, _PORTS.index(name)
    sent = part.dram.payload
    at_exit = part.dram.valid & (sent.tag[:_PORT_BITS] == number)
    leaves = at_exit & part.dram.ready
    held = Signal(3)
    watched, before = Signal(), Signal(3)
    expected = Signal(MemoryRequest)
    chosen = ~watched & enters & harness.free("look_at_this_item")
    m.d.sync += held.eq(held + enters - leaves)
    with m.If(watched & leaves):
        m.d.sync += [before.eq(before - 1), watched.eq(before != 0)]
    with m.Elif(chosen):
        m.d.sync += [watched.eq(1), before.eq(held - leaves), expected.eq(becomes)]

    now = watched & at_exit & (before == 0)
    harness.claim("nothing leaves that did not enter", ~at_exit | (held != 0))
    harness.claim("an item leaves in its turn, as its range says", ~now | (sent == expected))
    if judged is not None:
        _claim_live(harness, chosen, now, watched & expected.tagged, watched & ~expected.tagged, judged)
    # What makes it inductive: where the chosen item is.
    queued = places(inside, name)
    along = [(at_exit, sent.as_value()), *queued]
    harness.claim("as many are there as entered and did not leave", held == sum(valid for valid, _ in along))
    harness.claim("the second place is behind the first", queued[0][0] | ~queued[1][0])
    harness.claim("the chosen item is among those", ~watched | (before < held))
    for i, (valid, held_item) in enumerate(along):
        mine = data.View(MemoryRequest, held_item)
        mine = _with(mine, stream=name.startswith("comm")) if i else mine
        where = before + ~at_exit == i
        harness.claim(
            f"place {i} has the chosen item", ~(watched & where) | (valid & (mine.as_value() == expected.as_value()))
        )
    harness.cover("the chosen item was behind another", now & harness.past(before == 1))
    if name.endswith("write"):
        harness.cover("a tracked store leaves as its range's update", now & sent.tagged & (sent.op == Op.MAX))


def _claim_live(harness: Harness, chosen: Value, now: Value, tracked: Value, others: Value, judged: Judgement) -> None:
    """Of the chosen item it is kept whether it was an update when it entered, and of a live epoch of its context."""
    update, live = Signal(name="was_update"), Signal(name="was_live")
    with harness.m.If(chosen):
        harness.m.d.sync += [update.eq(judged.update), live.eq(judged.live)]
    sent = harness.dut.dram.payload
    harness.claim("what leaves tracked is an update of a live epoch", ~(now & sent.tagged) | (update & live))
    harness.claim("no other update leaves", ~now | sent.tagged | ~update)
    harness.claim("what is tracked was a live update", ~tracked | (update & live))
    harness.claim("nothing else was an update", ~others | ~update)
    harness.cover("an access that is no update leaves a live range", now & live & ~sent.tagged)


PROOFS = tuple(
    Proof(
        name=f"slice.passes-{name.replace('_', '-')}",
        invariants=(3, 4, 8),
        says=f"Every access that {name} takes leaves the slice once and in order"
        + (
            ", whatever is disarmed, or is refused and comes back once. An update of no live epoch of its context is "
            "always refused, and never reaches the memory; one that enters is tracked, and changed as its range says. "
            "A write enters only if all its lines are in one aligned block and in one range, or in none: a burst with "
            "any line in another context's range never enters. Ranges change only when written, aborted or disarmed by "
            "force."
            if name.endswith("write")
            else ", unchanged and never tracked."
        ),
        harness=partial(_passes, name=name),
        sizes={
            "1 range": preset("small", ranges=1, token_queue=2),
            "2 ranges": preset("small", token_queue=3),
            "2 ranges, performed": preset("small", token_queue=2, count_on="performed"),
        },
        method="induction",
        depth=1,
        cover_depth=8,
        quick=name == "compute_write",
    )
    for name in _PORTS
)
