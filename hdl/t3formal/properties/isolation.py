"""What is not counted leaves no trace: two runs that differ in it alone give the same tokens at the same times.

Tokens, configuration writes, time, and what comes back from the DMA engine are all that token network, tracker and
trigger take in (:mod:`t3hdl.core`): with the same tokens at the same times they do the same in both runs.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ConfigWrite, MemoryRequest, Op
from t3hdl.interface.signatures import slice_signature
from t3hdl.slice.slice import MemorySlice

from ..prover.harness import Harness
from ..prover.proof import Proof

_PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")
_LINE_BITS = 2
_NARROW = {"line": _LINE_BITS, "op": 3, "context": 2, "tagged": 1, "col": 1, "tag": 1}
"""Fields of requests that may be anything; the others are 0."""


class _TwoSlices(wiring.Component):
    """Two slices with the same configuration writes, credit and time. Ports of the second one end in ``_1``."""

    def __init__(self, *, config: T3Config) -> None:
        self._config, self._members = config, slice_signature(config).members
        ports = {name: port for name, port in self._members.items()}
        second = {f"{name}_1": port for name, port in self._members.items() if not self._is_shared(name)}
        super().__init__(ports | second)

    def _is_shared(self, name: str) -> bool:
        member = self._members[name]
        return member.is_port and member.flow == wiring.In

    def elaborate(self, platform: Any) -> Module:
        """Nothing between the two; streams that leave them are as ready."""
        m = Module()
        for number in range(2):
            m.submodules[f"slice_{number}"] = part = MemorySlice(config=self._config)
            for name, member in self._members.items():
                outer = getattr(self, name if self._is_shared(name) or not number else f"{name}_1")
                inner = getattr(part, name)
                if member.is_signature:
                    wiring.connect(m, wiring.flipped(outer), inner)
                else:
                    m.d.comb += inner.eq(outer) if member.flow == wiring.In else outer.eq(inner)
        return m


def _fields(harness: Harness, prefix: str) -> Any:
    """A narrow request of any fields."""
    request = Signal(MemoryRequest, name=f"{prefix}_request")
    harness.m.d.comb += [request[name].eq(harness.free(f"{prefix}_{name}", bits)) for name, bits in _NARROW.items()]
    return request


def _isolated(config: T3Config) -> Harness:
    """Requests are the same in both runs if one of them is counted; the ranges are those that were written."""
    slices = _TwoSlices(config=config)
    harness = Harness(slices)
    m = harness.m
    ranges = _ranges(harness, slices, config)
    for port in _PORTS:
        first, other = _fields(harness, port), _fields(harness, f"{port}_other")
        payload = Signal(MemoryRequest, name=f"{port}_second")
        tracked, refused = zip(*(_judged(port, ranges, request) for request in (first, other)), strict=True)
        differs = ~tracked[0] & ~tracked[1] & (refused[0] == refused[1])
        m.d.comb += payload.eq(Mux(differs, other, first))
        streams = getattr(slices, port), getattr(slices, f"{port}_1")
        for stream, value in zip(streams, (first, payload), strict=True):
            harness.drive(stream.payload, value)
        harness.drive(streams[1].valid, streams[0].valid)
        harness.claim(f"{port} is ready at the same times", streams[0].ready == streams[1].ready)
    for name in ("dram", "token"):
        harness.drive(getattr(slices, f"{name}_1").ready, getattr(slices, name).ready)
        same = getattr(slices, f"{name}_1").valid == getattr(slices, name).valid
        harness.claim(f"{name} is valid at the same times", same)
    token = slices.token
    harness.claim("the tokens are the same", ~token.valid | (token.payload == slices.token_1.payload))
    first, second = slices.dram, slices.dram_1
    harness.claim("the same accesses are tracked", ~first.valid | (first.payload.tagged == second.payload.tagged))
    harness.claim(
        "tracked accesses are the same",
        ~first.valid | ~first.payload.tagged | (first.payload == second.payload),
    )
    harness.cover("a token beside another address", token.valid & first.valid & (first.payload != second.payload))
    harness.cover(
        "a refusal of another address", slices.comm_refused_valid & (slices.comm_refused != slices.comm_refused_1)
    )
    return harness


def _ranges(harness: Harness, slices: _TwoSlices, config: T3Config) -> list[tuple[Value, Value, Any]]:
    """Drives the configuration writes, and follows base, limit and attributes of every range."""
    m, write = harness.m, Signal(ConfigWrite, name="write")
    table, bits = harness.free("address", 6) << 3, harness.free("bits", 32)
    m.d.comb += [write.address.eq(Mux(harness.free("of_control"), regs.CONTROL, table)), write.data.eq(bits)]
    harness.drive(slices.config, write)
    control = Signal(regs.Control)
    m.d.comb += control.eq(bits)
    aborted = control_written(slices.config_valid, write) & control.abort
    ranges = []
    for i in range(config.ranges):
        words = [
            Signal(layout, name=f"range_{i}_{number}")
            for number, layout in enumerate((regs.Line, regs.Line, regs.RangeAttributes))
        ]
        for number, word in enumerate(words):
            with m.If(slices.config_valid & (write.address == regs.RANGE + i * regs.RANGE_STRIDE + 8 * number)):
                m.d.sync += word.eq(bits)
        with m.If(aborted & (words[2].context == control.context)):
            m.d.sync += words[2].valid.eq(0)
        ranges.append((words[0].line, words[1].line, words[2]))
    return ranges


def _judged(port: str, ranges: list[tuple[Value, Value, Any]], request: Any) -> tuple[Value, Value]:
    """Whether a request at this port is counted, and whether it is refused."""
    tracked, refused, before = Value.cast(0), Value.cast(0), Value.cast(0)
    for base, limit, attributes in ranges if port.endswith("write") else []:
        hit = attributes.valid & (base <= request.line) & (request.line < limit) & ~before
        mine = request.context == attributes.context
        updates = (request.op >= Op.STORE) & (request.op <= Op.MAX)
        tracked, refused = (
            tracked | (hit & mine & request.tagged & updates),
            refused | (hit & ~mine & (request.op != Op.READ)),
        )
        before = before | hit
    return tracked[0], refused[0]


PROOFS = (
    Proof(
        name="isolation.slice",
        invariants=(4,),
        says="Accesses outside every live range, and of other contexts than the range's, change neither ranges nor "
        "tokens nor their times: whatever they carry, tracker and trigger see the same.",
        harness=_isolated,
        sizes={
            "one range": preset("small", ranges=1, token_queue=2),
            "two ranges": preset("small", token_queue=2),
            "counted when performed": preset("small", ranges=1, token_queue=2, count_on="performed"),
        },
        depth=12,
        quick=False,
    ),
)
