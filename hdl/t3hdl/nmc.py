"""Near-memory computing at a bank group: atomic op-and-store on 32-byte lines, timing independent of the data."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .config import T3Config
from .float import FP16, Flags, FloatAdder
from .layouts import LINE_BITS, LINE_BYTES, NEVER, Dtype, NmcRequest, Op
from .queues import InputQueue
from .signatures import nmc_signature

_LINE = 8 * LINE_BYTES
_ISSUE_STAGES = 2
"""Cycles from issue to the memory's word: one to register the address, one in the memory."""


class NmcAlu(wiring.Component):
    """One line per cycle: ``result`` = op(``old``, ``new``) in 16-bit lanes.

    STORE takes the new lane, ADD the FP16 sum. Every other operation, and ADD of another data type, gives the old line.
    A lane of which any byte is masked off keeps its old bytes and raises no flags.

    Members
    -------
    valid : In(1) : there is an operation at ``op``, ``dtype``, ``mask`` (a bit per byte), ``old`` and ``new``.
    result_valid : Out(1) : ``result`` and ``flags`` (bitwise OR over the lanes, see :data:`~t3hdl.float.Flags`).

    Latency: ``latency`` cycles, ``nmc_latency`` of the configuration. Registers without an operation hold.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._latency = config.nmc_latency
        super().__init__({
            "valid": In(1), "op": In(3), "dtype": In(2), "mask": In(LINE_BYTES), "old": In(_LINE), "new": In(_LINE),
            "result_valid": Out(1), "result": Out(_LINE), "flags": Out(Flags),
        })  # fmt: skip

    @property
    def latency(self) -> int:
        """Cycles from ``valid`` to ``result_valid``."""
        return self._latency

    def elaborate(self, platform: Any) -> Module:
        """The adders run in every lane; beside them travels what the lanes that do not add return."""
        m = Module()
        is_store, is_add = self.op == Op.STORE, (self.op == Op.ADD) & (self.dtype == Dtype.FP16)
        lanes = list(zip(_whole_lanes(self.mask), _lanes(self.old), _lanes(self.new), strict=True))
        entering = Signal(data.StructLayout({"adds": len(lanes), "other": _LINE}))
        m.d.comb += [
            entering.adds.eq(Cat(whole & is_add for whole, _, _ in lanes)),
            entering.other.eq(Cat(Mux(whole & is_store, new, old) for whole, old, new in lanes)),
        ]

        valid = Signal(self._latency)  # bit i: pipeline register i holds an operation
        advance = Cat(self.valid, valid)[: self._latency]
        m.d.sync += valid.eq(advance)
        registers = [Signal(entering.shape(), name=f"beside_{stage}") for stage in range(self._latency)]
        _shift(m, advance, entering, registers)
        beside = registers[-1]

        sums, flags = [], Const(0, Flags.size)
        for number, ((_, old, new), other) in enumerate(zip(lanes, _lanes(beside.other), strict=True)):
            m.submodules[f"adder_{number}"] = adder = FloatAdder(FP16, latency=self._latency)
            m.d.comb += [adder.advance.eq(advance), adder.a.eq(old), adder.b.eq(new)]
            adds = beside.adds[number]
            sums.append(Mux(adds, adder.sum, other))
            flags = flags | Mux(adds, adder.flags.as_value(), 0)
        m.d.comb += [self.result_valid.eq(valid[-1]), self.result.eq(Cat(sums)), self.flags.eq(flags)]
        return m


class NmcUnit(wiring.Component):
    """Reads, combines and writes lines of one bank group, in request order.

    A request waits at the head while an older one with the same line is in flight: at most ``latency`` cycles, so
    the memory has the new word when it is read again. READ_CLEAR writes zeros into whole lanes, READ nothing (its
    write pulse has an empty mask); both return the old line. STORE and ADD return the new line.

    Latency: ``latency`` = 2 + ``nmc_latency`` cycles from the issue of the head to the write and done pulses; one more
    from the request's transfer into an empty queue. Throughput: one request per cycle on distinct lines.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._config = config
        super().__init__(nmc_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from issue to ``write_valid`` and ``done_valid``."""
        return _ISSUE_STAGES + self._config.nmc_latency

    def elaborate(self, platform: Any) -> Module:
        """Queue, issue, a shift register of what is in flight, and the ALU that ends together with it."""
        m = Module()
        m.submodules.queue = queue = InputQueue(NmcRequest)
        m.submodules.alu = alu = NmcAlu(config=self._config)
        wiring.connect(m, wiring.flipped(self.request), queue.i)
        head = queue.o.payload

        # Entry i of the shift register was issued i + 1 cycles ago; the last one is at its write pulse.
        flight = data.StructLayout({"line": LINE_BITS, "tag": 32, "mask": LINE_BYTES, "clear": 1})
        flights = [Signal(flight, name=f"flight_{stage}") for stage in range(self.latency)]
        valid = Signal(self.latency)
        conflict = Cat(valid[stage] & (held.line == head.line) for stage, held in enumerate(flights)).any()
        issue = Signal()
        entering = Signal(flight)
        m.d.comb += [
            issue.eq(queue.o.valid & ~conflict),
            queue.o.ready.eq(issue),
            entering.line.eq(head.line),
            entering.tag.eq(head.tag),
            entering.mask.eq(Mux(_writes(head), head.mask, 0)),
            entering.clear.eq(head.op == Op.READ_CLEAR),
        ]
        m.d.sync += valid.eq(Cat(issue, valid))
        _shift(m, Cat(issue, valid), entering, flights)

        self._feed(m, alu, head, issue, valid)
        done = flights[-1]
        m.d.comb += [
            self.read_valid.eq(valid[0]),
            self.read_line.eq(flights[0].line),
            self.write_valid.eq(alu.result_valid),
            self.write_line.eq(done.line),
            self.write_mask.eq(done.mask),
            self.write_data.eq(_cleared(alu.result, done)),
            self.done_valid.eq(alu.result_valid),
            self.done_tag.eq(done.tag),
            self.done_data.eq(alu.result),
            self.done_flags.eq(alu.flags),
            self.idle.eq(~queue.o.valid & ~valid.any()),
            self.wake_at.eq(NEVER),
        ]
        return m

    def _feed(self, m: Module, alu: NmcAlu, head: Any, issue: Value, valid: Value) -> None:
        """What the ALU needs of the request waits for the memory's word."""
        operand = data.StructLayout({"op": 3, "dtype": 2, "mask": LINE_BYTES, "data": _LINE})
        entering = Signal(operand, name="operand")
        operands = [Signal(operand, name=f"operand_{stage}") for stage in range(_ISSUE_STAGES)]
        m.d.comb += [entering[name].eq(head[name]) for name, _ in operand]
        _shift(m, Cat(issue, valid), entering, operands)
        waiting = operands[-1]
        m.d.comb += [
            alu.valid.eq(valid[_ISSUE_STAGES - 1]),
            alu.op.eq(waiting.op),
            alu.dtype.eq(waiting.dtype),
            alu.mask.eq(waiting.mask),
            alu.old.eq(self.read_data),
            alu.new.eq(waiting.data),
        ]


def _shift(m: Module, advance: Value, entering: Any, registers: list[Any]) -> None:
    """A shift register: each register takes its predecessor's value in a cycle in which its advance bit is 1."""
    for stage, register in enumerate(registers):
        with m.If(advance[stage]):
            m.d.sync += register.eq(entering)
        entering = register


def _writes(request: Any) -> Value:
    """Whether the memory's line may change: operations that this release does not have leave it as it is."""
    is_add = (request.op == Op.ADD) & (request.dtype == Dtype.FP16)
    return is_add | (request.op == Op.STORE) | (request.op == Op.READ_CLEAR)


def _lanes(line: Value) -> list[Value]:
    """The 16-bit lanes of a line."""
    return [line.word_select(lane, FP16.bits) for lane in range(_LINE // FP16.bits)]


def _whole_lanes(mask: Value) -> list[Value]:
    """For each lane, whether all its bytes are enabled."""
    width = FP16.bits // 8
    return [mask.word_select(lane, width).all() for lane in range(LINE_BYTES // width)]


def _cleared(line: Value, flight: Any) -> Value:
    """What a request in flight writes: the ALU's line, with zeros in the whole lanes of a READ_CLEAR."""
    return Cat(
        Mux(flight.clear & whole, 0, lane) for whole, lane in zip(_whole_lanes(flight.mask), _lanes(line), strict=True)
    )
