"""The small tiled GEMM that the self-test plays: one geometry for hardware, programme and expected numbers.

The output is a matrix of 31 rows of 5 lines at a pitch of 8 lines, in tiles of 4 rows x 2 lines. Its last tile row is
3 rows high, its last tile column one line wide. Four chunks of two tile rows go around a ring of four GPUs. Of GPU g,
chunk g + 1 leaves while it is computed, g + 2 and g + 3 are sent on by DMA, g stays (all modulo 4).

The memory has 256 lines. An *address* is the 8-bit number of a line in it: matrix row x 8 + line in the row. Lines 5
to 7 of a row are padding, within the tracked range; row 31 is outside. Functions of an address take an integer or an
Amaranth value.
"""

from typing import Any

from t3hdl.config import T3Config
from t3hdl.interface.layouts import ChunkKind

GPUS = 4
LINES = 256
"""Lines of the memory."""
ADDRESS_BITS = 8
PITCH = 8
ROWS = 31
COLUMN_LINES = 5
TILE_ROWS = 4
TILE_LINES = 2
TILE_COLUMNS = 3
CHUNK_TILE_ROWS = 2
ADDENDS = 2
"""A local and an incoming update for every line that is tracked."""
BASE = 0x2B_4D5E_6F00
"""First line of the memory, a multiple of ``LINES``."""
PEER_BASE = 0x13_9A78_2400
"""First line of the output at the peer."""
BLOCK_ROW_SHIFT, BLOCK_COL_SHIFT = 0, 1
"""A DMA block is one tile row high and two tile columns wide."""
BLOCK_NUMBERS = 16
"""Numbers of blocks, see :func:`block`."""
TILE_NUMBERS = 64
"""Numbers of wavefront tiles, see :func:`tile`."""
CHUNKS = 4
KINDS = (ChunkKind.REMOTE, ChunkKind.DMA, ChunkKind.DMA, ChunkKind.LOCAL)
"""What happens to a chunk, by its position in the ring's order."""


def tile_row(address: Any) -> Any:
    """Row of the workgroup tile."""
    return (address >> 5) & 7


def tile_col(address: Any) -> Any:
    """Column of the workgroup tile (3 for padding)."""
    return (address >> 1) & 3


def wavefront(address: Any, config: T3Config) -> Any:
    """Wavefront in the tile: each has two matrix rows, or all four if the unit knows one wavefront."""
    return (address >> 4) & 1 if config.wavefronts > 1 else 0


def wavefront_rows(config: T3Config) -> int:
    """Matrix rows of a wavefront."""
    return TILE_ROWS // 2 if config.wavefronts > 1 else TILE_ROWS


def tile_sizes(row1: int, config: T3Config) -> dict[str, int]:
    """What commands of a chunk that ends with tile row ``row1`` - 1 say of its tiles."""
    is_last = row1 * TILE_ROWS > ROWS
    return {
        "tile_rows": TILE_ROWS, "wavefront_rows": wavefront_rows(config), "tile_lines": TILE_LINES,
        "last_rows": TILE_ROWS - is_last, "last_lines": 1, "bottom": int(is_last), "right": 1,
    }  # fmt: skip


def bottom(address: Any) -> Any:
    """1 in the last tile row."""
    return tile_row(address) == 7


def right(address: Any) -> Any:
    """1 in the last tile column."""
    return tile_col(address) == TILE_COLUMNS - 1


def in_output(address: Any) -> Any:
    """1 if the line belongs to a tile."""
    return ((address & 7) < COLUMN_LINES) & ((address >> 3) < ROWS)


def chunk_position(chunk: Any, gpu: Any) -> Any:
    """Place of a chunk in the order of the ring, an index of :data:`KINDS`."""
    return (chunk - gpu - 1) & 3


def position(address: Any, gpu: Any) -> Any:
    """That of the address's chunk."""
    return chunk_position(address >> 6, gpu)


def block(address: Any) -> Any:
    """A number for each DMA block of the memory: tile row and block column."""
    return ((address >> 4) & 0b1110) | ((address >> 2) & 1)


def tile(address: Any, config: T3Config) -> Any:
    """A number for each wavefront tile of the memory: tile row x 8 + tile column x 2 + wavefront."""
    return (tile_row(address) << 3) | (tile_col(address) << 1) | wavefront(address, config)


def chunk(address: Any) -> Any:
    """A number for each chunk, in the order of the rows."""
    return (address >> 6) & 3


def due_blocks(gpu: int) -> int:
    """The DMA blocks that GPU ``gpu`` sends: a bit for each, by its number."""
    return sum(1 << number for number in {block(a) for a in tracked(gpu) if KINDS[position(a, gpu)] == ChunkKind.DMA})


def block_updates(number: Any, mux: Any) -> Any:
    """Updates of a DMA block; ``mux(condition, if_true, if_false)``."""
    last = (number >> 1) == 7
    return mux((number & 1) == 1, mux(last, 6, 8), mux(last, 24, 32))


def written_locally(address: Any) -> Any:
    """1 if the GPU itself stores to this line, which is not in the output; else the store comes over the link."""
    return ((address ^ (address >> 3)) & 1) == 0


def foreign(address: Any, gpu: Any) -> Any:
    """1 for the one line of a chunk that leaves, to which a write of another context is tried, and refused."""
    return (position(address, gpu) == 0) & ((address & 0x3F) == 0x1A)


def tracked(gpu: int) -> list[int]:
    """The addresses that GPU ``gpu`` tracks."""
    return [address for address in range(LINES) if in_output(address) and position(address, gpu)]


def tile_lines(config: T3Config) -> dict[tuple[int, int, int], int]:
    """Lines of each kind of wavefront tile, counted; kinds are (bottom, right, wavefront)."""
    inside = [address for address in range(LINES) if in_output(address)]
    numbers = [tile(address, config) for address in inside]
    return {
        (int(bottom(address)), int(right(address)), wavefront(address, config)): numbers.count(tile(address, config))
        for address in inside
    }


def chunk_updates() -> list[int]:
    """Updates of each chunk, counted, by its number."""
    chunks = [chunk(address) for address in range(LINES) if in_output(address)]
    return [ADDENDS * chunks.count(number) for number in range(CHUNKS)]


def tiles(addresses: list[int], config: T3Config) -> set[tuple[int, int, int]]:
    """Row, column and wavefront of the wavefront tiles that these lines belong to."""
    return {(tile_row(address), tile_col(address), wavefront(address, config)) for address in addresses}


def never_overflows(config: T3Config) -> bool:
    """Whether the tracker has room for all tiles of a round at the same time."""
    rows, cols = 2**config.row_index_bits - 1, 2**config.column_index_bits - 1
    for gpu in range(GPUS):
        sets = [(row & rows, col & cols) for row, col, _ in tiles(tracked(gpu), config)]
        if max(sets.count(each) for each in set(sets)) > config.tracker_ways:
            return False
    return True


def check_fits(config: T3Config) -> None:
    """Raises ValueError if a unit of this configuration cannot play the GEMM, naming the parameter."""
    for name, least in (("descriptors", GPUS), ("chunk_window", GPUS - 1), ("blocks", 4), ("tile_count_bits", 5)):
        value = getattr(config, name)
        if value < least:
            raise ValueError(f"the self-test needs {name} >= {least}, not {value}")
    places = (TILE_COLUMNS - 1) * CHUNK_TILE_ROWS + CHUNK_TILE_ROWS
    if 1 << config.share_bits < places:
        raise ValueError(
            f"the self-test needs marks for {places} tiles of each chunk: tile_marks must be at least "
            f"{1 << config.slot_bits + (places - 1).bit_length()}, not {config.tile_marks}"
        )
    if config.slices > ROWS + 1:
        raise ValueError(
            f"the self-test has 32 rows to spread over the slices: slices must be <= 32, not {config.slices}"
        )
    if config.count_on != "accepted":
        raise ValueError(
            f"the self-test's memory counts accepted updates: count_on must be 'accepted', not {config.count_on!r}"
        )
