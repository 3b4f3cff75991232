"""Testbench of t3_registers: every register by every kind of access, refusals, interrupts."""

from typing import Any

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import register_map as regs

from tb.cocotb.part_bench import random_traffic
from tb.cocotb.time_limit import bench_test
from tb.coverage_bins import MEDIUM, CoverageBins, Cycles, after, field_of, rises
from tb.words import Trace

TABLES = {
    regs.RANGE: regs.QUOTA,
    regs.QUOTA: regs.CONTEXT,
    regs.CONTEXT: regs.PROFILE,
    regs.PROFILE: regs.DESCRIPTOR,
    regs.DESCRIPTOR: 1 << 16,
}
"""Address after the last one of each table, by its first one."""
NAMES = {
    value: name
    for name, value in reversed(vars(regs).items())  # an address is named before all counts and offsets
    if isinstance(value, int) and (value in regs.ACCESS or value in TABLES)
}
assert (NAMES[regs.STATUS], NAMES[regs.RANGE]) == ("STATUS", "RANGE")
TABLE_ACCESS = {regs.RANGE: "w", regs.QUOTA: "rw", regs.CONTEXT: "r", regs.PROFILE: "w", regs.DESCRIPTOR: "w"}
"""Who may do what, as in ``register_map.ACCESS``."""
BEHIND = (regs.CONTROL - regs.DESCRIPTOR) // regs.DESCRIPTOR_STRIDE + 1
"""End of a window whose last descriptor would lie where CONTROL does."""
LOCKABLE = (regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG, regs.RANGE, regs.QUOTA, regs.PROFILE, regs.DESCRIPTOR)
RARE = dict.fromkeys((
    "DEBUG_SELECT: write", "PROFILE: write", "ARBITER: write refused", "THRESHOLDS: write refused",
    "WATCHDOG: write refused", "ARBITER: write refused by LOCK.configuration", "interrupt cleared", "one violation",
    "several violations", "one stale update", "several stale updates", "request during maintenance",
    "TILE_MARKS: write",
), MEDIUM)  # fmt: skip
"""Cycles from which these bins are expected (see tb/coverage_bins.py)."""


def answered(trace: Trace, write: bool, good: bool) -> Cycles:
    """Whether a request of this kind was taken in the cycle before and is answered now, well or with an error."""
    taken = trace.is_set("bus_valid") & trace.is_set("bus_ready") & (trace.is_set("bus_write") == write)
    return after(taken) & trace.is_set("response_valid") & (trace.is_set("response_error") != good)


def at(trace: Trace, low: int, high: int) -> Cycles:
    """Whether the request of the cycle before was for an address from ``low`` to below ``high``."""
    address = after(trace.get("bus_address"))
    return (address >= low) & (address < high)


def arms_up_to(trace: Trace, end: int) -> Cycles:
    """Whether the data of the cycle before, as a CONTROL word, is an arm of some descriptors up to ``end``."""
    word = after(trace.get("bus_data"))
    arm, first, count = (field_of(regs.Control, name, word) for name in ("arm", "first", "descriptors"))
    return (arm > 0) & (count > 0) & (first + count == end)


def bins(config: T3Config) -> CoverageBins:
    """What can happen at the registers."""
    found: CoverageBins = {}
    for low, access in {**regs.ACCESS, **TABLE_ACCESS}.items():
        high = TABLES.get(low, low + 8)
        for verb, write, possible in (("read", False, access != "w"), ("write", True, access != "r")):
            result = "" if possible else " refused"
            found[f"{NAMES[low]}: {verb}{result}"] = lambda t, w=write, g=possible, a=low, b=high: (
                answered(t, w, g) & at(t, a, b)
            )
    for low in LOCKABLE:
        high = TABLES.get(low, low + 8)
        found[f"{NAMES[low]}: write refused"] = lambda t, a=low, b=high: answered(t, True, False) & at(t, a, b)
    for action in ("arm", "disarm", "abort", "quiesce", "resume"):
        bit = np.uint64(regs.Control[action].offset)
        for good, result in ((True, "done"), (False, "refused")):
            found[f"{action}: {result}"] = lambda t, b=bit, g=good: (
                answered(t, True, g)
                & at(t, regs.CONTROL, regs.CONTROL + 8)
                & (after(t.get("bus_data")) >> b & np.uint64(1) > 0)
            )
    for end, good in {config.descriptors: True, config.descriptors + 1: False, BEHIND: False}.items():
        found[f"arm: window ends at {end}"] = lambda t, e=end, g=good: (
            answered(t, True, g) & at(t, regs.CONTROL, regs.CONTROL + 8) & arms_up_to(t, e)
        )
    return found | {
        "address not a multiple of 8": lambda t: (
            (after(t.get("bus_address")) % 8 != 0) & (answered(t, True, False) | answered(t, False, False))
        ),
        "ARBITER: write refused by LOCK.configuration": lambda t: (
            answered(t, True, False) & at(t, regs.ARBITER, regs.ARBITER + 8) & after(t.is_set("bus_privileged"))
        ),
        "unprivileged write": lambda t: answered(t, True, True) & ~after(t.is_set("bus_privileged")),
        "interrupt": lambda t: rises(t.is_set("interrupt")),
        "interrupt cleared": lambda t: rises(~t.is_set("interrupt")) & (np.arange(len(t)) > 0),
        "one violation": lambda t: t.get("violations") == 1,
        "several violations": lambda t: t.get("violations") > 1,
        "one stale update": lambda t: t.get("stale_updates") == 1,
        "several stale updates": lambda t: t.get("stale_updates") > 1,
        "forced disarm": lambda t: (
            answered(t, True, True)
            & at(t, regs.CONTROL, regs.CONTROL + 8)
            & (after(t.get("bus_data")) >> np.uint64(regs.Control["disarm"].offset) & np.uint64(1) > 0)
            & (after(t.get("bus_data")) >> np.uint64(regs.Control["forced"].offset) & np.uint64(1) > 0)
        ),
        "request while an access is pending": lambda t: (t.get("pending") > 0) & t.is_set("bus_valid"),
        "request during maintenance": lambda t: t.is_set("maintenance") & t.is_set("bus_valid"),
    }


@bench_test
async def traffic(dut: Any) -> None:
    """Random requests while the status changes."""
    await random_traffic(dut, bins, RARE)
