"""Plays rows of input words into the simulated part and records its output words."""

from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from tb.words import Words
from tb.wrapper import INPUTS, OUTPUTS

PERIOD_NS = 2


class Player:
    """The part behind a wrapped top (tb/wrapper.py), with its clock.

    Outputs are functions of registers, so they are read in the middle of a cycle, when the simulator is quiet; the
    inputs of that cycle are written at the same time.
    """

    def __init__(self, dut: Any, output_words: int) -> None:
        self._dut = dut
        self._inputs, self._outputs = getattr(dut, INPUTS), getattr(dut, OUTPUTS)
        self._edge = FallingEdge(dut.clk)
        self._last = -1
        self._output_bytes = 8 * max(1, output_words)

    async def start(self) -> None:
        """Start the clock."""
        cocotb.start_soon(Clock(self._dut.clk, PERIOD_NS, "ns").start())
        await self._edge

    async def reset(self, cycles: int = 1) -> None:
        """Reset with all inputs 0; the next row that is played belongs to the first cycle after it."""
        self._write(0)
        self._dut.rst.value = 1
        for _ in range(cycles):
            await self._edge
        self._dut.rst.value = 0

    async def play(self, rows: Words) -> tuple[Words, dict[int, int]]:
        """One cycle per row. Returns the output rows, and the bits that are neither 0 nor 1 by cycle (as 0 there)."""
        values, unknown = [], {}
        outputs, edge, size = self._outputs, self._edge, self._output_bytes
        for cycle, row in enumerate(rows):
            self._write(int.from_bytes(row.tobytes(), "little"))
            value, bits = sample(outputs)
            if bits:
                unknown[cycle] = bits
            values.append(value.to_bytes(size, "little"))
            await edge
        return np.frombuffer(b"".join(values), np.uint64).reshape(len(rows), -1), unknown

    def _write(self, value: int) -> None:
        if value != self._last:
            self._inputs.value = self._last = value


def sample(handle: Any) -> tuple[int, int]:
    """The value of a signal, and which of its bits are neither 0 nor 1 (as 0 in the value)."""
    text = str(handle.value)
    try:
        return int(text, 2), 0
    except ValueError:
        return int(text.translate(_KNOWN), 2), int(text.translate(_UNKNOWN), 2)


_STATES = "01XZUW-LH"
_KNOWN = str.maketrans(_STATES, "010000001")
_UNKNOWN = str.maketrans(_STATES, "001111100")
