"""Lines without an entry are counted once, and every slot that has some gets its turn in time."""

from amaranth.hdl import Cat, Const, Mux, Signal
from t3hdl.config import T3Config, preset
from t3hdl.tracker.event_turns import EventTurns
from t3hdl.tracker.pending_lines import PendingLines

from ...prover.harness import Harness
from ...prover.proof import Proof

_BITS = 4
"""Width of the sums that are compared; what is shown modulo a power of two is shown for every number of lines."""


def _conserves(config: T3Config) -> Harness:
    """One slot is chosen. What was added for it is in its sum, was collected, or was dropped with its chunk."""
    lines, window = PendingLines(config=config), config.chunk_window
    harness = Harness(lines)
    m = harness.m
    slot = harness.chosen("slot_of_interest", range(window))
    harness.assume("lines are of a slot that exists", lines.slot < window)
    mine, taken = lines.slot == slot, lines.collect & (lines.collected == slot)
    live, ends = lines.live.bit_select(slot, 1), lines.ends.bit_select(slot, 1)
    added = Mux(lines.add & mine & live, lines.lines, 0)
    held = Signal(_BITS)  # what must be pending
    m.d.sync += held.eq(Mux(ends, 0, Mux(taken, 0, held) + added))
    pending = lines.pending.bit_select(slot, 1)
    copies = [harness.inside.table(rf"{name}\.\w+\.rows").stored(slot) for name in ("added_to", "taken")]
    sums = [copy[: config.pending_bits] for copy in copies]
    harness.claim("the sum is what was added and not collected", held == Mux(pending, sums[0], 0)[:_BITS])
    harness.claim("both copies hold it", ~pending | (sums[0] == sums[1]))
    harness.claim("what is collected is the sum", ~taken | (lines.total[:_BITS] == held))
    begins = lines.add & mine & live & ~ends
    harness.claim("a slot is pending from when something is added", ~harness.past(begins) | pending)
    stays = harness.past(pending & ~taken & ~ends)
    harness.claim("a slot is pending until it is collected or ends", ~stays | pending)
    harness.claim("it is not after its chunk has ended", ~harness.past(ends) | ~pending)
    harness.claim("it is not after it was collected", ~harness.past(taken & ~begins) | ~pending)
    late = lines.add & mine & ~live & lines.complete.bit_select(slot, 1)
    left_over = lines.done.bit_select(slot, 1) & (pending | (lines.add & mine & live))
    harness.claim("lines for a complete chunk are told", ~(late | left_over) | lines.excess)
    only = Cat(lines.complete, lines.done).any()
    harness.claim("and no others", ~lines.excess | only)
    harness.cover("a sum is collected while it grows", taken & (added != 0) & (held > 2))
    harness.cover("a sum is dropped", ends & (held != 0))
    return harness


def _in_time(config: T3Config) -> Harness:
    """One slot is chosen, and what goes before it is counted: first other slots' choices, then other turns."""
    turns, banks, window = EventTurns(config=config), config.tracker_banks, config.chunk_window
    harness = Harness(turns)
    m, inside = harness.m, harness.inside
    slot = harness.chosen("slot_of_interest", range(window))
    harness.assume("a slot is pending until it is collected or ends", _stays_pending(harness, turns, slot))
    mine = turns.waiting & (turns.slot == slot)
    collected = turns.collect & mine
    pending, ends = turns.pending.bit_select(slot, 1), turns.ends.bit_select(slot, 1)
    harness.claim("one thing is taken per cycle", (Cat(turns.taken, turns.collect) & _less_one(turns)) == 0)
    there = Cat(turns.events, turns.waiting)
    harness.claim("something, if there is anything", there.any() == Cat(turns.taken, turns.collect).any())
    harness.claim("what is taken is there", (Cat(turns.taken, turns.collect) & ~there) == 0)
    harness.claim("a slot that is chosen is pending", ~mine | pending)
    harness.claim("a slot that exists is chosen", ~turns.waiting | (turns.slot < window))

    # For how long this slot has been pending; the chosen one has waited; nothing was chosen. How many others were.
    limit = (window + 1) * (banks + 1)
    age, others = Signal(range(limit + 1), name="age"), Signal(range(window + 1), name="others")
    held, since = (Signal(range(banks + 2), name=name) for name in ("held", "since"))
    waits = pending & ~mine & ~ends
    chooses = ~turns.waiting | turns.collect
    m.d.sync += [
        age.eq(Mux(pending & ~collected & ~ends, age + 1, 0)),
        held.eq(Mux(turns.waiting & ~turns.collect, held + 1, 0)),
        since.eq(Mux(~chooses, since + 1, 0)),
        others.eq(Mux(waits, others + chooses, 0)),
    ]
    harness.claim(f"a pending slot is collected within {limit} cycles", ~pending | (age < limit))
    harness.claim("the chosen one waits for each bank once", held <= banks)
    harness.claim("a choice lasts no longer", (since <= banks) & (~turns.waiting | (since == held)))
    harness.claim("others before it take their time", ~waits | (age <= others * (banks + 1) + since))
    harness.claim("it is chosen after all others", ~waits | (others < window))
    harness.claim("and then collected", ~mine | (age <= window * (banks + 1) + held))
    _turn_in_order(harness, inside["turn.behind"], Const(banks), banks + 1, held, "the turn")
    _turn_in_order(harness, inside["slots.behind"], slot, window, Mux(waits, others, 0), "the slots' turn")
    harness.cover("a slot is collected after all others", collected & (age > window))
    return harness


def _stays_pending(harness: Harness, turns: EventTurns, slot: Signal) -> Signal:
    before = harness.past(
        turns.pending.bit_select(slot, 1) & ~turns.ends.bit_select(slot, 1) & ~(turns.collect & (turns.slot == slot))
    )
    return ~before | turns.pending.bit_select(slot, 1)


def _less_one(turns: EventTurns) -> Signal:
    taken = Cat(turns.taken, turns.collect)
    return (taken - 1)[: len(taken)]


def _turn_in_order(harness: Harness, behind: Signal, mine: Signal, requesters: int, before: Signal, name: str) -> None:
    """Those between the turn and ``mine`` have not been preferred yet: as many as ``before`` have, at most."""
    in_order = ~Cat(behind[i] & ~behind[i + 1] for i in range(requesters - 1)).any()
    turn = sum((~behind)[:requesters][i] for i in range(requesters)) % requesters
    harness.claim(f"{name} is in order", in_order)
    harness.claim(f"{name} counts those before", before + (mine + requesters - turn) % requesters < requesters)


_SMALL = {"chunk_count_bits": 8, "event_queue": 3}
_SIZES = {
    "2 slots, 1 bank": preset("small", **_SMALL, chunk_window=2, descriptors=2, tracker_banks=1),
    "3 slots, 2 banks": preset("small", **_SMALL, chunk_window=3, tracker_banks=2),
    "4 slots, 4 banks": preset("small", **_SMALL, tracker_banks=4, tracker_sets=16, row_index_bits=2, blocks=16),
}

PROOFS = (
    Proof(
        name="pending-lines.conserve",
        invariants=(1, 3),
        says="Lines without an entry are counted once for their slot, or dropped with its chunk; lines for a complete "
        "chunk are an error.",
        harness=_conserves,
        sizes={name: _SIZES[name] for name in ("2 slots, 1 bank", "3 slots, 2 banks")},
        method="induction",
        depth=1,
        cover_depth=8,
    ),
    Proof(
        name="event-turns.in-time",
        invariants=(2, 3),
        says="One finished tile or one slot's lines are taken per cycle, if there are any; a slot's lines within "
        "(chunk_window + 1) x (tracker_banks + 1) cycles.",
        harness=_in_time,
        sizes=_SIZES,
        method="induction",
        depth=1,
        cover_depth=16,
    ),
)
