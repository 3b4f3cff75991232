"""Near-memory computing at a bank group: atomic op-and-store on 32-byte lines, timing independent of the data."""

from functools import reduce
from math import ceil
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Fragment, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ..common.queues import PingPongQueue
from ..common.state_parity import under_state_parity
from ..config import T3Config
from ..interface.layouts import LINE_BITS, LINE_BYTES, NEVER, NmcRequest, Op
from ..interface.signatures import nmc_signature
from .alu import NmcAlu, bits_of, updates
from .interlock import LineInterlock

_LINE = 8 * LINE_BYTES
_ISSUE_STAGES = 2
"""Cycles from issue to the memory's word: one to register the address, one in the memory."""


class NmcUnit(wiring.Component):
    """Reads, combines and writes lines of one bank group, in request order.

    A request waits at the head while an older one with the same line is in flight: at most ``latency`` cycles, so
    the memory has the new word when it is read again; and until the ALU takes a line again, beats = 16 / ``nmc_lanes``
    cycles after the last. An update (STORE, or arithmetic of a data type that is built)
    returns the new line. READ_CLEAR writes zeros into the enabled bytes, READ and whatever this configuration does not
    have write nothing (the write pulse has an empty mask); they return the old line.

    Parameters
    ----------
    config : the hardware configuration.
    alu : another component with the ports and the latency of :class:`~t3hdl.nmc.alu.NmcAlu`, which it is else:
        what the unit does with the results does not depend on what they are.

    Members
    -------
    request : In(stream(NmcRequest)) : operations on lines; ``tag`` is the requester's own.
    read_valid, read_line : Out : pulse; the memory's word of this line must be at ``read_data`` in the next cycle.
    read_data : In(256) : that word, with every write up to the cycle of ``read_valid`` in it.
    write_valid, write_line, write_data, write_mask : Out : pulse; writes the bytes that the mask enables.
    done_valid, done_tag, done_data, done_flags : Out : pulse, beside the write; the request with this tag is performed,
        with this line (new for updates, else old) and these exceptions (:data:`~t3hdl.nmc.float.Flags`).
    uncorrectable : Out(1) : 1 in the cycle after one in which a register of this unit had a wrong bit (``protect``), so
        that lines may be wrong or lost.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is ``NEVER``.

    Latency: ``latency`` = 2 + ``nmc_latency`` + beats - 1 cycles from the issue of the head to the write and done
    pulses; one more from the request's transfer into an empty queue. Throughput: one request every beats cycles on
    distinct lines, with sixteen lanes in every cycle. Reset: empty, ready at once.
    """

    def __init__(self, *, config: T3Config, alu: wiring.Component | None = None) -> None:
        self._config = config
        self._alu: Any = alu or NmcAlu(config=config)
        super().__init__(nmc_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from issue to ``write_valid`` and ``done_valid``."""
        return _ISSUE_STAGES + int(self._alu.latency)

    def elaborate(self, platform: Any) -> Module | Fragment:
        """With ``protect`` a parity watches every register, those of the ALU, too."""
        return under_state_parity(self._parts, platform, protect=self._config.protect)

    def _parts(self, damaged: Value) -> Module:
        """Queue, issue, a shift register of what is in flight, and the ALU that ends together with it."""
        m = Module()
        m.submodules.queue = queue = PingPongQueue(NmcRequest)
        m.submodules.alu = alu = self._alu
        wiring.connect(m, wiring.flipped(self.request), queue.i)
        head = queue.o.payload

        # Bit i of `issued`: a request was issued i + 1 cycles ago; the last one is at its write pulse. Requests are
        # issued at least `beats` cycles apart: flight i has the one of i * beats + 1 to (i + 1) * beats cycles ago.
        beats = self._config.nmc_beats
        issued = Signal(self.latency)
        flight = data.StructLayout({"line": LINE_BITS, "tag": 32, "mask": LINE_BYTES, "clear": 1})
        flights = [Signal(flight, name=f"flight_{entry}") for entry in range(ceil(self.latency / beats))]
        m.submodules.interlock = interlock = LineInterlock(len(flights))
        there = Cat(reduce(or_, issued[entry * beats : (entry + 1) * beats]) for entry in range(len(flights)))
        issue, may_issue = Signal(), Signal()
        entering = Signal(flight)
        changes = updates(self._config, head.op, head.dtype) | (head.op == Op.READ_CLEAR)
        m.d.comb += [
            may_issue.eq(queue.o.valid & ~issued[: beats - 1].any()),  # where a flight begins, if no line is in the way
            issue.eq(may_issue & ~(interlock.same & there).any()),
            queue.o.ready.eq(issue),
            entering.line.eq(head.line),
            entering.tag.eq(head.tag),
            entering.mask.eq(Mux(changes, head.mask, 0)),
            entering.clear.eq(head.op == Op.READ_CLEAR),
        ]
        m.d.sync += issued.eq(Cat(issue, issued))
        move = Cat(may_issue, issued)[::beats]
        _shift(m, move, entering, flights)
        self._watch(m, interlock, queue, move, flights)
        self._feed(m, alu, head, move, issued)
        done = flights[-1]
        m.d.comb += [
            self.read_valid.eq(issued[0]),
            self.read_line.eq(flights[0].line),
            self.write_valid.eq(alu.result_valid),
            self.write_line.eq(done.line),
            self.write_mask.eq(done.mask),
            self.write_data.eq(Mux(done.clear, alu.result & ~bits_of(done.mask), alu.result)),
            self.done_valid.eq(alu.result_valid),
            self.done_tag.eq(done.tag),
            self.done_data.eq(alu.result),
            self.done_flags.eq(alu.flags),
            self.idle.eq(~queue.o.valid & ~issued.any() & ~damaged & ~self.uncorrectable),
            self.wake_at.eq(NEVER),
        ]
        m.d.sync += self.uncorrectable.eq(damaged)
        return m

    def _watch(
        self, m: Module, interlock: LineInterlock, queue: PingPongQueue, move: Value, flights: list[Any]
    ) -> None:
        """The interlock sees what enters and leaves the queue, and the lines of the flights."""
        m.d.comb += [
            interlock.push.eq(queue.i.valid & queue.i.ready),
            interlock.line.eq(queue.i.payload.line),
            interlock.head_valid.eq(queue.o.valid),
            interlock.head.eq(queue.o.payload.line),
            interlock.pop.eq(queue.o.ready),
            interlock.full.eq(~queue.i.ready),
            interlock.lines.eq(Cat(held.line for held in flights)),
            interlock.move.eq(move),
        ]

    def _feed(self, m: Module, alu: Any, head: Any, move: Value, issued: Value) -> None:
        """What the ALU needs of the request waits for the memory's word."""
        operand = data.StructLayout({"op": 3, "dtype": 2, "mask": LINE_BYTES, "data": _LINE})
        entering = Signal(operand, name="operand")
        beats = self._config.nmc_beats
        operands = [Signal(operand, name=f"operand_{entry}") for entry in range(ceil(_ISSUE_STAGES / beats))]
        m.d.comb += [entering[name].eq(head[name]) for name, _ in operand]
        _shift(m, move, entering, operands)
        waiting = operands[-1]
        m.d.comb += [
            alu.valid.eq(issued[_ISSUE_STAGES - 1]),
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
