"""Follows the wires of a part: from its outputs back to what they depend on, from its reset to what it sets."""

import re
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Value
from t3hdl.export.module_ports import CLOCK, RESET

from .inside import Inside
from .netlist import write_gates
from .proof import Counterexample, Verdict
from .structure import Rule, Structure


@dataclass(frozen=True)
class Source:
    """A port or register on which something depends, and the registers that lie between, from that thing on."""

    name: str
    between: tuple[str, ...]


class Gates:
    """A netlist of and-gates, inverters and registers (memories are registers), as AIGER's text format has it.

    Parameters
    ----------
    path : the file, with a table of names.
    owned : names of registers where they are written; elsewhere they have other names, too.
    """

    def __init__(self, path: Path, owned: Container[str]) -> None:
        lines = path.read_text().splitlines()
        *counts, ands = (int(word) for word in lines[0].split()[2:])
        rows = ([int(word) for word in line.split()] for line in lines[1:])
        inputs, latches, outputs = (list(islice(rows, count)) for count in counts)
        self._ands = {gate >> 1: operands for gate, *operands in islice(rows, ands)}
        names = _names(lines[1 + sum(counts) + ands :], owned)
        self._inputs = {row[0] >> 1: names[f"i{number}"] for number, row in enumerate(inputs)}
        self._registers = {
            row[0] >> 1: (names.get(f"l{number}", "?"), row[1] >> 1) for number, row in enumerate(latches)
        }
        self._outputs = [(names[f"o{number}"], row[0] >> 1) for number, row in enumerate(outputs)]
        # A third number is the initial value; the register's own name stands for any.
        self._states = [(gate, follows, *(initial or [0])) for gate, follows, *initial in latches]
        self.latches, self.gates = len(latches), ands

    def sources(self, of: str, *, across: bool, ends: str = "$^") -> dict[str, Source]:
        """What the outputs whose names match ``of`` depend on, by name, each over as few registers as can be."""
        found: dict[str, Source] = {}
        seen: set[int] = set()
        reached: list[tuple[int, tuple[str, ...]]]
        reached = [(gate, ()) for name, gate in self._outputs if re.fullmatch(of, name)]
        while reached:
            before: list[tuple[int, tuple[str, ...]]] = []
            while reached:
                gate, between = reached.pop()
                if gate in seen:
                    continue
                seen.add(gate)
                if gate in self._ands:
                    reached += [(operand >> 1, between) for operand in self._ands[gate]]
                elif gate in self._inputs:
                    found.setdefault(self._inputs[gate], Source(self._inputs[gate], between))
                elif gate in self._registers and across:
                    name, follows = self._registers[gate]
                    if re.fullmatch(ends, name):
                        found.setdefault(name, Source(name, between))
                    else:
                        before.append((follows, (*between, name)))
            reached = before
        return {name: source for name, source in found.items() if name not in (CLOCK, RESET)}

    def unset(self, but: str) -> list[str]:
        """The registers that may have another value than their initial one after a cycle with reset; not those whose
        names match ``but``, nor those without initial value."""
        known = {0: 0} | {gate: 1 for gate, name in self._inputs.items() if name == RESET}

        def value(literal: int) -> int | None:
            """Of an inverted or plain wire, None if it is not known."""
            plain = known.get(literal >> 1)
            return None if plain is None else plain ^ (literal & 1)

        for gate in sorted(self._ands):  # operands have lower numbers
            operands = [value(operand) for operand in self._ands[gate]]
            if 0 in operands or None not in operands:
                known[gate] = int(all(operands))
        wrong = [
            self._registers[gate >> 1][0]
            for gate, follows, initial in self._states
            if initial in (0, 1) and value(follows) != initial
        ]
        return [name for name in dict.fromkeys(wrong) if not re.fullmatch(but, name)]


def _names(table: Iterable[str], owned: Container[str]) -> dict[str, str]:
    """The names of inputs, outputs and registers, without the number of the bit: that of the owner, if there is one."""
    names = {}
    for line in table:
        place, *bits = line.split()
        words = [re.sub(r"\[\d+\]$", "", bit.removeprefix("!")) for bit in bits]
        names[place] = next((word for word in words if word in owned), words[0] if words else "?")
    return names


def inspect(structure: Structure, folder: Path, patch: Callable[[str], str] | None) -> Verdict:
    """The verdict on a structure; files go to ``folder``, ``patch`` changes the netlist's text before.

    Raises ToolError if Yosys is missing or fails.
    """
    started = time.monotonic()
    owned = Inside(structure.fragment).registers
    ports = [Value.cast(value) for _, _, value in structure.dut.signature.flatten(structure.dut)]
    text = rtlil.convert(structure.fragment, name="top", emit_src=False, ports=ports)
    gates = Gates(write_gates(patch(text) if patch else text, folder), owned)
    broken, events, cycles = [], [], 0
    for name, rule in structure.claims.items():
        sources = gates.sources(rule.of, across=rule.across, ends=rule.ends)
        wrong = [source for source in sources.values() if not re.fullmatch(rule.on, source.name)]
        if wrong:
            broken.append(name)
            shortest = min(wrong, key=lambda source: len(source.between))
            cycles = len(shortest.between)
            events += _chain(rule, shortest)
    for name, but in structure.resets.items():
        if left := gates.unset(but):
            broken.append(name)
            events += [f"{1:5}  {register} after a cycle with {RESET}" for register in left]
    covers = {name: _reached(gates, of, on) for name, (of, on) in structure.covers.items()}
    return Verdict(
        outcome="violated" if broken else "vacuous" if None in covers.values() else "proven",
        frames=cycles + 1,
        covers=covers,
        seconds=time.monotonic() - started,
        latches=gates.latches,
        gates=gates.gates,
        claims=(*structure.claims, *structure.resets),
        assumptions=(),
        counterexample=Counterexample(claims=tuple(broken), events=tuple(events), waves=None) if broken else None,
    )


def _reached(gates: Gates, of: str, on: str) -> int | None:
    """In how many cycles the first one among the ports that match ``on`` acts on one that matches ``of``."""
    found = gates.sources(of, across=True).values()
    return min((len(source.between) + 1 for source in found if re.fullmatch(on, source.name)), default=None)


def _chain(rule: Rule, source: Source) -> list[str]:
    """A line for the port, each register between, and what depends on them."""
    chain = [source.name, *reversed(source.between)]
    return [f"{cycle:5}  {name}" for cycle, name in enumerate(chain)] + [f"{len(source.between):5}  {rule.of}"]
