"""Shows a counterexample: as waveforms, and as the list of what went through the part's ports."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, enum
from amaranth.lib.wiring import Component
from t3hdl.export.module_ports import Port, module_ports, module_streams, pulses
from vcd.reader import TokenKind, tokenize

from .netlist import DESIGN, run_yosys

_CYCLE = 10
"""Time units of a clock cycle in the waveforms that Yosys writes."""


def replay(output: str, folder: Path) -> Path:
    """Runs ``<output>.aiw`` on the netlist; returns the path of its waveforms. Raises ToolError if Yosys fails."""
    waves = folder / f"{output}.vcd"
    # The graph knows the row of a memory under the name of a wire that is the row, but for a multiplexer by a constant.
    show = f"sim -clock clk -r {output}.aiw -map {output}.map -hdlname -vcd {waves.name}"
    run_yosys(f"read_rtlil {DESIGN}\nopt -full -noff\n{show}", folder)
    return waves


@dataclass(frozen=True)
class Event:
    """Something that goes through a port in a cycle: ``port`` is its name, ``fields`` what it carries."""

    cycle: int
    port: str
    fields: str

    def __str__(self) -> str:
        return f"{self.cycle:5}  {self.port:24} {self.fields}".rstrip()


def transactions(dut: Component, waves: Path) -> list[Event]:
    """Every transfer of a stream, every pulse and every change of another port of ``dut``, cycle by cycle."""
    ports = module_ports(dut)
    streams, pulsed = module_streams(ports), pulses(ports)
    of_stream = {port.name for s in streams for port in (s.valid, s.ready, s.payload)}
    plain = [p for p in ports if p.name not in of_stream | pulsed.keys() | {v.name for v in pulsed.values()}]
    events, before = [], dict.fromkeys((port.name for port in plain), 0)
    for cycle, values in enumerate(_cycles(waves, ports)):
        for stream in streams:
            if values[stream.valid.name] and values[stream.ready.name]:
                events.append(Event(cycle, stream.name, _shown(stream.payload, values)))
        by_name = {port.name: port for port in ports}
        for name, valid in pulsed.items():
            if values[valid.name]:
                events.append(Event(cycle, name, _shown(by_name[name], values)))
        for port in plain:
            if values[port.name] != before[port.name]:
                before[port.name] = values[port.name]
                events.append(Event(cycle, port.name, _shown(port, values)))
    return events


def claims_at_end(names: dict[str, str], waves: Path) -> list[str]:
    """Which of the claims (signal by name) is 0 in the last cycle."""
    *_, last = _signals(waves, {("top", signal) for signal in names.values()})
    return [name for name, signal in names.items() if not last.get(("top", signal), 0)]


def _shown(port: Port, values: dict[str, int]) -> str:
    return _text(port.shape, values[port.name])


def _text(shape: Any, value: int) -> str:
    """A value as its type says: fields by name (without those that are 0), members of an enumeration, numbers."""
    if isinstance(shape, data.Layout):
        fields = []
        for name, field in shape:
            part = (value >> field.offset) & ((1 << Shape.cast(field.shape).width) - 1)
            if part:
                fields.append(f"{name}={_text(field.shape, part)}")
        return " ".join(fields)
    if isinstance(shape, enum.EnumMeta):
        try:
            return shape(value).name
        except ValueError:
            return f"{value:#x}"
    return str(value) if value < 10 else f"{value:#x}"


def _cycles(waves: Path, ports: list[Port]) -> Iterator[dict[str, int]]:
    """The values of the part's ports in each cycle."""
    for values in _signals(waves, {("dut", port.name) for port in ports}):
        yield {port.name: values.get(("dut", port.name), 0) for port in ports}


def _signals(waves: Path, wanted: set[tuple[str, str]]) -> Iterator[dict[tuple[str, str], int]]:
    """The values of the ``wanted`` signals (scope, name) in each clock cycle."""
    scope: list[str] = []
    known: dict[str, list[tuple[str, str]]] = {}
    values: dict[tuple[str, str], int] = {}
    cycle = 0
    with waves.open("rb") as file:
        for token in tokenize(file):
            if token.kind is TokenKind.SCOPE:
                scope.append(token.scope.ident)
            elif token.kind is TokenKind.UPSCOPE:
                scope.pop()
            elif token.kind is TokenKind.VAR:
                place = (scope[-1] if scope else "", token.var.reference)
                if place in wanted:
                    known.setdefault(token.var.id_code, []).append(place)
            elif token.kind is TokenKind.CHANGE_TIME:
                while token.time_change >= (cycle + 1) * _CYCLE:
                    yield dict(values)
                    cycle += 1
            elif token.kind in (TokenKind.CHANGE_VECTOR, TokenKind.CHANGE_SCALAR):
                change = token.vector_change if token.kind is TokenKind.CHANGE_VECTOR else token.scalar_change
                for place in known.get(change.id_code, ()):
                    values[place] = _number(change.value)


def _number(value: int | str) -> int:
    """Undefined bits count as 0."""
    return value if isinstance(value, int) else int(re.sub("[^01]", "0", value), 2)
