"""Timing and queues of one HBM2 pseudo-channel: the distances between commands that follow from the parameters.

A distance is the least number of clocks from one command to a later one. If ACT takes two clocks of the row command bus
it is named by its first clock, while the memory counts from its second: distances from ACT grow by one clock and
distances to ACT shrink by one (JESD235; HBM2 of Ramulator 2.1 does the same).
"""

import math
from collections.abc import Callable, Mapping
from enum import IntEnum

import numpy as np
from t3hdl.interface.layouts import BankHash, LineOrder

from t3sim.inputs.machine.hbm import BUS_TURN_CLOCKS, HbmSection

FOREVER = 1 << 62
"""A cycle that never comes."""
READ, WRITE, UPDATE = 0, 1, 2
"""Kinds of access, and classes of lines. Updates are issued as writes, with atomics after a read."""


def _late(p: HbmSection) -> int:
    """Clocks from an activate's name to the clock that the memory counts from."""
    return p.act_clocks - 1


def _number(choices: type[IntEnum], name: str) -> int:
    """The hardware's number of a choice of a machine file."""
    return choices[name.upper().replace("-", "_")]


_DISTANCES: Mapping[str, Callable[[HbmSection], int]] = {
    "column_any": lambda p: max(p.nCCDS, p.nBL),
    "column_group": lambda p: p.nCCDL,
    "read_to_write": lambda p: p.nCL + p.nBL + BUS_TURN_CLOCKS - p.nCWL,
    "write_to_read_any": lambda p: p.nCWL + p.nBL + p.nWTRS,
    "write_to_read_group": lambda p: p.nCWL + p.nBL + p.nWTRL,
    "update_group": lambda p: 0 if p.substrate == "atomics" else max(p.nmc_update_cycles, p.nCCDL),
    "atomic_write": lambda p: p.nCL + p.nBL + p.atomic_cycles,
    "act_to_read": lambda p: p.nRCDRD + _late(p),
    "act_to_write": lambda p: p.nRCDWR + _late(p),
    "act_to_pre": lambda p: p.nRAS + _late(p),
    "act_to_act": lambda p: p.nRC,
    "act_any": lambda p: p.nRRDS,
    "act_group": lambda p: p.nRRDL,
    "four_acts": lambda p: p.nFAW,
    "act_bus": lambda p: p.act_clocks,
    "pre_to_act": lambda p: p.nRP - _late(p),
    "read_to_pre": lambda p: p.nRTPL,
    "write_to_pre": lambda p: p.nCWL + p.nBL + p.nWR,
    "act_to_refresh": lambda p: p.nRC + _late(p),
    "pre_to_refresh": lambda p: p.nRP,
    "refresh_to_act": lambda p: p.nRFC - _late(p),
    "refresh_to_refresh": lambda p: p.nRFC,
    "switch_to_act": lambda p: p.pim_switch_cycles - _late(p),
    "switch_to_refresh": lambda p: p.pim_switch_cycles,
    "refresh_interval": lambda p: p.nREFI if p.refresh else FOREVER,
    "burst": lambda p: p.nBL,
    "read_done": lambda p: p.nCL + p.nBL,
    "write_done": lambda p: p.nCWL + p.nBL,
    "read_lines": lambda p: p.read_lines if p.queue == "split" else p.queue_lines,
    "write_lines": lambda p: p.write_lines if p.queue == "split" else p.queue_lines,
    "all_lines": lambda p: p.queue_slots,
    "drain_above": lambda p: math.floor(p.drain_high * p.write_share),
    "drain_below": lambda p: max(1, math.ceil(p.drain_low * p.write_share)),  # no write left always ends a drain
    "age_limit": lambda p: p.age_limit_cycles,
    "line_order": lambda p: _number(LineOrder, p.line_order),
    "bank_hash": lambda p: _number(BankHash, p.bank_hash),
    "by_age": lambda p: int(p.service_order == "age"),
    "hits_by_age": lambda p: int(p.hit_order == "oldest"),
    "hits_first": lambda p: -(p.row_policy == "hits-first"),  # a mask of all banks, or of none
    "pim": lambda p: int(p.substrate == "pim"),
    "atomic": lambda p: int(p.substrate == "atomics"),
    "update_served": lambda p: {"nmc": WRITE, "pim": UPDATE, "atomics": READ}[p.substrate],
    "classes": lambda p: 3 if p.substrate == "pim" else 2,
}
"""Clocks between commands by name, and the controller's limits in lines and clocks.

``any``: anywhere in the pseudo-channel; ``group``: in the same bank group; the others: in the same bank.
"""
DISTANCES = np.dtype([(name, np.int64) for name in _DISTANCES])
"""The distances as one record, for the compiled scheduler."""


def distances(parameters: HbmSection) -> np.ndarray:
    """The :data:`DISTANCES` record of the parameters."""
    return np.array(tuple(rule(parameters) for rule in _DISTANCES.values()), DISTANCES)
