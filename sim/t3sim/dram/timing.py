"""Timing and queues of one HBM2 pseudo-channel: the parameters, and the distances between commands that follow.

A distance is the least number of clocks from one command to a later one. If ACT takes two clocks of the row command bus
it is named by its first clock, while the memory counts from its second: distances from ACT grow by one clock and
distances to ACT shrink by one (JESD235; HBM2 of Ramulator 2.1 does the same).
"""

import math
from dataclasses import dataclass, fields

import numpy as np
from t3hdl.interface.layouts import BankHash, LineOrder

BUS_TURN_CLOCKS = 2
"""Clocks between the last read data and the first write data on the bus (Ramulator 2.1)."""
MAX_QUEUE_LINES = 127
"""Most lines that can wait in a channel: the hardware compares 7-bit occupancies."""
MAX_CLOCKS = 4096
"""Longest timing."""
MAX_INTERVAL = 1 << 20
"""Longest time between two refreshes, in clocks."""
FOREVER = 1 << 62
"""A cycle that never comes."""
READ, WRITE, UPDATE = 0, 1, 2
"""Kinds of access, and classes of lines. Updates are issued as writes, with atomics after a read."""


_OTHER_CLOCKS = ("age_limit_cycles", "nmc_update_cycles", "pim_switch_cycles", "atomic_cycles")
_MAX = {"nREFI": MAX_INTERVAL, "age_limit_cycles": FOREVER}
_CHOICES = {
    "queue": ("shared", "split"),
    "line_order": tuple(order.name.lower().replace("_", "-") for order in LineOrder),
    "bank_hash": tuple(name.name.lower().replace("_", "-") for name in BankHash),
    "service_order": ("reads-first", "age"),
    "row_policy": ("oldest", "hits-first"),
    "hit_order": ("first-ready", "oldest"),
    "substrate": ("nmc", "pim", "atomics"),
}


@dataclass(frozen=True, kw_only=True)
class HbmParameters:
    """One HBM2 pseudo-channel and its controller. Times are in memory clocks, under their standard names.

    Default timings: HBM2 at 2 Gb/s per pin, 2 Gb, of Ramulator 2.1 (commit c5b1c3a). ValueError if a value is illegal.
    """

    nBL: int = 2
    nCL: int = 14
    nRCDRD: int = 14
    nRCDWR: int = 12
    nRP: int = 14
    nRAS: int = 34
    nRC: int = 48
    nWR: int = 16
    nRTPL: int = 5
    nCWL: int = 5
    nCCDS: int = 2
    nCCDL: int = 4
    nRRDS: int = 4
    nRRDL: int = 4
    nWTRS: int = 6
    nWTRL: int = 8
    nFAW: int = 15
    nRFC: int = 160
    nREFI: int = 3900
    act_clocks: int = 2
    """Clocks of the row command bus that ACT takes: 2 (JESD235), or 1."""
    refresh: bool = True
    queue: str = "shared"
    """``shared``: one queue of ``queue_lines``; ``split``: ``read_lines`` for reads and ``write_lines`` for writes."""
    queue_lines: int = 64
    read_lines: int = 32
    write_lines: int = 32
    drain_high: float = 0.8
    """Writes go first from above this fraction of the write share: ``write_lines``, or half of the shared queue ..."""
    drain_low: float = 0.2
    """... until they are below this fraction of it."""
    age_limit_cycles: int = 2048
    """A line that has waited so long is served first [A]: above the wait in a full split queue on one bank (32 nRC)."""
    service_order: str = "reads-first"
    """``reads-first``: writes wait for a drain or for no read; ``age``: reads and writes alike, the oldest first."""
    row_policy: str = "oldest"
    """``oldest``: a row is closed for a miss as soon as timing allows; ``hits-first``: not while lines hit in it."""
    hit_order: str = "first-ready"
    """Of a bank's hits, ``first-ready``: the oldest that timing allows; ``oldest``: none before the oldest."""
    substrate: str = "nmc"
    """Who updates: ``nmc`` (concurrent op-and-store), ``pim`` (the same in compute mode only) or ``atomics`` (a read,
    the controller's ALU, and a write)."""
    nmc_update_cycles: int = 8
    """Clocks from an update to the next column command in its bank group [A]: 2 x nCCDL."""
    pim_switch_cycles: int = 48
    """Clocks of a mode switch, all banks closed [A]: nRC, to activate and precharge the mode's row."""
    atomic_cycles: int = 4
    """Clocks of the controller's ALU for an atomic [A]: the stages of the near-memory unit's."""
    line_order: str = "rotate"
    """How consecutive lines of the channel lie in the banks, as :class:`~t3hdl.interface.layouts.LineOrder` says."""
    bank_hash: str = "none"
    """What permutes the banks: ``none`` or ``row-xor`` (:class:`~t3hdl.interface.layouts.BankHash`)."""

    def __post_init__(self) -> None:
        for name in (*timing_names(), *_OTHER_CLOCKS):
            value, most = getattr(self, name), _MAX.get(name, MAX_CLOCKS)
            self._require(name, _is_int(value) and 1 <= value <= most, f"an integer of 1 to {most} clocks")
        for name in ("queue_lines", "read_lines", "write_lines"):
            value = getattr(self, name)
            self._require(name, _is_int(value) and 2 <= value <= MAX_QUEUE_LINES, f"2 to {MAX_QUEUE_LINES} lines")
        if self.queue == "split":
            most = MAX_QUEUE_LINES - self.read_lines
            self._require(
                "write_lines", self.write_lines <= most, f"at most {most} beside {self.read_lines} read_lines"
            )
        self._require("act_clocks", _is_int(self.act_clocks) and self.act_clocks in (1, 2), "1 or 2 clocks")
        self._require("refresh", isinstance(self.refresh, bool), "true or false")
        for name, legal in _CHOICES.items():
            self._require(name, getattr(self, name) in legal, " or ".join(repr(choice) for choice in legal))
        for name in ("drain_high", "drain_low"):
            self._require(name, isinstance(getattr(self, name), int | float), "a number")
        self._require("drain_high", 0 < self.drain_high <= 1, "above 0 and at most 1")
        self._require("drain_low", 0 <= self.drain_low < self.drain_high, f"below drain_high ({self.drain_high})")
        self._require("nRC", self.nRC >= self.nRAS + self.nRP, f"at least nRAS + nRP ({self.nRAS + self.nRP})")
        self._require("nCCDL", self.nCCDL >= self.nCCDS, f"at least nCCDS ({self.nCCDS})")
        self._require("nRRDL", self.nRRDL >= self.nRRDS, f"at least nRRDS ({self.nRRDS})")
        self._require("nWTRL", self.nWTRL >= self.nWTRS, f"at least nWTRS ({self.nWTRS})")
        self._require("nREFI", self.nREFI > self.nRFC + self.nRC, f"above nRFC + nRC ({self.nRFC + self.nRC})")
        self._require("pim_switch_cycles", self.pim_switch_cycles > 1, "above 1 (as nRP)")
        self._require("nRP", self.nRP > 1, "above 1 (ACT may be named by the first of two clocks)")
        self._require("nCWL", self.nCWL < self.nCL + self.nBL + BUS_TURN_CLOCKS, "below nCL + nBL + 2")

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise ValueError(f"hbm.{name} must be {rule}, not {getattr(self, name)!r}")

    @property
    def write_share(self) -> int:
        """Lines of which ``drain_high`` and ``drain_low`` are fractions (see :mod:`t3sim.dram.hbm`)."""
        return self.write_lines if self.queue == "split" else self.queue_lines // 2

    @property
    def queue_slots(self) -> int:
        """Most lines that can wait at once."""
        return self.queue_lines if self.queue == "shared" else self.read_lines + self.write_lines


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def timing_names() -> list[str]:
    """The standard names of the timings: the fields that start with n and a capital."""
    return [field.name for field in fields(HbmParameters) if field.name[0] == "n" and field.name[1].isupper()]


def _distances(p: HbmParameters) -> dict[str, int]:
    """Clocks between commands by name, and the controller's limits in lines and clocks.

    ``any``: anywhere in the pseudo-channel; ``group``: in the same bank group; the others: in the same bank.
    """
    late = p.act_clocks - 1
    split = p.queue == "split"
    return {
        "column_any": max(p.nCCDS, p.nBL),
        "column_group": p.nCCDL,
        "read_to_write": p.nCL + p.nBL + BUS_TURN_CLOCKS - p.nCWL,
        "write_to_read_any": p.nCWL + p.nBL + p.nWTRS,
        "write_to_read_group": p.nCWL + p.nBL + p.nWTRL,
        "update_group": 0 if p.substrate == "atomics" else max(p.nmc_update_cycles, p.nCCDL),
        "atomic_write": p.nCL + p.nBL + p.atomic_cycles,
        "act_to_read": p.nRCDRD + late,
        "act_to_write": p.nRCDWR + late,
        "act_to_pre": p.nRAS + late,
        "act_to_act": p.nRC,
        "act_any": p.nRRDS,
        "act_group": p.nRRDL,
        "four_acts": p.nFAW,
        "act_bus": p.act_clocks,
        "pre_to_act": p.nRP - late,
        "read_to_pre": p.nRTPL,
        "write_to_pre": p.nCWL + p.nBL + p.nWR,
        "act_to_refresh": p.nRC + late,
        "pre_to_refresh": p.nRP,
        "refresh_to_act": p.nRFC - late,
        "refresh_to_refresh": p.nRFC,
        "switch_to_act": p.pim_switch_cycles - late,
        "switch_to_refresh": p.pim_switch_cycles,
        "refresh_interval": p.nREFI if p.refresh else FOREVER,
        "burst": p.nBL,
        "read_done": p.nCL + p.nBL,
        "write_done": p.nCWL + p.nBL,
        "read_lines": p.read_lines if split else p.queue_lines,
        "write_lines": p.write_lines if split else p.queue_lines,
        "all_lines": p.queue_slots,
        "drain_above": math.floor(p.drain_high * p.write_share),
        "drain_below": max(1, math.ceil(p.drain_low * p.write_share)),  # no write left always ends a drain
        "age_limit": p.age_limit_cycles,
        "line_order": _CHOICES["line_order"].index(p.line_order),
        "bank_hash": _CHOICES["bank_hash"].index(p.bank_hash),
        "by_age": int(p.service_order == "age"),
        "hits_by_age": int(p.hit_order == "oldest"),
        "hits_first": -(p.row_policy == "hits-first"),  # a mask of all banks, or of none
        "pim": int(p.substrate == "pim"),
        "atomic": int(p.substrate == "atomics"),
        "update_served": {"nmc": WRITE, "pim": UPDATE, "atomics": READ}[p.substrate],
        "classes": 3 if p.substrate == "pim" else 2,
    }


DISTANCES = np.dtype([(name, np.int64) for name in _distances(HbmParameters())])
"""The distances as one record, for the compiled scheduler."""


def distances(parameters: HbmParameters) -> np.ndarray:
    """The :data:`DISTANCES` record of the parameters."""
    return np.array(tuple(_distances(parameters).values()), DISTANCES)


def from_timings(timings: dict[str, int], **others: object) -> HbmParameters:
    """Parameters with the timing cycles of a table (extra keys such as ``tCK_ps`` are ignored).

    ValueError if a timing is missing.
    """
    missing = [name for name in timing_names() if name not in timings]
    if missing:
        raise ValueError(f"timing table: {', '.join(missing)} missing; give every timing in clocks")
    legal = {field.name for field in fields(HbmParameters)}
    unknown = set(others) - legal
    if unknown:
        raise ValueError(f"HBM parameters: unknown {', '.join(sorted(unknown))}; legal are {', '.join(sorted(legal))}")
    return HbmParameters(**{name: timings[name] for name in timing_names()}, **others)  # type: ignore[arg-type]
