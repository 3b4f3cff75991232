"""Runs a self-testing design in compiled form, and reads its serial line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from t3hdl.export.verilog import write_verilog
from t3hdl.interface.words import word_map
from t3sim.hardware.abi import Instance
from t3sim.hardware.rtl.backend import CompiledPart
from t3sim.hardware.rtl.build import library

BIT_CYCLES = 4
CLOCK_HZ = BIT_CYCLES * 115200
OPTIONS = {"clock_hz": CLOCK_HZ, "debounce_cycles": 3, "failed_rounds": 2}
"""For short simulations: 4 cycles a bit."""
_CYCLES_A_ROUND = 200_000
_LINE = re.compile(
    r"round ([0-9A-F]{4}) seed ([0-9A-F]{8}) updates ([0-9A-F]{4}) tiles ([0-9A-F]{4}) "
    r"(?:triggers|chunks) ([0-9A-F]{4}) cycles ([0-9A-F]{6}) checksum ([0-9A-F]{8}) "
    r"(pass|fail ([a-z]+) ([0-9A-F]{8}))\r\n"
)


@dataclass(frozen=True)
class Line:
    """A round as the serial line tells it. ``completed``: triggers, or chunks of a tracker alone. ``what``: ``pass``,
    or what failed, with its ``detail``."""

    round: int
    seed: int
    updates: int
    tiles: int
    completed: int
    cycles: int
    checksum: int
    what: str
    detail: int | None


def parse(text: str) -> Line:
    """Of a line of text, which must be complete and nothing else."""
    match = _LINE.fullmatch(text)
    assert match, repr(text)
    numbers = [int(digits, 16) for digits in match.groups()[:7]]
    return Line(*numbers, match[9] or "pass", int(match[10], 16) if match[10] else None)


class Receiver:
    """An 8N1 receiver: samples every bit in its middle, like a chip that knows the baud rate."""

    def __init__(self) -> None:
        self._level, self._bits, self._wait = 1, [], 0

    def sample(self, level: int) -> int | None:
        """A byte if its stop bit is in the middle of this cycle."""
        byte = None
        if self._wait:
            self._wait -= 1
            if not self._wait:
                byte = self._bit(level)
        elif self._level and not level:
            self._bits, self._wait = [], BIT_CYCLES // 2
        self._level = level
        return byte

    def _bit(self, level: int) -> int | None:
        self._bits.append(level)
        if len(self._bits) < 10:
            self._wait = BIT_CYCLES
            return None
        assert self._bits[0] == 0 and self._bits[9] == 1, f"framing: {self._bits}"
        return sum(bit << place for place, bit in enumerate(self._bits[1:9]))


class Board:
    """A compiled design with its button; ``leds``: ``passed`` and ``failed`` when the line of a round began."""

    def __init__(self, part: CompiledPart) -> None:
        self.instance = Instance(part.part_type)
        self._receiver = Receiver()
        self.leds = (0, 0)

    def lines(self) -> Iterator[Line]:
        """Line after line; fails if the next one does not come."""
        text = ""
        for _ in range(10 * _CYCLES_A_ROUND):
            self.instance.step()
            byte = self._receiver.sample(self.instance.get("tx"))
            if byte is not None:
                if not text:  # at its end the verdict on the next round may be there already
                    self.leds = self.instance.get("passed"), self.instance.get("failed")
                text += chr(byte)
                if byte == ord("\n"):
                    print(text, end="")
                    yield parse(text)
                    text = ""
        raise AssertionError(f"no more lines, after {text!r}")


def compiled(component, name: str) -> CompiledPart:
    """The design from its Verilog."""
    return compiled_text(component, name, write_verilog(component, name, init_memories=True))


def compiled_text(component, name: str, verilog: str) -> CompiledPart:
    """From this Verilog, whose module ``name`` has the ports of the design."""
    words = word_map(component.signature)
    return CompiledPart(name, words, library(name, verilog, words, optimise=1))
