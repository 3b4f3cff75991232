"""Testbench of t3_nmc: op-and-store on few lines, at every distance."""

from typing import Any

import numpy as np
from t3hdl.config import DTYPES, T3Config
from t3hdl.interface.layouts import Dtype, Op

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.coverage_bins import MEDIUM, CoverageBins, Cycles, after, again
from tb.words import Trace

DISTANCES = range(6)
"""Cycles between the requests of one line."""
FLAGS = {"inexact": 0, "overflow": 2, "invalid": 4}
"""Bits of done_flags that can be raised: a sum so small that it underflows is exact."""
WHOLE = (1 << 32) - 1
RARE = {"flag overflow": MEDIUM}
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def asks(trace: Trace, op: int, dtype: int | None = None) -> Cycles:
    """Whether a request with this operation, and data type, is taken."""
    taken = trace.moved("request") & (trace.get("request.payload", "op") == op)
    return taken if dtype is None else taken & (trace.get("request.payload", "dtype") == dtype)


def bins(config: T3Config) -> CoverageBins:
    """What can happen at the banks."""
    kinds = {name: Dtype(DTYPES.index(name)) for name in config.dtypes}
    half = np.uint64(0x5555_5555)

    def flag(trace: Trace, bit: int) -> Cycles:
        return trace.is_set("done_valid") & (trace.get("done_flags") >> np.uint64(bit) & np.uint64(1) > 0)

    def split_element(trace: Trace) -> Cycles:
        """A mask with one byte of a 16-bit element enabled and the other one not."""
        mask = trace.get("request.payload", "mask")
        return trace.moved("request") & ((mask & half) != (mask >> np.uint64(1) & half))

    def same_line(trace: Trace, distance: int) -> Cycles:
        return again(trace.moved("request"), [trace.get("request.payload", "line")], distance + 1)

    return {
        **{
            f"{op.name} {name}": lambda t, o=op, d=dtype: asks(t, o, d)
            for op in (Op.ADD, Op.MIN, Op.MAX)
            for name, dtype in kinds.items()
        },
        **{op.name: lambda t, o=op: asks(t, o) for op in (Op.READ, Op.STORE, Op.READ_CLEAR)},
        "operation that does not exist": lambda t: asks(t, 6) | asks(t, 7),
        **{f"same line {d} cycles apart": lambda t, d=d: same_line(t, d) for d in DISTANCES},
        **{f"flag {name}": lambda t, b=bit: flag(t, b) for name, bit in FLAGS.items()},
        "part of a line": lambda t: t.moved("request") & (t.get("request.payload", "mask") != WHOLE),
        "part of an element": split_element,
        "issue waits for the line": lambda t: t.is_set("request.valid") & ~t.is_set("request.ready"),
        "updates back to back": lambda t: t.is_set("done_valid") & after(t.is_set("done_valid"), config.nmc_beats),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random operations on a memory that answers one cycle after the read."""
    await random_traffic(dut, bins, RARE)
