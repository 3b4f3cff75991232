"""Maintenance of the tracker's tables: clearing after reset, sweeps at arm and abort, debug reads."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..common.broadcast import ControlPulses
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import NEVER, TIME_BITS


class Maintenance(wiring.Component):
    """Walks through the rows of all tracker banks at the same time, one row per cycle.

    Parameters
    ----------
    config : the hardware configuration.

    Members
    -------
    arm, abort, debug_read : In(1) : pulses, at most one, never while ``maintenance`` or before ``init_done``.
    context, first, descriptors, select : In : what is asked for (CONTROL, DEBUG_SELECT).
    drained : In(1) : no token is between the banks' input queues and their event queues.
    now : In : timestamp.
    init_done : Out(1) : every row was cleared since reset.
    maintenance : Out(1) : a request is being worked on; the banks take no tokens.
    clear : Out(1) : row ``write_row`` is to be cleared.
    read, read_row : Out : the row is to be read.
    purge : Out(1) : row ``write_row``, read a cycle before, is to be written without entries of ``purged`` and without
        the mark bits in ``marks``.
    found : Out(1) : the row that ``selected_entry`` names was read a cycle before.
    purged, marks, selected_entry : Out : of the request in progress.
    abort_busy : Out(1) : tokens of ``purged`` may still be in flight.
    abort_until : Out : when ``abort_busy`` ends, if only the time is missing; else ``NEVER``.

    Latency: a sweep reads its first row in the cycle after ``drained``. Throughput: one row per cycle. Reset: the
    clearing starts, and takes ``sets_per_bank`` cycles.
    """

    def __init__(self, *, config: T3Config) -> None:
        row = range(config.sets_per_bank)
        super().__init__({
            "arm": In(1), "abort": In(1), "debug_read": In(1),
            "context": In(4), "first": In(6), "descriptors": In(7), "select": In(regs.DebugSelect),
            "drained": In(1), "now": In(TIME_BITS),
            "init_done": Out(1), "maintenance": Out(1),
            "clear": Out(1), "read": Out(1), "read_row": Out(row), "purge": Out(1), "write_row": Out(row),
            "found": Out(1), "purged": Out(4), "marks": Out(config.descriptors),
            "selected_entry": Out(regs.DebugSelect),
            "abort_busy": Out(1), "abort_until": Out(TIME_BITS),
        })  # fmt: skip
        self._parameters = config

    def take(self, m: Module, control: ControlPulses) -> None:
        """Connects the requests that CONTROL makes."""
        m.d.comb += [
            self.arm.eq(control.arm),
            self.abort.eq(control.abort),
            self.context.eq(control.context),
            self.first.eq(control.first),
            self.descriptors.eq(control.descriptors),
        ]

    def elaborate(self, platform: Any) -> Module:
        """One row counter for everything; a row is written in the cycle after it is read."""
        m = Module()
        rows = self._parameters.sets_per_bank
        row = Signal(range(rows + 1))
        written = Signal(range(rows))
        sweeping = Signal()
        reads_entry = Signal()
        # `rows` is a power of two, and `row` never more: single bits, because everything waits for `last`.
        last = Mux(reads_entry, row[0], row[-1])
        m.d.comb += [
            self.clear.eq(~self.init_done),
            self.read.eq(sweeping & ~last),
            self.read_row.eq(Mux(reads_entry, self.selected_entry.row, row)),
            self.purge.eq(sweeping & ~reads_entry & (row != 0)),
            self.write_row.eq(Mux(self.clear, row, written)),
            self.found.eq(sweeping & reads_entry & last),
        ]
        with m.If(~self.init_done):
            done = row == rows - 1
            m.d.sync += [self.init_done.eq(done), row.eq(Mux(done, 0, row + 1))]
        with m.If(self.maintenance & self.drained):
            m.d.sync += sweeping.eq(1)
        with m.If(sweeping):
            m.d.sync += [row.eq(row + 1), written.eq(row)]
            with m.If(last):
                m.d.sync += [sweeping.eq(0), row.eq(0), self.maintenance.eq(0)]
        with m.If(self.arm | self.abort | self.debug_read):
            window = (((Const(1) << self.descriptors) - 1) << self.first)[: len(self.marks)]
            m.d.sync += [
                self.maintenance.eq(1),
                reads_entry.eq(self.debug_read),
                self.purged.eq(self.context),
                self.marks.eq(Mux(self.arm, window, 0)),
                self.selected_entry.eq(self.select),
            ]
        self._abort(m)
        return m

    def _abort(self, m: Module) -> None:
        """``abort_busy`` outlasts the sweep until all tokens that the slices held have left the banks."""
        until = Signal(TIME_BITS)
        with m.If(self.abort):
            m.d.sync += [self.abort_busy.eq(1), until.eq(self.now + self._parameters.drain_cycles)]
        with m.Elif(~self.maintenance & (self.now >= until)):
            m.d.sync += self.abort_busy.eq(0)
        m.d.comb += self.abort_until.eq(Mux(self.abort_busy & ~self.maintenance, until, NEVER))
