"""Ports of a part as 64-bit words: what model, simulator and checks have in common.

A part's inputs of one cycle are one row of words, its outputs another (:func:`t3hdl.interface.words.word_map`).
Traces are arrays of such rows, one per cycle, so that everything that looks at them works on thousands of cycles at a
time.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import Signature
from t3hdl.interface.words import Place, WordMap, value_at, word_map

Words = np.ndarray
"""Rows of uint64, one per cycle."""

UNCOMPARED = ("idle", "wake_at")
"""Outputs that may differ between RTL and golden model (docs/hardware/rules.md, rule 5)."""


_CHANNEL = re.compile(r"(?P<valid>(.*_)?axi_(aw|w|b|ar|r))(addr|prot|data|strb|resp)")
"""Payloads of AXI4-Lite."""


def valid_of(port: str, ports: Any) -> str | None:
    """The port among ``ports`` that says whether ``port`` means something, None if it always does."""
    channel = _CHANNEL.fullmatch(port)
    beside = f"{channel['valid']}valid" if channel else f"{port.split('_')[0]}_valid"
    for valid in (port.replace(".payload", ".valid"), f"{port}_valid", beside):
        if valid != port and valid in ports:
            return valid
    return None


def streams_of(ports: Any, end: str) -> list[str]:
    """Names of the streams among ``ports`` that have a port called ``end`` (``valid`` or ``ready``)."""
    return [port.removesuffix(f".{end}") for port in ports if port.endswith(f".{end}")]


@dataclass(frozen=True)
class Stream:
    """A flow of items with back-pressure: its ports, by their names in the word map.

    A port in ``conditional`` means something only while the port that it is mapped to is not 0.
    """

    name: str
    valid: str
    ready: str
    payload: tuple[str, ...]
    conditional: dict[str, str] = field(default_factory=dict)


def all_streams(ports: "Ports") -> list[Stream]:
    """Every stream and every AXI4-Lite channel of a part, and its register bus."""
    both = {**ports.words.inputs, **ports.words.outputs}
    streams = [Stream(s, f"{s}.valid", f"{s}.ready", (f"{s}.payload",)) for s in streams_of(both, "valid")]
    for valid in both:
        if valid.endswith(_VALIDS):
            stem = valid.removesuffix("valid")
            payload = tuple(port for port in both if port != valid and valid_of(port, both) == valid)
            streams.append(Stream(stem, valid, f"{stem}ready", payload))
    if "bus_ready" in both:
        request = tuple(port for port in both if port.startswith("bus_") and port not in ("bus_valid", "bus_ready"))
        streams.append(Stream("bus", "bus_valid", "bus_ready", request, {"bus_data": "bus_write"}))
    return streams


_VALIDS = tuple(f"axi_{channel}valid" for channel in ("aw", "w", "b", "ar", "r"))


def rows_of(values: list[int], count: int) -> Words:
    """Integers as rows of ``count`` words."""
    return np.frombuffer(b"".join(value.to_bytes(8 * count, "little") for value in values), np.uint64).reshape(
        -1, count
    )


def full_mask(places: dict[str, Place], count: int) -> Words:
    """One row of ``count`` words with ones wherever one of the ports at ``places`` has a bit."""
    mask = 0
    for first, bits in places.values():
        mask |= ((1 << bits) - 1) << 64 * first
    return np.frombuffer(mask.to_bytes(8 * count, "little"), np.uint64)


@dataclass(frozen=True)
class Ports:
    """Where the ports of a part are, and the layout of each payload that has one."""

    words: WordMap
    layouts: dict[str, data.Layout]

    @classmethod
    def of(cls, signature: Signature) -> "Ports":
        """The ports of a part with this signature."""
        layouts = {
            ".".join(str(part) for part in path): member.shape
            for path, member, _ in signature.flatten(signature.create())
            if isinstance(member.shape, data.Layout)
        }
        return cls(word_map(signature), layouts)

    def trace(self, inputs: list[int], outputs: list[int]) -> "Trace":
        """The trace of rows that are given as integers."""
        counts = max(1, self.words.input_words), max(1, self.words.output_words)
        return Trace(self, *(rows_of(rows, count) for rows, count in zip((inputs, outputs), counts, strict=True)))

    def place(self, port: str) -> tuple[bool, Place]:
        """Whether ``port`` is an input, and its place. Raises KeyError for an unknown port."""
        is_input = port in self.words.inputs
        return is_input, (self.words.inputs if is_input else self.words.outputs)[port]


class Trace:
    """What happened at the ports in consecutive cycles: ``inputs`` and ``outputs``, one row per cycle."""

    def __init__(self, ports: Ports, inputs: Words, outputs: Words) -> None:
        self.ports, self.inputs, self.outputs = ports, inputs, outputs

    def __len__(self) -> int:
        return len(self.inputs)

    def __contains__(self, port: str) -> bool:
        return port in self.ports.words.inputs or port in self.ports.words.outputs

    def get(self, port: str, field: str | None = None) -> np.ndarray:
        """The value of a port, or of one field of its payload, in every cycle (uint64; at most 64 bits)."""
        is_input, (first, bits) = self.ports.place(port)
        offset = 0
        if field is not None:
            member = self.ports.layouts[port][field]
            offset, bits = member.offset, Shape.cast(member.shape).width
        rows = self.inputs if is_input else self.outputs
        word, shift = first + offset // 64, offset % 64
        value = rows[:, word] >> np.uint64(shift)
        if shift + bits > 64:
            value = value | rows[:, word + 1] << np.uint64(64 - shift)
        return value & np.uint64((1 << min(bits, 64)) - 1)

    def is_set(self, port: str, field: str | None = None) -> np.ndarray:
        """Whether the port, or the field, is not 0, in every cycle."""
        return self.get(port, field) != 0

    def moved(self, stream: str) -> np.ndarray:
        """Whether the stream transfers, in every cycle."""
        return self.is_set(f"{stream}.valid") & self.is_set(f"{stream}.ready")

    def row(self, cycle: int) -> dict[str, int]:
        """The ports that are not 0 in a cycle."""
        sides = (self.ports.words.inputs, self.inputs), (self.ports.words.outputs, self.outputs)
        values = {port: value_at(rows[cycle], place) for side, rows in sides for port, place in side.items()}
        return {port: value for port, value in values.items() if value}
