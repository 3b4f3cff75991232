"""The words that travel between the parts of the hardware, and the address map.

One definition serves RTL, golden model, co-simulator and testbenches. Field widths are the same in every
configuration, so that a word means the same everywhere; tables inside a part store only the bits that they need.
"""

import enum

from amaranth.lib import data

LINE_BYTES = 32
LINE_BITS = 39
"""Bits of a line address (44-bit byte address)."""
INTERLEAVE_LINES = 8
"""Lines in the 256 B interleave of the channel hash [A]."""
INTERLEAVE_BITS = INTERLEAVE_LINES.bit_length() - 1
BURST_LINES = INTERLEAVE_LINES
"""Lines of a burst at most: those of one aligned block of the interleave."""
LENGTH_BITS = INTERLEAVE_BITS
"""Bits of a burst's length: lines beyond the first."""
EPOCH_BITS = 8
"""Bits of an epoch: 256 jobs of a context pass before a packet of the first could be taken for one of the last."""
COUNT_BITS = 10
"""Bits of a token's count."""
MAX_CONTEXTS = 16
"""Contexts of the largest configuration: bits of a word with one bit per context."""
TIME_BITS = 48
"""Bits of the timestamp input (cycles of the unit's clock)."""
OCCUPANCY_BITS = 7
"""Bits of a DRAM queue occupancy; 127 as a threshold means no limit."""
BACKLOG_BITS = 21
"""Bits of the number of DMA blocks that are ready or under way: 64 x 64 blocks, and 16 contexts' commands."""
NEVER = (1 << TIME_BITS) - 1
"""``wake_at`` of a part that does nothing by itself."""


class Op(enum.IntEnum):
    """What an access does to its line."""

    READ = 0
    STORE = 1
    ADD = 2
    MIN = 3
    MAX = 4
    READ_CLEAR = 5


class Dtype(enum.IntEnum):
    """Element type of an update."""

    FP16 = 0
    BF16 = 1
    FP32 = 2
    INT32 = 3


class ChunkKind(enum.IntEnum):
    """What the map says about a chunk of the output."""

    NONE = 0
    REMOTE = 1
    DMA = 2
    LOCAL = 3


class EventKind(enum.IntEnum):
    """Kind of an event of a tracker bank."""

    TILE = 0
    OVERFLOW = 1


MemoryRequest = data.StructLayout(
    {
        # first 64-bit word
        "line": LINE_BITS,  # line address (byte address / 32)
        "op": 3,  # Op
        "dtype": 2,  # Dtype
        "stream": 1,  # 0 compute, 1 communication
        "context": 4,
        "source": 8,  # GPU that made the access
        "tagged": 1,  # in: an update of a job, with epoch and tile; out of a slice: this access is tracked
        "wf": 4,
        "right": 1,  # edge class: tile in the last tile column
        "bottom": 1,  # edge class: tile in the last tile row
        # second word
        "row": 12,  # tile row in the whole output
        "col": 12,  # tile column in the whole output
        "epoch": EPOCH_BITS,  # of the job that made the access; means nothing unless tagged
        "tag": 29,  # names the write data buffer or the reader; not interpreted by the slice
        "length": LENGTH_BITS,  # lines of the burst beyond the first, as AXI's AxLEN counts
    }
)
"""A burst without its data: write data wait in the memory controller's buffer that ``tag`` names.

Line ``line`` and the ``length`` lines after it, all in one aligned 256-byte block, so in one channel.
"""

PROFILE_WAVEFRONTS = 16
"""PROFILE registers of an edge class."""


def profile_index(bottom: int, right: int, wf: int) -> int:
    """Number of the PROFILE register of a wavefront's tile; ``bottom``, ``right``: the tile's edge class (0 or 1)."""
    return (2 * bottom + right) * PROFILE_WAVEFRONTS + wf


Token = data.StructLayout({
    "context": 4, "epoch": EPOCH_BITS, "row": 12, "col": 12, "wf": 4, "right": 1, "bottom": 1, "n": COUNT_BITS,
})  # fmt: skip
"""``n`` counted updates of one wavefront tile."""


def tracker_bank(row, col, wf, banks: int):
    """Bank of the tracker, of ``banks`` (a power of two), that counts a wavefront tile.

    A tile's neighbours, to its right, below it and in its workgroup, are in other banks: the stores of a stage come
    from all of them at once, and a DMA engine sends one workgroup's tile after the other. Works on Python and NumPy
    integers and on Amaranth values.
    """
    return (row ^ col ^ wf) & (banks - 1)


TileDone = data.StructLayout({"slot": 6, "row": 12, "col": 12, "wf": 4})
"""A tile reached its threshold."""

ChunkDone = data.StructLayout({"slot": 6, "overflowed": 1})
"""Every update of a chunk is counted; ``overflowed`` if some were counted without a tile entry."""

DmaCommand = data.StructLayout({
    # first word
    "descriptor": 6, "context": 4, "epoch": EPOCH_BITS, "peer": 8, "op": 3, "dtype": 2, "by_chunk": 1,
    "row": 12, "col": 12, "reserved": 8,
    # second word
    "rows": 12, "cols": 12, "pitch": 16, "tile_rows": 11, "wavefront_rows": 11, "reserved2": 2,
    # third and fourth word: line addresses of the output buffer here and at the peer
    "base": LINE_BITS, "tile_lines": 4, "last_rows": 11, "last_lines": 4, "bottom": 1, "right": 1, "reserved3": 4,
    "peer_base": LINE_BITS,
})  # fmt: skip
"""One block: the rectangle of ``rows`` x ``cols`` tiles from tile (``row``, ``col``), and what a DMA engine needs to
walk it. Line l of row r of tile (i, j) is line (i x ``tile_rows`` + r) x ``pitch`` + j x ``tile_lines`` + l of the
output, and wavefront r // ``wavefront_rows`` stored it. The last tile row of the block has ``last_rows`` rows, the last
tile column ``last_lines`` lines in a row; ``bottom``, ``right``: they are the output's last ones, and the edge class of
their updates says so."""

Route = data.StructLayout({
    "line": LINE_BITS, "matched": 1, "remote": 1, "descriptor": 6, "op": 3, "peer": 8,
})  # fmt: skip
"""Where a store row goes: stays here (``remote`` = 0), or becomes a packet for ``line`` at GPU ``peer``."""

ConfigWrite = data.StructLayout({"address": 16, "data": 64})
"""One broadcast configuration write (64-bit register at a byte address)."""

SlotLoad = data.StructLayout({
    # first word: where the tiles are
    "row0": 12, "row1": 12, "col0": 12, "col1": 12, "addends": 8, "slot": 6, "valid": 1, "reserved": 1,
    # second word
    "expected": 32, "context": 4, "epoch": EPOCH_BITS, "descriptor": 6,
})  # fmt: skip
"""Makes a chunk live in the tracker (``valid`` = 1) or retires it: tiles [row0, row1) x [col0, col1)."""

ContextStatus = data.StructLayout(
    {
        "armed": 1,
        "complete": 1,  # complete: every descriptor was made live or skipped, and every chunk is retired
        "following": 7,  # the next descriptor to be made live
        "end": 7,  # the descriptor after the last one
        "slots": 7,  # chunks in use
        "ready": 13,  # blocks that wait to become commands
        "outstanding": 16,  # commands given and not yet reported done
    }
)
"""State of a context in the trigger."""

Stuck = data.StructLayout({
    "valid": 1, "descriptor": 6, "block": 6, "context": 4, "expected": 16, "seen": 16,
})  # fmt: skip
"""The block that the watchdog found waiting: tiles ``expected`` and tiles ``seen``."""

TileTwice = data.StructLayout({
    "valid": 1, "descriptor": 6, "context": 4, "row": 12, "col": 12, "wf": 4,
})  # fmt: skip
"""The wavefront tile that was the first to be complete a second time in an epoch."""

Refusal = data.StructLayout({"line": LINE_BITS, "context": 4, "source": 8, "epoch": EPOCH_BITS})
"""A write that was refused: to a range of another context (violation), or an update of no live epoch (stale update)."""

NmcRequest = data.StructLayout({
    "line": LINE_BITS, "op": 3, "dtype": 2, "reserved": 20,
    "mask": 32, "tag": 32, "data": 256,
})  # fmt: skip
"""An op-and-store on one line, at the bank side of the DRAM scheduler."""


def channel_bits(slices: int) -> int:
    """Address bits that choose the channel."""
    return (slices - 1).bit_length()


def channel_of(line, slices: int):
    """Channel of a line address (0 to ``slices`` - 1): XOR-fold of the address bits above the 256 B interleave [A].

    Works on Python and NumPy integers and on Amaranth values. The lowest folded group is the plain interleave, the
    higher groups permute it, so consecutive 256 B blocks visit every channel and strides do not pile up.
    """
    bits = channel_bits(slices)
    if bits == 0:
        return line & 0
    folded = line >> INTERLEAVE_BITS
    mask = slices - 1
    result = folded & mask
    for shift in range(bits, LINE_BITS - INTERLEAVE_BITS, bits):
        result = result ^ ((folded >> shift) & mask)
    return result


def local_line(line, slices: int):
    """Line number within its channel: the address without the interleave's channel bits (a bijection per channel)."""
    bits = channel_bits(slices)
    return ((line >> (INTERLEAVE_BITS + bits)) << INTERLEAVE_BITS) | (line & (INTERLEAVE_LINES - 1))


class LineOrder(enum.IntEnum):
    """How consecutive lines of a channel lie in its banks."""

    ROTATE = 0
    """One line in each bank group in turn: column commands need not wait for a bank group [A]."""
    BANK_LOCAL = 1
    """A whole row in one bank, then the next bank of the same group: the named alternative."""
    GROUP_LOW = 2
    """Eight lines in a bank group, then eight in the next one, and so on over rows of 64 lines in two groups; then the
    same in the other two. The public V100 configuration of GPGPU-Sim has its banks so (RBBBCCCB.CCCSSSSS)."""


class BankHash(enum.IntEnum):
    """What permutes the banks of a channel from row to row."""

    NONE = 0
    ROW_XOR = 1
    """The low row bits are XORed onto bank group and bank: lines that are a power of two or a matrix row apart and meet
    in one bank otherwise then lie in many (permutation-based page interleaving: Zhang, Zhu and Zhang, MICRO 2000)."""


BANK_GROUPS = 4
BANKS_PER_GROUP = 4
ROW_LINES = 32
"""Lines in a row of a bank (1 KB page of an HBM2 pseudo-channel)."""
MAX_ROW_LINES = 2 * ROW_LINES
"""The same with GROUP_LOW (2 KB page of a whole channel)."""
_GROUP_BITS, _BANK_BITS, _COLUMN_BITS = (count.bit_length() - 1 for count in (BANK_GROUPS, BANKS_PER_GROUP, ROW_LINES))


def dram_address(local, order: int, bank_hash: int):
    """(bank group, bank in the group, row, column) of line ``local`` of a channel (see :func:`local_line`).

    Fields from the lowest bit: ROTATE bank group 2, column 5, bank 2, row; BANK_LOCAL column 5, bank 2, bank group 2,
    row; GROUP_LOW column 3, bank group 1, column 3, bank group 1, bank 2, row. With the hash ROW_XOR row bits 0 and 1
    are XORed onto the bank group, 2 and 3 onto the bank. A bijection for each order and hash. Works on Python and NumPy
    integers, and compiled by Numba.
    """
    row = local >> _GROUP_BITS + _BANK_BITS + _COLUMN_BITS
    if order == LineOrder.ROTATE:
        column, bank, group = local >> _GROUP_BITS & ROW_LINES - 1, local >> _GROUP_BITS + _COLUMN_BITS, local
    elif order == LineOrder.BANK_LOCAL:
        column, bank, group = local & ROW_LINES - 1, local >> _COLUMN_BITS, local >> _COLUMN_BITS + _BANK_BITS
    else:
        column, bank, group = (local >> 4 & 7) << 3 | local & 7, local >> 8, local >> 3 & 1 | local >> 6 & 2
        row = row >> 1
    if bank_hash == BankHash.ROW_XOR:
        group, bank = group ^ row, bank ^ row >> _GROUP_BITS
    return group & BANK_GROUPS - 1, bank & BANKS_PER_GROUP - 1, row, column
