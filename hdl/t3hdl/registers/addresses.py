"""Decoding of register addresses: which table, which entry, and which address bits mean something."""

from amaranth.hdl import Value

from ..config import T3Config
from ..interface import register_map as regs
from ..interface.words import WORD_BYTES

BROADCAST = (
    regs.CONTROL, regs.TILE_MARKS, regs.ARBITER, regs.THRESHOLDS, regs.WATCHDOG, regs.DEBUG_SELECT,
    regs.RANGE, regs.QUOTA, regs.PROFILE, regs.DESCRIPTOR,
)  # fmt: skip
"""What the parts listen to (IRQ_*, LOCK and NMC_FLAGS stay here)."""


def bits_of(size: int) -> int:
    """Address bits within ``size`` bytes."""
    return (size - 1).bit_length()


def is_aligned(address: Value) -> Value:
    """Whether ``address`` is that of a register, not of a byte within one."""
    return address[: bits_of(WORD_BYTES)] == 0


def is_within(address: Value, first: int, size: int) -> Value:
    """Whether ``address`` lies in the table at ``first``, which begins at a multiple of its size, a power of two."""
    return address[bits_of(size) :] == first >> bits_of(size)


def index_in(address: Value, stride: int, count: int) -> Value:
    """The number of an entry in a table of ``count`` entries, ``stride`` bytes apart; both are powers of two."""
    return address[bits_of(stride) : bits_of(stride * count)]


def address_bits(config: T3Config) -> int:
    """The bits that are 1 in some address that the parts listen to. The others of ``config`` are constants, which
    makes the decoding of all parts shorter."""
    tables = (
        (regs.RANGE, config.ranges * regs.RANGE_STRIDE),
        (regs.QUOTA, config.contexts * regs.QUOTA_STRIDE),
        (regs.PROFILE, regs.PROFILE_COUNT * regs.PROFILE_STRIDE),
        (regs.DESCRIPTOR, config.descriptors * regs.DESCRIPTOR_STRIDE),
    )
    bits = 0
    for first, size in tables:
        bits |= first | ((1 << bits_of(size)) - WORD_BYTES)  # a table begins at a multiple of its size
    for address in BROADCAST:
        bits |= address
    return bits
