"""The arithmetic of near-memory computing: op(old, data) on a 32-byte line, in one beat or in several."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import T3Config
from ..interface.layouts import Dtype, Op
from ..interface.signatures import alu_signature
from .beats import Beats
from .float import BF16, FORMAT_BITS, FP16, FP32, Flags, FloatFormat, FloatUnit

_LANE_BITS, _LANE_BYTES = 32, 4
_FORMATS = {"fp16": FP16, "bf16": BF16, "fp32": FP32}

_Taken = data.StructLayout({"low": 1, "high": 1, "single": 1})
"""Which halves of a lane are a float unit's result; ``single``: both are the low unit's."""

_Action = data.StructLayout(
    {
        "store": 1,  # enabled bytes take the new line's
        "halves": 1,  # FP16, BF16: arithmetic in 16-bit lanes
        "single": 1,  # FP32
        "integer": 1,  # INT32
        "compare": 1,  # MIN, MAX
        "larger": 1,  # MAX
        "form": FORMAT_BITS,  # number of the floating format among the configuration's
    }
)
"""What the 32-bit lanes of a line do: at most one of the first four bits is 1."""

_Integer = data.StructLayout({"acts": 1, "subtract": 1, "larger": 1, "new": _LANE_BITS})
"""An INT32 operation at its adder: whether there is one, MIN or MAX, MAX, and the new number, inverted if ``subtract``.
"""


def updates(config: T3Config, op: Value, dtype: Value) -> Value:
    """Whether ``op`` computes a new line: STORE, or arithmetic of a data type that ``config`` builds."""
    return (op == Op.STORE) | (_is_arithmetic(op) & Cat(dtype == _dtype(name) for name in config.dtypes).any())


def bits_of(mask: Value) -> Value:
    """A byte mask as a bit mask: every bit eight times."""
    return Cat(bit.replicate(8) for bit in mask)


class NmcAlu(wiring.Component):
    """A line in 16 / ``nmc_lanes`` beats: ``result`` = op(``old``, ``data``).

    STORE takes the enabled bytes of ``data``, whatever the data type. ADD, MIN and MAX act on lanes: sixteen of 16 bits
    (FP16, BF16) or eight of 32 bits (FP32, INT32); a lane of which any byte is masked off keeps its old bytes and
    raises no flags. Floating numbers: see :class:`~.float.FloatUnit`. INT32 is signed, its sum wraps, without
    flags. READ and READ_CLEAR give the old line, and so does whatever this configuration does not have: operations
    6 and 7, and arithmetic of a data type that is not in ``dtypes``.

    With fewer than sixteen lanes a line passes them in beats, low bits first. It comes as a whole, with ``valid``;
    ``valid`` must be 0 in the beats - 1 cycles after that.

    Members
    -------
    valid, op, dtype, mask, old, data : In : pulse; an operation on the line ``old``, with a bit of ``mask`` per byte.
    result_valid, result, flags : Out : pulse; ``flags``: bitwise OR over the lanes, see :data:`~.float.Flags`.

    Latency: ``latency`` = ``nmc_latency`` + beats - 1 cycles. Throughput: one line every beats cycles, with sixteen
    lanes in every cycle; registers without an operation hold. Reset: the pipeline is empty.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._config = config
        super().__init__(alu_signature(config))

    @property
    def latency(self) -> int:
        """Cycles from ``valid`` to ``result_valid``."""
        return self._config.nmc_latency + self._config.nmc_beats - 1

    def elaborate(self, platform: Any) -> Module:
        """The operation is decoded once; the lanes shift it along with the operands."""
        m = Module()
        stages = self._config.nmc_latency
        valid = Signal(self.latency)  # bit i: a line came i + 1 cycles ago
        valid_history = Cat(self.valid, valid)
        m.d.sync += valid.eq(valid_history[: self.latency])
        beats = Beats(m, count=self._config.nmc_beats, stages=stages, valid_history=valid_history)
        advance = Cat(beats.at(stage) for stage in range(stages))
        action = _Action(beats.held("action", self._decoded(m)))
        mask, old, new = (beats.split(name, getattr(self, name)) for name in ("mask", "old", "data"))
        results, flags = [], Const(0, Flags.size)
        for number in range(len(mask) // _LANE_BYTES):
            m.submodules[f"lane_{number}"] = lane = _Lane(config=self._config)
            m.d.comb += [
                lane.advance.eq(advance),
                lane.action.eq(action),
                lane.mask.eq(mask.word_select(number, _LANE_BYTES)),
                lane.old.eq(old.word_select(number, _LANE_BITS)),
                lane.data.eq(new.word_select(number, _LANE_BITS)),
            ]
            results.append(lane.result)
            flags = flags | lane.flags
        m.d.comb += [
            self.result_valid.eq(valid[-1]),
            self.result.eq(beats.joined("results", Cat(results))),
            self.flags.eq(beats.merged("flags", flags)),
        ]
        return m

    def _decoded(self, m: Module) -> Value:
        """What the lanes do; a data type that is not built leaves its bit 0."""
        action = Signal(_Action)
        arithmetic, dtypes = _is_arithmetic(self.op), self._config.dtypes
        kind = {name: arithmetic & (self.dtype == _dtype(name)) for name in dtypes}
        absent = Const(0, 1)
        m.d.comb += [
            action.store.eq(self.op == Op.STORE),
            action.halves.eq(kind.get("fp16", absent) | kind.get("bf16", absent)),
            action.single.eq(kind.get("fp32", absent)),
            action.integer.eq(kind.get("int32", absent)),
            action.compare.eq(self.op != Op.ADD),
            action.larger.eq(self.op == Op.MAX),
        ]
        for number, name in enumerate(_float_names(self._config)):
            with m.If(kind[name]):
                m.d.comb += action.form.eq(number)
        return action.as_value()


class _Lane(wiring.Component):
    """32 bits of the line: a float unit for each half, of which the low half's is wide enough for FP32.

    Beside the units travels what the lane returns where they do not act: old bytes, stored bytes, an INT32 result.
    Without FP32 both units are 16 bits wide; without any floating type there are none.

    Latency: ``nmc_latency`` cycles. ``advance``: load enable of each pipeline register, the first one (bit 0) first.
    """

    def __init__(self, *, config: T3Config) -> None:
        self._latency = config.nmc_latency
        self._formats = [_FORMATS[name] for name in _float_names(config)]
        self._has_integer = "int32" in config.dtypes
        super().__init__({
            "advance": In(self._latency), "action": In(_Action), "mask": In(_LANE_BYTES), "old": In(_LANE_BITS),
            "data": In(_LANE_BITS), "result": Out(_LANE_BITS), "flags": Out(Flags.size),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """The select of a float unit's result is decoded at the start and pipelined along."""
        m = Module()
        whole = self.mask.all()
        low_whole, high_whole = (self.mask.word_select(i, _LANE_BYTES // 2).all() for i in range(2))
        other, taken, integer = self._stored(m), Signal(_Taken), self._integer_operand(whole)
        m.d.comb += [
            taken.single.eq(self.action.single),
            taken.low.eq((self.action.halves & low_whole) | (self.action.single & whole)),
            taken.high.eq((self.action.halves & high_whole) | (self.action.single & whole)),
        ]
        for stage in range(self._latency):
            held_other, held_taken = Signal(_LANE_BITS, name=f"other_{stage}"), Signal(_Taken, name=f"taken_{stage}")
            with m.If(self.advance[stage]):
                m.d.sync += [held_other.eq(other), held_taken.eq(taken)]
            other, taken = held_other, held_taken
            if self._has_integer and stage == 0:
                operand = Signal(_Integer)
                with m.If(self.advance[stage]):
                    m.d.sync += operand.eq(integer)
                other = self._with_integer(m, other, operand)
        if self._formats:
            self._add_float_units(m, other, taken)
        else:
            m.d.comb += self.result.eq(other)
        return m

    def _add_float_units(self, m: Module, other: Value, taken: Any) -> None:
        """The unit of each half, and the choice between their results and what travelled beside them."""
        half = _LANE_BITS // 2
        low = self._float_unit(m, "low", self._formats, self.old, self.data)
        high_result, high_flags = low.result[half:], Const(0, Flags.size)
        narrow = [form for form in self._formats if form.bits == half]
        if narrow:
            high = self._float_unit(m, "high", narrow, self.old[half:], self.data[half:])
            high_result = Mux(taken.single, high_result, high.result)
            high_flags = Mux(taken.high & ~taken.single, high.flags.as_value(), 0)
        computed = Cat(low.result[:half], high_result)
        choice = Cat(taken.low.replicate(half), taken.high.replicate(half))
        m.d.comb += [
            self.result.eq((computed & choice) | (other & ~choice)),
            self.flags.eq(Mux(taken.low, low.flags.as_value(), 0) | high_flags),
        ]

    def _float_unit(self, m: Module, name: str, formats: list[FloatFormat], old: Value, new: Value) -> FloatUnit:
        """A unit that starts with every operation; its operands are the low bits of ``old`` and ``new``."""
        unit = m.submodules[name] = FloatUnit(*formats, latency=self._latency)
        m.d.comb += [
            unit.advance.eq(self.advance),
            unit.form.eq(self.action.form),
            unit.compare.eq(self.action.compare),
            unit.larger.eq(self.action.larger),
            unit.a.eq(old),
            unit.b.eq(new),
        ]
        return unit

    def _stored(self, m: Module) -> Value:
        """The old bytes, with those that a STORE takes from the new line: what the lane returns, but for arithmetic."""
        stored = Signal(_LANE_BITS)
        m.d.comb += stored.eq(bits_of(self.mask) & self.action.store.replicate(_LANE_BITS))
        return (self.data & stored) | (self.old & ~stored)

    def _integer_operand(self, whole: Value) -> Value:
        """What INT32 needs behind the first register, beside the old number."""
        subtract = self.action.compare
        negated = self.data ^ subtract.replicate(_LANE_BITS)
        return Cat(self.action.integer & whole, subtract, self.action.larger, negated)

    def _with_integer(self, m: Module, old: Value, operand: Any) -> Value:
        """Between the first register and the second: INT32 adds and compares with one adder; else ``old`` goes on."""
        subtract, new = operand.subtract, operand.new
        total = Signal(_LANE_BITS + 2, name="integer_total")  # the lowest bit is where the carry enters
        below = total[-1]  # of a difference: old < new
        m.d.comb += total.eq(Cat(subtract, old, old[-1]) + Cat(subtract, new, new[-1]))
        chosen = Mux(below == operand.larger, new ^ subtract.replicate(_LANE_BITS), old)
        return Mux(operand.acts, Mux(subtract, chosen, total[1 : _LANE_BITS + 1]), old)


def _is_arithmetic(op: Value) -> Value:
    """ADD, MIN or MAX."""
    return (op == Op.ADD) | (op == Op.MIN) | (op == Op.MAX)


def _dtype(name: str) -> Dtype:
    """The data type of a name in a configuration."""
    return Dtype[name.upper()]


def _float_names(config: T3Config) -> list[str]:
    """The configuration's floating types; the order gives each format its number."""
    return [name for name in config.dtypes if name in _FORMATS]
