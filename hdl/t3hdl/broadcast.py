"""Decoding the broadcast configuration writes: every part picks its own registers out of the same pulses."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from . import register_map as regs


def written(valid: Value, write: data.View, address: int) -> Value:
    """1 in the cycle in which the register at byte address ``address`` is written."""
    return valid & (write.address == address)


@dataclass(frozen=True)
class ControlPulses:
    """CONTROL as a part sees it; ``arm`` and ``disarm`` are 1 for one cycle, ``descriptors`` is valid with ``arm``."""

    arm: Signal
    disarm: Signal
    descriptors: Value


def control_pulses(m: Module, valid: Value, write: data.View) -> ControlPulses:
    """Decodes CONTROL out of the configuration writes ``valid``, ``write``."""
    arm, disarm = Signal(), Signal()
    control = data.View(regs.Control, write.data[: regs.Control.size])
    hit = written(valid, write, regs.CONTROL)
    m.d.comb += [arm.eq(hit & control.arm), disarm.eq(hit & control.disarm)]
    return ControlPulses(arm, disarm, control.descriptors)
