"""Is a DMA command right, the first one for its block, and not too early? Did all come?"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface.layouts import ChunkKind, DmaCommand

from . import gemm
from .report.failures import Failure, FailureCode
from .rounds import Seed, dtype_of, op_of
from .traffic import CONTEXT

_GROUP = 24
"""Bits that are compared in one cycle by one piece of logic."""


class CommandChecker(wiring.Component):
    """Takes commands one by one: compares every field, looks for the block among those that were sent before, adds up
    what the channels counted, and has the block's lines read. When it is asked, compares the blocks that were sent with
    those that the seed's GPU must send.

    Parameters
    ----------
    config : the hardware configuration.
    counters : how many count updates.
    counted_bits : width of their counts.

    Members
    -------
    seed : In : of the round.
    command : In(stream(DmaCommand)) : from the trigger; taken when its block has left.
    block : Out(4) : a block's number (:func:`~t3fpga.selftest.gemm.block`), for counters and reader.
    updates : In : counted for ``block``, by each counter, two cycles after it is given.
    read, reading : Out, In : pulse; the lines of ``block`` are to be read; they are being read, from the next cycle on.
    done_valid : Out(1) : pulse; the block has left.
    check : In(1) : pulse; all commands must have come.
    failure : Out : pulse.
    busy : Out(1) : a command is there, or was a moment ago.
    """

    def __init__(self, *, config: T3Config, counters: int, counted_bits: int) -> None:
        super().__init__({
            "seed": In(Seed), "command": In(stream.Signature(DmaCommand)),
            "block": Out(range(gemm.BLOCK_NUMBERS)), "updates": In(counted_bits).array(counters),
            "read": Out(1), "reading": In(1), "done_valid": Out(1), "check": In(1),
            "failure": Out(Failure), "busy": Out(1),
        })  # fmt: skip
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """A state machine; a field that is compared has a cycle for its group, and one for all groups together."""
        m = Module()
        command = self.command.payload
        groups = self._compare(m)
        wrong, seen, index, total = Signal(), Signal(gemm.BLOCK_NUMBERS), Signal(range(len(self.updates))), Signal(8)
        sent_before, enough, missing = Signal(), Signal(), Signal(gemm.BLOCK_NUMBERS)
        due = Array(Const(gemm.due_blocks(gpu), gemm.BLOCK_NUMBERS) for gpu in range(gemm.GPUS))
        m.d.comb += self.busy.eq(self.command.valid | self.read | self.reading | self.done_valid)
        m.d.sync += [
            wrong.eq(groups.any()),
            self.block.eq(Cat(command.col[1], command.row[:3])),
            sent_before.eq(seen.bit_select(self.block, 1)),
            missing.eq(due[self.seed.gpu] & ~seen),
            enough.eq(total == gemm.block_updates(self.block, Mux)),
            self.read.eq(0),
            self.done_valid.eq(0),
            self.failure.valid.eq(0),
            self.command.ready.eq(0),
        ]

        def fail(what: FailureCode) -> list[Any]:
            detail = missing if what == FailureCode.MISSING else Cat(command.col[:8], command.row[:8])
            return [self.failure.valid.eq(1), self.failure.what.eq(what), self.failure.detail.eq(detail)]

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [index.eq(0), total.eq(0)]
                with m.If(self.command.valid & ~self.command.ready):
                    m.next = "BLOCK"
            for here, there in (("BLOCK", "COUNT"), ("COUNT", "SUM")):
                with m.State(here):
                    m.next = there
            with m.State("SUM"):
                m.d.sync += [total.eq(total + Array(self.updates)[index]), index.eq(index + 1)]
                with m.If(index == len(self.updates) - 1):
                    m.next = "TOTAL"
            with m.State("TOTAL"):
                m.next = "JUDGE"
            with m.State("JUDGE"):
                with m.If(wrong):
                    m.d.sync += fail(FailureCode.COMMAND)
                with m.Elif(sent_before):
                    m.d.sync += fail(FailureCode.TWICE)
                with m.Elif(~enough):
                    m.d.sync += fail(FailureCode.EARLY)
                m.d.sync += [seen.eq(seen | (1 << self.block)[: gemm.BLOCK_NUMBERS]), self.read.eq(1)]
                m.next = "READ"
            with m.State("READ"):
                m.next = "READING"
            with m.State("READING"), m.If(~self.reading):
                m.d.sync += [self.command.ready.eq(1), self.done_valid.eq(1)]
                m.next = "IDLE"
        with m.If(self.check & missing.any()):
            m.d.sync += fail(FailureCode.MISSING)
        return m

    def _compare(self, m: Module) -> Value:
        """A bit per group of bits of the command: it differs. Registered."""
        command, seed = self.command.payload, self.seed
        chunk, column = command.row[1:3], command.col[1]
        place = gemm.chunk_position(chunk, seed.gpu)[:2]
        is_dma = Array(Const(kind == ChunkKind.DMA, 1) for kind in gemm.KINDS)[place]
        fields: dict[str, Any] = {
            "descriptor": place, "context": CONTEXT, "epoch": seed.epoch, "peer": (seed.gpu - 1)[:2],
            "op": op_of(seed), "dtype": dtype_of(seed, self._config),
            # With a tracker that is too small a chunk may be late, and right.
            "by_chunk": 0 if gemm.never_overflows(self._config) else command.by_chunk,
            "row": command.row[:3], "col": Cat(0, column), "rows": 1, "cols": Mux(column, 1, 2), "pitch": gemm.PITCH,
            "base": gemm.BASE, "peer_base": gemm.PEER_BASE,
            "tile_rows": gemm.TILE_ROWS, "wavefront_rows": gemm.wavefront_rows(self._config),
            "tile_lines": gemm.TILE_LINES, "last_lines": Mux(column, 1, gemm.TILE_LINES), "right": column,
            "last_rows": Mux(command.row[:3].all(), gemm.TILE_ROWS - 1, gemm.TILE_ROWS),
            "bottom": command.row[:3].all(),
        }  # fmt: skip
        wanted = Signal(DmaCommand)
        m.d.comb += [wanted[name].eq(fields.get(name, 0)) for name, _ in DmaCommand]
        differ = command.as_value() ^ wanted.as_value()
        groups = Signal(-(-len(differ) // _GROUP) + 1)
        parts = [differ[low : low + _GROUP].any() for low in range(0, len(differ), _GROUP)]
        m.d.sync += groups.eq(Cat(*parts, ~is_dma))
        return groups
