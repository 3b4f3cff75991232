"""What a waveform shows of a part: a signal for each port, or for each field of a port that is a struct."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from amaranth.lib import data
from numpy.typing import NDArray
from t3hdl.config import T3Config
from t3hdl.interface.parts import TABLE
from t3hdl.interface.words import Place, WordMap

from t3sim.hardware.abi import words_of

Words = NDArray[np.uint64]
Change = tuple[int, int, int | None]
"""Cycle, number of the signal, value; None from where on it means nothing."""
NOW = "now"
"""The port with the time: all parts of a unit have the same, which counts every clock."""
HINTS = ("idle", "wake_at")
"""Outputs in which RTL and golden model may differ (docs/hardware/rules.md, rule 5)."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """``bits`` bits from ``offset`` on of the port at ``place``, among a part's inputs or its outputs.

    ``path``: scopes below the part and the signal's name. ``stream``: the stream or pulse that it is of; empty if none.
    ``valid``: of a payload, and of a ``ready`` that is an input (the engine decides on what is offered alone), the word
    without which it means nothing: whether it is among the inputs, and its number. None of what always has a meaning.
    """

    path: tuple[str, ...]
    stream: str
    is_input: bool
    place: Place
    offset: int
    bits: int
    valid: tuple[bool, int] | None


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stream's handshake, by the part's words: ``into``: the part is its receiver. A pulse has no ``ready``."""

    into: bool
    valid: int
    ready: int | None


@dataclass(frozen=True, kw_only=True)
class PartSignals:
    """All signals of a part, those of a stream one behind the other (valid, ready, payload); and its streams."""

    signals: tuple[Signal, ...]
    streams: tuple[Stream, ...]


@cache
def part_signals(config: T3Config, name: str) -> PartSignals:
    """The signals of part ``name``, without :data:`NOW`."""
    words = words_of(config, name)
    signature = TABLE[name].ports(config)
    shapes = {".".join(map(str, path)): member.shape for path, member, _ in signature.flatten(signature.create())}
    signals: list[Signal] = []
    streams: list[Stream] = []
    seen = {NOW}
    for valid in (port for port in shapes if port.endswith((".valid", "_valid"))):
        base, joint = valid[: -len(".valid")], valid[-len(".valid")]
        ready, payload = f"{base}.ready", f"{base}.payload" if joint == "." else base
        into = valid in words.inputs
        word = (words.inputs if into else words.outputs)[valid][0]
        back = (words.outputs if into else words.inputs).get(ready)
        streams.append(Stream(into=into, valid=word, ready=back[0] if back else None))
        signals += _of_port(words, valid, shapes[valid], base, None)
        if back:
            signals += _of_port(words, ready, shapes[ready], base, None if into else (into, word))
        if payload in shapes:
            signals += _of_port(words, payload, shapes[payload], base, (into, word))
        seen.update((valid, ready, payload))
    for port in (port for port in shapes if port not in seen):
        signals += _of_port(words, port, shapes[port], "", None)
    return PartSignals(signals=tuple(signals), streams=tuple(streams))


def _of_port(words: WordMap, port: str, shape: object, stream: str, valid: tuple[bool, int] | None) -> Iterator[Signal]:
    """The signals of a port."""
    is_input = port in words.inputs
    place = (words.inputs if is_input else words.outputs)[port]
    fields = list(_fields(shape)) if isinstance(shape, data.StructLayout) else [("", 0, place[1])]
    for name, offset, bits in fields:
        yield Signal(
            path=(*_scopes(port), name) if name else _scopes(port),
            stream=stream,
            is_input=is_input,
            place=place,
            offset=offset,
            bits=bits,
            valid=valid,
        )


def _scopes(port: str) -> tuple[str, ...]:
    """``token.0.valid`` as the scope ``token_0`` and the name ``valid``."""
    scopes: list[str] = []
    for name in port.split("."):
        if name.isdecimal():
            scopes[-1] += f"_{name}"
        else:
            scopes.append(name)
    return tuple(scopes)


def _fields(layout: data.StructLayout, first: int = 0, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """Name, offset and width of every field, those of structs within it, too."""
    for key, field in layout:
        name = f"{prefix}{key}"
        if isinstance(field.shape, data.StructLayout):
            yield from _fields(field.shape, first + field.offset, f"{name}_")
        else:
            yield name, first + field.offset, field.width
