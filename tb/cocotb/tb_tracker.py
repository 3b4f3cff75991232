"""Testbench of t3_tracker: tokens into banked sets, chunks that complete or overflow, arm, abort, debug reads."""

from typing import Any

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.coverage_bins import MEDIUM, CoverageBins, Cycles, after, again, changes, config_bins, control, rises, writes
from tb.words import Trace

KEY = ("context", "epoch", "row", "col", "wf")
HAZARDS = (1, 2, 3, 4)
"""Cycles between updates of one entry that meet in the pipeline."""
RARE = dict.fromkeys((
    "threshold in the cycle of another update of the tile", "abort with tokens waiting", "tiles done back to back",
    "chunk done", "chunk done after overflow", "tile and chunk done together", "every entry in use",
    "load beside a chunk's end", "abort frees entries", "load beside an abort", "disarm with entries in use",
    "debug read of a valid entry",
), MEDIUM)  # fmt: skip
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def fields(trace: Trace, bank: int, names: tuple[str, ...] = KEY) -> list[Cycles]:
    """Fields of the token at a bank's input."""
    return [trace.get(f"token.{bank}.payload", name) for name in names]


def token_bins(config: T3Config) -> CoverageBins:
    """What can happen at the banks' inputs."""
    banks = range(config.tracker_banks)

    def moves(trace: Trace) -> Cycles:
        return np.logical_or.reduce([trace.moved(f"token.{bank}") for bank in banks])

    def waits(trace: Trace) -> Cycles:
        return np.logical_or.reduce(
            [trace.is_set(f"token.{bank}.valid") & ~trace.is_set(f"token.{bank}.ready") for bank in banks]
        )

    def same_tile(trace: Trace, distance: int) -> Cycles:
        return np.logical_or.reduce(
            [again(trace.moved(f"token.{bank}"), fields(trace, bank), distance) for bank in banks]
        )

    def set_conflict(trace: Trace) -> Cycles:
        """Successive tokens of different tiles in one set."""
        masks = np.uint64((1 << config.row_index_bits) - 1), np.uint64((1 << config.column_index_bits) - 1)
        conflict = np.zeros(len(trace), bool)
        for bank in banks:
            row, col = (value & mask for value, mask in zip(fields(trace, bank, ("row", "col")), masks, strict=True))
            same_set = again(trace.moved(f"token.{bank}"), [row, col], 1)
            conflict |= same_set & ~again(trace.moved(f"token.{bank}"), fields(trace, bank), 1)
        return conflict

    def arrives_with_its_threshold(trace: Trace) -> Cycles:
        """A token moves in the cycle in which its own tile is reported done."""
        done = [trace.get("tile_done", name) for name in ("row", "col", "wf")]
        hit = np.zeros(len(trace), bool)
        for bank in banks:
            token = fields(trace, bank, ("row", "col", "wf"))
            same = np.logical_and.reduce([a == b for a, b in zip(done, token, strict=True)])
            hit |= trace.moved(f"token.{bank}") & same
        return hit & trace.is_set("tile_done_valid")

    return {
        **{f"same tile {distance} cycles apart": lambda t, d=distance: same_tile(t, d) for distance in HAZARDS},
        "set conflict": set_conflict,
        "all banks at once": lambda t: np.logical_and.reduce([t.moved(f"token.{bank}") for bank in banks]),
        "threshold in the cycle of another update of the tile": arrives_with_its_threshold,
        "load beside a token": lambda t: t.is_set("load_valid") & moves(t),
        "tokens wait for maintenance": lambda t: t.is_set("maintenance") & waits(t),
        "abort with tokens waiting": lambda t: control(t, "abort") & waits(t),
    }


def shows_a_sweep(trace: Trace, config: T3Config) -> Cycles:
    """Whether ``entries`` may show what an arm or abort has freed: one row per cycle, the last one as
    ``maintenance`` ends, each two cycles late. Before that, tokens that came earlier may still free entries."""
    ends = np.cumsum(after(trace.is_set("maintenance")) & ~trace.is_set("maintenance"))
    ahead = config.sets_per_bank - 2
    later = np.concatenate([ends[ahead:], np.full(ahead, ends[-1])]) if ahead > 0 else after(ends, -ahead)
    return later > after(ends, 2)


def bins(config: T3Config) -> CoverageBins:
    """What can happen in the tracker."""
    held = config.tracker_sets * config.tracker_ways
    return {
        **config_bins(("arm", "disarm", "abort")),
        **token_bins(config),
        "tile done": lambda t: t.is_set("tile_done_valid"),
        "tiles done back to back": lambda t: t.is_set("tile_done_valid") & after(t.is_set("tile_done_valid")),
        "chunk done": lambda t: t.is_set("chunk_done_valid") & ~t.is_set("chunk_done", "overflowed"),
        "chunk done after overflow": lambda t: t.is_set("chunk_done_valid") & t.is_set("chunk_done", "overflowed"),
        "tile and chunk done together": lambda t: t.is_set("chunk_done_valid") & t.is_set("tile_done_valid"),
        "full set (overflow)": lambda t: changes(t.get("overflowed")) & t.is_set("overflowed"),
        "every entry in use": lambda t: t.get("entries") == held,
        "unmatched": lambda t: rises(t.is_set("unmatched")),
        "count above the threshold": lambda t: rises(t.is_set("over_count")),
        "total above the expected": lambda t: rises(t.is_set("over_total")),
        "load beside a chunk's end": lambda t: t.is_set("load_valid") & t.is_set("chunk_done_valid"),
        "abort outlasts maintenance": lambda t: t.is_set("abort_busy") & ~t.is_set("maintenance"),
        "abort frees entries": lambda t: (
            shows_a_sweep(t, config) & t.is_set("abort_busy") & (t.get("entries") < after(t.get("entries")))
        ),
        "load beside an abort": lambda t: control(t, "abort") & t.is_set("load_valid"),
        "disarm with entries in use": lambda t: control(t, "disarm") & t.is_set("entries"),
        "debug read of a valid entry": lambda t: (
            rises(t.is_set("debug_data")) & (t.get("debug_data") & np.uint64(1) > 0)
        ),
        "debug read of an empty entry": lambda t: (
            rises(t.is_set("debug_data")) & (t.get("debug_data") & np.uint64(1) == 0)
        ),
        "quota written": lambda t: writes(t, regs.QUOTA),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random tokens of few or many tiles, and chunks with small thresholds."""
    await random_traffic(dut, bins, RARE)
