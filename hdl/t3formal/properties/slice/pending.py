"""The tracked accesses of a memory slice, from their entry to their count: which they are, and how many are pending."""

from amaranth.hdl import Cat, Signal, Value
from amaranth.lib import data
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import MemoryRequest
from t3hdl.slice.arbiter import Sources
from t3hdl.slice.slice import MemorySlice
from t3hdl.slice.token_queue import TileKey

from ...models.memory_reports import counted_now, tracked_transfer, unreported
from ...models.naive_ranges import NaiveRanges
from ...models.queue_places import places
from ...prover.harness import Harness
from ...prover.proof import Proof
from .tokens import claim_room, of_name

_WRITES = ("compute_write", "comm_write")


def _held_tracked(harness: Harness) -> list[tuple[Value, data.View]]:
    """Where a tracked access may be in the slice: whether one is there, and which."""
    dram = harness.dut.dram
    held = [place for name in _WRITES for place in places(harness.inside, name)]
    items = [(valid, data.View(MemoryRequest, item)) for valid, item in held]
    return [(valid & item.tagged, item) for valid, item in [*items, (dram.valid, dram.payload)]]


def _entering(harness: Harness, config: T3Config) -> list[tuple[Value, data.View]]:
    """The accesses that enter in this cycle and are to be tracked, by the ranges as they were written."""
    part = harness.dut
    ranges = NaiveRanges(harness.m, part.config_valid, part.config, config.ranges)
    ranges.claim_kept(harness)
    ports = [getattr(part, name) for name in _WRITES]
    return [
        (port.valid & port.ready & ranges.judge(port.payload, config.contexts).tracked, port.payload) for port in ports
    ]


def _sends(config: T3Config) -> Harness:
    """One name is chosen (context, epoch and tile); its updates are followed from the ports to ``dram``, by number.

    The name of an update is that which the access has at the port: what the slice keeps of it is not asked.
    """
    part = MemorySlice(config=config)
    harness = Harness(part)
    name = harness.chosen("name_of_interest", TileKey)
    within = Signal(3)  # the abstract model: how many have entered and not been sent
    enters = [taken & of_name(item, name) for taken, item in _entering(harness, config)]
    sent = tracked_transfer(harness) & of_name(part.dram.payload, name)
    harness.m.d.sync += within.eq(within + enters[0] + enters[1] - sent)
    there = sum(valid & of_name(item, name) for valid, item in _held_tracked(harness))
    harness.claim("what entered as an update of this name is in the slice, or was sent as one", within == there)
    _claim_queues(harness, config)
    harness.cover("one is sent while two enter", sent & enters[0] & enters[1])
    return harness


def _claim_queues(harness: Harness, config: T3Config) -> None:
    """What makes it inductive to count the tracked accesses in the slice."""
    for name in Sources.members:
        first, second = places(harness.inside, name)
        harness.claim(f"the second place of {name} is behind the first", first[0] | ~second[0])
        if name.endswith("read"):
            held = [valid & data.View(MemoryRequest, item).tagged for valid, item in (first, second)]
            harness.claim(f"nothing in {name} is tracked", ~Cat(held).any())
    beyond = [valid & (item.context >= config.contexts) for valid, item in _held_tracked(harness)]
    harness.claim("what is tracked is of a context that there is", ~Cat(beyond).any())


def _pending(config: T3Config) -> Harness:
    """Per context, the accesses in the slice and those that the memory owes a report for, by the words at the ports."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    inside, counted = harness.inside, counted_now(harness, config)
    entering, held = _entering(harness, config), _held_tracked(harness)
    words = part.dram.payload, part.update_done
    kinds = {f"{c}": (words[0].context == c, words[1].context == c) for c in range(config.contexts)}
    none = tuple(word.context >= config.contexts for word in words)
    owed = unreported(harness, config, kinds | {"none": (none[0], none[1])})
    for c in range(config.contexts):
        _claim_pending(harness, c, entering, held, owed[f"{c}"], counted)
    beyond = part.pending >> config.contexts
    harness.claim("nothing is pending of contexts that there are not", (beyond == 0) & (owed["none"] == 0))
    _claim_queues(harness, config)
    claim_room(harness, config)
    harness.cover("two enter at once and one is counted", Cat(t for t, _ in entering).all() & counted[0])
    if config.count_on == "performed":
        early = tracked_transfer(harness) & counted[0] & (inside["outstanding"] == 0)
        harness.cover("a report in the cycle of its transfer", early)
    return harness


def _claim_pending(
    harness: Harness,
    c: int,
    entering: list[tuple[Value, data.View]],
    held: list[tuple[Value, data.View]],
    owed: Value,
    counted: tuple[Value, Value],
) -> None:
    """The model is a sum of what enters and what is counted; it is what is in the slice or owed by the memory."""
    part, number = harness.dut, Signal(4, name=f"pending_model_{c}")
    enters = [taken & (item.context == c) for taken, item in entering]
    leaves = counted[0] & (counted[1].context == c)
    harness.m.d.sync += number.eq(number + enters[0] + enters[1] - leaves)
    there = sum((valid & (item.context == c) for valid, item in held), owed)
    harness.claim(f"of context {c} as many entered and were not counted as are there", number == there)
    harness.claim(f"context {c} is pending exactly while an access of it is there", part.pending[c] == (there != 0))
    harness.claim(f"the slice counts those of context {c}", harness.inside[rf"pending\.count_{c}"] == there)
    harness.cover(f"context {c} is no longer pending", harness.past(part.pending[c]) & ~part.pending[c])


PROOFS = (
    Proof(
        name="slice.sends-updates",
        invariants=(1, 3, 4),
        says="Every update of a live epoch that enters is sent to the memory once, tracked, with the context, epoch "
        "and tile that it came with; nothing else is tracked.",
        harness=_sends,
        sizes={"1 range": preset("small", ranges=1, token_queue=2), "2 ranges": preset("small", token_queue=2)},
        method="induction",
        depth=1,
        cover_depth=8,
    ),
    Proof(
        name="slice.pending",
        invariants=(3, 4),
        says="A context is pending exactly while a tracked access of it is in the slice, or (count_on = performed) in "
        "the memory, and not counted; each count takes one off, also a report in the cycle of its transfer, and "
        "nothing else does.",
        harness=_pending,
        sizes={
            "1 range, performed": preset("small", ranges=1, token_queue=2, count_on="performed"),
            "1 range": preset("small", ranges=1, token_queue=2),
            "2 ranges, 3 contexts, performed": preset("small", contexts=3, token_queue=3, count_on="performed"),
        },
        method="induction",
        depth=1,
        cover_depth=10,
    ),
)
