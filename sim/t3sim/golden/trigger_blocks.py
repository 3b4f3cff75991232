"""The block side of the golden Trigger: its state, the block pipeline, the ready queue and the issuer of commands.

A block operation acts on the block table in stage B, whole; the slot table is read there too. That equals the earlier
reads of the contract, because a slot's table row does not change while an operation of that slot is under way.
"""

from numba import njit
from t3hdl import register_map

from .words import COMMAND, DESCRIPTOR, KIND_DMA, TILE_DONE, put, state_map, take

SLOTS, _DESCRIPTORS, WORDS = 64, 64, register_map.DESCRIPTOR_WORDS
PLACE, SUMS, HERE, THERE, TILES, LAST = (
    fields._make(field._replace(word=word) for field in fields) for word, fields in enumerate(DESCRIPTOR)
)
"""Fields of the six descriptor words; the word of each is its word in the descriptor."""
UNISSUED_MASK = 127
ROW = WORDS + 1
"""Words of a slot table row: the descriptor and its number."""

NOTHING, TILE, FLUSH, CLEAR = range(4)  # block operations, and what the walker does
_FETCH, _LOOKUP, _BUILD = range(3)  # states of the issuer

OPERATION = state_map(kind=1, slot=1, block=1)
"""A block operation in stage A or B."""
S = state_map(
    words=1, descriptors=1, blocks=1, slot_mask=1, ready_size=1,  # parameters end here
    armed=1, limit=1, next=1, live=1, chunks_done=1, done_mask=1,
    loader=1, reads=1, chosen=1, load_valid=1, load=2,  # loader: state, READ cycles left, slot; load pulse
    used=1, dma=1, done=1, all_issued=1, pending=1, unissued=SLOTS,  # slot state: a bit per slot, counts
    walker=1, walk_slot=1, walk_block=1, a=OPERATION.size, b=OPERATION.size,
    ready_count=1, ready_first=1, issuer=1, issue=1, command_valid=1, command=4,
    descriptor=_DESCRIPTORS * WORDS,  # descriptor table: survives disarm
    slot=SLOTS * ROW, tables=0,  # slot table; then block table (slots x blocks) and ready ring
)  # fmt: skip
"""The state of a Trigger."""
_FIRED = 1 << 16
"""A block entry: tile count below, fired above. A ready entry: by_chunk, block (6 bits), slot."""


@njit(cache=True)
def slot_field(state, slot, field):
    """A descriptor field of a live slot."""
    return (state[S.slot + slot * ROW + field.word] >> field.shift) & field.mask


@njit(cache=True)
def enter(state, kind, slot, block):
    """A block operation enters stage A."""
    state[S.a + OPERATION.kind] = kind
    state[S.a + OPERATION.slot] = slot
    state[S.a + OPERATION.block] = block


@njit(cache=True)
def block_of(state, slot, tile):
    """Block number of a tile of a slot."""
    row = (take(tile, TILE_DONE.row) - slot_field(state, slot, PLACE.row0)) & PLACE.row0.mask
    col = (take(tile, TILE_DONE.col) - slot_field(state, slot, PLACE.col0)) & PLACE.col0.mask
    row >>= slot_field(state, slot, THERE.row_shift)
    col >>= slot_field(state, slot, THERE.col_shift)
    return ((col << slot_field(state, slot, THERE.row_blocks_log)) | row) & (state[S.blocks] - 1)


@njit(cache=True)
def _block_place(state, slot, block):
    """Block row and block column of a block number."""
    log = slot_field(state, slot, THERE.row_blocks_log)
    return block & ((1 << log) - 1), block >> log


@njit(cache=True)
def _tiles_of(state, slot, block):
    """Tiles that complete a block."""
    row, col = _block_place(state, slot, block)
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
def _push_ready(state, slot, block, by_chunk):
    ring = S.tables + SLOTS * state[S.blocks]
    at = (state[S.ready_first] + state[S.ready_count]) % state[S.ready_size]
    state[ring + at] = by_chunk | (block << 1) | (slot << 7)
    state[S.ready_count] += 1


@njit(cache=True)
def stage_b(state):
    """The operation in stage B acts."""
    kind = state[S.b + OPERATION.kind]
    if kind == NOTHING:
        return
    slot, block = state[S.b + OPERATION.slot], state[S.b + OPERATION.block]
    at = S.tables + slot * state[S.blocks] + block
    fired = state[at] & _FIRED
    if kind == CLEAR:
        state[at] = 0
    elif kind == TILE:
        count = (state[at] + 1) & (_FIRED - 1)
        if not fired and count == _tiles_of(state, slot, block):
            fired = _FIRED
            if slot_field(state, slot, PLACE.kind) == KIND_DMA:
                _push_ready(state, slot, block, 0)
        state[at] = fired | count
    elif not fired:
        row, col = _block_place(state, slot, block)
        if row <= slot_field(state, slot, LAST.last_block_row) and col <= slot_field(state, slot, LAST.last_block_col):
            state[at] |= _FIRED
            _push_ready(state, slot, block, 1)


@njit(cache=True)
def _build(state):
    """Write the command register for the ready entry in ``issue``."""
    block, slot = (state[S.issue] >> 1) & 63, state[S.issue] >> 7
    block_row, block_col = _block_place(state, slot, block)
    row_shift, col_shift = slot_field(state, slot, THERE.row_shift), slot_field(state, slot, THERE.col_shift)
    row = slot_field(state, slot, PLACE.row0) + (block_row << row_shift)
    col = slot_field(state, slot, PLACE.col0) + (block_col << col_shift)
    first = S.command
    state[first : first + 4] = 0
    put(state, first, COMMAND.descriptor, state[S.slot + slot * ROW + WORDS])
    put(state, first, COMMAND.context, slot_field(state, slot, SUMS.context))
    put(state, first, COMMAND.epoch, slot_field(state, slot, SUMS.epoch))
    put(state, first, COMMAND.peer, slot_field(state, slot, PLACE.peer))
    put(state, first, COMMAND.op, slot_field(state, slot, PLACE.op))
    put(state, first, COMMAND.dtype, slot_field(state, slot, SUMS.dtype))
    put(state, first, COMMAND.by_chunk, state[S.issue] & 1)
    put(state, first, COMMAND.row, row)
    put(state, first, COMMAND.col, col)
    put(state, first, COMMAND.rows, min(1 << row_shift, slot_field(state, slot, PLACE.row1) - row))
    put(state, first, COMMAND.cols, min(1 << col_shift, slot_field(state, slot, PLACE.col1) - col))
    put(state, first, COMMAND.pitch, slot_field(state, slot, HERE.pitch))
    put(state, first, COMMAND.base, slot_field(state, slot, HERE.base))
    put(state, first, COMMAND.peer_base, slot_field(state, slot, THERE.peer_base))
    state[S.command_valid] = 1
    state[S.unissued + slot] = (state[S.unissued + slot] - 1) & UNISSUED_MASK
    if state[S.unissued + slot] == 0:
        state[S.all_issued] |= 1 << slot


@njit(cache=True)
def issue(state, ready):
    """One cycle of the issuer and its command register; ``ready`` is that of the command stream."""
    if ready:
        state[S.command_valid] = 0
    if state[S.issuer] == _FETCH:
        if state[S.ready_count] > 0:
            first = state[S.ready_first]
            state[S.issue] = state[S.tables + SLOTS * state[S.blocks] + first]
            state[S.ready_first] = first + 1 if first + 1 < state[S.ready_size] else 0
            state[S.ready_count] -= 1
            state[S.issuer] = _LOOKUP
    elif state[S.issuer] == _LOOKUP:
        state[S.issuer] = _BUILD
    elif not state[S.command_valid]:
        _build(state)
        state[S.issuer] = _FETCH


@njit(cache=True)
def blocks_rest(state):
    """Whether neither the block pipeline nor the issuer moves before the command is taken."""
    if state[S.a + OPERATION.kind] != NOTHING or state[S.b + OPERATION.kind] != NOTHING:
        return False
    if state[S.issuer] == _FETCH:
        return state[S.ready_count] == 0
    return state[S.issuer] == _BUILD and state[S.command_valid] != 0
