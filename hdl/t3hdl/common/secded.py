"""SECDED: check bits that correct one wrong bit of a stored word and detect two (odd-weight columns)."""

from dataclasses import dataclass
from itertools import chain, combinations, islice

from amaranth.hdl import Cat, Module, Mux, Signal, Value


def check_bits(width: int) -> int:
    """Check bits of a word of ``width`` bits."""
    bits = 1
    # Columns of odd weight above 1 name the data bits, those of weight 1 the check bits.
    while (1 << (bits - 1)) - bits < width:
        bits += 1
    return bits


def _columns(width: int) -> list[tuple[int, ...]]:
    """Per data bit the check bits that it takes part in: all different, odd in number, few."""
    bits = check_bits(width)
    odd = chain.from_iterable(combinations(range(bits), weight) for weight in range(3, bits + 1, 2))
    return list(islice(odd, width))


def _checks(word: Value) -> Value:
    """The check bits that belong to the data bits in ``word``."""
    columns = _columns(len(word))
    masks = [sum(1 << i for i, column in enumerate(columns) if bit in column) for bit in range(check_bits(len(word)))]
    return Cat((word & mask).xor() for mask in masks)


def encode(word: Value) -> Value:
    """``word`` with its check bits above it. Zero has the check bits zero."""
    return Cat(word, _checks(word))


@dataclass(frozen=True)
class Decoded:
    """A stored word after correction. ``word`` means nothing if ``uncorrectable``."""

    word: Value
    corrected: Signal
    uncorrectable: Signal


def decode(m: Module, stored: Value, width: int) -> Decoded:
    """Checks and corrects what :func:`encode` made of ``width`` bits, in the same cycle.

    Any single wrong bit is corrected, any two are found. Three or more may be taken for one.
    """
    received, checks = stored[:width], stored[width:]
    syndrome = Signal(len(checks))
    corrected, uncorrectable = Signal(), Signal()
    columns = [sum(1 << bit for bit in column) for column in _columns(width)]
    hits = Signal(width)
    m.d.comb += [
        syndrome.eq(checks ^ _checks(received)),
        hits.eq(Cat(syndrome == column for column in columns)),
        corrected.eq(hits.any() | Cat(syndrome == 1 << bit for bit in range(len(checks))).any()),
        uncorrectable.eq(syndrome.any() & ~corrected),
    ]
    return Decoded(Mux(corrected, received ^ hits, received), corrected, uncorrectable)
