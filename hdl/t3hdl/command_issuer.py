"""Turns ready blocks into DMA commands, oldest first."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .block_table import ReadyBlock
from .config import T3Config
from .layouts import LINE_BITS, DmaCommand

CommandPlan = data.StructLayout({
    "row0": 12, "row1": 12, "col0": 12, "col1": 12, "row_shift": 4, "col_shift": 4, "row_blocks_log": 4,
    "base": LINE_BITS, "peer_base": LINE_BITS, "pitch": 16, "peer": 8, "op": 3, "dtype": 2, "context": 4, "epoch": 2,
    "descriptor": 6,
})  # fmt: skip
"""What the commands of a slot have in common, and where its blocks lie."""


class CommandIssuer(wiring.Component):
    """The ready queue, with room for all blocks of all slots, and the command register behind it.

    Parameters
    ----------
    config : gives ``chunk_window`` and ``blocks``.

    Members
    -------
    load, load_slot, load_plan : In : pulse; writes the plan of a slot that has no ready block.
    ready_valid, ready : In : pulse; the block joins the queue.
    command : Out(stream(DmaCommand))
    issue, issue_slot : Out : pulse; a block of the slot becomes the command.
    waiting : Out(1) : nothing will change without a pulse or a transfer.

    Latency: 4 cycles from ``ready`` to ``command``. Throughput: one command per 3 cycles. Reset: empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "load": In(1), "load_slot": In(6), "load_plan": In(CommandPlan),
            "ready_valid": In(1), "ready": In(ReadyBlock),
            "command": Out(stream.Signature(DmaCommand)),
            "issue": Out(1), "issue_slot": Out(6), "waiting": Out(1),
        })  # fmt: skip
        self._window = config.chunk_window
        self._depth = 1 << (config.chunk_window * config.blocks - 1).bit_length()

    def elaborate(self, platform: Any) -> Module:
        """FETCH the oldest ready block, LOOKUP its slot's plan, BUILD the command."""
        m = Module()
        m.submodules.queue = queue = memory.Memory(shape=ReadyBlock, depth=self._depth, init=[])
        push, head = queue.write_port(), queue.read_port()
        m.submodules.plans = plans = memory.Memory(shape=CommandPlan, depth=self._window, init=[])
        load, plan = plans.write_port(), plans.read_port()
        tail, first = Signal(range(2 * self._depth)), Signal(range(2 * self._depth))
        block, free, command = head.data, Signal(), self.command.payload
        m.d.comb += [
            load.addr.eq(self.load_slot), load.data.eq(self.load_plan), load.en.eq(self.load),
            push.addr.eq(tail), push.data.eq(self.ready), push.en.eq(self.ready_valid),
            head.addr.eq(first), head.en.eq(0),
            plan.addr.eq(block.slot), plan.en.eq(0),
            free.eq(~self.command.valid | self.command.ready),
            self.issue_slot.eq(block.slot),
        ]  # fmt: skip
        with m.If(self.ready_valid):
            m.d.sync += tail.eq(tail + 1)
        with m.If(self.command.ready):
            m.d.sync += self.command.valid.eq(0)
        with m.FSM(name="issuer"):
            with m.State("FETCH"):
                m.d.comb += [head.en.eq(first != tail), self.waiting.eq(first == tail)]
                with m.If(first != tail):
                    m.d.sync += first.eq(first + 1)
                    m.next = "LOOKUP"
            with m.State("LOOKUP"):
                m.d.comb += plan.en.eq(1)
                m.next = "BUILD"
            with m.State("BUILD"):
                m.d.comb += [self.issue.eq(free), self.waiting.eq(self.command.valid)]
                with m.If(free):
                    m.d.sync += [self.command.valid.eq(1), command.eq(self._command(m, block, plan.data))]
                    m.next = "FETCH"
        return m

    def _command(self, m: Module, block: Any, plan: Any) -> Any:
        """The command of one block; a block at the chunk's edge is cut to the chunk."""
        command = Signal(DmaCommand, name="built")
        log = plan.row_blocks_log

        def extent(start: Value, end: Value, shift: Value) -> Value:
            left = (end - start)[:12]
            return Mux((left >> shift).any(), (1 << shift)[:12], left)

        m.d.comb += [
            command.row.eq(plan.row0 + ((block.block & ~(~0 << log))[:6] << plan.row_shift)),
            command.col.eq(plan.col0 + ((block.block >> log) << plan.col_shift)),
            command.rows.eq(extent(command.row, plan.row1, plan.row_shift)),
            command.cols.eq(extent(command.col, plan.col1, plan.col_shift)),
            command.by_chunk.eq(block.by_chunk),
            *(command[field].eq(0) for field in ("reserved", "reserved2", "reserved3")),
            *(command[field].eq(plan[field]) for field in (
                "base", "peer_base", "pitch", "peer", "op", "dtype", "context", "epoch", "descriptor",
            )),
        ]  # fmt: skip
        return command
