"""The block side of the golden Trigger: the block pipeline with its counts, the ready lists, what a SCAN finds.

A block operation acts on the block table in stage C, whole; the slot table is read there too. That equals the earlier
reads of the contract, because a slot's table row does not change while an operation of that slot is under way.
"""

from t3sim.common.compiled import njit
from t3sim.hardware.words import STUCK, TILE_DONE, place, take

from .marks import clear_word, report_twice, set_mark
from .state import (
    CLEAR,
    DROPPED,
    LAST,
    OPERATION,
    PLACE,
    ROW,
    SCAN,
    SUMS,
    THERE,
    TILE,
    TILES,
    WORDS,
    S,
    is_dma,
    slot_field,
    touch,
)

_COUNT_MASK = (1 << 16) - 1
_FIRED, _BY_CHUNK = 1 << 16, 1 << 17
"""A block entry: tile count below, then fired, then by_chunk (of a block that became ready)."""


@njit(cache=True)
def enter(state, kind, slot, block, row, col):
    """A block operation enters stage A."""
    state[S.a] = (
        place(OPERATION.kind, kind)
        | place(OPERATION.slot, slot)
        | place(OPERATION.block, block)
        | place(OPERATION.row, row)
        | place(OPERATION.col, col)
    )


@njit(cache=True)
def tile_place(state, slot, tile):
    """Block row and block column of a tile of a slot; one beyond the bounds has a place outside the chunk."""
    row = (take(tile, TILE_DONE.row) - slot_field(state, slot, PLACE.row0)) & PLACE.row0.mask
    col = (take(tile, TILE_DONE.col) - slot_field(state, slot, PLACE.col0)) & PLACE.col0.mask
    return row >> slot_field(state, slot, THERE.row_shift), col >> slot_field(state, slot, THERE.col_shift)


@njit(cache=True)
def block_at(state, slot, row, col):
    """Block number of a place in the chunk."""
    return ((col << slot_field(state, slot, THERE.row_blocks_log)) | row) & (state[S.blocks] - 1)


@njit(cache=True)
def block_place(state, slot, block):
    """Block row and block column of a block number."""
    log = slot_field(state, slot, THERE.row_blocks_log)
    return block & ((1 << log) - 1), block >> log


@njit(cache=True)
def by_chunk(state, entry):
    """Whether a ready block fired because its chunk was done."""
    return 1 if state[S.tables + entry] & _BY_CHUNK else 0


@njit(cache=True)
def _tiles_of(state, slot, row, col):
    """Tiles that complete the block at a place in the chunk."""
    bottom = row == slot_field(state, slot, LAST.last_block_row)
    right = col == slot_field(state, slot, LAST.last_block_col)
    if bottom and right:
        return slot_field(state, slot, TILES.tiles_corner)
    if bottom:
        return slot_field(state, slot, TILES.tiles_bottom)
    if right:
        return slot_field(state, slot, TILES.tiles_right)
    return slot_field(state, slot, TILES.tiles_inner)


@njit(cache=True)
def _push_ready(state, slot, entry):
    """Append a block to the ready list of its slot's context."""
    context = slot_field(state, slot, SUMS.context)
    if state[S.ready + context] == 0:
        state[S.oldest + context] = entry
    else:
        state[S.tables + state[S.entries] + state[S.newest + context]] = entry
    state[S.newest + context] = entry
    state[S.ready + context] += 1
    touch(state, context)
    state[S.waiting] += 1


@njit(cache=True)
def pop_ready(state, context):
    """The oldest ready block of a context whose list is not empty."""
    entry = state[S.oldest + context]
    state[S.oldest + context] = state[S.tables + state[S.entries] + entry]
    state[S.ready + context] -= 1
    touch(state, context)
    state[S.waiting] -= 1
    return entry


@njit(cache=True)
def _scan(state, slot, block, tiles, counts):
    """SCAN: note the first block that waits; after the last block, the watchdog's finding.

    ``tiles`` complete the block; ``counts``: whether it can be noted.
    """
    if counts and not state[S.noted]:
        state[S.noted] = (
            place(STUCK.valid, 1)
            | place(STUCK.block, block)
            | place(STUCK.expected, tiles)
            | place(STUCK.seen, state[S.tables + slot * state[S.blocks] + block] & _COUNT_MASK)
        )
    if block == state[S.blocks] - 1:
        state[S.scanning] = 0
        state[S.stuck] = (
            state[S.noted]
            | place(STUCK.valid, 1)
            | place(STUCK.descriptor, state[S.slot + slot * ROW + WORDS])
            | place(STUCK.context, slot_field(state, slot, SUMS.context))
        )


@njit(cache=True)
def stage_c(state):
    """The operation in stage C, which is not ``NOTHING``, acts. Returns the slot that it poisons, with a tile that was
    complete twice; -1 if there is none."""
    operation = state[S.c]
    kind = take(operation, OPERATION.kind)
    if kind == DROPPED:
        return -1
    slot, block = take(operation, OPERATION.slot), take(operation, OPERATION.block)
    entry = slot * state[S.blocks] + (block & state[S.blocks] - 1)
    at = S.tables + entry
    if kind == CLEAR:
        state[at] = 0
        clear_word(state, slot, state[S.share_c], block)
        return -1
    row, col = take(operation, OPERATION.row), take(operation, OPERATION.col)
    inside = row <= slot_field(state, slot, LAST.last_block_row) and col <= slot_field(state, slot, LAST.last_block_col)
    waits, counts = inside and not state[at] & _FIRED, state[S.used] & ~state[S.poisoned] & (1 << slot)
    if kind == TILE:
        if set_mark(state, slot, state[S.share_c], state[S.tile_c]):
            if state[S.poisoned] >> slot & 1:
                return -1
            report_twice(state, slot, state[S.tile_c])
            return slot
        count = (state[at] + 1) & _COUNT_MASK
        state[at] = (state[at] & ~_COUNT_MASK) | count
        if waits and count == _tiles_of(state, slot, row, col):
            state[at] |= _FIRED
            if counts and is_dma(state, slot):
                _push_ready(state, slot, entry)
    elif kind == SCAN:
        _scan(state, slot, block, _tiles_of(state, slot, row, col), counts and waits)
    elif waits:
        state[at] |= _FIRED | _BY_CHUNK
        if counts:
            _push_ready(state, slot, entry)
    return -1
