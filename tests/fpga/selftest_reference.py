"""What a round of the self-test must report, worked out from its seed alone: no code of the design is used.

The output is 31 x 5 lines in tiles of 4 x 2 lines; addresses are row * 8 + line.
"""

from collections.abc import Sequence

import numpy as np

VALUES = (
    (0, (-3, 5, 12, -11)),
    (2, (-8, 5, -11, 12)),
    (1, (14, 1, -3, 8)),
    (-15, (-15, 6, 9, -13)),
    (-3, (-10, 9, 15, 3)),
    (10, (-14, -6, 9, -15)),
    (10, (11, 12, -7, 0)),
    (-20, (4, 8, 14, 13)),
    (-24, (-3, 7, 10, 14)),
    (0, (-2, -3, 8, 10)),
    (-14, (3, -1, 15, 14)),
    (7, (-11, 13, -4, -12)),
    (8, (-14, -11, 0, -9)),
    (4, (-7, 15, 6, -2)),
    (6, (9, 5, 12, -6)),
    (-8, (-2, 1, 11, -3)),
)
"""For each 16-bit lane an exponent of 2, and the integers that two bits of an update choose from; 32-bit lanes take
those of their lower half, INT32 with the exponent modulo 24."""
OUTPUT = [row * 8 + line for row in range(31) for line in range(5)]


def next_seed(seed: int) -> int:
    """Marsaglia's xorshift32."""
    seed ^= seed << 13 & 0xFFFFFFFF
    seed ^= seed >> 17
    return seed ^ (seed << 5 & 0xFFFFFFFF)


def gpu_of(seed: int) -> int:
    return seed & 3


def position(address: int, gpu: int) -> int:
    """0: the chunk that leaves, 1 and 2: sent on by DMA, 3: stays."""
    return (address // 64 - gpu - 1) % 4


def tracked(seed: int) -> list[int]:
    return [address for address in OUTPUT if position(address, gpu_of(seed))]


def tile(address: int, wavefronts: int) -> tuple[int, int, int]:
    row, line = divmod(address, 8)
    return row // 4, line // 2, row % 4 * wavefronts // 4


def counts(seed: int, wavefronts: int) -> tuple[int, int, int]:
    """Updates, tiles, triggers."""
    lines = tracked(seed)
    return 2 * len(lines), len({tile(address, wavefronts) for address in lines}), 8


def counts_of_tracker(seed: int, wavefronts: int) -> tuple[int, int, int]:
    """Updates, tiles, chunks."""
    return *counts(seed, wavefronts)[:2], 3


def dropped(seed: int, wavefronts: int) -> int:
    """The report's detail for a round in which the first incoming update is lost."""
    lost, gpu = _first_incoming(seed), gpu_of(seed)
    row, line = divmod(lost, 8)
    mates = [a for a in OUTPUT if a // 8 // 4 == row // 4 and a % 8 // 4 == line // 4]
    tiles = len({tile(address, wavefronts) for address in mates})
    block = line // 4 << 1 | row // 4 % 2
    return position(lost, gpu) << 24 | block << 16 | tiles << 8 | tiles - 1


def dropped_of_tracker(seed: int, wavefronts: int) -> int:
    """The same for a tracker alone, which names the tile."""
    row, column, wavefront = name = tile(_first_incoming(seed), wavefronts)
    updates = 2 * [tile(address, wavefronts) for address in tracked(seed)].count(name)
    return row << 24 | column << 20 | wavefront << 16 | updates << 8 | updates - 1


def _first_incoming(seed: int) -> int:
    """The address of the first incoming update."""
    step = 1 if seed >> 7 & 1 else seed >> 16 & 0xFF | 1
    walk = [((gpu_of(seed) + 2) % 4 * 64 + number * step) % 256 for number in range(256)]
    return next(address for address in walk if address in tracked(seed))


def checksum(seed: int, dtypes: Sequence[str]) -> int:
    """Of the whole memory at the end of a good round; ``dtypes``: of the configuration."""
    dtype = dtypes[(seed >> 4 & 3) % len(dtypes)]
    function = {1: min, 2: max}.get(seed >> 2 & 3, lambda a, b: a + b)
    result = 0
    for address in range(256):
        local, incoming = _bits(seed, address, 0), _bits(seed, address, 1)
        for lane in range(16):
            first = lane & ~1 if dtype in ("fp32", "int32") else lane
            a, b = (VALUES[first][1][side >> lane // 2 * 2 & 3] for side in (local, incoming))
            if address in tracked(seed):
                value = function(function(0, a), b)
            elif address in OUTPUT:
                value = 0
            else:
                value = b if (address ^ address >> 3) & 1 else a
            result = (result << 5 | result >> 27) & 0xFFFFFFFF ^ _lane(dtype, lane, value, VALUES[first][0])
    return result


def _lane(dtype: str, lane: int, integer: int, exponent: int) -> int:
    """The sixteen bits that a lane has of ``integer`` * 2**``exponent``."""
    if dtype == "fp16":
        return int(np.float16(integer * 2.0**exponent).view(np.uint16))
    if dtype == "int32":
        word = integer * 2 ** (exponent % 24)
    else:
        word = int(np.float32(integer * 2.0**exponent).view(np.uint32))
    return word >> 16 & 0xFFFF if dtype == "bf16" or lane & 1 else word & 0xFFFF


def checksums_of_commands(seed: int) -> set[int]:
    """Of a good round of tracker and trigger alone: one for each order in which the blocks may be sent."""
    gpu = gpu_of(seed)
    blocks = {address // 32 * 2 + address % 8 // 4 for address in OUTPUT if position(address, gpu) in (1, 2)}
    return _in_any_order(frozenset(blocks), 0)


def checksum_of_tracker(seed: int, wavefronts: int) -> int:
    """Of a good round of a tracker alone: updates of each tile, 32 more if it is complete, and of each chunk (128)."""
    names = [tile(address, wavefronts) for address in tracked(seed)]
    result = seed
    for number in range(64):
        updates = 2 * names.count((number // 8, number // 2 % 4, number % 2))
        entry = updates and updates + 32
        if number % 16 == 15:
            updates = 2 * len([address for address in tracked(seed) if address // 64 == number // 16])
            entry = updates and updates + 128
        result = (result << 5 | result >> 27) & 0xFFFFFFFF ^ entry
    return result


def _in_any_order(blocks: frozenset[int], before: int) -> set[int]:
    if not blocks:
        return {before}
    rotated = (before << 5 | before >> 27) & 0xFFFFFFFF
    return set().union(*(_in_any_order(blocks - {block}, rotated ^ block) for block in blocks))


def _bits(seed: int, address: int, incoming: int) -> int:
    """The sixteen bits that choose the values of an update."""
    low = seed & 0xFFFF
    bits = seed >> 16 if incoming else low >> 5 | low << 11 & 0xFFFF
    for bit in range(16):
        other = (3 * bit + 1 + 2 * incoming) % 8
        bits ^= (address >> bit % 8 & 1 ^ address >> other & 1) << bit
    return bits
