"""The ports of a part as its Verilog has them, for everything that describes, constrains or checks a module."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib.wiring import Component, In

CLOCK, RESET = "clk", "rst"
"""The clock and the synchronous reset of every module, beside the ports of its component."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """One port: its name in Verilog, its dotted path in Amaranth, whether it is an input, its shape and width."""

    name: str
    path: str
    is_input: bool
    shape: Any
    bits: int


@dataclass(frozen=True, kw_only=True)
class StreamPorts:
    """The three ports of a stream; ``name`` is what they have in common."""

    name: str
    payload: Port
    valid: Port
    ready: Port

    @property
    def is_input(self) -> bool:
        """Whether items come in."""
        return self.valid.is_input


def module_ports(component: Component) -> list[Port]:
    """All ports but clock and reset. Verilog's name of a port is its path, joined by two underscores."""
    return [
        Port(
            name="__".join(str(part) for part in path),
            path=".".join(str(part) for part in path),
            is_input=member.flow == In,
            shape=member.shape,
            bits=Shape.cast(member.shape).width,
        )
        for path, member, _ in component.signature.flatten(component)
    ]


def module_streams(ports: Iterable[Port]) -> list[StreamPorts]:
    """The streams among the ports."""
    by_name = {port.name: port for port in ports}
    streams = []
    for name, valid in by_name.items():
        stem = name.removesuffix("__valid")
        if stem != name and {f"{stem}__payload", f"{stem}__ready"} <= by_name.keys():
            payload, ready = by_name[f"{stem}__payload"], by_name[f"{stem}__ready"]
            streams.append(StreamPorts(name=stem, payload=payload, valid=valid, ready=ready))
    return streams


def pulses(ports: Iterable[Port]) -> dict[str, Port]:
    """What is valid for a single cycle and cannot be refused: the payload's name, and its ``valid`` port."""
    by_name = {port.name: port for port in ports}
    found = {}
    for name in by_name:
        # an array's index comes last: update_done__0 goes with update_done_valid__0
        stem, _, index = name.partition("__")
        valid = by_name.get(f"{stem}_valid__{index}" if index else f"{stem}_valid")
        if valid is not None:
            found[name] = valid
    return found
