"""Testbench of t3_matcher: store rows against ranges, windows of descriptors, and chunks."""

from typing import Any

import cocotb
from t3hdl.config import T3Config

from tb.cocotb.part_bench import random_traffic
from tb.coverage_bins import MEDIUM, CoverageBins, config_bins, control

RARE = {"last descriptor": MEDIUM}
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


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
        "store of another context": lambda t: t.moved("store") & t.is_set("store.payload", "context"),
        "arm with a store waiting": lambda t: control(t, "arm") & t.is_set("route.valid"),
        "disarm with a store waiting": lambda t: control(t, "disarm") & t.is_set("route.valid"),
        "abort with a store waiting": lambda t: control(t, "abort") & t.is_set("route.valid"),
    }


@cocotb.test()
async def traffic(dut: Any) -> None:
    """Random store rows while ranges and descriptors come and go."""
    await random_traffic(dut, bins, RARE)
