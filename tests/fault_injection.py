"""Wrong bits in the registers and tables of a part, for tests with the bench of ``stream_checks``."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Signal, Value


@dataclass(frozen=True)
class Stored:
    """A stored word: ``table`` is (rows, bits of a row) of a memory's row, ``name`` that of a register."""

    place: Any
    table: tuple[int, int] | None
    row: int
    name: str


def stored_words(bench: Any) -> list[Stored]:
    """Every register and every row of every memory of the bench's part."""
    words = []
    for place in bench._registers:
        if isinstance(place, Signal):
            words.append(Stored(place, None, 0, place.name))
        else:
            row = Value.cast(place)
            memory = row._memory
            words.append(Stored(row, (memory.depth, len(row)), row._index, memory.name))
    return words


def flip(bench: Any, word: Stored, *bits: int) -> None:
    """Inverts these bits of the word."""
    value = bench.ctx.get(word.place)
    for bit in bits:
        value ^= 1 << bit
    bench.ctx.set(word.place, value)


def bits_of(word: Stored) -> int:
    """Width of the word."""
    return len(word.place)
