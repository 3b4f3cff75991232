"""Testbench of t3_matcher: store rows against ranges, windows of descriptors, and chunks."""

from typing import Any

from t3hdl.config import T3Config
from t3hdl.interface.layouts import BURST_LINES

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.coverage_bins import MEDIUM, CoverageBins, Cycles, config_bins, control, range_bound_within
from tb.words import Trace

RARE = {"last descriptor": MEDIUM}
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def stored(trace: Trace) -> tuple[Cycles, Cycles, Cycles]:
    """Whether a burst enters, its first line and its length."""
    return trace.moved("store"), *(trace.get("store.payload", field) for field in ("line", "length"))


def leaves_block(trace: Trace) -> Cycles:
    """Whether a burst enters that leaves its aligned block."""
    moved, first, length = stored(trace)
    return moved & (first % BURST_LINES + length >= BURST_LINES)


def over_bound(trace: Trace) -> Cycles:
    """Whether a burst enters that has a bound of a range behind its first line."""
    moved, first, length = stored(trace)
    return moved & range_bound_within(trace, first, length, ago=0)


def bins(config: T3Config) -> CoverageBins:
    """What can happen at the egress."""
    return {
        **config_bins(("arm", "disarm", "abort")),
        "unmatched": lambda t: t.moved("route") & ~t.is_set("route.payload", "matched"),
        "stays here": lambda t: (
            t.moved("route") & t.is_set("route.payload", "matched") & ~t.is_set("route.payload", "remote")
        ),
        "remote": lambda t: t.moved("route") & t.is_set("route.payload", "remote"),
        "last descriptor": lambda t: (
            t.moved("route") & (t.get("route.payload", "descriptor") == config.descriptors - 1)
        ),
        "one line": lambda t: t.moved("store") & ~t.is_set("store.payload", "length"),
        "whole block": lambda t: t.moved("store") & (t.get("store.payload", "length") == BURST_LINES - 1),
        "burst over the end of its block": leaves_block,
        "burst over a bound of a range": over_bound,
        "store of another context": lambda t: t.moved("store") & t.is_set("store.payload", "context"),
        "arm with a store waiting": lambda t: control(t, "arm") & t.is_set("route.valid"),
        "disarm with a store waiting": lambda t: control(t, "disarm") & t.is_set("route.valid"),
        "abort with a store waiting": lambda t: control(t, "abort") & t.is_set("route.valid"),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random store rows while ranges and descriptors come and go."""
    await random_traffic(dut, bins, RARE)
