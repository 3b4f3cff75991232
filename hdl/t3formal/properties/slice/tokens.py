"""Invariant 3 at a memory slice: every tracked update becomes one count, and tokens hold up nothing else."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.slice.arbiter import Sources
from t3hdl.slice.slice import MatchedRequest, MemorySlice
from t3hdl.slice.token_queue import TileKey

from ...models.naive_ranges import NaiveRanges
from ...models.queue_places import places
from ...prover.harness import Harness
from ...prover.proof import Proof
from .token_queue import claim_counts

_BITS = 4
_NAME = ("context", "row", "col", "wf", "right", "bottom")
"""What an access says of its tile; the epoch comes from the range."""


def _room(harness: Harness, config: T3Config) -> Value:
    """Places of the token queue that are neither taken nor reserved."""
    part, inside = harness.dut, harness.inside
    reserved = inside["outstanding"] if config.count_on == "performed" else Const(0)
    return config.token_queue - inside[r"tokens\.level"] - reserved - (part.dram.valid & part.dram.payload.tagged)


def _reserves(config: T3Config) -> Harness:
    """No model: places that are taken, reserved for what is under way, and for what is at the exit."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    inside, room = harness.inside, _room(harness, config)
    offers = data.View(Sources, inside["eligible"])
    harness.claim(
        "the token queue is pushed only with room", ~inside["push"] | (inside[r"tokens\.level"] != config.token_queue)
    )
    harness.claim("no more is under way than there is room for", room >= 0)
    for name in Sources.members:
        queued = places(inside, name)
        there = queued[0][0]
        if name.endswith("read"):
            harness.claim(f"{name} waits for no token", offers[name] == there)
            # What makes it inductive.
            harness.claim(f"the second place of {name} is behind the first", there | ~queued[1][0])
            for place, (valid, item) in enumerate(queued):
                tracked = data.View(MatchedRequest, item).request.tagged
                harness.claim(f"place {place} of {name} is not tracked", ~(valid & tracked))
            continue
        tracked = data.View(MatchedRequest, queued[0][1]).request.tagged
        harness.claim(
            f"{name} waits for a place for its token, and only if it is tracked",
            offers[name] == there & (~tracked | (room > 0)),
        )
        harness.cover(
            f"a tracked head of {name} waits, and compute_read goes", there & ~offers[name] & offers.compute_read
        )
    return harness


def _counts(config: T3Config) -> Harness:
    """One tile is chosen; its updates are followed from ``dram`` to ``token``, by number."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    m, inside = harness.m, harness.inside
    tile = harness.chosen("tile_of_interest", TileKey)
    control = data.View(regs.Control, part.config.data[: regs.Control.size])
    action = control_written(part.config_valid, part.config)
    ours = control.context == tile.context
    aborted = Signal()  # the context of the tile is being aborted, or was and is not armed again
    if config.contexts < 16:
        ours = ours & (control.context < config.contexts)
    with m.If(action & (control.disarm | (control.arm & ours & ~control.abort))):
        m.d.sync += aborted.eq(0)
    with m.Elif(action & control.abort & ours):
        m.d.sync += aborted.eq(1)

    def of_tile(request: data.View) -> Value:
        return Cat(request[name] for name in _NAME) == Cat(tile[name] for name in _NAME)

    sent = part.dram.valid & part.dram.ready & part.dram.payload.tagged
    counted, epoch, word = sent, inside["epoch"], part.dram.payload
    if config.count_on == "performed":
        ranges = NaiveRanges(m, part.config_valid, part.config, config.ranges)
        ranges.claim_kept(harness)
        counted, word = part.update_done_valid & part.update_done.tagged, part.update_done
        epoch = ranges.first(word.line)[2].epoch
        _under_way(harness, config, sent, counted, of_tile, action & control.disarm)
    held = Signal(_BITS)  # the abstract model: how many updates of the tile are in the token queue
    token = part.token.payload
    leaves = part.token.valid & part.token.ready & (token.as_value()[: TileKey.size] == tile.as_value())
    enters = counted & of_tile(word) & (epoch == tile.epoch) & ~aborted
    m.d.sync += held.eq(Mux(action & control.disarm, 0, held + enters - Mux(leaves, token.n, 0)))
    claim_counts(harness, r"tokens\.", config.token_queue, tile, held)
    # What makes it inductive.
    of_context = (inside["aborted"] >> tile.context)[0]
    harness.claim("the slice knows of the abort", aborted == of_context)
    harness.claim("no more is under way than there is room for", _room(harness, config) >= 0)
    harness.cover("two updates of the tile are one token", leaves & (token.n == 2))
    harness.cover("an update of an aborted context is not counted", counted & of_tile(word) & aborted)
    return harness


def _under_way(
    harness: Harness, config: T3Config, sent: Value, done: Value, of_tile: Callable[[Any], Value], disarm: Value
) -> None:
    """The memory reports each update once: those of the tile and others that it still owes are counted."""
    part, m = harness.dut, harness.m
    owed = []
    for name, mine in (("tile", 1), ("others", 0)):
        owes = Signal(range(config.token_queue + 1), name=f"owed_of_{name}")
        comes = sent & (of_tile(part.dram.payload) == mine)
        reported = done & (of_tile(part.update_done) == mine)
        m.d.sync += owes.eq(Mux(disarm, 0, owes + comes - reported))
        owed.append((owes, reported))
    harness.assume(
        "the memory reports each tracked update once", ~Cat(reported & (owes == 0) for owes, reported in owed).any()
    )
    harness.claim(
        "the slice waits for as many reports as come", harness.inside["outstanding"] == sum(o for o, _ in owed)
    )


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
        says="Every tracked update that the memory accepts (count_on = performed: reports) gives one count of its "
        "tile, unless its context is aborted; none is lost or doubled, whatever the back-pressure.",
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
)
