"""Testbench of t3_registers: every register by every kind of access, refusals, interrupts."""

from typing import Any

import cocotb
import numpy as np
from bins import Bins, Cycles, after, rises
from part_bench import random_traffic
from t3hdl import register_map as regs
from t3hdl.config import T3Config
from words import Trace

NAMED = {name: value for name, value in vars(regs).items() if name.isupper() and isinstance(value, int)}
TABLES = {
    "RANGE": (regs.RANGE, regs.QUOTA), "PROFILE": (regs.PROFILE, regs.DESCRIPTOR),
    "QUOTA": (regs.QUOTA, regs.CONTEXT), "CONTEXT": (regs.CONTEXT, regs.PROFILE),
    "DESCRIPTOR": (regs.DESCRIPTOR, 1 << 16),
}  # fmt: skip
"""First address, and the one after the last, of each table."""
NO_REGISTERS = (*TABLES, "RANGE_STRIDE", "DESCRIPTOR_STRIDE", "DESCRIPTOR_WORDS", "ID_VALUE", "NO_CREDIT_LIMIT")
READ_ONLY = (
    "ID", "STATUS", "PEAK_ENTRIES", "OVERFLOWED", "THRESHOLD", "VERSION", "CAPABILITY", "CAPABILITY_TRACKER", "ERRORS",
    "VIOLATION", "VIOLATIONS", "STUCK", "DEBUG_DATA", "UPDATES", "TILES", "TRIGGERS", "COMMAND_STALL", "PEAK_READY",
    "DONE_MASK", "POISONED", "CONTEXT",
)  # fmt: skip
WRITE_ONLY = ("CONTROL", "DEBUG_SELECT")


def answered(trace: Trace, write: bool, good: bool) -> Cycles:
    """Whether a request of this kind was taken in the cycle before and is answered now, well or with an error."""
    taken = trace.is_set("bus_valid") & trace.is_set("bus_ready") & (trace.is_set("bus_write") == write)
    return after(taken) & trace.is_set("response_valid") & (trace.is_set("response_error") != good)


def at(trace: Trace, low: int, high: int) -> Cycles:
    """Whether the request of the cycle before was for an address from ``low`` to below ``high``."""
    address = after(trace.get("bus_address"))
    return (address >= low) & (address < high)


def bins(config: T3Config) -> Bins:
    """What can happen at the registers."""
    found: Bins = {}
    places = {name: (address, address + 8) for name, address in NAMED.items() if name not in NO_REGISTERS}
    for name, (low, high) in {**places, **TABLES}.items():
        writable, readable = name not in READ_ONLY, name not in WRITE_ONLY
        for verb, write, possible in (("read", False, readable), ("write", True, writable)):
            result = "" if possible else " refused"
            found[f"{name}: {verb}{result}"] = lambda t, w=write, g=possible, a=low, b=high: (
                answered(t, w, g) & at(t, a, b)
            )
    lockable = ("ARBITER", "THRESHOLDS", "WATCHDOG", *(name for name in TABLES if name not in READ_ONLY))
    for name in lockable:
        low, high = {**places, **TABLES}[name]
        found[f"{name}: write refused"] = lambda t, a=low, b=high: answered(t, True, False) & at(t, a, b)
    control = NAMED["CONTROL"]
    for action in ("arm", "disarm", "abort", "quiesce", "resume"):
        bit = np.uint64(regs.Control[action].offset)
        for good, result in ((True, "done"), (False, "refused")):
            found[f"{action}: {result}"] = lambda t, b=bit, g=good: (
                answered(t, True, g) & at(t, control, control + 8) & (after(t.get("bus_data")) >> b & np.uint64(1) > 0)
            )
    return found | {
        "address not a multiple of 8": lambda t: (
            (after(t.get("bus_address")) % 8 != 0) & (answered(t, True, False) | answered(t, False, False))
        ),
        "unprivileged write": lambda t: answered(t, True, True) & ~after(t.is_set("bus_privileged")),
        "interrupt": lambda t: rises(t.is_set("interrupt")),
        "interrupt cleared": lambda t: rises(~t.is_set("interrupt")) & (np.arange(len(t)) > 0),
        "one violation": lambda t: t.get("violations") == 1,
        "several violations": lambda t: t.get("violations") > 1,
        "request during maintenance": lambda t: t.is_set("maintenance") & t.is_set("bus_valid"),
    }


@cocotb.test()
async def traffic(dut: Any) -> None:
    """Random requests while the status changes."""
    await random_traffic(dut, bins)
