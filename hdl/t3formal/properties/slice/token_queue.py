"""The token queue loses no line and invents none."""

from itertools import combinations
from typing import Any

from amaranth.hdl import Mux, Signal
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import COUNT_BITS, INTERLEAVE_BITS
from t3hdl.slice.token_queue import TileKey, TokenQueue

from ...prover.harness import Harness
from ...prover.proof import Proof

COUNTED_BITS = COUNT_BITS + 1
"""Width of the sums that are compared: one bit more than a count's, so that a count that overflows shows. What is shown
modulo a power of two is shown for every number of lines."""


def _conserves(config: T3Config) -> Harness:
    """One tile is chosen; the lines of it that came in are those that are there and those that have left."""
    queue = TokenQueue(depth=config.token_queue)
    harness = Harness(queue)
    m = harness.m
    tile = harness.chosen("tile_of_interest", queue.tile.shape())
    held = Signal(COUNTED_BITS)  # the abstract model: how many lines of the tile are in the queue
    enters = queue.push & (queue.tile.as_value() == tile.as_value())
    leaves = queue.o.valid & queue.o.ready & (queue.o.payload.as_value()[: TileKey.size] == tile.as_value())
    m.d.sync += held.eq(held + Mux(enters, queue.length + 1, 0) - Mux(leaves, queue.o.payload.n, 0))
    harness.assume("a token queue is pushed only with room", ~queue.push | (queue.level != config.token_queue))
    claim_counts(harness, "", config.token_queue, tile, held)
    harness.cover("full", queue.level == config.token_queue)
    harness.cover("two bursts become one token", leaves & (queue.o.payload.n == 11))
    return harness


def claim_counts(harness: Harness, path: str, depth: int, tile: Any, held: Signal) -> None:
    """Claims that the queue at ``path`` holds ``held`` lines of ``tile``, and the order that this follows from."""
    level = harness.inside[f"{path}level"]
    entries = [harness.inside[f"{path}entry_{i}"] for i in range(depth)]
    width = TileKey.size
    there = sum(
        Mux((level > i) & (entry[:width] == tile.as_value()), entry[width:], 0) for i, entry in enumerate(entries)
    )
    harness.claim("lines of a tile are in the queue or have left it", held == there[:COUNTED_BITS])
    for i, entry in enumerate(entries):
        harness.claim(f"entry {i} counts something", (level <= i) | entry[width:].any())
    for i, j in combinations(range(1, depth), 2):
        same = (level > j) & (entries[i][:width] == entries[j][:width])
        full = entries[i][width + INTERLEAVE_BITS :].all()  # from 1016 on
        harness.claim(f"entries {i} and {j} are of two tiles, or the older one is full", ~same | full)
    harness.claim("no more entries than there are", level <= depth)


PROOFS = (
    Proof(
        name="token-queue.conserves",
        invariants=(3,),
        says="Every line of every burst that is pushed leaves in exactly one token of its tile, whatever the "
        "back-pressure.",
        harness=_conserves,
        sizes={"3 entries": preset("small", token_queue=3), "4 entries": preset("small", token_queue=4)},
        method="induction",
        depth=1,
        cover_depth=12,
    ),
)
