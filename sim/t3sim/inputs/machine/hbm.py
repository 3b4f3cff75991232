"""The DRAM of a machine: the parameters of one pseudo-channel and its controller, and how many there are."""

from typing import Literal, Self

from pydantic import model_validator
from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import BURST_LINES

from .section import MHZ, Section, choice, quantity

BUS_TURN_CLOCKS = 2
"""Clocks between the last read data and the first write data on the bus (Ramulator 2.1)."""
MAX_CLOCKS = 4096
"""Longest timing."""
MAX_QUEUE_LINES = NO_LIMIT
"""Most lines that can wait in a channel: the hardware compares occupancies of 7 bits."""
MAX_INTERVAL = 1 << 20
"""Longest time between two refreshes, and longest age of a line that is not served first, in clocks."""


class HbmSection(Section):
    """DRAM of one GPU: pseudo-channels, the queues of their controllers, and the timing of updates.

    Timings have the names of JEDEC and Ramulator, in memory clocks; the T3 unit runs at the same clock.
    """

    channels: int = quantity("pseudo-channels", "pseudo-channels, one memory slice each; a power of two", ge=1, le=64)
    clock_mhz: int = quantity("MHz", "memory clock", ge=MHZ[0], le=MHZ[1])
    nBL: int = quantity("clocks", "burst of 32 bytes on the data bus", ge=1, le=MAX_CLOCKS)
    nCL: int = quantity("clocks", "read latency", ge=1, le=MAX_CLOCKS)
    nRCDRD: int = quantity("clocks", "activate to read", ge=1, le=MAX_CLOCKS)
    nRCDWR: int = quantity("clocks", "activate to write", ge=1, le=MAX_CLOCKS)
    nRP: int = quantity("clocks", "precharge", ge=1, le=MAX_CLOCKS)
    nRAS: int = quantity("clocks", "activate to precharge", ge=1, le=MAX_CLOCKS)
    nRC: int = quantity("clocks", "activate to activate, same bank", ge=1, le=MAX_CLOCKS)
    nWR: int = quantity("clocks", "write recovery", ge=1, le=MAX_CLOCKS)
    nRTPL: int = quantity("clocks", "read to precharge", ge=1, le=MAX_CLOCKS)
    nCWL: int = quantity("clocks", "write latency", ge=1, le=MAX_CLOCKS)
    nCCDS: int = quantity("clocks", "column to column, other bank group", ge=1, le=MAX_CLOCKS)
    nCCDL: int = quantity("clocks", "column to column, same bank group", ge=1, le=MAX_CLOCKS)
    nRRDS: int = quantity("clocks", "activate to activate, other bank group", ge=1, le=MAX_CLOCKS)
    nRRDL: int = quantity("clocks", "activate to activate, same bank group", ge=1, le=MAX_CLOCKS)
    nWTRS: int = quantity("clocks", "write to read, other bank group", ge=1, le=MAX_CLOCKS)
    nWTRL: int = quantity("clocks", "write to read, same bank group", ge=1, le=MAX_CLOCKS)
    nFAW: int = quantity("clocks", "window of four activates", ge=1, le=MAX_CLOCKS)
    nRFC: int = quantity("clocks", "refresh of all banks", ge=1, le=MAX_CLOCKS)
    nREFI: int = quantity("clocks", "interval of refreshes", ge=1, le=MAX_INTERVAL)
    act_clocks: int = quantity("clocks", "an activate's time on the row command bus", ge=1, le=2)
    refresh: bool = choice("whether banks are refreshed")
    queue: Literal["shared", "split"] = choice("`shared`: one queue for reads and writes; `split`: a queue for each")
    queue_lines: int = quantity("lines", "entries of the shared queue", ge=BURST_LINES, le=NO_LIMIT - 1)
    read_lines: int = quantity("lines", "entries of the read queue, if split", ge=BURST_LINES, le=NO_LIMIT - 1)
    write_lines: int = quantity("lines", "entries of the write queue, if split", ge=BURST_LINES, le=NO_LIMIT - 1)
    drain_high: float = quantity("fraction", "fill of the write queue at which a write drain begins", gt=0, le=1)
    drain_low: float = quantity("fraction", "fill of the write queue at which a write drain ends", ge=0, lt=1)
    age_limit_cycles: int = quantity(
        "clocks", "a line that has waited this long is served first", ge=1, le=MAX_INTERVAL
    )
    service_order: Literal["reads-first", "age"] = choice(
        "`reads-first`: writes wait until they fill the queue or no read waits; `age`: reads and writes alike, by age"
    )
    row_policy: Literal["oldest", "hits-first"] = choice(
        "`oldest`: a row closes for an older miss as soon as timing allows; `hits-first`: not while lines hit in it"
    )
    hit_order: Literal["first-ready", "oldest"] = choice(
        "lines that hit in one bank: `first-ready`: the oldest that timing allows; `oldest`: none passes an older one"
    )
    substrate: Literal["nmc", "pim", "atomics"] = choice(
        "what updates: `nmc` the bank, at any time; `pim` the bank, in compute mode only; `atomics` the controller"
    )
    nmc_update_cycles: int = quantity(
        "clocks", "time for which an update holds its bank group: read, reduce, write", ge=1, le=MAX_CLOCKS
    )
    pim_switch_cycles: int = quantity(
        "clocks", "with `pim`: time to change between memory and compute mode, all banks closed", ge=2, le=MAX_CLOCKS
    )
    atomic_cycles: int = quantity(
        "clocks",
        "with `atomics`: the controller's ALU, between the line's data and its write command",
        ge=1,
        le=MAX_CLOCKS,
    )
    line_order: Literal["rotate", "bank-local", "group-low"] = choice(
        "consecutive lines: `rotate` over bank groups, stay `bank-local` for a row, or change between two bank groups "
        "every eight lines (`group-low`, with rows of 64 lines)"
    )
    bank_hash: Literal["none", "row-xor"] = choice(
        "`row-xor`: the low row bits permute bank groups and banks, so that rows of a matrix do not meet in one bank"
    )

    @model_validator(mode="after")
    def _values_agree(self) -> Self:
        most = MAX_QUEUE_LINES - self.read_lines
        rules = {
            "channels": (not self.channels & (self.channels - 1), "a power of two"),
            "write_lines": (
                self.queue == "shared" or self.write_lines <= most,
                f"at most {most} beside {self.read_lines} read_lines",
            ),
            "drain_low": (self.drain_low < self.drain_high, f"below drain_high ({self.drain_high})"),
            "nRC": (self.nRC >= self.nRAS + self.nRP, f"at least nRAS + nRP ({self.nRAS + self.nRP})"),
            "nCCDL": (self.nCCDL >= self.nCCDS, f"at least nCCDS ({self.nCCDS})"),
            "nRRDL": (self.nRRDL >= self.nRRDS, f"at least nRRDS ({self.nRRDS})"),
            "nWTRL": (self.nWTRL >= self.nWTRS, f"at least nWTRS ({self.nWTRS})"),
            "nREFI": (self.nREFI > self.nRFC + self.nRC, f"above nRFC + nRC ({self.nRFC + self.nRC})"),
            "nRP": (self.nRP > 1, "above 1 (ACT may be named by the first of two clocks)"),
            "nCWL": (self.nCWL < self.nCL + self.nBL + BUS_TURN_CLOCKS, f"below nCL + nBL + {BUS_TURN_CLOCKS}"),
        }  # fmt: skip
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"hbm.{name} must be {rule}, not {getattr(self, name)!r}")
        return self

    @property
    def write_share(self) -> int:
        """Lines of which ``drain_high`` and ``drain_low`` are fractions (see :mod:`t3sim.dram.hbm`)."""
        return self.write_lines if self.queue == "split" else self.queue_lines // 2

    @property
    def queue_slots(self) -> int:
        """Most lines that can wait at once."""
        return self.queue_lines if self.queue == "shared" else self.read_lines + self.write_lines


TIMINGS = tuple(name for name in HbmSection.model_fields if name[0] == "n" and name[1].isupper())
"""The standard names of the timings."""
