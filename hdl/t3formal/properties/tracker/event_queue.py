"""The event queue of a tracker bank loses no finished tile, and keeps their order."""

from amaranth.hdl import Array, Signal
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.tracker.event_queue import Event, EventQueue

from ...prover.harness import Harness
from ...prover.proof import Proof


def _in_order(config: T3Config) -> Harness:
    """One tile is followed from its push to its pop; all of them are counted."""
    queue, depth = EventQueue(config=config), config.event_queue
    harness = Harness(queue)
    m = harness.m
    entries = [data.View(Event, harness.inside[f"entry_{i}"]) for i in range(depth)]
    harness.assume("tiles are pushed only with room", ~queue.push | (queue.level != depth))
    harness.assume("only events that are there are taken", ~queue.pop | queue.valid)

    held = Signal(range(depth + 2))
    m.d.sync += held.eq(held + queue.push - queue.pop)
    harness.claim("tiles are in the queue or have left it", held == queue.level)
    harness.claim("no more entries than there are", queue.level <= depth)
    harness.claim("the oldest is shown", queue.valid == (queue.level != 0))

    followed, place, tile = Signal(), Signal(range(depth)), Signal(Event)
    begins = harness.free("follow") & queue.push & ~followed
    with m.If(queue.pop):
        m.d.sync += place.eq(place - 1)
        with m.If(place == 0):
            m.d.sync += followed.eq(0)
    with m.If(begins):
        m.d.sync += [followed.eq(1), place.eq(queue.level - queue.pop), tile.eq(queue.event)]
    unchanged = Array(entries)[place].as_value() == tile.as_value()
    harness.claim("a tile waits at its place, as it came", ~followed | ((place < queue.level) & unchanged))
    leaves = followed & (place == 0) & queue.pop
    harness.claim("and leaves as it came", ~leaves | (queue.head.as_value() == tile.as_value()))
    harness.cover("a tile leaves a full queue that takes another", leaves & harness.past(queue.level == depth))
    return harness


_SIZES = {f"{depth} tiles": preset("small", tracker_banks=1, event_queue=depth, blocks=16) for depth in (3, 4)}

PROOFS = (
    Proof(
        name="event-queue.in-order",
        invariants=(3,),
        says="No finished tile is lost or doubled while it waits, and tiles leave in the order they came in.",
        harness=_in_order,
        sizes=_SIZES,
        method="induction",
        depth=1,
        cover_depth=10,
    ),
)
