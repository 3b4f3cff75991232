"""Golden model of the Tracker: live chunks and what is left of them; banks, sums and maintenance are beside it."""

from collections import namedtuple
from typing import Any

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import register_map
from t3hdl.interface.layouts import TIME_BITS
from t3hdl.interface.signatures import tracker_signature
from t3hdl.interface.words import WORD_BYTES, ports_of, word_map

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.words import (
    CHUNK_DONE,
    CONTROL,
    EVENT_TILE,
    LOAD,
    NEVER,
    QUOTA,
    TILE_DONE,
    config_address,
    config_data,
    get,
    int64_at,
    place,
    take,
)

from .bank import (
    ALL_CONTEXTS,
    CONTEXTS,
    KIND_SHIFT,
    LINES_SHIFT,
    NO_CONTEXT,
    PROFILES,
    TILE_MASK,
    TOKEN_MASK,
    WAVEFRONTS,
    S,
    advance,
    bank_rests,
)
from .maintenance import end_slot, list_slots, maintain, slots_of, start_read, start_sweep, swept_context
from .open_tiles import check_complete, count_open
from .pending import drain, drop_pending, note_excess

_CONTROL, _PROFILE = register_map.CONTROL, register_map.PROFILE
_DEBUG_SELECT, _QUOTA = register_map.DEBUG_SELECT, register_map.QUOTA
_RESET_WAYS = 16
_OVERFLOWED_MASK = 127
_TILES_MASK = (1 << 32) - 1
_TIME_MASK = (1 << TIME_BITS) - 1

_IN, _OUT = ports_of(tracker_signature(T3Config()))
_FIRST_IN, _FIRST_OUT = "load_valid", "tile_done_valid"
"""The first ports behind the token ports. Where they are depends on the number of banks: the state has it."""


def _behind(ports: Any, first: str) -> Any:
    """The ports from ``first`` on, counted from there, which is the same in every configuration."""
    start = getattr(ports, first)
    places = {name: word - start for name, word in ports._asdict().items() if word >= start}
    return namedtuple("Behind", places)(**places)


_REST_IN, _REST_OUT = _behind(_IN, _FIRST_IN), _behind(_OUT, _FIRST_OUT)
_IN_STRIDE, _IN_VALID = _IN.token_1_payload - _IN.token_0_payload, _IN.token_0_valid


def init_state(config: T3Config) -> np.ndarray:
    """State of a tracker with the sizes of ``config``. Call ``reset`` before ``step``."""
    size = S.marks + config.tracker_sets * (1 + config.tracker_ways)
    state = np.zeros(size, np.int64)
    words = word_map(tracker_signature(config))
    for at, value in (
        (S.words, size),
        (S.rest_in, words.inputs[_FIRST_IN][0]),
        (S.rest_out, words.outputs[_FIRST_OUT][0]),
        (S.banks, config.tracker_banks),
        (S.ways, config.tracker_ways),
        (S.rows, config.sets_per_bank),
        (S.event_limit, config.event_queue),
        (S.window, config.chunk_window),
        (S.wavefronts, config.wavefronts),
        (S.contexts, config.contexts),
        (S.drain_cycles, config.drain_cycles),
        (S.row_mask, (1 << config.row_index_bits) - 1),
        (S.col_mask, (1 << config.column_index_bits) - 1),
        (S.bank_bits, config.bank_bits),
        (S.col_bits, config.column_index_bits),
        (S.tile_mask, (1 << config.tile_count_bits) - 1),
        (S.chunk_mask, (1 << config.chunk_count_bits) - 1),
        (S.open_mask, (1 << config.open_tile_bits) - 1),
    ):
        state[at] = value
    return state


@njit(cache=True)
def _state_at(address):
    return int64_at(address, int64_at(address, 1)[0])


@njit(cache=True)
def _account(state, event):
    """Count an event's lines for its chunk, and prepare the pulses of the next cycle.

    Returns the slot whose chunk is complete from then on, or -1.
    """
    slot = take(event, TILE_DONE.slot)
    if (event >> KIND_SHIFT) & 1 == EVENT_TILE:
        state[S.tile_valid], state[S.tile] = 1, event & TILE_MASK
        state[S.tiles] = (state[S.tiles] + 1) & _TILES_MASK
    elif not state[S.flagged + slot]:
        state[S.flagged + slot] = 1
        state[S.overflowed] = (state[S.overflowed] + 1) & _OVERFLOWED_MASK
    left, lines = state[S.left + slot], event >> LINES_SHIFT
    state[S.left + slot] = (left - lines) & state[S.chunk_mask]
    if state[S.complete + slot] or lines > left:
        state[S.over_total] = 1
    elif lines == left:
        state[S.chunk_valid] = 1
        state[S.chunk] = place(CHUNK_DONE.slot, slot) | place(CHUNK_DONE.overflowed, state[S.flagged + slot])
        return slot
    return -1


@njit(cache=True)
def _ended(state, words, rest, finished, swept, loads):
    """The slots, as bits, that lose their chunk or get a new one in this cycle."""
    ended = slots_of(state, swept) if swept >= 0 else 0
    if finished >= 0:
        ended |= 1 << finished
    if loads:
        ended |= 1 << get(words, rest + _REST_IN.load, LOAD.slot)
    return ended


@njit(cache=True)
def _load(state, words, first):
    """A load pulse whose payload starts at word ``first``."""
    slot = get(words, first, LOAD.slot)
    if slot >= state[S.window]:
        return
    state[S.place0 + slot], state[S.place1 + slot] = words[first], words[first + 1]
    state[S.left + slot] = get(words, first, LOAD.expected) & state[S.chunk_mask]
    state[S.flagged + slot] = state[S.complete + slot] = state[S.open + slot] = 0
    list_slots(state)


@njit(cache=True)
def _walk(state):
    """Clear one row of every bank's table, until all are clear."""
    rows, banks, ways = state[S.rows], state[S.banks], state[S.ways]
    if state[S.walked] == rows:
        return
    for bank in range(banks):
        row = bank * rows + state[S.walked]
        state[S.marks + row] = 0
        first = S.marks + banks * rows + row * ways
        state[first : first + ways] = 0
    state[S.walked] += 1


@njit(cache=True)
def _configure(state, address, value, now):
    """A configuration write; after everything else in its cycle, since it acts from the next one on."""
    if address == _CONTROL:
        if take(value, CONTROL.disarm):
            state[S.walked : S.marks] = 0
        elif swept_context(address, value) >= 0:
            start_sweep(state, value, now + state[S.drain_cycles])
    elif address == _DEBUG_SELECT:
        start_read(state, value)
    elif address >= _PROFILE:
        index = (address - _PROFILE) // register_map.PROFILE_STRIDE
        if address % WORD_BYTES == 0 and index < PROFILES and index % WAVEFRONTS < state[S.wavefronts]:
            state[S.profile + index] = value & 0xFFFF
    elif address >= _QUOTA:
        context = (address - _QUOTA) // register_map.QUOTA_STRIDE
        if address % WORD_BYTES == 0 and context < state[S.contexts]:
            state[S.quota + context] = take(value, QUOTA.ways)


@njit(cache=True)
def _is_idle(state):
    """Whether nothing is in the pipelines and event queues, and no register follows another."""
    busy = state[S.drained] or state[S.waiting] or state[S.tile_valid] or state[S.chunk_valid]
    if state[S.walked] < state[S.rows] or busy:
        return False
    if state[S.peak] < state[S.shown_entries] or state[S.shown_entries] != state[S.entries] or state[S.maintenance]:
        return False
    for bank in range(state[S.banks]):
        if not bank_rests(state, bank):
            return False
    return True


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    banks = state[S.banks]
    done = state[S.walked] == state[S.rows]
    for b in range(banks):
        out[b] = 1 if done and state[S.count + b] < 2 else 0
    rest = state[S.rest_out]
    out[rest + _REST_OUT.tile_done_valid], out[rest + _REST_OUT.tile_done] = state[S.tile_valid], state[S.tile]
    out[rest + _REST_OUT.chunk_done_valid], out[rest + _REST_OUT.chunk_done] = state[S.chunk_valid], state[S.chunk]
    out[rest + _REST_OUT.init_done] = 1 if done else 0
    out[rest + _REST_OUT.entries], out[rest + _REST_OUT.peak_entries] = state[S.shown_entries], state[S.peak]
    out[rest + _REST_OUT.overflowed] = state[S.overflowed]
    out[rest + _REST_OUT.unmatched] = state[S.unmatched]
    out[rest + _REST_OUT.over_count], out[rest + _REST_OUT.over_total] = state[S.over_count], state[S.over_total]
    out[rest + _REST_OUT.maintenance] = 1 if state[S.maintenance] else 0
    out[rest + _REST_OUT.abort_busy] = state[S.abort_busy]
    out[rest + _REST_OUT.debug_data] = state[S.debug_data]
    out[rest + _REST_OUT.updates], out[rest + _REST_OUT.tiles] = state[S.updates], state[S.tiles]
    out[rest + _REST_OUT.idle] = 1 if _is_idle(state) else 0
    out[rest + _REST_OUT.wake_at] = min(state[S.deadline], NEVER) if state[S.abort_busy] else NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset (tables are cleared by the walker), outputs of the first cycle."""
    state = _state_at(state_at)
    state[S.profile : S.marks] = 0
    state[S.quota : S.quota + CONTEXTS] = _RESET_WAYS
    out = int64_at(out_at, state[S.rest_out] + _REST_OUT.size)
    out[:] = 0  # a golden model has no faults: their outputs stay 0
    _drive(state, out)


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state = _state_at(state_at)
    banks = state[S.banks]
    rest = state[S.rest_in]
    words = int64_at(in_at, rest + _REST_IN.size)
    accepts = 0  # ready is a function of the state before this cycle
    for b in range(banks):
        if words[b * _IN_STRIDE + _IN_VALID] & 1 and state[S.walked] == state[S.rows] and state[S.count + b] < 2:
            accepts |= 1 << b
    finished = take(state[S.chunk], CHUNK_DONE.slot) if state[S.chunk_valid] else -1
    state[S.tile_valid] = state[S.chunk_valid] = 0
    state[S.peak] = max(state[S.peak], state[S.shown_entries])
    state[S.shown_entries] = state[S.entries]
    now = words[rest + _REST_IN.now] & _TIME_MASK
    configured = words[rest + _REST_IN.config_valid] & 1
    address = value = swept = refused = NO_CONTEXT
    if state[S.maintenance] + state[S.abort_busy]:
        refused = ALL_CONTEXTS if state[S.maintenance] else state[S.context]
        maintain(state, now)
    if configured:
        address, value = config_address(words, rest + _REST_IN.config), config_data(words, rest + _REST_IN.config)
        swept = swept_context(address, value)
        if swept >= 0 and take(value, CONTROL.abort):
            refused = swept
    _walk(state)
    completed = -1
    if state[S.drained]:
        state[S.drained] = 0
        completed = _account(state, state[S.drained_event])
    loads = words[rest + _REST_IN.load_valid] & 1 and get(words, rest + _REST_IN.load, LOAD.context) != swept
    ended = _ended(state, words, rest, finished, swept, loads)
    if finished >= 0:
        check_complete(state, finished)
        note_excess(state, finished)
    if state[S.changed]:
        count_open(state)
    drained = drain(state, ended)
    for b in range(banks):
        advance(state, b, 1 if b == drained else 0, refused)
        if accepts >> b & 1:
            at = S.head + b if state[S.count + b] == 0 else S.tail + b
            state[at] = words[b * _IN_STRIDE] & TOKEN_MASK
            state[S.count + b] += 1
    if finished >= 0:
        note_excess(state, finished)
        end_slot(state, finished)
    if ended:
        drop_pending(state, ended)
    if completed >= 0:
        state[S.complete + completed] = 1
    if loads:
        _load(state, words, rest + _REST_IN.load)
    if configured:
        _configure(state, address, value, now)
    _drive(state, int64_at(out_at, state[S.rest_out] + _REST_OUT.size))
