"""A chunk is done once, exactly when all its lines are counted."""

from amaranth.hdl import Cat, Mux, Signal
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.chunk_counters import ChunkCounters

from ...prover.harness import Harness
from ...prover.proof import Proof


def _done_once(config: T3Config) -> Harness:
    """One slot is chosen; the lines that it still expects are counted down from its load."""
    counters, bits = ChunkCounters(config=config), config.chunk_count_bits
    harness = Harness(counters)
    m, event, window = harness.m, counters.event, config.chunk_window
    slot = harness.chosen("slot_of_interest", range(window))
    loads = counters.load_valid & (counters.load.slot == slot)
    mine = counters.event_valid & (event.slot == slot)
    loaded, done, spilled = Signal(window), Signal(), Signal()
    lines, expected, left = Signal(bits), Signal(bits), Signal(bits)
    completes, too_many = Signal(), Signal()
    spills = spilled | (event.kind == EventKind.OVERFLOW)
    m.d.comb += [
        left.eq(expected - lines),
        completes.eq(mine & ~done & (event.lines == left)),
        too_many.eq(mine & (done | (event.lines > left))),
    ]
    with m.If(mine):
        m.d.sync += [lines.eq(lines + event.lines), spilled.eq(spills), done.eq(done | completes)]
    with m.If(counters.load_valid):
        m.d.sync += loaded.eq(loaded | (1 << counters.load.slot))
    with m.If(loads):
        m.d.sync += [lines.eq(0), spilled.eq(0), done.eq(0), expected.eq(counters.load.expected)]
    known = (event.slot < window) & loaded.bit_select(event.slot, 1)
    harness.assume("events are of slots that were loaded", ~counters.event_valid | known)
    harness.assume("nothing is damaged", ~counters.event_damaged)

    given = counters.chunk_done_valid & (counters.chunk_done.slot == slot)
    harness.claim("a chunk is done once, with the line that makes all", given == harness.past(completes))
    flag = counters.chunk_done.overflowed == harness.past(spills)
    harness.claim("it is told whether a line had no entry", ~given | flag)
    harness.claim("a line too many is reported", counters.over_total | ~harness.past(too_many))
    mine_loaded = loaded.bit_select(slot, 1)
    harness.claim("without a report there is none too many", counters.over_total | ~mine_loaded | (lines <= expected))
    harness.claim("done means all lines, or more and a report", counters.over_total | ~done | (lines == expected))
    is_tile = harness.past(counters.event_valid & (event.kind == EventKind.TILE))
    fields = ("slot", "row", "col", "wf")
    same = Cat(counters.tile_done[field] == harness.past(event[field]) for field in fields).all()
    harness.claim(
        "a tile is reported once, in the next cycle", (counters.tile_done_valid == is_tile) & (same | ~is_tile)
    )
    _strengthen(harness, slot, mine_loaded, lines, expected, done, spilled)
    harness.cover("a chunk is done that has overflowed", given & counters.chunk_done.overflowed & (expected > 1))
    harness.cover("a slot is loaded while its last line comes", completes & loads)
    harness.cover("a line too many", counters.over_total)
    return harness


def _strengthen(
    harness: Harness, slot: Signal, loaded: Signal, lines: Signal, expected: Signal, done: Signal, spilled: Signal
) -> None:
    """What the tables and flags hold of the slot."""
    left, limit = (harness.inside.table(rf"{name}\.\w+\.rows").stored(slot) for name in ("remaining", "expected"))
    fresh, overflow, complete = (harness.inside[name].bit_select(slot, 1) for name in ("fresh", "overflow", "complete"))
    harness.claim("the table holds what is expected", ~loaded | (limit == expected))
    remains = (expected - lines)[: len(lines)]
    harness.claim("the table holds what is left", ~loaded | (Mux(fresh, limit, left) == remains))
    harness.claim("the flags hold what happened", (complete == done) & (overflow == spilled))
    harness.claim("nothing happened before the load", loaded | ~(done | spilled | (lines != 0)))


_COUNTER = {"chunk_window": 2, "tracker_banks": 1}

PROOFS = (
    Proof(
        name="chunk-counters.done-once",
        invariants=(1, 3),
        says="A chunk is done exactly once: when its finished tiles and its lines without an entry are all it expects.",
        harness=_done_once,
        sizes={
            "2 slots, 8 bits": preset("small", **_COUNTER, chunk_count_bits=8),
            "3 slots, 16 bits": preset("small", **{**_COUNTER, "chunk_window": 3}, chunk_count_bits=16),
        },
        method="induction",
        depth=1,
        cover_depth=8,
    ),
)
