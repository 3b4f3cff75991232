"""The trigger does in every cycle what a naive second formulation of the contract does."""

from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Const, Value
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


def _equal(config: T3Config, *, watchdog: bool) -> Harness:
    """Both get the same inputs."""
    harness, dut, chunks = narrow_trigger(config, watchdog=watchdog)
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
    if watchdog:
        harness.cover("the watchdog finds a block", dut.stuck.valid & dut.stuck.expected.any())
    else:
        harness.cover("a command after a tile", taken & ~dut.command.payload.by_chunk)
        harness.cover("a command after a chunk", taken & dut.command.payload.by_chunk)
        harness.cover("a tile is complete twice", dut.tile_twice.valid & ~dut.poisoned[1])
        harness.cover("a context completes", dut.context[0].complete & (dut.triggers == 1))
    return harness


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
        sizes={"1 context": _ONE, "2 contexts": _TWO},
        method="bounded",
        depth=25,
        cover_depth=25,
        reduce=True,
        quick=False,
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
