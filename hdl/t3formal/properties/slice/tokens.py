"""Invariant 3 at a memory slice: every line of a tracked update becomes one count, and tokens hold up nothing else."""

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import MemoryRequest
from t3hdl.slice.arbiter import Sources
from t3hdl.slice.slice import MemorySlice
from t3hdl.slice.token_queue import TileKey

from ...models.memory_reports import counted_now, unreported
from ...models.queue_places import places
from ...prover.harness import Harness
from ...prover.proof import Proof
from .token_queue import COUNTED_BITS, claim_counts


def claim_room(harness: Harness, config: T3Config) -> Value:
    """Claims that there is a place of the token queue for all that is under way, and that the slice's count of them is
    right, which makes it inductive; returns how many are neither taken nor reserved."""
    part, inside = harness.dut, harness.inside
    reserved = inside["outstanding"] if config.count_on == "performed" else Const(0)
    counted = inside[r"tokens\.level"] + reserved
    room = config.token_queue - counted - (part.dram.valid & part.dram.payload.tagged)
    harness.claim("no more is under way than there is room for", room >= 0)
    harness.claim("the places are the slice's", inside["places"] == counted)
    none, one = (counted == number for number in (config.token_queue, config.token_queue - 1))
    harness.claim("the last places are the slice's", (inside["none_left"] == none) & (inside["one_left"] == one))
    return room


def _reserves(config: T3Config) -> Harness:
    """No model: places that are taken, reserved for what is under way, and for what is at the exit."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    inside, room = harness.inside, claim_room(harness, config)
    offers = data.View(Sources, inside["eligible"])
    harness.claim(
        "the token queue is pushed only with room", ~inside["push"] | (inside[r"tokens\.level"] != config.token_queue)
    )
    for name in Sources.members:
        queued = places(inside, name)
        there = queued[0][0]
        if name.endswith("read"):
            harness.claim(f"{name} waits for no token", offers[name] == there)
            # What makes it inductive.
            harness.claim(f"the second place of {name} is behind the first", there | ~queued[1][0])
            for place, (valid, item) in enumerate(queued):
                tracked = data.View(MemoryRequest, item).tagged
                harness.claim(f"place {place} of {name} is not tracked", ~(valid & tracked))
            continue
        tracked = data.View(MemoryRequest, queued[0][1]).tagged
        harness.claim(
            f"{name} waits for a place for its token, and only if it is tracked",
            offers[name] == there & (~tracked | (room > 0)),
        )
        harness.cover(
            f"a tracked head of {name} waits, and compute_read goes", there & ~offers[name] & offers.compute_read
        )
    return harness


def _aborted(harness: Harness, config: T3Config, context: Value) -> tuple[Signal, Value]:
    """Whether the context was aborted, alone or by a forced disarm, and not armed again; and whether there is a disarm.

    A disarm without force forgets it: the registers let none through while something is under way.
    """
    part, aborted = harness.dut, Signal(name="aborted_model")
    control = data.View(regs.Control, part.config.data[: regs.Control.size])
    action = control_written(part.config_valid, part.config)
    ours = (control.context == context) & (context < config.contexts)
    with harness.m.If(action & control.disarm):
        harness.m.d.sync += aborted.eq(control.forced & (context < config.contexts))
    with harness.m.Elif(action & control.abort & ours):
        harness.m.d.sync += aborted.eq(1)
    with harness.m.Elif(action & control.arm & ours):
        harness.m.d.sync += aborted.eq(0)
    return aborted, action & control.disarm


def of_name(request: data.View, name: data.View) -> Value:
    """Whether the access has this context, epoch and tile."""
    return Cat(request[field] for field in TileKey.members) == name.as_value()


def _counts(config: T3Config) -> Harness:
    """One name is chosen (context, epoch and tile); its updates are followed from ``dram`` to ``token``, in lines."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    name = harness.chosen("name_of_interest", TileKey)
    aborted, disarm = _aborted(harness, config, name.context)
    counted, word = counted_now(harness, config)
    mine = of_name(part.dram.payload, name), of_name(part.update_done, name)
    unreported(harness, config, {"tile": mine, "others": (~mine[0], ~mine[1])})
    held = Signal(COUNTED_BITS)  # the abstract model: how many lines of the tile are in the token queue
    token = part.token.payload
    leaves = part.token.valid & part.token.ready & (token.as_value()[: TileKey.size] == name.as_value())
    comes = counted & of_name(word, name) & ~aborted
    harness.m.d.sync += held.eq(Mux(disarm, 0, held + Mux(comes, word.length + 1, 0) - Mux(leaves, token.n, 0)))
    claim_counts(harness, r"tokens\.", config.token_queue, name, held)
    # What makes it inductive.
    harness.claim("the slice knows of the abort", aborted == (harness.inside["aborted"] >> name.context)[0])
    claim_room(harness, config)
    harness.cover("two bursts of the tile are one token", leaves & (token.n == 11))
    harness.cover("an update of an aborted context is not counted", counted & of_name(word, name) & aborted)
    return harness


def _silent(config: T3Config) -> Harness:
    """One context is chosen. After its abort the token queue drains; then no token of it comes until its next arm."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    inside, token = harness.inside, part.token
    context = harness.chosen("context_of_interest", 4)
    aborted, _ = _aborted(harness, config, context)
    drained, before = Signal(name="drained"), Signal(name="drained_before")
    harness.m.d.comb += drained.eq(aborted & (before | ~token.valid))
    harness.m.d.sync += before.eq(drained)
    silent = before & aborted
    harness.claim(
        "no token of the context after its abort, but those that were there",
        ~silent | ~token.valid | (token.payload.context != context),
    )
    harness.cover("a token of another context comes then", silent & token.valid)
    counted, word = counted_now(harness, config)
    harness.cover("an update of the context is counted then", silent & counted & (word.context == context))
    # What makes it inductive.
    harness.claim("the slice knows of the abort", aborted == (inside["aborted"] >> context)[0])
    for i in range(config.token_queue):
        entry = data.View(TileKey, inside[rf"tokens\.entry_{i}"][: TileKey.size])
        there = inside[r"tokens\.level"] > i
        harness.claim(f"entry {i} is of another context then", ~silent | ~there | (entry.context != context))
    return harness


PROOFS = (
    Proof(
        name="slice.reserves-tokens",
        invariants=(3, 10),
        says="There is room in the token queue for every tracked access at the exit or under way; only tracked "
        "accesses wait for it, reads never do.",
        harness=_reserves,
        sizes={
            "2 tokens": preset("small", ranges=1, token_queue=2),
            "2 tokens, performed": preset("small", ranges=1, token_queue=2, count_on="performed"),
            "4 tokens": preset("small", token_queue=4),
        },
        method="induction",
        depth=1,
        cover_depth=10,
    ),
    Proof(
        name="slice.counts-updates",
        invariants=(3,),
        says="Every line of a tracked update that the memory accepts (count_on = performed: reports) gives one count "
        "of the context, epoch and tile that it names itself, unless its context is aborted; none is lost or doubled, "
        "whatever the back-pressure.",
        harness=_counts,
        sizes={
            "3 tokens": preset("small", ranges=1, token_queue=3),
            "3 tokens, performed": preset("small", ranges=1, token_queue=3, count_on="performed"),
            "2 ranges, performed": preset("small", token_queue=3, count_on="performed"),
        },
        method="induction",
        depth=1,
        cover_depth=10,
    ),
    Proof(
        name="slice.silent-after-abort",
        invariants=(1, 3),
        says="After an abort no token of the context follows those that wait in the slice, until its next arm, "
        "whatever the memory accepts or reports.",
        harness=_silent,
        sizes={
            "3 tokens, performed": preset("small", ranges=1, token_queue=3, count_on="performed"),
            "3 tokens": preset("small", ranges=1, token_queue=3),
        },
        method="induction",
        depth=1,
        cover_depth=10,
    ),
)
