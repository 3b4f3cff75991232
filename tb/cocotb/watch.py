"""Watches all ports of a part on one clock while bus drivers and models act on it, and checks what it saw."""

from collections.abc import Callable
from typing import Any

from cocotb.triggers import FallingEdge

from tb.checks import OutputChecks, check_streams
from tb.cocotb.part_bench import transactions
from tb.cocotb.player import sample
from tb.coverage_bins import Coverage
from tb.words import Ports, Stream, Trace
from tb.wrapper import INPUTS, OUTPUTS, SEEN

BATCH = 4000
"""Cycles that are checked together."""
Model = Callable[[int], int]
"""Takes the output words of a cycle, as one integer, and gives the input words of the same cycle."""


class Watch:
    """Records every cycle of ``clock`` in its middle, and drives the inputs that are not apart (tb/wrapper.py).

    :meth:`check` looks at what was recorded since the last time: no unknown bits, the rules of ``streams``, coverage.
    With ``keep``, :meth:`take` gives what was checked.
    """

    def __init__(
        self, dut: Any, clock: Any, ports: Ports, streams: list[Stream], coverage: Coverage, keep: bool = False
    ) -> None:
        self._edge = FallingEdge(clock)
        self._signals = getattr(dut, INPUTS), getattr(dut, OUTPUTS), getattr(dut, SEEN)
        self._ports, self._streams, self._coverage = ports, streams, coverage
        self._outputs = OutputChecks(ports)
        self._rows: tuple[list[int], list[int]] = ([], [])
        self._unknown: dict[int, int] = {}
        self._kept: list[Trace] | None = [] if keep else None
        self.cycle = 0

    async def run(self, model: Model | None = None) -> None:
        """Watch for ever; start it in reset's last cycle."""
        driven, outputs, seen = self._signals
        last = -1
        while True:
            await self._edge
            value, unknown = sample(outputs)
            inputs = model(value) if model else 0
            if inputs != last:
                driven.value = last = inputs
            self._rows[0].append(inputs | sample(seen)[0])
            self._rows[1].append(value)
            if unknown:
                self._unknown[len(self._rows[0]) - 1] = unknown
            self.cycle += 1
            if len(self._rows[0]) == BATCH:
                self.check()

    def check(self) -> None:
        """Check and count the cycles that were recorded since the last check."""
        if not self._rows[0]:
            return
        trace = self._ports.trace(*self._rows)
        start = self.cycle - len(trace)
        self._outputs.check_known(trace, self._unknown, start)
        check_streams(trace, self._streams, start)
        self._coverage.sample(trace, transactions(trace, self._streams))
        if self._kept is not None:
            self._kept.append(trace)
        self._rows, self._unknown = ([], []), {}

    def take(self) -> list[Trace]:
        """Everything up to now, checked."""
        self.check()
        return self._kept or []
