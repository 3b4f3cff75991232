"""What software may not change while a job runs: the windows and ranges of the contexts that are active."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import T3Config
from ..interface import register_map as regs

_Window = data.StructLayout({"first": 7, "end": 7})
"""Descriptors [first, end) of a context, as last armed."""

_Owner = data.StructLayout({"valid": 1, "context": 4})
"""Owner context of a range."""


class ConfigurationLocks(wiring.Component):
    """Checks writes to CONTROL and the tables against the active contexts, and tracks accepted writes.

    Parameters
    ----------
    config : gives ``contexts``, ``ranges`` and ``descriptors``.

    Members
    -------
    active : In(contexts) : contexts that are armed and not complete.
    control : In(Control) : a CONTROL word; ``bad_window`` says that its arm must not be.
    range_index, descriptor, context : In : what a write is about; ``range_locked``, ``descriptor_locked``,
        ``quota_locked`` say that it must not be changed.
    arm, abort, disarm : In(1) : pulses; ``control`` is done. A forced disarm forgets the owners of ranges, too.
    set_owner, owner : In : pulse; the attributes of range ``range_index`` are written.

    Latency: 0 for the judgement; what a pulse does at t is judged by from t+1. Reset: no window, no range.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "active": In(config.contexts), "control": In(regs.Control),
            "range_index": In(2), "descriptor": In(6), "context": In(4),
            "bad_window": Out(1), "range_locked": Out(1), "descriptor_locked": Out(1), "quota_locked": Out(1),
            "arm": In(1), "abort": In(1), "disarm": In(1),
            "set_owner": In(1), "owner": In(regs.RangeAttributes),
        })  # fmt: skip
        self._parameters = config

    def elaborate(self, platform: Any) -> Module:
        """One comparison per context; a context's own old window does not stand in its way."""
        m = Module()
        config, control = self._parameters, self.control
        windows = [Signal(_Window, name=f"window_{c}") for c in range(config.contexts)]
        end = Signal(8)
        overlaps = Cat(
            active & (control.context != c) & (window.first < end) & (control.first < window.end)
            for c, (active, window) in enumerate(zip(self.active, windows, strict=True))
        )
        covers = Cat(
            active & (window.first <= self.descriptor) & (self.descriptor < window.end)
            for active, window in zip(self.active, windows, strict=True)
        )
        m.d.comb += [
            end.eq(control.first + control.descriptors),
            self.bad_window.eq((control.descriptors == 0) | (end > config.descriptors) | overlaps.any()),
            self.descriptor_locked.eq(covers.any()),
            self.quota_locked.eq(_bit(self.active, self.context)),
        ]
        for c, window in enumerate(windows):
            with m.If(self.arm & (control.context == c)):
                m.d.sync += [window.first.eq(control.first), window.end.eq(end)]
            with m.If(self.disarm):
                m.d.sync += window.eq(0)
        self._ranges(m)
        return m

    def _ranges(self, m: Module) -> None:
        """A range is locked while the context that it was given to is active."""
        owners = [Signal(_Owner, name=f"owner_{i}") for i in range(self._parameters.ranges)]
        owner = Array(owners)[self.range_index]
        m.d.comb += self.range_locked.eq(owner.valid & _bit(self.active, owner.context))
        for i, each in enumerate(owners):
            with m.If(self.set_owner & (self.range_index == i)):
                m.d.sync += [each.valid.eq(self.owner.valid), each.context.eq(self.owner.context)]
            aborted = self.abort & (each.context == self.control.context)
            with m.If(aborted | (self.disarm & self.control.forced)):
                m.d.sync += each.valid.eq(0)


def _bit(bits: Value, index: Value) -> Value:
    """Bit ``index``; 0 beyond the last one."""
    return Mux(index < len(bits), (bits >> index)[0], 0)
