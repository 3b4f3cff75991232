"""Testbench of t3_trigger: chunks become live, blocks become commands, contexts take turns."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.coverage_bins import (
    LONG,
    MEDIUM,
    CoverageBins,
    Cycles,
    after,
    again,
    changes,
    config_bins,
    control,
    field_of,
    register,
    rises,
)
from tb.words import Trace

QUOTA_RESET = 16 | 64 << regs.Quota["slots"].offset | 255 << regs.Quota["credits"].offset
RARE = dict.fromkeys((
    "disarm", "window full", "slot quota reached", "credit limit", "quiesced with blocks ready",
    "abort with blocks ready", "contexts in turns", "abort with a command waiting",
    "poisoned", "watchdog: a block with tiles", "chunks done at once", "a tile complete twice",
    "a chunk too large for its share", "shares of marks doubled",
), MEDIUM) | dict.fromkeys((
    "abort beside a load", "disarm with a command waiting", "command done beside a command",
), LONG)  # fmt: skip
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def some(conditions: Iterable[Cycles]) -> Cycles:
    """Whether one of the conditions holds."""
    return np.logical_or.reduce(list(conditions))


def limit_bins(config: T3Config) -> CoverageBins:
    """Cases in which a context waits for a slot or for credit."""
    contexts = range(config.contexts)

    def status(trace: Trace, field: str) -> list[Cycles]:
        return [trace.get(f"context.{c}", field) for c in contexts]

    def quota(trace: Trace, field: str) -> list[Cycles]:
        return [
            field_of(regs.Quota, field, register(trace, regs.QUOTA + regs.QUOTA_STRIDE * c, QUOTA_RESET))
            for c in contexts
        ]

    def unloaded(trace: Trace) -> list[Cycles]:
        """Per context, whether a descriptor waits to become live."""
        state = zip(status(trace, "armed"), status(trace, "following"), status(trace, "end"), strict=True)
        return [(armed != 0) & (following < end) for armed, following, end in state]

    def window_full(trace: Trace) -> Cycles:
        return (sum(status(trace, "slots")) == config.chunk_window) & some(unloaded(trace))

    def slot_quota(trace: Trace) -> Cycles:
        limits = zip(unloaded(trace), status(trace, "slots"), quota(trace, "slots"), strict=True)
        return some(waits & (used >= limit) for waits, used, limit in limits)

    def credit_limit(trace: Trace) -> Cycles:
        limits = zip(status(trace, "ready"), status(trace, "outstanding"), quota(trace, "credits"), strict=True)
        return some((ready != 0) & (used >= limit) & (limit != regs.NO_CREDIT_LIMIT) for ready, used, limit in limits)

    def done_without_credit(trace: Trace) -> Cycles:
        outstanding = np.array(status(trace, "outstanding"))
        context = np.minimum(trace.get("command_done"), config.contexts - 1).astype(int)
        return trace.is_set("command_done_valid") & (outstanding[context, np.arange(len(trace))] == 0)

    def blocks_ready(trace: Trace) -> Cycles:
        return some(ready != 0 for ready in status(trace, "ready"))

    return {
        "window full": window_full,
        "slot quota reached": slot_quota,
        "credit limit": credit_limit,
        "commands done out of nowhere": done_without_credit,
        "two contexts armed": lambda t: sum(status(t, "armed")) > 1,
        "context complete": lambda t: some(rises(complete != 0) for complete in status(t, "complete")),
        "quiesced with blocks ready": lambda t: t.is_set("quiesced") & blocks_ready(t),
        "abort with blocks ready": lambda t: control(t, "abort") & blocks_ready(t),
    }


def in_turns(trace: Trace) -> Cycles:
    """Whether a command is of another context than the one before it."""
    moved = np.flatnonzero(trace.moved("command"))
    context = trace.get("command.payload", "context")[moved]
    turns = np.zeros(len(trace), bool)
    turns[moved[1:]] = context[1:] != context[:-1]
    return turns


def command(trace: Trace, by_chunk: bool) -> Cycles:
    """Whether a command leaves that was fired by tiles, or by its chunk's end."""
    return trace.moved("command") & (trace.is_set("command.payload", "by_chunk") == by_chunk)


def stuck(trace: Trace, seen: bool) -> Cycles:
    """Whether the watchdog reports a block of which it has seen some tiles, or none."""
    return rises(trace.is_set("stuck", "valid")) & (trace.is_set("stuck", "seen") == seen)


def twice(trace: Trace) -> Cycles:
    """Whether a tile is told to be complete a second time."""
    return rises(trace.is_set("tile_twice", "valid"))


def bins(config: T3Config) -> CoverageBins:
    """What can happen in the trigger."""
    tile = ("slot", "row", "col")
    return {
        **config_bins(("arm", "disarm", "abort", "quiesce", "resume")),
        **limit_bins(config),
        **{
            f"same tile {distance} cycles apart": lambda t, d=distance: again(
                t.is_set("tile_done_valid"), [t.get("tile_done", name) for name in tile], d
            )
            for distance in (1, 2)
        },
        "command by tiles": lambda t: command(t, False),
        "command by chunk": lambda t: command(t, True),
        "contexts in turns": in_turns,
        "tile and chunk done together": lambda t: t.is_set("tile_done_valid") & t.is_set("chunk_done_valid"),
        "command done beside a command": lambda t: t.is_set("command_done_valid") & rises(t.is_set("command.valid")),
        "quiet": lambda t: rises(t.is_set("quiet")),
        "abort with a command waiting": lambda t: control(t, "abort") & t.is_set("command.valid"),
        "abort beside a load": lambda t: control(t, "abort") & t.is_set("load_valid"),
        "poisoned": lambda t: changes(t.get("poisoned")) & t.is_set("poisoned"),
        "watchdog: a block with tiles": lambda t: stuck(t, True),
        "watchdog: a block without tiles": lambda t: stuck(t, False),
        "disarm with a command waiting": lambda t: control(t, "disarm") & t.is_set("command.valid"),
        "a tile complete twice": twice,
        "a chunk too large for its share": lambda t: rises(t.is_set("too_large")),
        "shares of marks doubled": lambda t: register(t, regs.TILE_MARKS, 0) != 0,
        "load beside a tile": lambda t: t.is_set("load_valid") & t.is_set("tile_done_valid"),
        "chunks done at once": lambda t: t.is_set("chunk_done_valid") & after(t.is_set("chunk_done_valid")),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random tiles and chunk ends for the slots that the trigger has loaded, and for others."""
    await random_traffic(dut, bins, RARE, pulsed=("command",))
