"""Testbench of t3_monitor: how busy the first stage was, and the threshold that follows."""

from typing import Any

from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.coverage_bins import MEDIUM, CoverageBins, Cycles, after, config_bins, control, field_of, register, rises
from tb.words import Trace

CLASSES = {"under_25": 127, "under_50": 30, "under_75": 10, "above": 5}
"""Fields of THRESHOLDS and their values after reset."""
RARE = {"disarm while measuring": MEDIUM}
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def bins(config: T3Config) -> CoverageBins:
    """What can happen in the monitor."""
    reset = sum(value << regs.Thresholds[name].offset for name, value in CLASSES.items())

    def decides(trace: Trace, name: str) -> Cycles:
        """The threshold of this class is chosen, and that of no other."""
        values = {other: field_of(regs.Thresholds, other, register(trace, regs.THRESHOLDS, reset)) for other in CLASSES}
        chosen = rises(trace.is_set("chosen"))
        for other, value in values.items():
            same = after(value) % 128 == trace.get("threshold")
            chosen &= same if other == name else ~same
        return chosen

    return {
        **config_bins(("arm", "disarm")),
        **{f"threshold {name}": lambda t, n=name: decides(t, n) for name in CLASSES},
        "first stage ends with a tile": lambda t: t.is_set("measure") & t.is_set("tile_done_valid"),
        "first stage ends with communication": lambda t: (
            t.is_set("measure") & t.is_set("comm_seen") & ~t.is_set("tile_done_valid")
        ),
        "communication is behind": lambda t: rises(t.is_set("behind")),
        "and no more": lambda t: rises(~t.is_set("behind")),
        "communication is late": lambda t: rises(t.is_set("behind")) & (t.get("backlog") == after(t.get("backlog"), 2)),
        "arm while measuring": lambda t: t.is_set("measure") & control(t, "arm"),
        "arm after the choice": lambda t: t.is_set("chosen") & control(t, "arm"),
        "disarm while measuring": lambda t: t.is_set("measure") & control(t, "disarm"),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random first stages."""
    await random_traffic(dut, bins, RARE)
