"""Turns ready blocks into DMA commands: oldest first within a context, contexts in turns."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import RoundRobin, one_hot_index
from ..common.ram import Ram
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import EPOCH_BITS, LINE_BITS, DmaCommand
from .ready_lists import ReadyBlock

CommandTemplate = data.StructLayout({
    "row0": 12, "col0": 12, "row_shift": 4, "col_shift": 4, "row_blocks_log": 4,
    "whole_rows": 12, "rows_left": 12, "whole_cols": 12, "cols_left": 12,
    "base": LINE_BITS, "peer_base": LINE_BITS, "pitch": 16, "peer": 8, "op": 3, "dtype": 2, "context": 4,
    "epoch": EPOCH_BITS, "descriptor": 6,
    **{name: regs.Last[name].shape for name in regs.Last.members},
})  # fmt: skip
"""What the commands of a slot have in common, and where its blocks lie.

``whole_rows``: rows of the chunk >> ``row_shift``; ``rows_left``: what that leaves of them. Columns likewise.
"""


class CommandIssuer(wiring.Component):
    """Takes one block at a time from the ready lists, and holds the command register.

    Parameters
    ----------
    config : gives ``contexts``, ``chunk_window``, ``protect``.

    Members
    -------
    load, load_slot, load_template : In : pulse; writes the template of a slot that has no ready block.
    eligible : In(contexts) : contexts with a ready block and credit.
    pop, oldest : Out(contexts), In(ReadyBlock) : pulse; the oldest block of the context.
    poisoned : In(chunk_window) : slots whose blocks are dropped.
    abort, abort_context : In : pulse; a block of this context is dropped.
    command : Out(stream(DmaCommand))
    issue, issue_context : Out : pulse; a block becomes the command, unless its context is aborted.
    issued : Out(chunk_window) : pulse; likewise, a block of this slot.
    waits : Out(1) : no block is in flight.
    waiting : Out(1) : nothing will change without a pulse or a transfer.
    faults : Out(chunk_window) : pulse; the template of the slot has an uncorrectable error, its block is dropped.
    corrected : Out(1) : a single-bit error of a word is corrected.

    Latency: 3 cycles from ``eligible`` to ``command``. Throughput: one command per 3 cycles. Reset: empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load": In(1), "load_slot": In(6), "load_template": In(CommandTemplate),
            "eligible": In(config.contexts), "pop": Out(config.contexts), "oldest": In(ReadyBlock),
            "poisoned": In(config.chunk_window),
            "abort": In(1), "abort_context": In(4),
            "command": Out(stream.Signature(DmaCommand)),
            "issue": Out(1), "issue_context": Out(4), "issued": Out(config.chunk_window),
            "waits": Out(1), "waiting": Out(1),
            "faults": Out(config.chunk_window), "corrected": Out(1),
        })  # fmt: skip
        self._contexts, self._window, self._protect = config.contexts, config.chunk_window, config.protect

    def elaborate(self, platform: Any) -> Module:
        """FETCH the oldest ready block, LOOKUP its slot's plan, BUILD the command."""
        m = Module()
        m.submodules.turn = turn = RoundRobin(requesters=self._contexts)
        m.submodules.templates = templates = Ram(CommandTemplate, depth=self._window, protect=self._protect)
        block, context, winner = Signal(ReadyBlock), Signal(4), Signal(4)
        bit, free, lost, aborted = Signal(self._window, name="bit"), Signal(), Signal(), Signal()
        m.d.comb += [
            templates.write_row.eq(self.load_slot),
            templates.write_data.eq(self.load_template),
            templates.write.eq(self.load),
            templates.read_row.eq(block.slot),
            turn.requests.eq(self.eligible),
            turn.take.eq(self.waits),
            winner.eq(one_hot_index(turn.grant)),
            self.pop.eq(Mux(self.waits, turn.grant, 0)),
            free.eq(~self.command.valid | self.command.ready),
            aborted.eq(self.abort & (self.abort_context == context)),
            lost.eq(templates.uncorrectable | (self.poisoned & bit).any()),
            self.issue_context.eq(context),
        ]
        with m.If(self.command.ready):
            m.d.sync += self.command.valid.eq(0)
        with m.FSM(name="issuer"):
            with m.State("FETCH"):
                m.d.comb += [self.waits.eq(1), self.waiting.eq(~self.eligible.any())]
                with m.If(self.eligible.any()):
                    m.d.sync += [block.eq(self.oldest), context.eq(winner)]
                    with m.If(~(self.abort & (self.abort_context == winner))):
                        m.next = "LOOKUP"
            with m.State("LOOKUP"):
                m.d.comb += templates.read.eq(1)
                m.d.sync += bit.eq(1 << block.slot)  # now, so that the command does not wait for it
                m.next = "BUILD"
                with m.If(aborted):
                    m.next = "FETCH"
            with m.State("BUILD"):
                m.d.comb += [
                    self.waiting.eq(self.command.valid & ~lost),
                    self.issue.eq(free & ~lost),
                    # Every slot's own bit of `poisoned` is there early: what comes late is the transfer alone.
                    self.issued.eq(Mux(free & ~templates.uncorrectable, bit & ~self.poisoned, 0)),
                    self.faults.eq(Mux(templates.uncorrectable, bit, 0)),
                    self.corrected.eq(templates.corrected),
                ]
                with m.If(self.issue):
                    m.d.sync += [
                        self.command.valid.eq(~aborted),
                        self.command.payload.eq(self._command(m, block, templates.data)),
                    ]
                with m.If(free | lost | aborted):
                    m.next = "FETCH"
        return m

    def _command(self, m: Module, block: Any, template: Any) -> Any:
        """The command of one block; a block at the chunk's edge is cut to the chunk."""
        command = Signal(DmaCommand, name="built")
        log = template.row_blocks_log
        row, col = (block.block & ~(~0 << log))[:6], block.block >> log

        def extent(number: Value, whole: Value, left: Value, shift: Value) -> Value:
            """A whole block unless all whole ones are before it; both numbers count modulo 2 ** (12 - shift)."""
            others = Cat((number ^ whole)[i] & (shift < 12 - i) for i in range(12))
            return Mux(others.any(), 1 << shift, left)[:12]

        last_row, last_col = row == template.last_block_row, col == template.last_block_col
        m.d.comb += [
            command.row.eq(template.row0 + (row << template.row_shift)),
            command.col.eq(template.col0 + (col << template.col_shift)),
            command.rows.eq(extent(row, template.whole_rows, template.rows_left, template.row_shift)),
            command.cols.eq(extent(col, template.whole_cols, template.cols_left, template.col_shift)),
            command.by_chunk.eq(block.by_chunk),
            command.last_rows.eq(Mux(last_row, template.last_rows, template.tile_rows)),
            command.last_lines.eq(Mux(last_col, template.last_lines, template.tile_lines)),
            command.bottom.eq(template.bottom & last_row),
            command.right.eq(template.right & last_col),
            *(command[field].eq(0) for field in ("reserved", "reserved2", "reserved3")),
            *(command[field].eq(template[field]) for field in (
                "base", "peer_base", "pitch", "peer", "op", "dtype", "context", "epoch", "descriptor",
                "tile_rows", "wavefront_rows", "tile_lines",
            )),
        ]  # fmt: skip
        return command
