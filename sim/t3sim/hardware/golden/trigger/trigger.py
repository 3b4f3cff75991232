"""Golden model of the Trigger: makes descriptors of contexts live in turns, counts tiles per block, gives commands."""

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import register_map
from t3hdl.interface.words import WORD_BYTES

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.words import (
    CHUNK_DONE,
    CONTROL,
    NEVER,
    QUOTA,
    TILE_DONE,
    bit_run,
    config_address,
    config_data,
    int64_at,
    place,
    take,
)

from .blocks import block_at, enter, stage_c, tile_place
from .commands import OUTSTANDING_MASK, issue, issued_slot
from .loader import count_live, load_next, walk
from .state import (
    CONTEXTS,
    DROPPED,
    FETCH,
    LOADING,
    NOTHING,
    OPERATION,
    ROW,
    SCAN,
    SLOTS,
    SUMS,
    TILE,
    WAIT,
    WORDS,
    S,
    lowest,
    retiring,
    share_log,
    slot_field,
    touch,
    unfinished,
)
from .status import IN, OUT, drive

_CONTROL, _WATCHDOG = register_map.CONTROL, register_map.WATCHDOG
_QUOTA, _QUOTA_STRIDE = register_map.QUOTA, register_map.QUOTA_STRIDE
_DESCRIPTOR_BASE, _DESCRIPTOR_STRIDE = register_map.DESCRIPTOR, register_map.DESCRIPTOR_STRIDE
_WATCHDOG_MASK, _HALVINGS_MASK = (1 << 32) - 1, (1 << 3) - 1
_SLOT_MASK, _CONTEXT_MASK = SLOTS - 1, CONTEXTS - 1
_CHUNKS_MASK = (1 << 7) - 1
_RESET_SLOTS, _RESET_CREDITS = 64, register_map.NO_CREDIT_LIMIT


def init_state(config: T3Config) -> np.ndarray:
    """State of a trigger with the sizes of ``config``. Call ``reset`` before ``step``."""
    entries = config.chunk_window * config.blocks
    size = S.tables + 2 * entries + config.tile_marks
    state = np.zeros(size, np.int64)
    state[S.words], state[S.descriptors], state[S.blocks] = size, config.descriptors, config.blocks
    state[S.contexts], state[S.entries] = config.contexts, entries
    state[S.slots_log], state[S.marks_log] = config.slot_bits, config.tile_marks.bit_length() - 1
    state[S.wavefronts_log], state[S.word_log] = config.wavefront_bits, config.word_tile_bits
    state[S.slot_mask] = -1 if config.chunk_window == SLOTS else (1 << config.chunk_window) - 1
    return state


@njit(cache=True)
def _state_at(address):
    return int64_at(address, int64_at(address, 1)[0])


@njit(cache=True)
def _retire(state, slots, aborted):
    """The lowest of these slots is free again; a slot of the context that is aborted is left to the abort."""
    slot = lowest(slots)
    context = slot_field(state, slot, SUMS.context)
    if context != aborted:
        state[S.used] &= ~(1 << slot)
        state[S.slots + context] -= 1
        touch(state, context)


@njit(cache=True)
def _poison(state, slot):
    """A poison pulse of a used slot."""
    state[S.poisoned] |= 1 << slot
    state[S.poisoned_mask] |= 1 << state[S.slot + slot * ROW + WORDS]


@njit(cache=True)
def _finish_chunk(state, slot, overflowed, poisoned):
    """A chunk_done pulse of a used slot; ``poisoned`` has the bits of the cycle's begin."""
    bit = 1 << slot
    if state[S.done] & bit:
        return
    state[S.done] |= bit
    state[S.chunks_done] = (state[S.chunks_done] + 1) & _CHUNKS_MASK
    state[S.done_mask] |= 1 << state[S.slot + slot * ROW + WORDS]
    if overflowed:
        state[S.pending] |= bit & state[S.dma] & ~poisoned


@njit(cache=True)
def _arm(state, value):
    """Arm a context with its window of descriptors."""
    context, first, count = take(value, CONTROL.context), take(value, CONTROL.first), take(value, CONTROL.descriptors)
    window = bit_run(first, count)
    state[S.armed] |= 1 << context
    state[S.loading] |= 1 << context
    state[S.following + context], state[S.end + context] = first, first + count
    state[S.done_mask] &= ~window
    state[S.poisoned_mask] &= ~window
    touch(state, context)


@njit(cache=True)
def _abort(state, context):
    """Drop everything of a context, after what else happened in this cycle."""
    for slot in range(SLOTS):
        if state[S.used] >> slot & 1 and slot_field(state, slot, SUMS.context) == context:
            state[S.used] &= ~(1 << slot)
            state[S.pending] &= ~(1 << slot)
            state[S.poisoned] &= ~(1 << slot)
    state[S.armed] &= ~(1 << context)
    state[S.loading] &= ~(1 << context)
    state[S.following + context] = state[S.end + context] = state[S.slots + context] = 0
    state[S.waiting] -= state[S.ready + context]
    state[S.ready + context] = 0
    touch(state, context)
    if state[S.load_context] == context:
        state[S.loader] = WAIT
    if state[S.issuer] != FETCH and slot_field(state, issued_slot(state), SUMS.context) == context:
        state[S.issuer] = FETCH


@njit(cache=True)
def _drop_scan(state):
    """WATCHDOG is written: no finding, and none from a walk in progress."""
    state[S.stuck] = state[S.scanning] = 0
    if state[S.walker] == SCAN:
        state[S.walker] = DROPPED
    for stage in (S.a, S.b, S.c):
        if take(state[stage], OPERATION.kind) == SCAN:
            state[stage] = place(OPERATION.kind, DROPPED)


@njit(cache=True)
def _control(state, value, now):
    """A write to CONTROL."""
    if take(value, CONTROL.disarm):
        state[S.armed : S.watchdog] = 0
        state[S.changed] = -1
    elif take(value, CONTROL.arm):
        _arm(state, value)
        state[S.since] = now
    elif take(value, CONTROL.abort):
        _abort(state, take(value, CONTROL.context))
    elif take(value, CONTROL.quiesce):
        state[S.quiesced] = 1
    elif take(value, CONTROL.resume):
        state[S.quiesced], state[S.since] = 0, now


@njit(cache=True)
def _configure(state, address, value, now):
    """A configuration write."""
    if address == _CONTROL:
        _control(state, value, now)
    elif address == register_map.TILE_MARKS:
        state[S.halvings] = value & _HALVINGS_MASK
    elif address == _WATCHDOG:
        state[S.watchdog] = value & _WATCHDOG_MASK
        _drop_scan(state)
    elif _QUOTA <= address < _QUOTA + _QUOTA_STRIDE * state[S.contexts]:
        context = (address - _QUOTA) // _QUOTA_STRIDE
        state[S.quota_slots + context] = take(value, QUOTA.slots)
        state[S.quota_credits + context] = take(value, QUOTA.credits)
    else:
        number, offset = divmod(address - _DESCRIPTOR_BASE, _DESCRIPTOR_STRIDE)
        if 0 <= number < state[S.descriptors] and offset < WORD_BYTES * WORDS and offset % WORD_BYTES == 0:
            state[S.descriptor + number * WORDS + offset // WORD_BYTES] = value


@njit(cache=True)
def _aborted(words):
    """The context that is aborted in this cycle, -1 if there is none."""
    if words[IN.config_valid] & 1 and config_address(words, IN.config) == _CONTROL:
        value = config_data(words, IN.config)
        if take(value, CONTROL.abort):
            return take(value, CONTROL.context)
    return -1


@njit(cache=True)
def _enter_pipeline(state, words, tile_enters, now):
    """Stage B moves to C, A to B, a tile or the walker's operation enters A."""
    if state[S.b]:
        state[S.tile_c], state[S.share_c] = state[S.tile_b], state[S.share_b]
    if state[S.a]:
        state[S.tile_b], state[S.share_b] = state[S.tile_a], share_log(state)
    state[S.c], state[S.b], state[S.a] = state[S.b], state[S.a], NOTHING
    if tile_enters:
        slot = take(words[IN.tile_done], TILE_DONE.slot)
        state[S.tile_a] = words[IN.tile_done]
        row, col = tile_place(state, slot, words[IN.tile_done])
        enter(state, TILE, slot, block_at(state, slot, row, col), row, col)
    walk(state, tile_enters, now)


@njit(cache=True)
def _take_pulses(state, words, used, poisoned, aborted):
    """Poison and chunk_done pulses of slots that were used, but not of the context that is aborted."""
    slot = words[IN.poison_slot] & _SLOT_MASK
    if words[IN.poison_valid] & (used >> slot) & 1 and slot_field(state, slot, SUMS.context) != aborted:
        _poison(state, slot)
    slot = take(words[IN.chunk_done], CHUNK_DONE.slot)
    if words[IN.chunk_done_valid] & (used >> slot) & 1 and slot_field(state, slot, SUMS.context) != aborted:
        _finish_chunk(state, slot, take(words[IN.chunk_done], CHUNK_DONE.overflowed), poisoned)


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = _state_at(state_at)
    state[S.armed : S.tables] = 0
    state[S.changed] = -1
    state[S.quota_slots : S.quota_slots + CONTEXTS] = _RESET_SLOTS
    state[S.quota_credits : S.quota_credits + CONTEXTS] = _RESET_CREDITS
    drive(state, int64_at(out_at, OUT.context_0 + state[S.contexts]))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle: what reads registers of the cycle comes before what writes them."""
    state, words = _state_at(state_at), int64_at(in_at, IN.size)
    now, aborted = words[IN.now] & NEVER, _aborted(words)
    used, poisoned, retired = state[S.used], state[S.poisoned], retiring(state)
    tile_enters = words[IN.tile_done_valid] & (used >> take(words[IN.tile_done], TILE_DONE.slot)) & 1
    chunk_counts = words[IN.chunk_done_valid] & (used >> take(words[IN.chunk_done], CHUNK_DONE.slot)) & 1
    progress = tile_enters | chunk_counts or state[S.loader] == LOADING
    context = words[IN.command_done] & _CONTEXT_MASK
    returned = words[IN.command_done_valid] & 1 and context < state[S.contexts] and state[S.outstanding + context] > 0
    state[S.peak_ready] = max(state[S.peak_ready], state[S.waiting])
    state[S.backlog] = unfinished(state)
    state[S.abort_busy] = words[IN.abort_busy] & 1
    if state[S.load_valid]:
        count_live(state)
        state[S.load_valid] = 0
    loader = state[S.loader]
    if state[S.issuer] != FETCH or state[S.command_valid] or state[S.waiting]:
        issue(state, words[IN.command_ready] & 1, now, aborted)  # before stage C: a push is not seen in its cycle
    twice = -1
    if state[S.c]:
        twice = stage_c(state)
    _enter_pipeline(state, words, tile_enters, now)
    if state[S.loader] == loader and (loader != WAIT or state[S.loading]):
        load_next(state, aborted)
    if retired:
        _retire(state, retired, aborted)
    if twice >= 0 and used >> twice & 1 and slot_field(state, twice, SUMS.context) != aborted:
        _poison(state, twice)
    if (words[IN.poison_valid] | words[IN.chunk_done_valid]) & 1:
        _take_pulses(state, words, used, poisoned, aborted)
    if returned:
        state[S.outstanding + context] = (state[S.outstanding + context] - 1) & OUTSTANDING_MASK
        touch(state, context)
    if progress:
        state[S.since] = now
    if words[IN.config_valid] & 1:
        _configure(state, config_address(words, IN.config), config_data(words, IN.config), now)
    drive(state, int64_at(out_at, OUT.context_0 + state[S.contexts]))
