"""Testbench of t3_slice: two streams into one channel, tracking, refusal, arbitration, tokens."""

from typing import Any

import numpy as np
from t3hdl.config import NO_LIMIT, T3Config
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, Op

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.coverage_bins import (
    LONG,
    MEDIUM,
    CoverageBins,
    Cycles,
    after,
    config_bins,
    control,
    field_of,
    range_bound_within,
    register,
)
from tb.words import Trace

ARBITER_RESET = 127 << regs.Arbiter["threshold"].offset
COMM = 1
RARE = dict.fromkeys((
    "communication held by the threshold", "starvation quantum", "quantum ends inside a burst",
    "more lines than the threshold", "updates merged in a token",
    "token waits, reads pass", "two violations at once", "abort with a token waiting", "token: back to back",
    "token: back-pressure",
), MEDIUM) | {"disarm with a token waiting": LONG, "no threshold, because compute is absent": LONG}  # fmt: skip
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def granted(trace: Trace, stream: int) -> Cycles:
    """Whether a request of this stream came to the output register in the cycle before."""
    fresh = trace.is_set("dram.valid") & after(~trace.is_set("dram.valid") | trace.moved("dram"))
    return fresh & (trace.get("dram.payload", "stream") == stream)


def arbiter(trace: Trace, field: str) -> Cycles:
    """A field of the arbiter register."""
    return field_of(regs.Arbiter, field, register(trace, regs.ARBITER, ARBITER_RESET))


def threshold(trace: Trace) -> Cycles:
    """The limit of communication."""
    fixed = arbiter(trace, "fixed") != 0
    return fixed * arbiter(trace, "threshold") + ~fixed * trace.get("threshold")


def mca(trace: Trace) -> Cycles:
    """Whether compute goes first: T3-MCA is on, and communication is not behind."""
    return (arbiter(trace, "mca") != 0) & ~trace.is_set("behind")


def above_threshold(trace: Trace) -> Cycles:
    """Whether the DRAM queue is at or above the limit of communication, in mca mode."""
    limit = threshold(trace)
    return mca(trace) & (limit != NO_LIMIT) & (level(trace) >= limit)


def level(trace: Trace) -> Cycles:
    """Lines in the DRAM queue and in the output register."""
    return trace.get("occupancy") + trace.is_set("dram.valid") * lines(trace, "dram.payload")


def lines(trace: Trace, port: str) -> Cycles:
    """Lines of the burst at this port."""
    return trace.get(port, "length") + np.uint64(1)


def starving(trace: Trace) -> Cycles:
    """Whether communication was let through above the threshold."""
    return granted(trace, COMM) & after(above_threshold(trace))


def unlimited(trace: Trace) -> Cycles:
    """Whether communication was let through above the threshold for the second time in turn, which neither a wait nor
    its quantum explains: compute is absent."""
    no_wait = (after(arbiter(trace, "quantum")) <= 1) & (after(arbiter(trace, "starvation")) > 1)
    return starving(trace) & after(starving(trace)) & no_wait & after(no_wait)


def beyond_threshold(trace: Trace) -> Cycles:
    """Whether communication was granted below its limit, and with its lines is above it."""
    below = mca(trace) & ~above_threshold(trace) & (threshold(trace) != NO_LIMIT)
    return (
        granted(trace, COMM)
        & after(below)
        & (after(level(trace)) + lines(trace, "dram.payload") > after(threshold(trace)))
    )


def refused(trace: Trace, *, leaves_block: bool) -> Cycles:
    """Whether a burst comes back that leaves its aligned block, or one that has a bound of a range behind its first
    line and does not."""
    found = np.zeros(len(trace), bool)
    for stream in ("compute", "comm"):
        first, length = (trace.get(f"{stream}_refused", field) for field in ("line", "length"))
        improper = first % BURST_LINES + length >= BURST_LINES
        if not leaves_block:
            improper = ~improper & range_bound_within(trace, first, length, ago=1)
        found |= trace.is_set(f"{stream}_refused_valid") & improper
    return found


def tracked(trace: Trace, stream: int) -> Cycles:
    """Whether a tracked access of this stream leaves for memory."""
    payload = trace.get("dram.payload", "stream"), trace.is_set("dram.payload", "tagged")
    return trace.moved("dram") & (payload[0] == stream) & payload[1]


def tracked_lines(trace: Trace, least: int, most: int) -> Cycles:
    """Whether a tracked access of so many lines leaves for memory."""
    count = lines(trace, "dram.payload")
    return (tracked(trace, 0) | tracked(trace, COMM)) & (count >= least) & (count <= most)


def bins(config: T3Config) -> CoverageBins:
    """What can happen in a slice."""
    return {
        **config_bins(("arm", "disarm", "abort")),
        "local update": lambda t: tracked(t, 0),
        "remote update": lambda t: tracked(t, COMM),
        "untracked store": lambda t: (
            t.moved("dram") & ~t.is_set("dram.payload", "tagged") & (t.get("dram.payload", "op") == Op.STORE)
        ),
        "both streams blocked": lambda t: ~t.is_set("compute_write.ready") & ~t.is_set("comm_write.ready"),
        "communication held by the threshold": lambda t: (
            above_threshold(t) & ~t.is_set("comm_write.ready") & ~t.is_set("dram.valid")
        ),
        "starvation": starving,
        "starvation quantum": lambda t: starving(t) & after(starving(t)),
        "quantum ends inside a burst": lambda t: (
            starving(t) & (after(arbiter(t, "quantum")) > 0) & (lines(t, "dram.payload") > after(arbiter(t, "quantum")))
        ),
        "more lines than the threshold": beyond_threshold,
        "no threshold, because compute is absent": unlimited,
        "in turns, because communication is behind": lambda t: (
            granted(t, COMM) & after((arbiter(t, "mca") != 0) & t.is_set("behind"))
        ),
        "burst of one line": lambda t: tracked_lines(t, 1, 1),
        "burst of 2 to 7 lines": lambda t: tracked_lines(t, 2, BURST_LINES - 1),
        "burst of a whole block": lambda t: tracked_lines(t, BURST_LINES, BURST_LINES),
        "burst over the end of its block": lambda t: refused(t, leaves_block=True),
        "burst over a bound of a range": lambda t: refused(t, leaves_block=False),
        "round-robin in turns": lambda t: after(arbiter(t, "mca") == 0) & granted(t, COMM) & after(granted(t, 0)),
        "updates merged in a token": lambda t: t.moved("token") & (t.get("token.payload", "n") > 1),
        "token waits, reads pass": lambda t: (
            t.is_set("token.valid")
            & ~t.is_set("token.ready")
            & t.moved("dram")
            & (t.get("dram.payload", "op") == Op.READ)
        ),
        "context violation of compute": lambda t: t.is_set("compute_refused_valid"),
        "context violation of communication": lambda t: t.is_set("comm_refused_valid"),
        "two violations at once": lambda t: t.is_set("compute_refused_valid") & t.is_set("comm_refused_valid"),
        "stale update of compute": lambda t: t.is_set("compute_stale_valid"),
        "stale update of communication": lambda t: t.is_set("comm_stale_valid"),
        "abort with an access pending": lambda t: control(t, "abort") & (t.get("pending") > 0),
        "abort with a token waiting": lambda t: control(t, "abort") & t.is_set("token.valid"),
        "disarm with a token waiting": lambda t: control(t, "disarm") & t.is_set("token.valid"),
        "grant is measured": lambda t: t.is_set("measure") & (granted(t, 0) | granted(t, COMM)),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random requests of both streams into a DRAM queue that fills and drains."""
    await random_traffic(dut, bins, RARE)
