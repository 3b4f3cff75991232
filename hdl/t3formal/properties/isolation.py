"""What is not counted leaves no trace: two runs that differ in it alone give the same tokens at the same times.

Not counted are accesses that are not tracked, those that are refused, and what the memory reports of an aborted
context, late and of any name.

Tokens, configuration writes, time, and what comes back from the DMA engine are all that token network, tracker and
trigger take in (:mod:`t3hdl.core`): with the same tokens at the same times they do the same in both runs.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import INTERLEAVE_BITS, LENGTH_BITS, ConfigWrite, MemoryRequest
from t3hdl.interface.signatures import slice_signature
from t3hdl.slice.slice import MemorySlice

from ..models.naive_ranges import NaiveRanges
from ..prover.harness import Harness
from ..prover.proof import Proof

_PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")
_NARROW = {"line": INTERLEAVE_BITS + 1, "op": 3, "context": 2, "tagged": 1, "col": 1, "epoch": 1, "tag": 1}
"""Fields of requests that may be anything, and ``length``; the others are 0. Lines are those of two blocks."""


class _TwoSlices(wiring.Component):
    """Two slices with the same configuration writes and time. Ports of the second one end in ``_1``."""

    def __init__(self, *, config: T3Config) -> None:
        self._config, self._members = config, slice_signature(config).members
        ports = {name: port for name, port in self._members.items()}
        second = {f"{name}_1": port for name, port in self._members.items() if not self._is_shared(name)}
        super().__init__(ports | second)

    def _is_shared(self, name: str) -> bool:
        member = self._members[name]
        return member.is_port and member.flow == wiring.In and not name.startswith("update_done")

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
    fields = _NARROW | {"length": LENGTH_BITS}
    harness.m.d.comb += [request[name].eq(harness.free(f"{prefix}_{name}", bits)) for name, bits in fields.items()]
    return request


def _isolated(config: T3Config) -> Harness:
    """Requests are the same in both runs if one of them is counted; the ranges are those that were written."""
    slices = _TwoSlices(config=config)
    harness = Harness(slices)
    write = _configure(harness, slices)
    ranges = NaiveRanges(harness.m, slices.config_valid, write, config.ranges)
    for port in _PORTS:
        _request(harness, port, ranges, config)
    _report(harness, slices, write, config)
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
    harness.cover("refusals for different reasons", slices.comm_refused_valid & slices.comm_stale_valid_1)
    lengths = slices.comm_refused.length, slices.comm_refused_1.length
    harness.cover("a refusal of another length", slices.comm_refused_valid & (lengths[0] != lengths[1]))
    return harness


def _configure(harness: Harness, slices: _TwoSlices) -> Any:
    """Drives the configuration writes of both: CONTROL and ranges, narrow values."""
    m, write = harness.m, Signal(ConfigWrite, name="write")
    table, bits = harness.free("address", 6) << 3, harness.free("bits", 32)
    m.d.comb += [write.address.eq(Mux(harness.free("of_control"), regs.CONTROL, table)), write.data.eq(bits)]
    harness.drive(slices.config, write)
    return write


def _request(harness: Harness, port: str, ranges: NaiveRanges, config: T3Config) -> None:
    """Drives a port of both slices: with two requests if neither is counted, and both or none are refused. Those that
    enter have as many lines as each other: arbitration sees how many, whatever they are."""
    slices, first, free = harness.dut, _fields(harness, port), _fields(harness, f"{port}_other")
    other, refused = Signal(MemoryRequest, name=f"{port}_of_other"), Signal(name=f"{port}_refused")
    harness.m.d.comb += [other.eq(free), other.length.eq(Mux(refused, free.length, first.length))]
    payload, uncounted = Signal(MemoryRequest, name=f"{port}_second"), Signal(name=f"{port}_uncounted")
    if port.endswith("write"):
        judged = [ranges.judge(request, config.contexts) for request in (first, other)]
        harness.m.d.comb += [
            refused.eq(judged[0].refused),
            uncounted.eq(~judged[0].tracked & ~judged[1].tracked & (judged[0].refused == judged[1].refused)),
        ]
    else:
        harness.m.d.comb += uncounted.eq(1)
    harness.m.d.comb += payload.eq(Mux(uncounted, other, first))
    streams = getattr(slices, port), getattr(slices, f"{port}_1")
    for stream, value in zip(streams, (first, payload), strict=True):
        harness.drive(stream.payload, value)
    harness.drive(streams[1].valid, streams[0].valid)
    harness.claim(f"{port} is ready at the same times", streams[0].ready == streams[1].ready)


def _report(harness: Harness, slices: _TwoSlices, write: Any, config: T3Config) -> None:
    """Drives the reports of the memory: as many of tracked accesses, with two names if neither is counted; and any of
    others, which need not be the same, nor come at the same times."""
    m, contexts = harness.m, range(config.contexts)
    control = data.View(regs.Control, write.data[: regs.Control.size])
    action, aborted = control_written(slices.config_valid, write), Signal(config.contexts, name="aborted_contexts")
    for c in contexts:
        with m.If(action & control.disarm):
            m.d.sync += aborted[c].eq(control.forced)
        with m.Elif(action & (control.arm | control.abort) & (control.context == c)):
            m.d.sync += aborted[c].eq(control.abort)
    first, other = _fields(harness, "report"), _fields(harness, "report_other")
    comes = [harness.free(f"report_{name}valid") for name in ("", "other_")]
    tracked = [valid & request.tagged for valid, request in zip(comes, (first, other), strict=True)]
    late = [Cat(aborted[c] & (request.context == c) for c in contexts).any() for request in (first, other)]
    uncounted = Signal(name="uncounted_reports")
    m.d.comb += uncounted.eq(Mux(tracked[0] | tracked[1], tracked[0] & tracked[1] & late[0] & late[1], 1))
    harness.drive(slices.update_done_valid, comes[0])
    harness.drive(slices.update_done, first)
    harness.drive(slices.update_done_valid_1, Mux(uncounted, comes[1], comes[0]))
    second = Signal(MemoryRequest, name="report_second")
    m.d.comb += second.eq(Mux(uncounted, other, first))
    harness.drive(slices.update_done_1, second)
    if config.count_on == "performed":
        waits = [harness.inside[rf"slice_{number}\.outstanding"] for number in range(2)]
        names = tracked[0] & uncounted & (first.as_value() != other.as_value())
        harness.cover("late reports of two names", names & (waits[0] != 0))


PROOFS = (
    Proof(
        name="isolation.slice",
        invariants=(4,),
        says="Bursts outside every live range, with any line in another context's range or over a range's bound, or of "
        "no live epoch, and late reports of aborted contexts change neither ranges nor tokens nor their times: "
        "whatever they carry, tracker and trigger see the same. Of what is not refused only the number of lines is "
        "seen: it decides, as arbitration does, when others go.",
        harness=_isolated,
        sizes={
            "counted when performed": preset("small", ranges=1, token_queue=2, count_on="performed"),
            "one range": preset("small", ranges=1, token_queue=2),
            "two ranges": preset("small", token_queue=2),
        },
        depth=12,
        quick=False,
    ),
)
