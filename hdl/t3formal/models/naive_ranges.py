"""Output ranges as software sees them: what was last written, the first that holds a line, and what a write meets."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import INTERLEAVE_BITS, LINE_BITS, Op

from ..prover.harness import Harness


@dataclass(frozen=True)
class Judgement:
    """A write as the ranges see it: it is an update or not (``update``), of a live epoch of its context or not
    (``live``), and perhaps refused, because the range is another context's or it is no burst of one range and block
    (``violates``), or because its epoch is not live (``stale``); ``tracked`` if it is counted. ``attributes`` are those
    of its range."""

    update: Value
    live: Value
    violates: Value
    attributes: data.View

    @property
    def tracked(self) -> Value:
        """It is counted."""
        return self.update & self.live

    @property
    def stale(self) -> Value:
        """It is refused as an update of no live epoch."""
        return self.update & ~self.live & ~self.violates

    @property
    def refused(self) -> Value:
        """It does not enter."""
        return self.violates | self.stale


class NaiveRanges:
    """The ranges, changed by nothing but a write of them, the abort of their context and a forced disarm.

    Parameters
    ----------
    m : where the registers are.
    config_valid, config : the configuration writes.
    number : of ranges.
    """

    def __init__(self, m: Module, config_valid: Value, config: Any, number: int) -> None:
        self.base, self.limit, self.attributes = [], [], []
        control = data.View(regs.Control, config.data[: regs.Control.size])
        action = control_written(config_valid, config)
        for i in range(number):
            base, limit = Signal(LINE_BITS, name=f"naive_base_{i}"), Signal(LINE_BITS, name=f"naive_limit_{i}")
            attributes = Signal(regs.RangeAttributes, name=f"naive_attributes_{i}")
            for word, register in enumerate((base, limit, attributes)):
                with m.If(config_valid & (config.address == regs.RANGE + i * regs.RANGE_STRIDE + 8 * word)):
                    m.d.sync += register.eq(config.data)
            aborted = control.abort & (control.context == attributes.context)
            with m.If(action & (aborted | (control.disarm & control.forced))):
                m.d.sync += attributes.valid.eq(0)
            self.base.append(base)
            self.limit.append(limit)
            self.attributes.append(attributes)

    def holds(self, i: int, line: Value) -> Value:
        """Whether range ``i`` is in use and has the line."""
        return self.attributes[i].valid & (self.base[i] <= line) & (line < self.limit[i])

    def first(self, line: Value) -> tuple[Value, Value, data.View]:
        """Whether some range holds ``line``; base and attributes of the first one that does, 0 if none."""
        hit: Value = Const(0)
        base: Value = Const(0, LINE_BITS)
        attributes: Value = Const(0, regs.RangeAttributes.size)
        for i in reversed(range(len(self.base))):
            here = self.holds(i, line)
            hit = hit | here
            base = Mux(here, self.base[i], base)
            attributes = Mux(here, self.attributes[i].as_value(), attributes)
        return hit, base, data.View(regs.RangeAttributes, attributes)

    def improper(self, request: Any) -> Value:
        """Whether the burst leaves its aligned block, or has a bound of a range in use behind its first line."""
        first, last = request.line, request.line + request.length  # which has one bit more
        crossed = [
            attributes.valid & (first < bound) & (bound <= last)
            for base, limit, attributes in zip(self.base, self.limit, self.attributes, strict=True)
            for bound in (base, limit)
        ]
        return (first[INTERLEAVE_BITS:] != last[INTERLEAVE_BITS:]) | Cat(crossed).any()

    def foreign(self, line: Value, context: Value) -> Value:
        """Whether ``line`` is another context's: the first range that holds it is."""
        hit, _, attributes = self.first(line)
        return hit & (attributes.context != context)

    def judge(self, request: Any, contexts: int) -> Judgement:
        """What the ranges say of a write, in a configuration with so many contexts."""
        hit, _, attributes = self.first(request.line)
        own, improper = hit & (attributes.context == request.context), self.improper(request)
        kinds = Cat(request.op == op for op in (Op.STORE, Op.ADD, Op.MIN, Op.MAX))
        return Judgement(
            update=request.tagged & kinds.any(),
            live=own & (request.context < contexts) & (attributes.epoch == request.epoch) & ~improper,
            violates=((hit & ~own) | improper) & (request.op != Op.READ),
            attributes=attributes,
        )

    def claim_kept(self, harness: Harness) -> None:
        """The part's registers are these; from then on they are looked at, which is the same and quickly seen."""
        naive = list(zip(self.base, self.limit, self.attributes, strict=True))
        for i, registers in enumerate(naive):
            kept = [harness.inside[rf"ranges\.{name}_{i}"] for name in ("base", "limit", "attributes")]
            same = Cat(there == Value.cast(register) for there, register in zip(kept, registers, strict=True))
            harness.claim(f"range {i} changes only when it is written, aborted or disarmed by force", same.all())
            self.base[i], self.limit[i] = kept[:2]
            self.attributes[i] = data.View(regs.RangeAttributes, kept[2])
