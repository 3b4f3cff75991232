"""Memory after an update is op(old, new) whatever the spacing, with an ALU whose results are unknown."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import LINE_BYTES, NmcRequest, Op
from t3hdl.interface.signatures import alu_signature, nmc_signature
from t3hdl.nmc.alu import NmcAlu, updates
from t3hdl.nmc.nmc import NmcUnit

from ..prover.harness import Harness
from ..prover.proof import Proof

_LANES = (0, LINE_BYTES - 1)
"""The bytes of a line that are looked at; those between go the way of these, and all bits of a byte the same way."""
_NUMBER_BITS = 3
"""Requests are numbered modulo 8; fewer are under way."""

_Operation = data.StructLayout({"op": 3, "dtype": 2, "mask": LINE_BYTES, "old": 8 * LINE_BYTES, "data": 8 * LINE_BYTES})


class _UnknownAlu(wiring.Component):
    """Has the timing of an ALU; the result of an update is ``unknown`` in the cycle in which it is there.

    ``done`` : the operation whose result is there. What is no update gives the old line, as the real ALU does.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(alu_signature(config))
        self._config = config
        self.unknown = Signal(8 * LINE_BYTES, name="alu_result")
        self.done = Signal(_Operation)

    @property
    def latency(self) -> int:
        """That of the real one, by docs/hardware/nmc.md."""
        return self._config.nmc_latency + self._config.nmc_beats - 1

    def elaborate(self, platform: Any) -> Module:
        """The operation waits for its result."""
        m = Module()
        valid, moving = self.valid, Signal(_Operation)
        m.d.comb += [moving[name].eq(getattr(self, name)) for name, _ in _Operation]
        for stage in range(self.latency):
            moved, moved_valid = Signal(_Operation, name=f"moved_{stage}"), Signal(name=f"valid_{stage}")
            m.d.sync += [moved.eq(moving), moved_valid.eq(valid)]
            moving, valid = moved, moved_valid
        m.d.comb += [
            self.done.eq(moving),
            self.result_valid.eq(valid),
            self.result.eq(Mux(updates(self._config, self.done.op, self.done.dtype), self.unknown, self.done.old)),
        ]
        return m


def _line(choose: Callable[..., Any], name: str) -> Value:
    """A line of which ``choose`` makes the lowest bit of each byte that is looked at."""
    bits = {lane: choose(f"{name}_{lane}") for lane in _LANES}
    return Cat(Cat(bits[lane], Const(0, 7)) if lane in bits else Const(0, 8) for lane in range(LINE_BYTES))


def _requests(choose: Callable[..., Any], prefix: str, line_bits: int) -> dict[str, Value]:
    """The fields of narrow requests, as ``choose`` makes them; without the tag."""
    narrow = {"line": line_bits, "op": 3, "dtype": 2}
    fields = {name: choose(f"{prefix}{name}", bits) for name, bits in narrow.items()}
    enabled = {lane: choose(f"{prefix}mask_{lane}") for lane in _LANES}
    fields["mask"] = Cat(enabled.get(lane, Const(0, 1)) for lane in range(LINE_BYTES))
    fields["data"] = _line(choose, f"{prefix}data")
    return fields


def _unit(config: T3Config, *, line_bits: int = 2) -> tuple[Harness, NmcUnit, _UnknownAlu, dict[str, Value]]:
    """The unit, an ALU of any results, and the fields that its requests are to have."""
    alu = _UnknownAlu(config=config)
    unit = NmcUnit(config=config, alu=alu)
    harness = Harness(unit)
    harness.m.d.comb += alu.unknown.eq(_line(harness.free, "result"))
    return harness, unit, alu, _requests(harness.free, "", line_bits)


def _drive(harness: Harness, unit: NmcUnit, fields: dict[str, Value]) -> None:
    """Requests have these fields, the others are 0."""
    request = Signal(NmcRequest, name="request_driven")
    harness.m.d.comb += [request[name].eq(value) for name, value in fields.items()]
    harness.drive(unit.request.payload, request)


def _atomic(config: T3Config) -> Harness:
    """One line and one of its bytes are chosen; the model of the memory is a bit of that byte."""
    harness, unit, alu, fields = _unit(config)
    _drive(harness, unit, fields)
    line, upper = harness.chosen("line_of_interest", 2), harness.chosen("last_byte_rather_than_first")

    def looked_at(value: Value) -> Value:
        first, last = (value.word_select(lane, len(value) // LINE_BYTES)[0] for lane in _LANES)
        return Mux(upper, last, first)

    m, memory = harness.m, Signal(name="memory")
    with m.If(unit.write_valid & (unit.write_line == line) & looked_at(unit.write_mask)):
        m.d.sync += memory.eq(looked_at(unit.write_data))
    harness.drive(unit.read_data, read := _line(harness.free, "read"))
    reads = unit.read_valid & (unit.read_line == line)
    harness.assume(
        "a bank gives its word in the next cycle, with every write up to the read's cycle",
        ~harness.past(reads) | (looked_at(read) == memory),
    )
    here, update, enabled, after = Signal(), Signal(), Signal(), Signal()
    done, result = alu.done, looked_at(alu.unknown)
    m.d.comb += [
        here.eq(unit.done_valid & (unit.write_line == line)),
        update.eq(updates(config, done.op, done.dtype)),
        enabled.eq(looked_at(done.mask)),
        after.eq(Mux(looked_at(unit.write_mask), looked_at(unit.write_data), memory)),
    ]
    harness.claim("the old line is what the memory holds until the write", ~here | (looked_at(done.old) == memory))
    harness.claim(
        "memory after it: the result, zero for READ_CLEAR, or as before",
        ~here | (after == Mux(enabled, Mux(update, result, memory & (done.op != Op.READ_CLEAR)), memory)),
    )
    harness.claim(
        "the new line of an update is returned, else the old one",
        ~here | (looked_at(unit.done_data) == Mux(update, result, memory)),
    )
    harness.claim("write and done come together", unit.write_valid == unit.done_valid)
    harness.cover("two updates of the line, as close as can be", here & update & enabled & memory & (done.op == Op.ADD))
    return harness


def _in_order(config: T3Config) -> Harness:
    """The tags are the numbers of the requests (modulo 8; fewer are under way)."""
    harness, unit, _, fields = _unit(config)
    number, done, entered = Signal(_NUMBER_BITS), Signal(_NUMBER_BITS), Signal()
    _drive(harness, unit, fields | {"tag": number})
    harness.m.d.comb += entered.eq(unit.request.valid & unit.request.ready)
    harness.m.d.sync += [number.eq(number + entered), done.eq(done + unit.done_valid)]
    harness.claim("requests are done in order, each once", ~unit.done_valid | (unit.done_tag == done))
    harness.claim("none is done that did not enter", ~unit.done_valid | (done != number))
    harness.cover("the sixth is done", unit.done_valid & (done == 5))
    return harness


def _keeps_items(config: T3Config) -> Harness:
    """Some requests are marked by their tag, and carry one chosen item: it is with the mark all the way."""
    harness, unit, alu, others = _unit(config)
    item, marked = _requests(harness.chosen, "chosen_", 2), harness.free("marked")
    _drive(harness, unit, {name: Mux(marked, item[name], other) for name, other in others.items()} | {"tag": marked})
    ends = Signal()
    harness.m.d.comb += ends.eq(unit.done_valid & (unit.done_tag == 1))
    changes = updates(config, item["op"], item["dtype"]) | (item["op"] == Op.READ_CLEAR)
    harness.claim("the write goes to the line of the request", ~ends | (unit.write_line == item["line"]))
    harness.claim("its mask is written, or nothing", ~ends | (unit.write_mask == Mux(changes, item["mask"], 0)))
    harness.claim(
        "the ALU gets its operation and operand",
        ~ends | Cat(alu.done[name] == item[name] for name in ("op", "dtype", "mask", "data")).all(),
    )
    harness.claim("the tag comes back, whole", ~unit.done_valid | ((unit.done_tag >> 1) == 0))
    other_first = Signal()
    with harness.m.If(unit.done_valid):
        harness.m.d.sync += other_first.eq(~ends)
    harness.cover("an update after another request", ends & changes & other_first)
    return harness


def _in_beats(harness: Harness, config: T3Config, valid: Value) -> Value:
    """Whether ``valid`` is 0 in the beats - 1 cycles after it was 1, as the ALU's contract says."""
    left = Signal(range(config.nmc_beats))
    harness.m.d.sync += left.eq(Mux(valid, config.nmc_beats - 1, left - left.any()))
    return ~valid | (left == 0)


def _answers(config: T3Config) -> Harness:
    """How long nothing is done while there are requests."""
    harness, unit, alu, fields = _unit(config, line_bits=3)
    _drive(harness, unit, fields)
    m, beats = harness.m, config.nmc_beats
    there, silent, runs = Signal(5), Signal(range(unit.latency + 5)), Signal(3)
    m.d.sync += [
        there.eq(there + (unit.request.valid & unit.request.ready) - unit.done_valid),
        silent.eq(Mux(unit.done_valid | (there == 0), 0, silent + 1)),
    ]
    with m.If(unit.done_valid):
        m.d.sync += runs.eq(Mux(silent == beats - 1, runs + (runs != 7), 0))
    harness.claim("while there are requests, one is done every latency + 1 cycles", silent <= unit.latency)
    harness.claim("a line comes when the ALU takes one again", _in_beats(harness, config, alu.valid))
    harness.cover("one waits for its line", silent == unit.latency)
    harness.cover("five lines as fast as the ALU takes them", runs == 4)
    return harness


class _TwoUnits(wiring.Component):
    """Two units whose requests have the same lines at the same times, and whatever else."""

    def __init__(self, *, config: T3Config) -> None:
        ports = {f"{name}_{i}": port for i in range(2) for name, port in nmc_signature(config).members.items()}
        super().__init__(ports)
        self._config = config

    def elaborate(self, platform: Any) -> Module:
        """The second unit's line and valid are those of the first one."""
        m = Module()
        for i in range(2):
            m.submodules[f"unit_{i}"] = unit = NmcUnit(config=self._config)
            wiring.connect(m, wiring.flipped(getattr(self, f"request_{i}")), unit.request)
            for name, member in nmc_signature(self._config).members.items():
                outer, inner = getattr(self, f"{name}_{i}"), getattr(unit, name)
                if not member.is_port:
                    continue
                m.d.comb += inner.eq(outer) if member.flow == wiring.In else outer.eq(inner)
        return m


def _timing(config: T3Config) -> Harness:
    """Two runs that differ in operations, operands, tags and memory."""
    units = _TwoUnits(config=config)
    harness = Harness(units)
    payload = Signal(NmcRequest, name="second_request")
    others = {name: harness.free(f"second_{name}", width) for name, width in (("op", 3), ("mask", LINE_BYTES))}
    harness.m.d.comb += [payload.eq(units.request_0.payload), *(payload[name].eq(v) for name, v in others.items())]
    harness.drive(units.request_1.payload, payload)
    harness.drive(units.request_1.valid, units.request_0.valid)
    harness.claim("ready at the same times", units.request_0.ready == units.request_1.ready)
    for name in ("read_valid", "write_valid", "done_valid"):
        harness.claim(f"{name} at the same times", getattr(units, f"{name}_0") == getattr(units, f"{name}_1"))
    for valid, name in (("read_valid", "read_line"), ("write_valid", "write_line")):
        same = getattr(units, f"{name}_0") == getattr(units, f"{name}_1")
        harness.claim(f"{name} is the same", ~getattr(units, f"{valid}_0") | same)
    harness.cover("results that differ", units.done_valid_0 & (units.write_mask_0 != units.write_mask_1))
    return harness


def _alu(config: T3Config) -> Harness:
    """The real ALU beside a shift register."""
    alu = NmcAlu(config=config)
    harness = Harness(alu)
    valid, old, update = alu.valid, alu.old, updates(config, alu.op, alu.dtype)
    harness.assume("a line comes when the ALU takes one again", _in_beats(harness, config, valid))
    for _ in range(alu.latency):
        valid, old, update = harness.past(valid), harness.past(old), harness.past(update)
    harness.claim("a result in the cycle that is due, none else", alu.result_valid == valid)
    harness.claim(
        "what is no update gives the old line, and no flags",
        ~valid | update | ((alu.result == old) & ~alu.flags.any()),
    )
    harness.cover("an old line", valid & ~update & (old == 5))
    return harness


_SIZES = {
    "latency 2": preset("small", nmc_latency=2),
    "latency 3": preset("small"),
    "INT32 alone": preset("small", nmc_latency=2, dtypes=("int32",)),
    **{f"{lanes} lanes": preset("small", nmc_latency=2, dtypes=("int32",), nmc_lanes=lanes) for lanes in (8, 4, 2)},
    "2 lanes, latency 6": preset("small", nmc_latency=6, dtypes=("int32",), nmc_lanes=2),
}
_BEATS = {name: size for name, size in _SIZES.items() if name not in ("latency 2", "latency 3")}

PROOFS = (
    Proof(
        name="nmc.atomic",
        invariants=(7,),
        says="Every operation acts on what the memory holds until its write, whatever the spacing: memory after it is "
        "op(old, new), for any op.",
        harness=_atomic,
        sizes=_SIZES,
        depth=64,
    ),
    Proof(
        name="nmc.in-order",
        invariants=(7,),
        says="Every request is done once, in order.",
        harness=_in_order,
        sizes=_SIZES,
        depth=64,
    ),
    Proof(
        name="nmc.keeps-items",
        invariants=(7,),
        says="The tag of a request comes back with the write to its line, of its operation and operand.",
        harness=_keeps_items,
        sizes=_SIZES,
        depth=64,
    ),
    Proof(
        name="nmc.answers",
        invariants=(7,),
        says="A request waits for an earlier one of its line, at most: while there are requests, one is done every "
        "latency + 1 cycles; on distinct lines, one every beats cycles.",
        harness=_answers,
        sizes=_SIZES,
        depth=64,
    ),
    Proof(
        name="nmc.timing",
        invariants=(7,),
        says="When and where a unit reads and writes does not depend on operations, operands or what the memory holds.",
        harness=_timing,
        sizes=_BEATS,
        depth=64,
    ),
    Proof(
        name="nmc.alu",
        invariants=(7,),
        says="The real ALU has the timing of the unknown one, and gives the old line for what is no update.",
        harness=_alu,
        sizes={"INT32 alone": _SIZES["INT32 alone"], "latency 2": _SIZES["latency 2"]},
        method="induction",
        depth=3,
        cover_depth=6,
    ),
    Proof(
        name="nmc.alu-in-beats",
        invariants=(7,),
        says="So does one that takes a line in two, four or eight beats.",
        harness=_alu,
        sizes={name: size for name, size in _BEATS.items() if size.nmc_beats > 1},
        method="induction",
        depth=16,
        cover_depth=16,
    ),
)
