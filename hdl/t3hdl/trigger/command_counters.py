"""How many commands left, how long they waited, how many blocks are ready or under way, and were ready at most."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import T3Config
from ..interface.layouts import BACKLOG_BITS, TIME_BITS


class CommandCounters(wiring.Component):
    """Counters of the trigger.

    Parameters
    ----------
    config : gives ``contexts``.

    Members
    -------
    now : In : time in cycles.
    issue, transfer : In(1) : pulses; the command register is written; the command leaves.
    ready : In(13).array(contexts) : blocks that wait.
    outstanding : In(16).array(contexts) : commands given and not done.
    triggers : Out(32) : commands that left, modulo.
    command_stall : Out(48) : cycles that commands waited, modulo.
    peak_ready : Out(13) : most blocks that waited at the same time.
    backlog : Out : blocks that wait, and commands that are not done, of all contexts.

    Latency: 1; ``peak_ready`` and ``backlog`` rest when ``ready`` and ``outstanding`` have been the same for a cycle.
    Throughput: one command per cycle. Reset: 0.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__({
            "now": In(TIME_BITS), "issue": In(1), "transfer": In(1), "ready": In(13).array(config.contexts),
            "outstanding": In(16).array(config.contexts), "backlog": Out(BACKLOG_BITS),
            "triggers": Out(32), "command_stall": Out(TIME_BITS), "peak_ready": Out(13),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """``first``: the cycle in which the command could leave at the earliest."""
        m = Module()
        first, total = Signal(TIME_BITS), Signal(13)
        m.d.comb += total.eq(sum(self.ready))
        m.d.sync += self.backlog.eq(total + sum(self.outstanding))
        with m.If(total > self.peak_ready):
            m.d.sync += self.peak_ready.eq(total)
        with m.If(self.issue):
            m.d.sync += first.eq(self.now + 1)
        with m.If(self.transfer):
            m.d.sync += [
                self.triggers.eq(self.triggers + 1),
                self.command_stall.eq(self.command_stall + self.now - first),
            ]
        return m
