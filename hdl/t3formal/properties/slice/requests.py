"""What goes through a memory slice: every access once, in order, changed only as its range says; invariant 4."""

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import MemoryRequest, Op
from t3hdl.slice.arbiter import Sources
from t3hdl.slice.slice import MatchedRequest, MemorySlice

from ...models.naive_ranges import NaiveRanges
from ...models.queue_places import places
from ...prover.harness import Harness
from ...prover.proof import Proof

_PORTS = tuple(Sources.members)
_PORT_BITS = 2
"""The lowest bits of ``tag`` name the port, so that it is seen on ``dram`` where an access came from."""


def _taken(item: Any, ranges: NaiveRanges, stream: bool) -> tuple[data.View, Value, Value]:
    """What a write becomes in a slice, whether it is refused, and whether it is of no live range of its context."""
    hit, _, attributes = ranges.first(item.line)
    own = hit & (attributes.context == item.context)
    updates = (item.op == Op.STORE) | (item.op == Op.ADD) | (item.op == Op.MIN) | (item.op == Op.MAX)
    tracked = own & item.tagged & updates
    changed = {
        "stream": stream,
        "tagged": tracked,
        "op": Mux(tracked & (item.op == Op.STORE), attributes.op, item.op),
        "dtype": Mux(tracked, attributes.dtype, item.dtype),
    }
    return _with(item, changed, Mux(tracked, attributes.epoch, 0)), hit & ~own & (item.op != Op.READ), ~own


def _with(item: Any, changed: dict[str, Any], epoch: Any) -> data.View:
    """``item`` with some fields changed, and its epoch."""
    fields = [
        (Value.cast(changed.get(name, item[name])) | Const(0, field.width))[: field.width]
        for name, field in MemoryRequest
    ]
    return data.View(MatchedRequest, Cat(*fields, (Value.cast(epoch) | Const(0, 2))[:2]))


def _passes(config: T3Config, *, name: str) -> Harness:
    """At port ``name`` one item is chosen while it enters; how many are before it and what it becomes is followed."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    m, control = harness.m, data.View(regs.Control, part.config.data[: regs.Control.size])
    disarm = control_written(part.config_valid, part.config) & control.disarm
    ranges = NaiveRanges(m, part.config_valid, part.config, config.ranges)
    ranges.claim_kept(harness)
    for number, other in enumerate(_PORTS):
        free = harness.free(f"{other}_item", MemoryRequest).as_value()
        item = data.View(MemoryRequest, Cat(free[:-32], Const(number, _PORT_BITS), free[-32 + _PORT_BITS :]))
        harness.drive(getattr(part, other).payload, item)
    _come_from_their_ports(harness)
    port = getattr(part, name)
    stream = name.startswith("comm")
    becomes, refused, outside = _with(port.payload, {"stream": stream, "tagged": 0}, 0), Const(0), Const(1)
    if name.endswith("write"):
        becomes, refused, outside = _taken(port.payload, ranges, stream)
        _gives_back(harness, name, port.valid & port.ready & refused & ~disarm)
    _follow(harness, name, port.valid & port.ready & ~refused, becomes, outside, disarm)
    return harness


def _gives_back(harness: Harness, name: str, refused: Value) -> None:
    """An item of another context's range comes back in the next cycle, and nothing else does."""
    stream = name.removesuffix("_write")
    valid, back = (getattr(harness.dut, f"{stream}_refused{end}") for end in ("_valid", ""))
    same = _with(getattr(harness.dut, name).payload, {"stream": stream == "comm"}, 0).request
    harness.claim(
        "what is another context's comes back in the next cycle, and nothing else", valid == harness.past(refused)
    )
    harness.claim("it comes back as it was", ~valid | (back.as_value() == harness.past(same.as_value())))
    harness.cover("another context's item comes back", valid)


def _come_from_their_ports(harness: Harness) -> None:
    """What makes it inductive: no queue holds an item of another port."""
    inside, lowest = harness.inside, MemoryRequest["tag"].offset
    for number, name in enumerate(_PORTS):
        queued = places(inside, name)
        harness.claim(f"the second place of {name} is behind the first", queued[0][0] | ~queued[1][0])
        for place, (valid, item) in enumerate(queued):
            port = item[lowest : lowest + _PORT_BITS]
            harness.claim(f"place {place} of {name} came from there", ~valid | (port == number))


def _follow(harness: Harness, name: str, enters: Value, becomes: data.View, outside: Value, disarm: Value) -> None:
    """Follows the chosen item of a port to ``dram``."""
    m, inside, part, number = harness.m, harness.inside, harness.dut, _PORTS.index(name)
    sent = part.dram.payload
    at_exit = part.dram.valid & (sent.tag[:_PORT_BITS] == number)
    leaves = at_exit & part.dram.ready
    held = Signal(3)
    watched, before = Signal(), Signal(3)
    expected, foreign = Signal(MatchedRequest), Signal()
    m.d.sync += held.eq(held + enters - leaves)
    with m.If(watched & leaves):
        m.d.sync += [before.eq(before - 1), watched.eq(before != 0)]
    with m.Elif(~watched & enters & harness.free("look_at_this_item")):
        m.d.sync += [watched.eq(1), before.eq(held - leaves), expected.eq(becomes), foreign.eq(outside)]
    with m.If(disarm):
        m.d.sync += [held.eq(0), watched.eq(0)]

    now = watched & at_exit & (before == 0)
    harness.claim("nothing leaves that did not enter", ~at_exit | (held != 0))
    harness.claim("an item leaves in its turn, as its range says", ~now | (sent == expected.request))
    harness.claim("what is in no range of its context is not tracked", ~(now & foreign) | ~sent.tagged)
    if name.endswith("write"):
        harness.claim("its epoch is its range's", ~now | (inside["epoch"] == expected.epoch))
    # What makes it inductive: where the chosen item is.
    queued = places(inside, name)
    along = [(at_exit, Cat(sent.as_value(), inside["epoch"])), *queued]
    harness.claim("as many are there as entered and did not leave", held == sum(valid for valid, _ in along))
    harness.claim("the second place is behind the first", queued[0][0] | ~queued[1][0])
    harness.claim("only what is tracked is of a live range", ~(watched & foreign) | ~expected.request.tagged)
    harness.claim("the chosen item is among those", ~watched | (before < held))
    for i, (valid, held_item) in enumerate(along):
        mine = data.View(MatchedRequest, held_item)
        mine = _with(mine.request, {"stream": name.startswith("comm")}, mine.epoch) if i else mine
        where = before + ~at_exit == i
        harness.claim(
            f"place {i} has the chosen item", ~(watched & where) | (valid & (mine.as_value() == expected.as_value()))
        )
    harness.cover("the chosen item was behind another", now & harness.past(before == 1))
    if name.endswith("write"):
        harness.cover("a tracked store leaves as its range's update", now & sent.tagged & (sent.op == Op.MAX))


PROOFS = tuple(
    Proof(
        name=f"slice.passes-{name.replace('_', '-')}",
        invariants=(3, 4, 8),
        says=f"Every access that {name} takes leaves the slice once and in order"
        + (
            ", or is refused and comes back; it is changed as the first live range with its line says, and not tracked "
            "if that is not of its context. Ranges change only when written or aborted."
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
