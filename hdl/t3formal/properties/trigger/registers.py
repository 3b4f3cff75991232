"""What the trigger counts, in all bits, of which no run changes the high ones; its settings are what was written."""

from dataclasses import replace
from typing import Any

from amaranth.hdl import Mux, Signal
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import TIME_BITS
from t3hdl.trigger.trigger import Trigger

from ...prover.harness import Harness
from ...prover.proof import Proof


def _counts(config: T3Config) -> Harness:
    """Models of TRIGGERS and COMMAND_STALL, by when commands appear and leave."""
    dut = Trigger(config=config)
    harness = Harness(dut)
    control: Any = data.View(regs.Control, dut.config.data[: regs.Control.size])
    disarm = control_written(dut.config_valid, dut.config) & control.disarm
    command = dut.command
    leaves = command.valid & command.ready
    triggers, stall, begun, begin = Signal(32), Signal(TIME_BITS), Signal(TIME_BITS), Signal(TIME_BITS)
    appears = command.valid & ~harness.past(command.valid & ~leaves)
    harness.m.d.comb += begin.eq(Mux(appears, harness.past(dut.now) + 1, begun))
    harness.m.d.sync += begun.eq(begin)
    with harness.m.If(disarm):
        harness.m.d.sync += [triggers.eq(0), stall.eq(0)]
    with harness.m.Elif(leaves):
        harness.m.d.sync += [triggers.eq(triggers + 1), stall.eq(stall + dut.now - begin)]
    harness.claim("TRIGGERS counts the commands that left", dut.triggers == triggers)
    harness.claim("COMMAND_STALL adds the cycles that each of them waited", dut.command_stall == stall)
    since = harness.inside[r"core\.meter\.\$signal"]  # `first`
    harness.claim("it is known since when a command waits", ~command.valid | (since == begin))
    harness.cover("a command leaves after it waited", leaves & ~appears)
    return harness


def _settings(config: T3Config) -> Harness:
    """A model of each register, beside those within."""
    dut = Trigger(config=config)
    harness = Harness(dut)
    kept = {regs.WATCHDOG: (r"settings\.watchdog", 0)}
    unlimited = regs.Quota.const(regs.RESET[regs.QUOTA]).as_bits()
    kept |= {regs.QUOTA + 8 * c: (rf"settings\.quota_{c}", unlimited) for c in range(config.contexts)}
    for address, (name, reset) in kept.items():
        register = harness.inside[name]
        model = Signal(register.shape(), name=f"model_{address:x}", init=reset)
        with harness.m.If(dut.config_valid & (dut.config.address == address)):
            harness.m.d.sync += model.eq(dut.config.data)
        harness.claim(f"{address:#06x} holds what was written last", register == model)
        harness.cover(f"{address:#06x} holds something else than after reset", register != reset)
    return harness


_SMALL = preset("small", contexts=2, descriptors=2, chunk_window=2, blocks=1, tracker_banks=1)
PROOFS = (
    Proof(
        name="trigger.counts",
        invariants=(),
        says="TRIGGERS counts the commands that left since the last disarm, COMMAND_STALL the cycles that they waited.",
        harness=_counts,
        sizes={"1 context": replace(_SMALL, contexts=1), "2 contexts": _SMALL},
        method="induction",
        depth=1,
        cover_depth=30,
        quick=False,
    ),
    Proof(
        name="trigger.settings",
        invariants=(),
        says="WATCHDOG and QUOTA hold what was written last; a disarm does not touch them.",
        harness=_settings,
        sizes={"small": preset("small")},
        method="induction",
        depth=1,
        cover_depth=3,
    ),
)
