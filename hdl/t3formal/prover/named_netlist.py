"""Netlists whose cells have names that depend on the module alone, to find the same cell in another netlist again."""

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .netlist import run_yosys

_PROCESS = re.compile(r"^  process \$(\d+)$")
_SWITCH = re.compile(r"^( +)switch (.*)$")
_MODULE = re.compile(r"^module \\(\S+)$")
_CELL = re.compile(r"^  cell (\S+) (\S+)$")
_INITIAL = re.compile(r"^  attribute \\init \d+'([01x]+)$")
_PORT = re.compile(r"^  wire (?:width (\d+) )?(input|output) \d+ (\S+)$")
_SOURCE = re.compile(r'^  attribute \\src "(.*)"$')


@dataclass
class Contents:
    """What a module consists of.

    ``cells`` : type and parameters, as text, by name. ``ports`` : names of a cell's ports, by its name.
    ``wires`` : names that the part's source has given. ``states`` : what is connected to the Q of a flip-flop, by the
    cell's name. ``initial`` : initial values of wires, first bit last. ``inputs``, ``outputs`` : width of each port.
    """

    cells: dict[str, str] = field(default_factory=dict)
    ports: dict[str, set[str]] = field(default_factory=dict)
    wires: set[str] = field(default_factory=set)
    states: dict[str, str] = field(default_factory=dict)
    initial: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)

    def initial_bit(self, cell: str, bit: int) -> str:
        """The initial value of a bit of a flip-flop: ``0`` or ``1``, ``x`` if there is none."""
        wire, _, part = self.states[cell].partition(" ")
        low = int(part.strip("[]").rpartition(":")[2]) if part else 0
        values = self.initial.get(wire, "")
        place = len(values) - 1 - low - bit
        return values[place] if place >= 0 else "x"

    def features(self) -> set[str]:
        """What tells a module from others: what does not come from the resets that a surrounding part may add."""
        return self.wires | {f"{name} {text}" for name, text in self.cells.items() if "." not in name}


def alike(one: Contents, other: Contents) -> bool:
    """Whether two modules are the same component, up to constants at ports and ports that a harness adds."""
    mine, its = one.features(), other.features()
    both = len(mine & its)
    return both >= 0.8 * len(mine) and both >= 0.8 * len(its)


def through(script: str, text: str) -> str:
    """What a script of Yosys makes of a netlist and writes to ``out``."""
    with tempfile.TemporaryDirectory(prefix="t3-mutants-") as name:
        folder = Path(name)
        (folder / "in").write_text(text)
        run_yosys(f"read_rtlil in\n{script}", folder)
        return (folder / "out").read_text()


def named(text: str) -> str:
    """The netlist with multiplexers instead of processes, called by the process and the switch that they come from."""
    annotated = "".join(_annotated(text.splitlines(True)))
    named = through("delete */t:$meminit_v2\nproc -noopt\nwrite_rtlil out", annotated)
    return "".join(_renamed(named.splitlines(True)))


def _annotated(lines: Iterable[str]) -> Iterator[str]:
    """Gives each switch a source that Yosys copies to the cells that it makes of it."""
    process, number = "", 0
    for line in lines:
        if begins := _PROCESS.match(line):
            process, number = begins[1], 0
        elif switch := _SWITCH.match(line):
            place = "reset" if switch[2] == "\\rst [0]" else str(number)
            number += 1
            yield f'{switch[1]}attribute \\src "{process}.{place}"\n'
        yield line


def _renamed(lines: Iterable[str]) -> Iterator[str]:
    """Names the cells with a source by it, in the order of their numbers."""
    lines = list(lines)
    made: list[tuple[int, int, str]] = []
    source = ""
    for number, line in enumerate(lines):
        if found := _SOURCE.match(line):
            source = found[1]
        elif cell := _CELL.match(line):
            if source and (index := re.search(r"\$(\d+)", cell[2])):
                made.append((number, int(index[1]), f"{source}.{cell[1].removeprefix('$')}"))
            source = ""
        elif _MODULE.match(line):
            _rename(lines, made)
            made = []
    _rename(lines, made)
    return iter(lines)


def _rename(lines: list[str], made: list[tuple[int, int, str]]) -> None:
    used: Counter[str] = Counter()
    for number, _, name in sorted(made, key=lambda cell: (cell[2], cell[1], lines[cell[0]])):
        lines[number] = re.sub(r" \S+\n$", f" ${name}.{used[name]}\n", lines[number])
        used[name] += 1


def contents(text: str) -> dict[str, Contents]:
    """What each module consists of."""
    found: dict[str, Contents] = {}
    module, name, value = Contents(), "", ""
    for line in text.splitlines():
        if initial := _INITIAL.match(line):
            value = initial[1]
        elif begins := _MODULE.match(line):
            module = found[begins[1]] = Contents()
        elif cell := _CELL.match(line):
            name = _shown(cell[2])
            module.cells[name] = cell[1] if cell[1].startswith("$") else "instance"
            module.ports[name] = set()
        elif line.startswith("    parameter "):
            module.cells[name] += line.removeprefix("    parameter")
        elif line.startswith("    connect "):
            pin, connected = line.split(maxsplit=2)[1:]
            module.ports[name].add(_shown(pin))
            if pin == "\\Q":
                module.states[name] = connected
        elif line.startswith("  wire "):
            wire = line.rpartition(" ")[2]
            if wire.startswith("\\") and "$" not in wire:
                module.wires.add(wire)
            if port := _PORT.match(line):
                side = module.inputs if port[2] == "input" else module.outputs
                side[_shown(port[3])] = int(port[1] or 1)
            if value:
                module.initial[wire], value = value, ""
    return found


def _shown(name: str) -> str:
    """A name as Yosys shows it in a list of mutants."""
    return name[1:] if re.match(r"\\[^$\\0-9]", name) else name
