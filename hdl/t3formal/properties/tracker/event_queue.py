"""The event queue of a tracker bank loses no line, adds none, and keeps the order of tiles."""

from itertools import combinations

from amaranth.hdl import Array, Mux, Signal
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.event_queue import LINES_BITS, Event, EventQueue

from ...prover.harness import Harness
from ...prover.proof import Proof

_BITS = 4
"""Width of the sums that are compared; what is shown modulo a power of two is shown for every number of lines."""


def _conserves(config: T3Config) -> Harness:
    """The OVERFLOW lines of one slot are added up; one TILE event is followed from its push to its pop."""
    queue, depth = EventQueue(config=config), config.event_queue
    harness = Harness(queue)
    m = harness.m
    entries = [data.View(Event, harness.inside[f"entry_{i}"]) for i in range(depth)]
    is_overflow = queue.event.kind == EventKind.OVERFLOW
    harness.assume("events are pushed only with room", ~queue.push | (queue.level != depth))
    harness.assume("only events that are there are taken", ~queue.pop | queue.valid)

    slot = harness.chosen("slot_of_interest", 6)
    held = Signal(_BITS)  # lines of the slot in the queue
    enters = Mux(queue.push & is_overflow & (queue.event.slot == slot), queue.event.lines, 0)
    leaves = Mux(queue.pop & (queue.head.kind == EventKind.OVERFLOW) & (queue.head.slot == slot), queue.head.lines, 0)
    m.d.sync += held.eq(held + enters - leaves)
    mine = [(queue.level > i) & (e.kind == EventKind.OVERFLOW) & (e.slot == slot) for i, e in enumerate(entries)]
    there = sum(Mux(of_slot, e.lines, 0) for of_slot, e in zip(mine, entries, strict=True))
    harness.claim("lines of a slot are in the queue or have left it", held == there[:_BITS])
    for i, j in combinations(range(depth), 2):
        full = entries[i].lines + entries[j].lines >= 1 << LINES_BITS
        harness.claim(f"entries {i} and {j} are not of one slot, unless one is full", ~(mine[i] & mine[j]) | full)

    followed, place, tile = Signal(), Signal(range(depth)), Signal(Event)
    begins = harness.free("follow") & queue.push & ~is_overflow & ~followed
    with m.If(queue.pop):
        m.d.sync += place.eq(place - 1)
        with m.If(place == 0):
            m.d.sync += followed.eq(0)
    with m.If(begins):
        m.d.sync += [followed.eq(1), place.eq(queue.level - queue.pop), tile.eq(queue.event)]
    unchanged = (Array(entries)[place].as_value() == tile.as_value()) & (tile.kind == EventKind.TILE)
    harness.claim("a tile waits at its place, as it came", ~followed | ((place < queue.level) & unchanged))
    harness.claim("no more entries than there are", queue.level <= depth)
    harness.claim("the oldest is shown", queue.valid == (queue.level != 0))
    harness.cover("full", queue.level == depth)
    harness.cover("lines are added", (queue.level == 1) & harness.past(queue.push & (queue.level == 1) & ~queue.pop))
    harness.cover(
        "a followed tile leaves from behind others", followed & queue.pop & (place == 0) & harness.past(place)
    )
    return harness


_SIZES = {f"{depth} events": preset("small", tracker_banks=1, event_queue=depth, blocks=16) for depth in (3, 4)}

PROOFS = (
    Proof(
        name="event-queue.conserves",
        invariants=(3,),
        says="No line of a chunk is lost or doubled while events wait, and tiles leave in the order they came in.",
        harness=_conserves,
        sizes=_SIZES,
        method="induction",
        depth=1,
        cover_depth=10,
    ),
)
