"""Packing: fields of a struct in an integer, integers in 64-bit words, and the words of a part's ports.

The one place that knows how values lie in words. RTL has Amaranth's way (``data.StructLayout``); everything in software
(driver, golden model, co-simulator, testbenches) packs and unpacks by these functions, or by compiled ones that take
their places from here.
"""

from collections import namedtuple
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In, Signature

WORD_BITS = 64
"""Bits of a word of software and of a register."""
WORD_BYTES = WORD_BITS // 8
WORD_MASK = (1 << WORD_BITS) - 1


def pack(layout: data.StructLayout, **values: int) -> int:
    """The struct with these fields as one integer of ``layout.size`` bits; fields that are not named are 0.

    Raises KeyError for a field that the layout does not have, ValueError for a value that does not fit its field.
    """
    word = 0
    for name, value in values.items():
        field = layout[name]
        if not 0 <= value < 1 << field.width:
            most = (1 << field.width) - 1
            raise ValueError(f"field {name} has {field.width} bits and takes 0 to {most}, not {value}")
        word |= int(value) << field.offset
    return word


def mask_of(layout: data.StructLayout, *names: str) -> int:
    """Ones in every bit of these fields. Raises KeyError for a field that the layout does not have."""
    return sum((1 << layout[name].width) - 1 << layout[name].offset for name in names)


def unpack(layout: data.StructLayout, word: int) -> dict[str, int]:
    """The fields of a struct, by name; bits of ``word`` above the struct are ignored."""
    return {str(name): word >> field.offset & (1 << field.width) - 1 for name, field in layout}


def word_count(bits: int) -> int:
    """Words that a value of so many bits takes."""
    return -(-bits // WORD_BITS)


def split(value: int, count: int) -> list[int]:
    """The lowest ``count`` words of a value, low bits first."""
    return [value >> WORD_BITS * i & WORD_MASK for i in range(count)]


def join(words: Iterable[int]) -> int:
    """The value of these words (unsigned, or signed as compiled code sees them), low bits first."""
    return sum((int(word) & WORD_MASK) << WORD_BITS * i for i, word in enumerate(words))


def signed(word: int) -> int:
    """An unsigned word as the signed one of the same bits, as compiled code takes it."""
    return word - (word >> WORD_BITS - 1 << WORD_BITS)


class Field(NamedTuple):
    """Place of a field in its layout: word number, lowest bit in that word, mask at bit 0 (-1 for 64 bits)."""

    word: int
    shift: int
    mask: int


def fields_of(layout: data.StructLayout, *, first_word: int = 0) -> Any:
    """A named tuple with a :class:`Field` per field of ``layout``, which starts at word ``first_word``.

    A field wider than a word names its first word. Raises ValueError for a field that starts inside a word and ends
    in another one: it needs its own access function.
    """
    fields = {}
    for name, field in layout:
        word, shift = divmod(field.offset, WORD_BITS)
        if shift and shift + field.width > WORD_BITS:
            raise ValueError(f"a field must not straddle 64-bit words, unlike {name!r} at bit {field.offset}")
        fields[str(name)] = Field(first_word + word, shift, (1 << field.width) - 1 if field.width < WORD_BITS else -1)
    return namedtuple("Fields", fields)(**fields)


Place = tuple[int, int]
"""First word and width in bits of a port."""


@dataclass(frozen=True)
class WordMap:
    """Where each port of a part lies in its array of 64-bit input words and in its array of output words.

    Ports lie in the order of ``Signature.flatten``; a port of w bits takes ceil(w / 64) words, low bits first.
    ``inputs`` and ``outputs`` map a dotted path (``token.0.payload``) to (first word, bits).
    """

    inputs: dict[str, Place]
    outputs: dict[str, Place]
    input_words: int
    output_words: int


def word_map(signature: Signature) -> WordMap:
    """The word map of a part with these ports (ports are seen from the part: ``In`` is an input)."""
    maps: dict[str, dict[str, Place]] = {"i": {}, "o": {}}
    used = {"i": 0, "o": 0}
    for path, member, _ in signature.flatten(signature.create()):
        side = "i" if member.flow == In else "o"
        bits = Shape.cast(member.shape).width
        maps[side][".".join(str(part) for part in path)] = (used[side], bits)
        used[side] += word_count(bits)
    return WordMap(maps["i"], maps["o"], used["i"], used["o"])


def value_at(words: Any, place: Place) -> int:
    """The value at ``place`` in a row of words (a sequence or an array of integers)."""
    first, bits = place
    return join(words[first : first + word_count(bits)]) if bits > WORD_BITS else int(words[first]) & WORD_MASK


def first_words(ports: Mapping[str, Place]) -> dict[str, int]:
    """The first word of each port, by its path as an identifier: ``token.0.payload`` is ``token_0_payload``."""
    return {path.replace(".", "_"): first for path, (first, _) in ports.items()}


def ports_of(signature: Signature) -> tuple[Any, Any]:
    """First words of the inputs and of the outputs, as two named tuples (:func:`first_words`).

    Both have a last member ``size``: the number of words.
    """
    words = word_map(signature)
    inputs = first_words(words.inputs) | {"size": words.input_words}
    outputs = first_words(words.outputs) | {"size": words.output_words}
    return namedtuple("Ports", inputs)(**inputs), namedtuple("Ports", outputs)(**outputs)
