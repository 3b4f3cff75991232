"""Golden model of the Tracker: banked tile counters, chunk totals, events in order.

The model keeps no copy of a table row in register R: between R's read and its update nobody else writes that row, and
the read sees the write of the same cycle, so reading the table at the update is the same.
"""

import numpy as np
from numba import cfunc, njit
from t3hdl.config import T3Config
from t3hdl.register_map import CONTROL as CONTROL_ADDRESS
from t3hdl.register_map import PROFILE as PROFILE_ADDRESS
from t3hdl.signatures import tracker_signature

from ..abi import CALL
from .words import (
    CHUNK_DONE,
    CONTROL,
    EVENT_OVERFLOW,
    EVENT_TILE,
    LOAD,
    NEVER,
    TILE_DONE,
    TOKEN,
    config_address,
    config_data,
    get,
    int64_at,
    place,
    ports_of,
    state_map,
    take,
)

_BANKS, _SLOTS, _EVENTS, _PROFILES, _WAVEFRONTS = 8, 64, 16, 64, 16
_STAGE = state_map(valid=1, token=1, slot=1, threshold=1, descriptor=1)
"""Pipeline registers M and R of a bank; slot -1: not matched."""
_S = state_map(
    words=1, banks=1, ways=1, rows=1, event_limit=1, window=1, wavefronts=1,
    row_mask=1, col_mask=1, bank_bits=1, col_bits=1, tile_mask=1, chunk_mask=1,  # parameters end here
    profile=_PROFILES,  # lines by bottom, right, wf: survives disarm
    walked=1, entries=1, peak=1, overflowed=1, unmatched=1, over_count=1, over_total=1,
    tile_valid=1, tile=1, chunk_valid=1, chunk=1, drain_pointer=1,
    count=_BANKS, head=_BANKS, tail=_BANKS,  # input queues: entries, first and second entry
    m=_BANKS * _STAGE.size, r=_BANKS * _STAGE.size,
    event_count=_BANKS, event_first=_BANKS, event=_BANKS * _EVENTS,  # rings
    live=1, order=_SLOTS,  # valid slots, lowest first
    place0=_SLOTS, place1=_SLOTS, total=_SLOTS, flagged=_SLOTS, complete=_SLOTS,  # slots: load words, chunk counter
    marks=0,  # tables: a word of mark bits per row, banks one after the other; then ways entries per row
)  # fmt: skip

_KEY_MASK = sum(field.mask << field.shift for field in (TOKEN.context, TOKEN.epoch, TOKEN.row, TOKEN.col, TOKEN.wf))
_TOKEN_MASK = sum(field.mask << field.shift for field in TOKEN)
# A table entry in one word: the key where a token has it, above it the count and the valid bit.
_COUNT_SHIFT = _TOKEN_MASK.bit_length()
_VALID = 1 << 62
# An event in one word: a TileDone, above it the kind and the lines.
_TILE_MASK = sum(field.mask << field.shift for field in TILE_DONE)
_KIND_SHIFT = _TILE_MASK.bit_length()
_LINES_SHIFT = _KIND_SHIFT + 1
_OVERFLOWED_MASK = 127

# Ports of a tracker with one bank; with more, what follows the token ports lies this many words further per bank.
_IN, _OUT = ports_of(tracker_signature(T3Config(tracker_banks=1)))
_IN_STRIDE, _IN_VALID = 2, _IN.token_0_valid


def init_state(config: T3Config) -> np.ndarray:
    """State of a tracker with the sizes of ``config``. Call ``reset`` before ``step``."""
    size = _S.marks + config.tracker_sets * (1 + config.tracker_ways)
    state = np.zeros(size, np.int64)
    for at, value in (
        (_S.words, size),
        (_S.banks, config.tracker_banks),
        (_S.ways, config.tracker_ways),
        (_S.rows, config.sets_per_bank),
        (_S.event_limit, config.event_queue),
        (_S.window, config.chunk_window),
        (_S.wavefronts, config.wavefronts),
        (_S.row_mask, (1 << config.row_index_bits) - 1),
        (_S.col_mask, (1 << config.column_index_bits) - 1),
        (_S.bank_bits, config.bank_bits),
        (_S.col_bits, config.column_index_bits),
        (_S.tile_mask, (1 << config.tile_count_bits) - 1),
        (_S.chunk_mask, (1 << config.chunk_count_bits) - 1),
    ):
        state[at] = value
    return state


@njit(cache=True)
def _state_at(address):
    return int64_at(address, int64_at(address, 1)[0])


@njit(cache=True)
def _row_of(state, bank, token):
    """Number of the table row (over all banks) of a token's tile."""
    row = (take(token, TOKEN.row) & state[_S.row_mask]) >> state[_S.bank_bits]
    col = take(token, TOKEN.col) & state[_S.col_mask]
    return bank * state[_S.rows] + (col | (row << state[_S.col_bits]))


@njit(cache=True)
def _push_event(state, bank, stage, kind, lines):
    token = state[stage + _STAGE.token]
    ring = state[_S.event_first + bank] + state[_S.event_count + bank]
    tile = (
        place(TILE_DONE.slot, state[stage + _STAGE.slot])
        | place(TILE_DONE.row, take(token, TOKEN.row))
        | place(TILE_DONE.col, take(token, TOKEN.col))
        | place(TILE_DONE.wf, take(token, TOKEN.wf))
    )
    state[_S.event + bank * _EVENTS + (ring & (_EVENTS - 1))] = tile | (kind << _KIND_SHIFT) | (lines << _LINES_SHIFT)
    state[_S.event_count + bank] += 1


@njit(cache=True)
def _count(state, bank, stage, at):
    """Update for a tile that has the entry at word ``at``."""
    threshold = state[stage + _STAGE.threshold]
    entry = state[at]
    count = ((entry & ~_VALID) >> _COUNT_SHIFT) + take(state[stage + _STAGE.token], TOKEN.n)
    if count == threshold:
        state[at] = 0
        state[_S.entries] -= 1
        _push_event(state, bank, stage, EVENT_TILE, threshold)
        return
    if count > threshold:
        state[_S.over_count] = 1
        count = min(count, state[_S.tile_mask])
    state[at] = _VALID | (count << _COUNT_SHIFT) | (entry & _KEY_MASK)


@njit(cache=True)
def _begin(state, bank, stage, marks_at, free_at):
    """Update for a tile without an entry; ``free_at`` is the word of the lowest free way, or -1."""
    token, threshold = state[stage + _STAGE.token], state[stage + _STAGE.threshold]
    n = take(token, TOKEN.n)
    mark = 1 << state[stage + _STAGE.descriptor]
    if state[marks_at] & mark:
        _push_event(state, bank, stage, EVENT_OVERFLOW, n)
    elif n == threshold:
        _push_event(state, bank, stage, EVENT_TILE, n)
    elif n > threshold:
        state[_S.over_count] = 1
    elif free_at >= 0:
        state[free_at] = _VALID | (n << _COUNT_SHIFT) | (token & _KEY_MASK)
        state[_S.entries] += 1
    else:
        state[marks_at] |= mark
        _push_event(state, bank, stage, EVENT_OVERFLOW, n)


@njit(cache=True)
def _update(state, bank, stage):
    """The token in register R acts on its table row."""
    if state[stage + _STAGE.slot] < 0:
        state[_S.unmatched] = 1
        return
    token, ways = state[stage + _STAGE.token], state[_S.ways]
    row = _row_of(state, bank, token)
    first = _S.marks + state[_S.banks] * state[_S.rows] + row * ways
    free = -1
    for at in range(first, first + ways):
        entry = state[at]
        if entry & _VALID == 0:
            if free < 0:
                free = at
        elif (entry ^ token) & _KEY_MASK == 0:
            _count(state, bank, stage, at)
            return
    _begin(state, bank, stage, _S.marks + row, free)


@njit(cache=True)
def _match(state, stage, token):
    """Fill register M with ``token`` and its chunk."""
    row, col = take(token, TOKEN.row), take(token, TOKEN.col)
    context, epoch = take(token, TOKEN.context), take(token, TOKEN.epoch)
    state[stage + _STAGE.valid] = 1
    state[stage + _STAGE.token] = token
    state[stage + _STAGE.slot] = -1
    for i in range(state[_S.live]):
        slot = state[_S.order + i]
        where, what = state[_S.place0 + slot], state[_S.place1 + slot]
        if (
            take(where, LOAD.col0) <= col < take(where, LOAD.col1)  # first: chunks differ in their columns
            and take(where, LOAD.row0) <= row < take(where, LOAD.row1)
            and context == take(what, LOAD.context)
            and epoch == take(what, LOAD.epoch)
        ):
            edge = take(token, TOKEN.bottom) * 2 + take(token, TOKEN.right)
            lines = state[_S.profile + edge * _WAVEFRONTS + take(token, TOKEN.wf)]
            state[stage + _STAGE.slot] = slot
            state[stage + _STAGE.threshold] = (lines * take(where, LOAD.addends)) & state[_S.tile_mask]
            state[stage + _STAGE.descriptor] = take(what, LOAD.descriptor)
            return


@njit(cache=True)
def _advance(state, bank, drained):
    """One cycle of a bank's pipeline; ``drained``: an event of its queue was taken in this cycle."""
    m, r = _S.m + bank * _STAGE.size, _S.r + bank * _STAGE.size
    if state[r] + state[m] + state[_S.count + bank] == 0:
        return
    if state[r]:
        if state[_S.event_count + bank] + drained >= state[_S.event_limit]:
            return
        _update(state, bank, r)
    for i in range(_STAGE.size):
        state[r + i] = state[m + i]
    state[m] = 0
    if state[_S.count + bank] > 0:
        token = state[_S.head + bank]
        state[_S.head + bank] = state[_S.tail + bank]
        state[_S.count + bank] -= 1
        _match(state, m, token)


@njit(cache=True)
def _account(state, event):
    """Add an event's lines to its chunk, and prepare the pulses of the next cycle."""
    slot = take(event, TILE_DONE.slot)
    if (event >> _KIND_SHIFT) & 1 == EVENT_TILE:
        state[_S.tile_valid], state[_S.tile] = 1, event & _TILE_MASK
    elif not state[_S.flagged + slot]:
        state[_S.flagged + slot] = 1
        state[_S.overflowed] = (state[_S.overflowed] + 1) & _OVERFLOWED_MASK
    total = state[_S.total + slot] + (event >> _LINES_SHIFT)
    state[_S.total + slot] = total & state[_S.chunk_mask]
    expected = take(state[_S.place1 + slot], LOAD.expected) & state[_S.chunk_mask]
    if state[_S.complete + slot] or total > expected:
        state[_S.over_total] = 1
    elif total == expected:
        state[_S.complete + slot] = 1
        state[_S.chunk_valid] = 1
        state[_S.chunk] = place(CHUNK_DONE.slot, slot) | place(CHUNK_DONE.overflowed, state[_S.flagged + slot])


@njit(cache=True)
def _drain(state):
    """Take one event, round-robin over the banks; returns the bank, or -1."""
    banks = state[_S.banks]
    bank = state[_S.drain_pointer]
    for _ in range(banks):
        following = bank + 1 if bank + 1 < banks else 0
        if state[_S.event_count + bank] > 0:
            first = state[_S.event_first + bank]
            state[_S.event_first + bank] = (first + 1) & (_EVENTS - 1)
            state[_S.event_count + bank] -= 1
            state[_S.drain_pointer] = following
            _account(state, state[_S.event + bank * _EVENTS + first])
            return bank
        bank = following
    return -1


@njit(cache=True)
def _load(state, words, first):
    """A load pulse whose payload starts at word ``first``."""
    slot = get(words, first, LOAD.slot)
    if slot >= state[_S.window]:
        return
    state[_S.place0 + slot], state[_S.place1 + slot] = words[first], words[first + 1]
    state[_S.total + slot] = state[_S.flagged + slot] = state[_S.complete + slot] = 0
    live = 0
    for s in range(state[_S.window]):
        if take(state[_S.place0 + s], LOAD.valid):
            state[_S.order + live] = s
            live += 1
    state[_S.live] = live


@njit(cache=True)
def _walk(state):
    """Clear one row of every bank's table, until all are clear."""
    rows, banks, ways = state[_S.rows], state[_S.banks], state[_S.ways]
    if state[_S.walked] == rows:
        return
    for bank in range(banks):
        row = bank * rows + state[_S.walked]
        state[_S.marks + row] = 0
        first = _S.marks + banks * rows + row * ways
        state[first : first + ways] = 0
    state[_S.walked] += 1


@njit(cache=True)
def _configure(state, words, first):
    """A configuration write whose payload starts at word ``first``."""
    address, value = config_address(words, first), config_data(words, first)
    if address == CONTROL_ADDRESS:
        if take(value, CONTROL.disarm):
            state[_S.walked : _S.marks] = 0
        return
    index = (address - PROFILE_ADDRESS) >> 3
    if address & 7 == 0 and 0 <= index < _PROFILES and index % _WAVEFRONTS < state[_S.wavefronts]:
        state[_S.profile + index] = value & 0xFFFF


@njit(cache=True)
def _is_idle(state):
    """Whether nothing is in the pipelines and event queues, and no register follows another."""
    if state[_S.walked] < state[_S.rows] or state[_S.tile_valid] or state[_S.chunk_valid]:
        return False
    if state[_S.peak] < state[_S.entries]:
        return False
    for b in range(state[_S.banks]):
        stages = state[_S.m + b * _STAGE.size] + state[_S.r + b * _STAGE.size]
        if state[_S.count + b] + stages + state[_S.event_count + b] > 0:
            return False
    return True


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    banks = state[_S.banks]
    done = state[_S.walked] == state[_S.rows]
    for b in range(banks):
        out[b] = 1 if done and state[_S.count + b] < 2 else 0
    k = banks - 1
    out[_OUT.tile_done_valid + k], out[_OUT.tile_done + k] = state[_S.tile_valid], state[_S.tile]
    out[_OUT.chunk_done_valid + k], out[_OUT.chunk_done + k] = state[_S.chunk_valid], state[_S.chunk]
    out[_OUT.init_done + k] = 1 if done else 0
    out[_OUT.entries + k], out[_OUT.peak_entries + k] = state[_S.entries], state[_S.peak]
    out[_OUT.overflowed + k] = state[_S.overflowed]
    out[_OUT.unmatched + k] = state[_S.unmatched]
    out[_OUT.over_count + k], out[_OUT.over_total + k] = state[_S.over_count], state[_S.over_total]
    out[_OUT.idle + k] = 1 if _is_idle(state) else 0
    out[_OUT.wake_at + k] = NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset (tables are cleared by the walker), outputs of the first cycle."""
    state = _state_at(state_at)
    state[_S.profile : _S.marks] = 0
    _drive(state, int64_at(out_at, _OUT.size + state[_S.banks] - 1))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state = _state_at(state_at)
    banks = state[_S.banks]
    k = (banks - 1) * _IN_STRIDE
    words = int64_at(in_at, _IN.size + k)
    accepts = 0  # ready is a function of the state before this cycle
    for b in range(banks):
        if words[b * _IN_STRIDE + _IN_VALID] & 1 and state[_S.walked] == state[_S.rows] and state[_S.count + b] < 2:
            accepts |= 1 << b
    state[_S.tile_valid] = state[_S.chunk_valid] = 0
    state[_S.peak] = max(state[_S.peak], state[_S.entries])
    _walk(state)
    drained = _drain(state)
    for b in range(banks):
        _advance(state, b, 1 if b == drained else 0)
        if accepts >> b & 1:
            at = _S.head + b if state[_S.count + b] == 0 else _S.tail + b
            state[at] = words[b * _IN_STRIDE] & _TOKEN_MASK
            state[_S.count + b] += 1
    if words[_IN.load_valid + k] & 1:
        _load(state, words, _IN.load + k)
    if words[_IN.config_valid + k] & 1:
        _configure(state, words, _IN.config + k)
    _drive(state, int64_at(out_at, _OUT.size + banks - 1))
