"""The address ranges of the output buffers: the range of a line, and its owner context."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..interface import register_map as regs
from ..interface.layouts import INTERLEAVE_BITS, LINE_BITS, ConfigWrite
from .broadcast import control_pulses, written
from .choose import chosen, lowest_bit
from .parity import write_with_parity

Range = data.StructLayout({"base": LINE_BITS, "limit": LINE_BITS, "attributes": regs.RangeAttributes})
"""One output buffer: lines [base, limit) and what an access to them means."""


class RangeTable(wiring.Component):
    """The RANGE registers. They outlive a disarm.

    Parameters
    ----------
    entries : number of ranges.

    Members
    -------
    config_valid, config : In : configuration writes (RANGE; an abort makes the ranges of its context invalid, a forced
        disarm all of them).
    ranges : Out(Range).array(entries) : the registers; one that is damaged is not valid.
    damaged : Out(1) : a parity bit is wrong.

    Latency: a register written at t is visible at t+1. Reset: 0, no range is valid.
    """

    def __init__(self, *, entries: int, protect: bool) -> None:
        super().__init__({
            "config_valid": In(1), "config": In(ConfigWrite), "ranges": Out(Range).array(entries), "damaged": Out(1),
        })  # fmt: skip
        self._protect = protect

    def elaborate(self, platform: Any) -> Module:
        """One address comparison per register."""
        m = Module()
        control = control_pulses(m, self.config_valid, self.config)
        damaged = []
        for i, entry in enumerate(self.ranges):
            address = regs.RANGE + i * regs.RANGE_STRIDE
            attributes = Signal(regs.RangeAttributes, name=f"attributes_{i}")
            fresh = data.View(regs.RangeAttributes, self.config.data[: regs.RangeAttributes.size])
            aborted = control.forced | (control.abort & (attributes.context == control.context))
            sound = [
                self._register(m, f"{name}_{i}", getattr(entry, name), address + 8 * word)
                for word, name in enumerate(("base", "limit"))
            ]
            sound.append(
                write_with_parity(
                    m,
                    attributes.as_value(),
                    write=aborted | written(self.config_valid, self.config, address + 16),
                    value=Mux(aborted, Cat(Const(0, 1), attributes.as_value()[1:]), fresh.as_value()),
                    protect=self._protect,
                )
            )
            m.d.comb += [
                entry.attributes.eq(attributes),
                entry.attributes.valid.eq(attributes.valid & Cat(sound).all()),
            ]
            damaged.append(~Cat(sound).all())
        m.d.comb += self.damaged.eq(Cat(damaged).any())
        return m

    def _register(self, m: Module, name: str, output: Value, address: int) -> Value:
        """A bound of a range; returns whether it is as written."""
        register = Signal(LINE_BITS, name=name)
        m.d.comb += output.eq(register)
        write = written(self.config_valid, self.config, address)
        return write_with_parity(m, register, write=write, value=self.config.data[:LINE_BITS], protect=self._protect)


@dataclass(frozen=True)
class RangeMatch:
    """The range of a burst's first line: whether it is the asking context's and of the asked epoch (``live``), or
    another context's (``foreign``), and the lines from its base to there. Without a range all of them are 0.

    ``improper``: the burst leaves its aligned block, or has a bound of a range in it: it is of no range."""

    live: Signal
    foreign: Signal
    improper: Signal
    offset: Signal
    attributes: data.View


def find_range(m: Module, ranges: Any, request: Any, *, contexts: int) -> RangeMatch:
    """The lowest valid range with base <= ``request.line`` < limit, in the same cycle, as the request's context and
    epoch see it. Nothing is live for a context from ``contexts`` on.

    These two are compared beside the bounds, not behind them; one subtraction gives the lower bound and the offset.
    """
    line, context = request.line, request.context
    found = RangeMatch(Signal(), Signal(), Signal(), Signal(LINE_BITS), Signal(regs.RangeAttributes))
    last = Signal(INTERLEAVE_BITS + 1, name="last")
    offsets = [Signal(LINE_BITS + 1, name=f"offset_{i}") for i in range(len(ranges))]
    inside, own, live, first = (Signal(len(ranges), name=name) for name in ("inside", "own", "live", "first"))
    m.d.comb += [offset.eq(line - entry.base) for offset, entry in zip(offsets, ranges, strict=True)]
    m.d.comb += [
        inside.eq(
            Cat(
                entry.attributes.valid & ~offset[-1] & (line < entry.limit)
                for offset, entry in zip(offsets, ranges, strict=True)
            )
        ),
        own.eq(Cat(entry.attributes.context == context for entry in ranges)),
        live.eq(
            Cat(
                (Cat(entry.attributes.context, entry.attributes.epoch) == Cat(context, request.epoch))
                & (context < contexts)
                for entry in ranges
            )
        ),
        first.eq(lowest_bit(inside)),
        last.eq(line[:INTERLEAVE_BITS] + request.length),
        found.improper.eq(
            last[-1]
            | Cat(
                entry.attributes.valid & _is_within_burst(bound, line, last)
                for entry in ranges
                for bound in (entry.base, entry.limit)
            ).any()
        ),
        found.live.eq((first & live).any() & ~found.improper),
        found.foreign.eq((first & ~own).any()),
        found.offset.eq(chosen(first, offsets)),
        found.attributes.eq(chosen(first, [entry.attributes for entry in ranges])),
    ]
    return found


def _is_within_burst(bound: Value, line: Value, last: Value) -> Value:
    """Whether ``bound`` is a line of the burst behind its first: of its block, and there behind the first line and not
    behind the last one, whose place in the block ``last`` is."""
    place = bound[:INTERLEAVE_BITS]
    same_block = bound[INTERLEAVE_BITS:] == line[INTERLEAVE_BITS:]
    return same_block & (place > line[:INTERLEAVE_BITS]) & (place <= last)
