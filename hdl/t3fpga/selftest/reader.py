"""Reads lines back and compares them with what they must hold: the DMA engine's reads, and the check of all memory."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from t3hdl.config import T3Config
from t3hdl.interface.layouts import LINE_BYTES, Dtype, MemoryRequest, Op, channel_of

from . import gemm
from .line_values import LANES, STORE, expected_words
from .report.failures import Failure, FailureCode
from .rounds import Seed, dtype_of, op_of, spread
from .traffic import READ_TAG, Distributor, line_of

_LANE_BITS = 16
_PIPELINE = 3
"""Cycles from a lane's place in the table to the verdict on it."""


class Reader(wiring.Component):
    """Reads line by line, and compares a line lane by lane.

    Members
    -------
    seed : In : of the round.
    read_block, block : In : pulse; read the lines of this DMA block.
    read_all : In(1) : pulse; read the whole memory, and begin a new checksum.
    busy : Out(1) : from the cycle after a pulse until everything is compared.
    comm_read : Out(stream(MemoryRequest)).array(slices) : to the slices.
    read_done, read_data : In : of each channel.
    checksum : Out(32) : of all lines, in their order: rotated by 5, XOR the lane, for each 16-bit lane.
    failure : Out : pulse; a lane is not what it must be.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "seed": In(Seed),
            "read_block": In(1), "block": In(range(gemm.BLOCK_NUMBERS)), "read_all": In(1), "busy": Out(1),
            "comm_read": Out(stream.Signature(MemoryRequest)).array(config.slices),
            "read_done": In(1).array(config.slices), "read_data": In(8 * LINE_BYTES).array(config.slices),
            "checksum": Out(32), "failure": Out(Failure),
        })  # fmt: skip
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """Address counter, read, sixteen lanes through the comparison, next address."""
        m = Module()
        m.submodules.out = out = Distributor(config=self._config, incoming=0, read_tag=READ_TAG)
        for inner, outer in zip(out.o, self.comm_read, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        number, block, everything = Signal(range(gemm.LINES + 1)), Signal(range(gemm.BLOCK_NUMBERS)), Signal()
        address, line = Signal(gemm.ADDRESS_BITS), Signal(8 * LINE_BYTES)
        lane, drain = Signal(range(LANES)), Signal(range(_PIPELINE + 1))
        of_block = Cat(number[:2], block[0], number[2:4], block[1:])
        channel, shifting = Signal(range(self._config.slices)), Signal()
        m.d.comb += [
            out.seed.eq(self.seed),
            out.i.payload.address.eq(address),
            out.i.payload.op.eq(Op.READ),
        ]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += [number.eq(0), everything.eq(self.read_all), block.eq(self.block)]
                with m.If(self.read_all | self.read_block):
                    m.next = "NEXT"
            with m.State("NEXT"):
                m.d.sync += [
                    address.eq(Mux(everything, number[: gemm.ADDRESS_BITS], of_block)),
                    number.eq(number + 1),
                    drain.eq(0),
                ]
                with m.If(Mux(everything, number[-1], number[4])):
                    m.next = "IDLE"
                with m.Elif(everything | gemm.in_output(of_block)):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += out.i.valid.eq(1)
                m.d.sync += channel.eq(channel_of(line_of(address), self._config.slices))
                with m.If(out.i.ready):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += [line.eq(Array(self.read_data)[channel]), lane.eq(0)]
                with m.If(Array(self.read_done)[channel]):
                    m.next = "LANES"
            with m.State("LANES"):
                m.d.comb += shifting.eq(1)
                m.d.sync += [line.eq(line >> _LANE_BITS), lane.eq(lane + 1)]
                with m.If(lane == LANES - 1):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.sync += drain.eq(drain + 1)
                with m.If(drain == _PIPELINE):
                    m.next = "NEXT"
        m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
        self._compare(m, address, lane, line[:_LANE_BITS], shifting, everything)
        return m

    def _compare(self, m: Module, address: Value, lane: Value, word: Value, valid: Value, everything: Value) -> None:
        """Stage 1: place in the table; 2: the table's word; 3: equal or not; then the verdict."""
        words = expected_words(self._config)
        m.submodules.table = table = Memory(
            shape=_LANE_BITS, depth=len(words), init=words, attrs={"ram_style": "block"}
        )
        port = table.read_port()
        place, is_zero = self._place(address, lane)
        index, words_held, zeros = (
            Signal.like(port.addr),
            [Signal(_LANE_BITS, name=f"word_{k}") for k in (1, 2)],
            [Signal(name=f"zero_{k}") for k in (1, 2)],
        )
        stages = Signal(_PIPELINE)
        different, lanes = Signal(), [Signal(range(LANES), name=f"lane_{k}") for k in (1, 2, 3)]
        m.d.comb += port.addr.eq(index)
        m.d.sync += [
            stages.eq(Cat(valid, stages)),
            index.eq(place), words_held[0].eq(word), zeros[0].eq(is_zero), lanes[0].eq(lane),
            words_held[1].eq(words_held[0]), zeros[1].eq(zeros[0]), lanes[1].eq(lanes[0]),
            different.eq(words_held[1] != Mux(zeros[1], 0, port.data)), lanes[2].eq(lanes[1]),
            self.failure.valid.eq(stages[2] & different),
            self.failure.what.eq(FailureCode.MEMORY),
            self.failure.detail.eq(Cat(lanes[2], address)),
        ]  # fmt: skip
        with m.If(valid & everything):
            m.d.sync += self.checksum.eq(self.checksum.rotate_left(5) ^ word)
        with m.If(self.read_all):
            m.d.sync += self.checksum.eq(0)

    def _place(self, address: Value, lane: Value) -> tuple[Value, Value]:
        """Index of the table of :func:`~t3fpga.selftest.line_values.expected_words`; the line must be zero instead."""
        gpu, seed = self.seed.gpu, self.seed.as_value()
        pair = lane[1:]
        local, incoming = (spread(seed, address, incoming=side).word_select(pair, 2) for side in (0, 1))
        updated = gemm.in_output(address)
        a = Mux(updated | gemm.written_locally(address), local, incoming)
        how = Mux(updated, (op_of(self.seed) - Op.ADD)[:2], STORE)
        dtypes = [int(Dtype[name.upper()]) for name in self._config.dtypes]
        dtype = dtype_of(self.seed, self._config)
        number = sum((Mux(dtype == value, place, 0) for place, value in enumerate(dtypes)), start=Const(0))
        return Cat(incoming, a, lane, how, number[:2]), updated & (gemm.position(address, gpu) == 0)
