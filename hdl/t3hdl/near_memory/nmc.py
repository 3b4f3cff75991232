"""Near-memory computing at a bank group: atomic op-and-store on 32-byte lines, timing independent of the data."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ..blocks.queues import InputQueue
from ..config import T3Config
from ..layouts import LINE_BITS, LINE_BYTES, NEVER, NmcRequest, Op
from ..signatures import nmc_signature
from .alu import NmcAlu, bits_of, updates

_LINE = 8 * LINE_BYTES
_ISSUE_STAGES = 2
"""Cycles from issue to the memory's word: one to register the address, one in the memory."""


class NmcUnit(wiring.Component):
    """Reads, combines and writes lines of one bank group, in request order.

    A request waits at the head while an older one with the same line is in flight: at most ``latency`` cycles, so
    the memory has the new word when it is read again. An update (STORE, or arithmetic of a data type that is built)
    returns the new line. READ_CLEAR writes zeros into the enabled bytes, READ and whatever this configuration does not
    have write nothing (the write pulse has an empty mask); they return the old line.

    Parameters
    ----------
    config : the hardware configuration.
    alu : another component with the ports and the latency of :class:`~t3hdl.near_memory.alu.NmcAlu`, which it is else:
        what the unit does with the results does not depend on what they are.

    Members
    -------
    request : In(stream(NmcRequest)) : operations on lines; ``tag`` is the requester's own.
    read_valid, read_line : Out : pulse; the memory's word of this line must be at ``read_data`` in the next cycle.
    read_data : In(256) : that word, with every write up to the cycle of ``read_valid`` in it.
    write_valid, write_line, write_data, write_mask : Out : pulse; writes the bytes that the mask enables.
    done_valid, done_tag, done_data, done_flags : Out : pulse, beside the write; the request with this tag is performed,
        with this line (new for updates, else old) and these exceptions (:data:`~t3hdl.near_memory.float.Flags`).
    idle, wake_at : Out : rule 5 of docs/hardware.md; ``wake_at`` is ``NEVER``.

    Latency: ``latency`` = 2 + ``nmc_latency`` cycles from the issue of the head to the write and done pulses; one more
    from the request's transfer into an empty queue. Throughput: one request per cycle on distinct lines. Reset: empty,
    ready at once.
    """

    def __init__(self, *, config: T3Config, alu: wiring.Component | None = None) -> None:
        self._config = config
        self._alu: Any = alu or NmcAlu(config=config)
        super().__init__(nmc_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from issue to ``write_valid`` and ``done_valid``."""
        return _ISSUE_STAGES + self._config.nmc_latency

    def elaborate(self, platform: Any) -> Module:
        """Queue, issue, a shift register of what is in flight, and the ALU that ends together with it."""
        m = Module()
        m.submodules.queue = queue = InputQueue(NmcRequest)
        m.submodules.alu = alu = self._alu
        wiring.connect(m, wiring.flipped(self.request), queue.i)
        head = queue.o.payload

        # Entry i of the shift register was issued i + 1 cycles ago; the last one is at its write pulse.
        flight = data.StructLayout({"line": LINE_BITS, "tag": 32, "mask": LINE_BYTES, "clear": 1})
        flights = [Signal(flight, name=f"flight_{stage}") for stage in range(self.latency)]
        valid = Signal(self.latency)
        conflict = Cat(valid[stage] & (held.line == head.line) for stage, held in enumerate(flights)).any()
        issue = Signal()
        entering = Signal(flight)
        changes = updates(self._config, head.op, head.dtype) | (head.op == Op.READ_CLEAR)
        m.d.comb += [
            issue.eq(queue.o.valid & ~conflict),
            queue.o.ready.eq(issue),
            entering.line.eq(head.line),
            entering.tag.eq(head.tag),
            entering.mask.eq(Mux(changes, head.mask, 0)),
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
            self.write_data.eq(Mux(done.clear, alu.result & ~bits_of(done.mask), alu.result)),
            self.done_valid.eq(alu.result_valid),
            self.done_tag.eq(done.tag),
            self.done_data.eq(alu.result),
            self.done_flags.eq(alu.flags),
            self.idle.eq(~queue.o.valid & ~valid.any()),
            self.wake_at.eq(NEVER),
        ]
        return m

    def _feed(self, m: Module, alu: Any, head: Any, issue: Value, valid: Value) -> None:
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
            alu.data.eq(waiting.data),
        ]


def _shift(m: Module, advance: Value, entering: Any, registers: list[Any]) -> None:
    """A shift register: each register takes its predecessor's value in a cycle in which its advance bit is 1."""
    for stage, register in enumerate(registers):
        with m.If(advance[stage]):
            m.d.sync += register.eq(entering)
        entering = register
