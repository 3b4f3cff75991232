"""The trigger does in every cycle what a naive second formulation of the contract does."""

from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Const, Signal, Value
from amaranth.lib.wiring import In
from t3hdl.config import T3Config, preset

from ...models.naive_trigger import NaiveTrigger
from ...models.narrow_trigger import narrow_trigger
from ...prover.harness import Harness
from ...prover.proof import Proof


def _same(harness: Harness, dut: Any, naive: Any) -> None:
    """Every output is compared in every cycle, a payload while it is valid."""
    pairs = {"command payload": (dut.command.payload, naive.command.payload, dut.command.valid)}
    pairs["command valid"] = (dut.command.valid, naive.command.valid, Const(1))
    pairs["load"] = (dut.load, naive.load, dut.load_valid)
    for c, (mine, other) in enumerate(zip(dut.context, naive.context, strict=True)):
        for field in mine.shape().members:
            pairs[f"{field} of context {c}"] = (mine[field], other[field], Const(1))
    for name in (
        "load_valid", "init_done", "armed", "live", "chunks_done", "done_mask", "poisoned", "quiesced", "quiet",
        "stuck", "tile_twice", "too_large", "triggers", "command_stall", "peak_ready", "backlog",
    ):  # fmt: skip
        pairs[name] = (getattr(dut, name), getattr(naive, name), Const(1))
    for name, (mine, other, counts) in pairs.items():
        harness.claim(f"{name} is the same", ~counts | (Value.cast(mine) == Value.cast(other)))


def _equal(config: T3Config, *, watchdog: bool = False, once: int = 0) -> Harness:
    """Both get the same inputs."""
    harness, dut, chunks = narrow_trigger(config, watchdog=watchdog, once=once)
    naive, m = NaiveTrigger(config=config), harness.m
    m.submodules.naive = naive
    ports = {path: value for path, _, value in naive.signature.flatten(naive)}
    m.d.comb += [
        Value.cast(ports[path]).eq(Value.cast(value))
        for path, member, value in dut.signature.flatten(dut)
        if member.flow == In
    ]
    m.d.comb += [port.eq(chunk) for port, chunk in zip(naive.table, chunks, strict=True)]
    _same(harness, dut, naive)
    taken = dut.command.valid & dut.command.ready
    if once:
        _reloads(harness, dut, taken)
    elif watchdog:
        harness.cover("the watchdog finds a block", dut.stuck.valid & dut.stuck.expected.any())
    else:
        harness.cover("a command after a tile", taken & ~dut.command.payload.by_chunk)
        harness.cover("a command after a chunk", taken & dut.command.payload.by_chunk)
        harness.cover("a tile is complete twice", dut.tile_twice.valid & ~dut.poisoned[1])
        harness.cover("a context completes", dut.context[0].complete & (dut.triggers == 1))
    if dut.parameters.blocks > 1 and not once:
        first, pops = Signal(name="block_0_left"), dut.lists.pop.any()
        m.d.sync += first.eq(first | (pops & (dut.lists.oldest.block == 0)))
        harness.cover("block 1 of a chunk leaves its list after block 0", first & pops & (dut.lists.oldest.block == 1))
    return harness


def _reloads(harness: Harness, dut: Any, taken: Value) -> None:
    """Covers: what happens in slot 0 after it was loaded a second time."""
    loads, loaded, again = dut.load_valid & (dut.load.slot == 0), Signal(name="loaded"), Signal(name="loaded_again")
    harness.m.d.sync += [loaded.eq(loaded | loads), again.eq(again | (loaded & loads))]
    harness.cover("a slot is loaded again", again)
    harness.cover("a block of a slot that was loaded again is ready", again & dut.lists.push)
    harness.cover("a tile is complete twice", dut.tile_twice.valid & again)
    if dut.parameters.blocks == 1:
        harness.cover("it is a command after a tile", again & taken & ~dut.command.payload.by_chunk)


_ONE = preset(
    "small",
    contexts=1,
    descriptors=2,
    chunk_window=2,
    blocks=1,
    tile_marks=8,
    event_queue=3,
    tracker_banks=1,
    row_index_bits=1,
)
_TWO = replace(_ONE, contexts=2)
_DIFFERENT = (
    "In every cycle the trigger gives what a second one gives that was written straight from the contract, without "
    "its parts and tricks"
)
PROOFS = (
    Proof(
        name="trigger.as-naive",
        invariants=(1, 2, 3, 4),
        says=f"{_DIFFERENT}: from arm over load, tiles, commands and credits to retirement, with abort and quiesce.",
        harness=partial(_equal, watchdog=False),
        sizes={"1 context": _ONE, "2 contexts": _TWO, "1 context, 2 blocks": replace(_ONE, blocks=2)},
        method="bounded",
        depth=25,
        cover_depth=25,
        reduce=True,
        quick=False,
    ),
    *(
        Proof(
            name=f"trigger.reloaded{name}-as-naive",
            invariants=(1, 3),
            says=f"{_DIFFERENT}: a context is armed with two chunks of {what} and has one slot, so that this is loaded "
            "for the second chunk when the first one is over; any descriptors, tiles, chunks, commands and credits, no "
            "other write.",
            harness=partial(_equal, once=2),
            sizes={size: config},
            method="bounded",
            depth=depth,
            cover_depth=depth,
            reduce=True,
            quick=False,
            limit_s=1200,
        )
        for name, what, size, config, depth in (
            ("", "a block", "1 block", _ONE, 36),
            ("-blocks", "two blocks", "2 blocks", replace(_ONE, blocks=2), 32),
        )
    ),
    Proof(
        name="trigger.watchdog-as-naive",
        invariants=(2,),
        says=f"{_DIFFERENT}, with the watchdog on.",
        harness=partial(_equal, watchdog=True),
        sizes={"1 context": _ONE},
        method="bounded",
        depth=24,
        cover_depth=25,
        reduce=True,
        quick=False,
    ),
)
