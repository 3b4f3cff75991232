"""The command side of the golden Trigger: contexts take turns, a ready block becomes a command, credits."""

from t3sim.common.compiled import njit
from t3sim.hardware.words import COMMAND, NEVER, put

from .blocks import block_place, by_chunk, pop_ready
from .state import BUILD, FETCH, HERE, LAST, LOOKUP, PLACE, ROW, SUMS, THERE, WORDS, S, next_ready, slot_field, touch

_MAX_BLOCKS = (1 << 7) - 1
_PLACE_MASK = PLACE.row0.mask
OUTSTANDING_MASK = (1 << 16) - 1
_TRIGGERS_MASK = (1 << 32) - 1


@njit(cache=True)
def blocks_of_chunk(rows, cols):
    """Commands that a chunk of so many block rows and columns gives; one that claims too many is never retired."""
    return min(rows * cols, _MAX_BLOCKS)


@njit(cache=True)
def issued_slot(state):
    """The slot of the block that the issuer holds."""
    return state[S.issue] // state[S.blocks]


@njit(cache=True)
def _build(state):
    """Write the command register for the block that the issuer holds."""
    slot = issued_slot(state)
    block_row, block_col = block_place(state, slot, state[S.issue] - slot * state[S.blocks])
    row_shift, col_shift = slot_field(state, slot, THERE.row_shift), slot_field(state, slot, THERE.col_shift)
    row = slot_field(state, slot, PLACE.row0) + (block_row << row_shift) & _PLACE_MASK
    col = slot_field(state, slot, PLACE.col0) + (block_col << col_shift) & _PLACE_MASK
    first = S.command
    state[first : first + 4] = 0
    put(state, first, COMMAND.descriptor, state[S.slot + slot * ROW + WORDS])
    put(state, first, COMMAND.context, slot_field(state, slot, SUMS.context))
    put(state, first, COMMAND.epoch, slot_field(state, slot, SUMS.epoch))
    put(state, first, COMMAND.peer, slot_field(state, slot, PLACE.peer))
    put(state, first, COMMAND.op, slot_field(state, slot, PLACE.op))
    put(state, first, COMMAND.dtype, slot_field(state, slot, SUMS.dtype))
    put(state, first, COMMAND.by_chunk, by_chunk(state, state[S.issue]))
    put(state, first, COMMAND.row, row)
    put(state, first, COMMAND.col, col)
    put(state, first, COMMAND.rows, min(1 << row_shift, slot_field(state, slot, PLACE.row1) - row & _PLACE_MASK))
    put(state, first, COMMAND.cols, min(1 << col_shift, slot_field(state, slot, PLACE.col1) - col & _PLACE_MASK))
    put(state, first, COMMAND.pitch, slot_field(state, slot, HERE.pitch))
    put(state, first, COMMAND.base, slot_field(state, slot, HERE.base))
    put(state, first, COMMAND.peer_base, slot_field(state, slot, THERE.peer_base))
    _tell_tiles(state, slot, block_row, block_col)


@njit(cache=True)
def _tell_tiles(state, slot, block_row, block_col):
    """The part of the command word that says how large tiles are, and where the output ends."""
    first = S.command
    tile_rows, tile_lines = slot_field(state, slot, LAST.tile_rows), slot_field(state, slot, LAST.tile_lines)
    put(state, first, COMMAND.tile_rows, tile_rows)
    put(state, first, COMMAND.wavefront_rows, slot_field(state, slot, LAST.wavefront_rows))
    put(state, first, COMMAND.tile_lines, tile_lines)
    put(state, first, COMMAND.last_rows, tile_rows)
    put(state, first, COMMAND.last_lines, tile_lines)
    if block_row == slot_field(state, slot, LAST.last_block_row):
        put(state, first, COMMAND.last_rows, slot_field(state, slot, LAST.last_rows))
        put(state, first, COMMAND.bottom, slot_field(state, slot, LAST.bottom))
    if block_col == slot_field(state, slot, LAST.last_block_col):
        put(state, first, COMMAND.last_lines, slot_field(state, slot, LAST.last_lines))
        put(state, first, COMMAND.right, slot_field(state, slot, LAST.right))


@njit(cache=True)
def _give(state, now):
    """BUILD: the command becomes valid and is counted."""
    _build(state)
    slot = issued_slot(state)
    context = slot_field(state, slot, SUMS.context)
    outstanding = S.outstanding + context
    state[S.command_valid], state[S.built] = 1, now
    state[outstanding] = (state[outstanding] + 1) & OUTSTANDING_MASK
    touch(state, context)
    state[S.unissued + slot] = (state[S.unissued + slot] - 1) & _MAX_BLOCKS
    if state[S.unissued + slot] == 0:
        state[S.all_issued] |= 1 << slot
    state[S.issuer] = FETCH


@njit(cache=True)
def issue(state, ready, now, aborted):
    """One cycle of the issuer and its command register.

    ``ready`` is that of the command stream, ``aborted`` the context that is aborted in this cycle (-1: none).
    """
    if ready and state[S.command_valid]:
        state[S.command_valid] = 0
        state[S.triggers] = (state[S.triggers] + 1) & _TRIGGERS_MASK
        state[S.command_stall] = (state[S.command_stall] + now - state[S.built] - 1) & NEVER
    if state[S.issuer] == FETCH:
        context = -1 if state[S.quiesced] else next_ready(state)
        if context >= 0:
            state[S.issue] = pop_ready(state, context)
            state[S.issue_turn] = (context + 1) % state[S.contexts]
            state[S.issuer] = LOOKUP
    elif state[S.issuer] == LOOKUP:
        state[S.issuer] = BUILD
    elif state[S.poisoned] >> issued_slot(state) & 1:
        state[S.issuer] = FETCH
    elif not state[S.command_valid] and slot_field(state, issued_slot(state), SUMS.context) != aborted:
        _give(state, now)


@njit(cache=True)
def issuer_rests(state):
    """Whether the issuer does not move before the command is taken, a block becomes ready, or a credit returns."""
    if state[S.issuer] == FETCH:
        return state[S.quiesced] != 0 or next_ready(state) < 0
    poisoned = state[S.poisoned] >> issued_slot(state) & 1
    return state[S.issuer] == BUILD and state[S.command_valid] != 0 and not poisoned
