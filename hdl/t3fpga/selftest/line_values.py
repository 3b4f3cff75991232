"""What the lines hold: four values per lane, chosen by two bits, and what the memory must hold after two updates.

A value is a small integer times a power of two that belongs to the lane, so every sum is exact, and the order of the
updates does not matter. A line has eight pairs of 16-bit lanes; a pair takes two bits. 32-bit lanes are a pair each.
"""

import random
import struct

from amaranth.hdl import Array, Cat, Const, Value
from t3hdl.config import T3Config
from t3hdl.interface.layouts import Dtype, Op

LANES = 16
WIDE = (Dtype.FP32, Dtype.INT32)
ADD, MIN, MAX, STORE = range(4)
"""How a line came about, for :func:`expected_words`; the first three are ``op - Op.ADD``."""
assert (Op.MIN - Op.ADD, Op.MAX - Op.ADD) == (MIN, MAX)

_SEED = 3  # any
_EXPONENTS = (-24, -20, -15, -14, -8, -3, 0, 0, 1, 2, 4, 6, 7, 8, 10, 10)  # FP16: subnormal to 30720


def encode(dtype: Dtype, integer: int, exponent: int) -> int:
    """``integer`` * 2**``exponent`` as bits of a lane. INT32 takes the exponent modulo 24."""
    if dtype == Dtype.INT32:
        return integer * 2 ** (exponent % 24) & 0xFFFF_FFFF
    value = float(integer) * 2.0**exponent
    if dtype == Dtype.FP16:
        (bits,) = struct.unpack("<H", struct.pack("<e", value))
        return bits
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return bits >> 16 if dtype == Dtype.BF16 else bits


def choices() -> list[tuple[int, tuple[int, ...]]]:
    """For each lane its exponent, and the four integers that two bits choose from."""
    rng = random.Random(_SEED)
    return [(exponent, tuple(rng.sample(range(-15, 16), 4))) for exponent in rng.sample(_EXPONENTS, LANES)]


def word(dtype: Dtype, lane: int, how: int, a: int, b: int) -> int:
    """The 16 bits of 16-bit lane ``lane`` after a local update ``a`` and an incoming one ``b`` of a line of zeros.

    ``how`` = STORE: after a store of ``a`` alone.
    """
    wide = dtype in WIDE
    exponent, integers = choices()[lane & ~1 if wide else lane]
    first, second = integers[a], integers[b]
    result = {ADD: first + second, MIN: min(0, first, second), MAX: max(0, first, second), STORE: first}[how]
    bits = encode(dtype, result, exponent)
    return bits >> 16 * (lane & 1) & 0xFFFF if wide else bits


def expected_words(config: T3Config) -> list[int]:
    """A table of :func:`word`: index = dtype (of the configuration), how, lane, a, b, from high to low bits."""
    dtypes = [Dtype[name.upper()] for name in config.dtypes]
    return [
        word(dtype, lane, how, a, b)
        for dtype in dtypes
        for how in range(4)
        for lane in range(LANES)
        for a in range(4)
        for b in range(4)
    ]


def line(config: T3Config, dtype: Value, bits: Value) -> Value:
    """The 256 bits of write data that 16 bits stand for."""
    return Cat(_lane(config, dtype, lane, bits.word_select(lane >> 1, 2)) for lane in range(LANES))


def _lane(config: T3Config, dtype: Value, lane: int, pair: Value) -> Value:
    """Bit by bit a function of two bits, or of four with more than one data type: a LUT at most."""
    tables = {
        Dtype[name.upper()]: [word(Dtype[name.upper()], lane, STORE, a, 0) for a in range(4)] for name in config.dtypes
    }
    if len(tables) == 1:
        (values,) = tables.values()
        return Array(Const(value, 16) for value in values)[pair]
    fallback = next(iter(tables.values()))
    rows = [tables.get(each, fallback) for each in Dtype]
    return Array(Const(value, 16) for row in rows for value in row)[Cat(pair, dtype)]
