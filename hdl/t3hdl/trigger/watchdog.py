"""Reports an incomplete block after a time without progress."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import T3Config
from ..interface.layouts import NEVER, TIME_BITS, Stuck

ScannedBlock = data.StructLayout({
    "waits": 1, "block": 6, "descriptor": 6, "context": 4, "expected": 16, "seen": 16,
})  # fmt: skip
"""A block that a scan has come to; ``waits``: it lies in its chunk, and is not ready."""


class Watchdog(wiring.Component):
    """Asks for a scan of a chunk that is not done, and keeps the first block of it that waits.

    Parameters
    ----------
    config : gives ``blocks``.

    Members
    -------
    now : In : time in cycles.
    cycles : In(32) : time limit in cycles; 0: off.
    written : In(1) : pulse; WATCHDOG is written: what was found is dropped.
    progress : In(1) : pulse; something happened.
    watching : In(1) : there is a chunk to wait for.
    scanning : In(1) : a scan is in flight.
    scanned_valid, scanned : In : pulse; the next block of the scan, from block 0 to the last one.
    scan_request : Out(1) : a scan must begin; follows ``now``.
    wake_at : Out : the cycle in which ``scan_request`` becomes 1, if nothing else happens; in the past while it is 1.
    stuck : Out(Stuck)

    Latency: 1 from the last ``scanned`` to ``stuck``. Throughput: one block per cycle. Reset: nothing found.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "now": In(TIME_BITS), "cycles": In(32), "written": In(1), "progress": In(1),
            "watching": In(1), "scanning": In(1),
            "scanned_valid": In(1), "scanned": In(ScannedBlock),
            "scan_request": Out(1), "wake_at": Out(TIME_BITS), "stuck": Out(Stuck),
        })  # fmt: skip
        self._last = config.blocks - 1

    def elaborate(self, platform: Any) -> Module:
        """``last_progress``: last progress. ``first_waiting``: first waiting block so far; block 0 begins anew."""
        m = Module()
        last_progress, deadline, enabled = Signal(TIME_BITS), Signal(TIME_BITS + 1), Signal()
        note = data.StructLayout({"found": 1, "block": 6, "expected": 16, "seen": 16})
        first_waiting, next_first_waiting = Signal(note), Signal(note)
        m.d.comb += [
            deadline.eq(last_progress + self.cycles),
            enabled.eq((self.cycles != 0) & self.watching & ~self.scanning & ~self.stuck.valid),
            self.scan_request.eq(enabled & (self.now >= deadline)),
            self.wake_at.eq(Mux(enabled & ~deadline[TIME_BITS], deadline, NEVER)),
        ]
        with m.If((self.scanned.block != 0) & first_waiting.found):
            m.d.comb += next_first_waiting.eq(first_waiting)
        with m.Elif(self.scanned.waits):
            m.d.comb += [
                next_first_waiting.found.eq(1),
                *(next_first_waiting[f].eq(self.scanned[f]) for f in ("block", "expected", "seen")),
            ]
        with m.If(self.progress):
            m.d.sync += last_progress.eq(self.now)
        with m.If(self.scanned_valid):
            m.d.sync += first_waiting.eq(next_first_waiting)
            with m.If(self.scanned.block == self._last):
                m.d.sync += [
                    self.stuck.valid.eq(1),
                    *(self.stuck[field].eq(self.scanned[field]) for field in ("descriptor", "context")),
                    *(self.stuck[field].eq(next_first_waiting[field]) for field in ("block", "expected", "seen")),
                ]
        with m.If(self.written):
            m.d.sync += self.stuck.eq(0)
        return m
