"""Decoding the broadcast configuration writes: every part picks its own registers out of the same pulses."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from ..interface import register_map as regs

_CONTROL_BIT = regs.CONTROL.bit_length() - 1
"""Of the address: no other register that is broadcast has it, so that a disarm need not wait for a comparison."""


def written(valid: Value, write: data.View, address: int) -> Value:
    """1 in the cycle in which the register at byte address ``address`` is written; not for CONTROL."""
    return valid & (write.address == address)


def control_written(valid: Value, write: data.View) -> Value:
    """1 in the cycle in which CONTROL is written."""
    return valid & write.address[_CONTROL_BIT]


@dataclass(frozen=True)
class ControlPulses:
    """CONTROL as a part sees it: each pulse is 1 for one cycle, and at most one of them is.

    ``context`` is valid with ``arm`` and ``abort``, ``first`` and ``descriptors`` with ``arm``; ``forced`` is 1 with
    ``disarm`` only.
    """

    arm: Signal
    disarm: Signal
    abort: Signal
    quiesce: Signal
    resume: Signal
    forced: Signal
    context: Value
    first: Value
    descriptors: Value


def control_pulses(m: Module, valid: Value, write: data.View) -> ControlPulses:
    """Decodes CONTROL out of the configuration writes ``valid``, ``write``."""
    control = data.View(regs.Control, write.data[: regs.Control.size])
    hit = control_written(valid, write)
    pulses = {name: Signal(name=name) for name in ("arm", "disarm", "abort", "quiesce", "resume")}
    forced = Signal(name="forced")
    m.d.comb += [
        *(pulse.eq(hit & control[name]) for name, pulse in pulses.items()),
        forced.eq(hit & control.disarm & control.forced),
    ]
    amounts = {name: control[name] for name in ("context", "first", "descriptors")}
    return ControlPulses(**pulses, forced=forced, **amounts)
