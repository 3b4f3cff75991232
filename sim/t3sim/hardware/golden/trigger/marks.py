"""The tile marks of the golden Trigger: which wavefront tiles of the chunks in its slots were complete.

A word per workgroup tile, a bit per wavefront. A slot's share begins at the slot's number times the size of a share.
"""

from t3sim.common.compiled import njit
from t3sim.hardware.words import TILE_DONE, TILE_TWICE, place, take

from .state import PLACE, ROW, SUMS, WORDS, S, share_log, slot_field


@njit(cache=True)
def _length(number):
    """Bits of a number."""
    bits = 0
    while number >> bits:
        bits += 1
    return bits


@njit(cache=True)
def _bounds(state, descriptor):
    """Bits of a row number in the chunk of the descriptor at this word, its last row, its last column."""
    field = PLACE.row0
    word = state[descriptor + field.word]
    row = (take(word, PLACE.row1) - take(word, PLACE.row0) - 1) & field.mask
    col = (take(word, PLACE.col1) - take(word, PLACE.col0) - 1) & field.mask
    return _length(row), row, col


@njit(cache=True)
def last_place(state, descriptor):
    """The largest place in its share of a tile of the chunk of the descriptor at this word."""
    log, row, col = _bounds(state, descriptor)
    return (col << log) | row


@njit(cache=True)
def too_many_tiles(state, descriptor):
    """Whether the chunk of the descriptor at this word has more tiles than a slot has marks for."""
    return last_place(state, descriptor) >> share_log(state) != 0


@njit(cache=True)
def words_of(state, last):
    """Words of the hardware's table that hold the marks up to this place."""
    return (last >> state[S.word_log]) + 1


@njit(cache=True)
def _address(state, slot, share, at):
    """Where the mark word of a place, modulo the share, is; ``share`` : log2 of the tiles of a share."""
    return S.tables + 2 * state[S.entries] + (slot << share) + (at & (1 << share) - 1)


@njit(cache=True)
def clear_word(state, slot, share, number):
    """The marks in a word of the hardware's table, modulo the words of the share."""
    tiles = 1 << state[S.word_log]
    first = _address(state, slot, share, number * tiles)
    state[first : first + tiles] = 0


@njit(cache=True)
def set_mark(state, slot, share, tile):
    """Sets the mark of a tile of this slot; returns whether it was set already."""
    log, _, _ = _bounds(state, S.slot + slot * ROW)
    row = (take(tile, TILE_DONE.row) - slot_field(state, slot, PLACE.row0)) & PLACE.row0.mask
    col = (take(tile, TILE_DONE.col) - slot_field(state, slot, PLACE.col0)) & PLACE.col0.mask
    at = _address(state, slot, share, (col << log) | row)
    mark = 1 << (take(tile, TILE_DONE.wf) & (1 << state[S.wavefronts_log]) - 1)
    was_set = state[at] & mark != 0
    state[at] |= mark
    return was_set


@njit(cache=True)
def report_twice(state, slot, tile):
    """A tile was complete twice: the first one is kept."""
    number = state[S.slot + slot * ROW + WORDS]
    if state[S.tile_twice] == 0:
        state[S.tile_twice] = (
            place(TILE_TWICE.valid, 1)
            | place(TILE_TWICE.descriptor, number)
            | place(TILE_TWICE.context, slot_field(state, slot, SUMS.context))
            | place(TILE_TWICE.row, take(tile, TILE_DONE.row))
            | place(TILE_TWICE.col, take(tile, TILE_DONE.col))
            | place(TILE_TWICE.wf, take(tile, TILE_DONE.wf))
        )
