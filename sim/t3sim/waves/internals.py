"""The signals within one instance of a part, as Verilator traces them: registers, memories and wires by module."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from vcd.reader import Token, TokenKind, VarDecl, tokenize

from t3sim.hardware.rtl.traced import TracedPartType

from .signals import NOW, Change, Words

CLOCK = "clk"
_UNNAMED = re.compile(rb"^ *\$var \w+ \d+ \S+ \$.*\n", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class InternalSignal:
    """A signal of the Verilog: ``path`` has the module of the part first, then those within it, and its name."""

    path: tuple[str, ...]
    bits: int


@dataclass(frozen=True, kw_only=True)
class Internals:
    """Signals and their changes (cycle, number of the signal, value), in the order of the cycles."""

    signals: Sequence[InternalSignal] = ()
    changes: Sequence[Change] = ()


class InternalProbe:
    """Looks into one instance. ``epoch``: what the unit's time is ahead of the cycles."""

    def __init__(self, part: TracedPartType, handle: int, epoch: int) -> None:
        self._part, self._handle, self._epoch = part, handle, epoch
        self._now = part.words.inputs[NOW][0] if NOW in part.words.inputs else None
        part.begin(handle)

    def rest(self, first: int, last: int, inputs: Words) -> None:
        """Note the clocks from ``first`` to ``last`` (not included), in which the instance is not stepped: its
        registers stay, its wires follow ``inputs`` and the time."""
        inputs = inputs.copy()
        for cycle in range(first, last):
            if self._now is not None:
                inputs[self._now] = cycle + self._epoch
            self._part.observe(self._handle, inputs.ctypes.data, cycle)

    def read(self) -> Internals:
        """What was noted."""
        return parse(self._part.recorded(self._handle))


def parse(recorded: bytes) -> Internals:
    """The signals of a Value Change Dump below its top scope, and their changes.

    Left out are signals that nobody named, and the module's ``clk``: in compiled RTL a cycle is one change of it, and
    the wave has a clock already.
    """
    header, end, values = recorded.partition(b"$enddefinitions")
    signals: dict[tuple[str, ...], InternalSignal] = {}
    numbers: dict[str, list[int]] = {}  # several signals may be one
    scopes: list[str] = []
    changes: list[Change] = []
    cycle = 0
    for token in tokenize(io.BytesIO(_UNNAMED.sub(b"", header) + end + values)):
        if token.kind is TokenKind.SCOPE:
            scopes.append(token.scope.ident)
        elif token.kind is TokenKind.UPSCOPE:
            scopes.pop()
        elif token.kind is TokenKind.VAR:
            if len(scopes) > 1 and token.var.reference != CLOCK:
                path = _path(scopes[1:], token.var)
                while path in signals:  # a field and a module may have the same name
                    path = (*path[:-1], f"{path[-1]}_")
                numbers.setdefault(token.var.id_code, []).append(len(signals))
                signals[path] = InternalSignal(path=path, bits=token.var.size)
        elif token.kind is TokenKind.CHANGE_TIME:
            cycle = token.time_change
        elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR):
            code, value = _change(token)
            changes += [(cycle, number, value) for number in numbers.get(code, ())]
    return Internals(signals=list(signals.values()), changes=changes)


def _path(scopes: Sequence[str], variable: VarDecl) -> tuple[str, ...]:
    """Scopes and name: ``entry.tag`` is a field in a scope of its own, ``rows[3]`` is ``rows_3``, as in ports."""
    name = variable.reference
    if isinstance(variable.bit_index, int):
        name = f"{name}[{variable.bit_index}]"
    return (*scopes, *name.replace("[", "_").replace("]", "").split("."))


def _change(token: Token) -> tuple[str, int]:
    """Which variables change, and the value: a number, as a part's signals are never unknown."""
    if token.kind is TokenKind.CHANGE_SCALAR:
        return token.scalar_change.id_code, int(token.scalar_change.value)
    return token.vector_change.id_code, int(token.vector_change.value)
