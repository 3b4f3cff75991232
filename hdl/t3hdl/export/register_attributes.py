"""Attributes to synthesis, put into the Verilog at the registers that have them; Yosys may not keep or add others."""

import re

from ..common.synthesis_attributes import SYNCHRONISER

_NAMES = "|".join(SYNCHRONISER)
_MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL)
_WIRE = re.compile(r"((?:^ *attribute .*\n)+) *wire .*(?<= )\\(\S+)$", re.MULTILINE)
_ATTRIBUTE = re.compile(rf"^ *attribute \\({_NAMES}) (.*)\n", re.MULTILINE)
_PART = re.compile(r"^module (\w+)\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(
    r"^  (?:reg (?:\[\d+:\d+\] )?\\?(?P<declared>\S+?) ?;|always @.*\n    (?:if .*\) )?\\?(?P<clocked>[^\s\[]+).* <=)",
    re.MULTILINE,
)
"""The declaration of a register, and the process that clocks it."""


def taken_out(rtlil: str) -> tuple[str, dict[tuple[str, str], list[str]]]:
    """The RTLIL text without attributes to synthesis, and these as Verilog has them, by module and wire."""
    found = {
        (module, wire): [f"{name} = {value}" for name, value in _ATTRIBUTE.findall(attributes)]
        for module, body in _MODULE.findall(rtlil)
        for attributes, wire in _WIRE.findall(body)
        if _ATTRIBUTE.search(attributes)
    }
    return _ATTRIBUTE.sub("", rtlil), found


def put_back(verilog: str, attributes: dict[tuple[str, str], list[str]]) -> str:
    """The Verilog with the attributes of each register before its declaration; other wires get none.

    ``keep`` is also before the process: Yosys makes it the flip-flop's, without which that may be merged.
    """

    def marked(module: str, place: re.Match[str]) -> str:
        found = attributes.get((module, place["declared"] or place["clocked"]), [])
        if place["clocked"]:
            found = [attribute for attribute in found if attribute.startswith("keep =")]
        return f"  (* {', '.join(found)} *)\n{place[0]}" if found else place[0]

    return _PART.sub(lambda part: _PLACE.sub(lambda place: marked(part[1], place), part[0]), verilog)
