"""The ready lists keep every block once and in order."""

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from t3hdl.config import T3Config, preset
from t3hdl.trigger.ready_lists import ReadyLists

from ...prover.harness import Harness
from ...prover.proof import Proof


def _in_order(config: T3Config) -> Harness:
    """Beside each linked list stands a plain one, a row of places from which the first leaves."""
    lists = ReadyLists(config=config)
    harness = Harness(lists)
    m, room = harness.m, config.chunk_window * config.blocks
    slot_bits, number_bits = (config.chunk_window - 1).bit_length(), (config.blocks - 1).bit_length()
    number = harness.free("number", number_bits) if number_bits else Const(0, 0)
    slot = harness.free("slot", slot_bits)
    by_chunk = harness.free("by_chunk")
    pushed = Cat(slot, Const(0, 6 - slot_bits), number, Const(0, 6 - number_bits), by_chunk)
    harness.drive(lists.block, pushed)
    harness.drive(lists.push_context, harness.free("context", 1))
    name = Cat(slot, number)

    def whole(place: Value) -> Value:
        """A place as a word of the hardware."""
        first = Cat(place[:slot_bits], Const(0, 6 - slot_bits), place[slot_bits:-1])
        return Cat(first, Const(0, 12 - len(first)), place[-1])

    taken: Value = Const(0, 1)
    empty: Value = Const(0, 1)
    total: Any = Const(0)
    plain = []
    for c in range(config.contexts):
        places = [Signal(len(name) + 1, name=f"place_{c}_{i}") for i in range(room)]
        length = Signal(range(room + 1), name=f"places_{c}")
        push, pop, clear = lists.push & (lists.push_context == c), lists.pop[c], lists.clear[c]
        with m.If(pop):
            m.d.sync += [to.eq(of) for to, of in pairwise(places)]
        for i, place in enumerate(places):
            taken = taken | ((i < length) & (place[:-1] == name))
            with m.If(push & (length == i + pop)):
                m.d.sync += place.eq(Cat(name, by_chunk))
        m.d.sync += length.eq(Mux(clear, 0, length + push - pop))
        plain.append((places, length))
        harness.claim(f"list {c} is as long as the plain one", lists.length[c] == length)
        harness.claim(f"list {c} waits unless it is empty", lists.waiting[c] == (length != 0))
        harness.claim(f"what leaves list {c} is the oldest", ~pop | (lists.oldest.as_value() == whole(places[0])))
        empty, total = empty | (pop & (length == 0)), total + length
    _links(harness, config, plain, whole)
    popping = sum((lists.pop[c] for c in range(config.contexts)), start=Const(0))
    harness.assume("a ready list is popped with a block in it alone", ~empty)
    left = harness.past(lists.pop & ~lists.clear)
    again = lists.pop & (left | harness.past(left & ~lists.clear))
    harness.assume("a ready list is not popped twice within three cycles", again == 0)
    harness.assume("a block that is in a ready list is not pushed", ~lists.push | ~taken)
    harness.assume("a block that is pushed is offered", ~lists.push | lists.offered)
    harness.assume("one ready list is popped at a time", popping <= 1)
    harness.assume("a ready block is of a context that there is", lists.push_context < config.contexts)
    harness.cover("all blocks wait", total == room)
    harness.cover("an offer is not taken", lists.offered & ~lists.push & lists.waiting.all())
    harness.cover("the youngest leaves last", lists.pop.any() & lists.push & (total == room - 1))
    return harness


def _links(harness: Harness, config: T3Config, plain: list[tuple[list[Any], Any]], whole: Any) -> None:
    """What keeps the linked lists like the plain ones from cycle to cycle: where each part of a list is found."""
    inside, table = harness.inside, harness.inside.table("rows")
    number_bits = (config.blocks - 1).bit_length()
    popped, refresh, left = inside["popped"], inside["refresh"], inside["left"]

    def behind(word: Value) -> Value:
        return table.stored(Cat(word[6 : 6 + number_bits], word[:6]))

    there = [(place, i < length) for places, length in plain for i, place in enumerate(places)]
    twice: Value = Const(0, 1)
    for (one, is_one), (other, is_other) in combinations(there, 2):
        twice = twice | (is_one & is_other & (one[:-1] == other[:-1]))
    harness.claim("no block is in two places", ~twice)
    stays = Cat(is_there & (whole(place)[:12] == left) for place, is_there in there).any()
    harness.claim("what has just left is in no list", ~popped.any() | ~stays)
    for c, (places, length) in enumerate(plain):
        oldest, youngest = inside[f"list_{c}"][:13], inside[f"list_{c}"][13:25]
        waits, last = length != 0, Array(places)[(length - 1)[: len(length)]]
        moves = popped[c] | refresh[c]
        harness.claim(f"list {c} has no more blocks than there are", length <= len(places))
        harness.claim(f"the oldest of list {c} is there", ~waits | moves | (oldest == whole(places[0])))
        harness.claim(f"the youngest of list {c} is there", ~waits | (youngest == whole(last)[:12]))
        led = behind(left) == whole(places[0])
        harness.claim(f"what left list {c} leads to the oldest", ~popped[c] | ~waits | led)
        harness.claim(f"the oldest of list {c} is read", ~refresh[c] | (waits & (table.reads[0] == whole(places[0]))))
        for i, (place, following) in enumerate(pairwise(places)):
            linked = behind(whole(place)) == whole(following)
            harness.claim(f"place {i} of list {c} leads to the next", (length <= i + 1) | linked)


_FEW = preset(
    "small", contexts=2, descriptors=2, chunk_window=2, blocks=1, event_queue=3, tracker_banks=1, row_index_bits=1
)
PROOFS = (
    Proof(
        name="ready-lists.in-order",
        invariants=(3,),
        says="Every block that is pushed leaves its context's list once, in the order of the pushes, or is cleared.",
        harness=_in_order,
        sizes={
            "2 blocks": _FEW,
            "4 blocks": replace(_FEW, blocks=2),
            "1 context, 4 blocks": replace(_FEW, contexts=1, blocks=2),
        },
        method="induction",
        depth=3,
        cover_depth=20,
    ),
)
