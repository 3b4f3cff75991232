"""And-inverter graphs in the binary AIGER format: one output of many, some inputs made constants."""

import re
from collections.abc import Mapping
from pathlib import Path


def input_bits(map_file: Path, name: str) -> list[int]:
    """The numbers of the inputs that are the bits of ``name``, low bit first, by the map that Yosys wrote."""
    rows = [line.split(maxsplit=3) for line in map_file.read_text().splitlines() if line.startswith("input ")]
    return [int(number) for _, number, bit, signal in sorted(rows, key=lambda row: int(row[2])) if signal == name]


class Graph:
    """A graph with one or more outputs, as Yosys writes it: header, latches, outputs, gates, symbols."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self._header, rest = content.split(b"\n", 1)
        _, self._inputs, latches, outputs, gates = (int(word) for word in self._header.split()[1:])
        *lines, rest = rest.split(b"\n", latches + outputs)
        self._latches, self._outputs = lines[:latches], lines[latches:]
        place, self._gates = 0, []
        for number in range(gates):
            first, place = _number(rest, place)
            second, place = _number(rest, place)
            literal = 2 * (self._inputs + latches + number + 1)
            self._gates.append((literal, literal - first, literal - first - second))
        self._coded, self._symbols = rest[:place], rest[place:]

    def write_output(self, path: Path, name: str) -> None:
        """The graph with the output of this name as the only one; what only others need stays, unused."""
        (number,) = re.findall(rb"^o(\d+) %s$" % name.encode(), self._symbols, re.MULTILINE)
        *sizes, _, gates = self._header.split()
        lines = [b" ".join([*sizes, b"1", gates]), *self._latches, self._outputs[int(number)]]
        path.write_bytes(b"\n".join(lines) + b"\n" + self._coded)

    def write(self, path: Path, constants: Mapping[int, bool]) -> None:
        """The graph in which the inputs with these numbers have these values. They stay, but nothing uses them."""
        values = {2 * (number + 1): int(value) for number, value in constants.items()}

        def literal(old: int) -> int:
            return values[old & ~1] ^ (old & 1) if old & ~1 in values else old

        lines = [self._header]
        for latch in self._latches:
            following, *initial = latch.split()
            lines.append(b" ".join([b"%d" % literal(int(following)), *initial]))
        lines += [b"%d" % literal(int(output)) for output in self._outputs]
        gates = bytearray()
        for name, first, second in self._gates:
            high, low = sorted((literal(first), literal(second)), reverse=True)
            gates += _bytes(name - high) + _bytes(high - low)
        path.write_bytes(b"\n".join(lines) + b"\n" + gates + self._symbols)


def _number(content: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, low group first, and where it ends."""
    value, shift = 0, 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place


def _bytes(value: int) -> bytes:
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)
