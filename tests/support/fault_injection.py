"""Wrong bits in the registers and tables of a part."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Signal

from tests.contract.bench import Bench


@dataclass(frozen=True)
class Stored:
    """A stored word: ``table`` is (rows, bits of a row) of a memory's row, ``name`` that of a register."""

    place: Any
    table: tuple[int, int] | None
    row: int
    name: str


def stored_words(bench: Bench) -> list[Stored]:
    """Every register and every row of every memory of the bench's part."""
    words = []
    for place in bench.backend.registers:
        if isinstance(place, Signal):
            words.append(Stored(place, None, 0, place.name))
        else:
            memory = place._memory
            words.append(Stored(place, (memory.depth, len(place)), place._index, memory.name))
    return words


def flip(bench: Bench, word: Stored, *bits: int) -> None:
    """Inverts these bits of the word."""
    bench.backend.invert(word.place, *bits)


def bits_of(word: Stored) -> int:
    """Width of the word."""
    return len(word.place)
