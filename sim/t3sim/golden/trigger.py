"""Golden model of the Trigger: makes descriptors live in order, counts tiles per block, issues DMA commands."""

import numpy as np
from numba import cfunc, njit
from t3hdl import register_map
from t3hdl.config import T3Config
from t3hdl.signatures import trigger_signature

from ..abi import CALL
from .trigger_blocks import (
    CLEAR,
    FLUSH,
    LAST,
    NOTHING,
    OPERATION,
    PLACE,
    ROW,
    SLOTS,
    SUMS,
    TILE,
    UNISSUED_MASK,
    WORDS,
    S,
    block_of,
    blocks_rest,
    enter,
    issue,
    slot_field,
    stage_b,
)
from .words import (
    CHUNK_DONE,
    CONTROL,
    KIND_DMA,
    KIND_LOCAL,
    LOAD,
    NEVER,
    TILE_DONE,
    config_address,
    config_data,
    int64_at,
    place,
    ports_of,
    take,
)

_DESCRIPTOR_BASE, _DESCRIPTOR_STRIDE = register_map.DESCRIPTOR, register_map.DESCRIPTOR_STRIDE
_CONTROL = register_map.CONTROL
_WAIT, _READ, _SKIP, _START, _CLEARING, _LOAD = range(6)  # states of the loader
_READ_CYCLES = 7
_IN, _OUT = ports_of(trigger_signature(T3Config()))


def init_state(config: T3Config) -> np.ndarray:
    """State of a trigger with the sizes of ``config``. Call ``reset`` before ``step``."""
    entries = config.chunk_window * config.blocks
    size = S.tables + SLOTS * config.blocks + entries
    state = np.zeros(size, np.int64)
    state[S.words], state[S.descriptors], state[S.blocks] = size, config.descriptors, config.blocks
    state[S.slot_mask] = -1 if config.chunk_window == SLOTS else (1 << config.chunk_window) - 1
    state[S.ready_size] = entries
    return state


@njit(cache=True)
def _state_at(address):
    return int64_at(address, int64_at(address, 1)[0])


@njit(cache=True)
def _lowest(mask):
    """Number of the lowest set bit of a mask that is not 0."""
    bit = 0
    while not mask >> bit & 1:
        bit += 1
    return bit


@njit(cache=True)
def _make_live(state):
    """LOAD: the slot table row, the slot's bits, the load pulse."""
    slot, number = state[S.chosen], state[S.next]
    to = S.slot + slot * ROW
    for word in range(WORDS):
        state[to + word] = state[S.descriptor + number * WORDS + word]
    state[to + WORDS] = number
    bit = 1 << slot
    dma = slot_field(state, slot, PLACE.kind) == KIND_DMA
    state[S.used] |= bit
    state[S.done] &= ~bit
    state[S.dma] = state[S.dma] | bit if dma else state[S.dma] & ~bit
    state[S.all_issued] = state[S.all_issued] & ~bit if dma else state[S.all_issued] | bit
    rows, cols = slot_field(state, slot, LAST.last_block_row) + 1, slot_field(state, slot, LAST.last_block_col) + 1
    state[S.unissued + slot] = (rows * cols) & UNISSUED_MASK
    state[S.next] = number + 1
    state[S.load_valid] = 1
    state[S.load] = (
        place(LOAD.row0, slot_field(state, slot, PLACE.row0))
        | place(LOAD.row1, slot_field(state, slot, PLACE.row1))
        | place(LOAD.col0, slot_field(state, slot, PLACE.col0))
        | place(LOAD.col1, slot_field(state, slot, PLACE.col1))
        | place(LOAD.addends, slot_field(state, slot, SUMS.addends))
        | place(LOAD.slot, slot)
        | place(LOAD.valid, 1)
    )
    state[S.load + 1] = (
        place(LOAD.expected, slot_field(state, slot, SUMS.expected))
        | place(LOAD.context, slot_field(state, slot, SUMS.context))
        | place(LOAD.epoch, slot_field(state, slot, SUMS.epoch))
        | place(LOAD.descriptor, number)
    )


@njit(cache=True)
def _may_load(state):
    """Whether the loader leaves WAIT: a descriptor is left and a slot is free."""
    free = ~state[S.used] & state[S.slot_mask]
    return state[S.armed] != 0 and state[S.next] < state[S.limit] and free != 0


@njit(cache=True)
def _load_next(state):
    """One cycle of the loader (the walker moves it out of START and CLEAR)."""
    if state[S.loader] == _WAIT:
        if _may_load(state):
            state[S.chosen] = _lowest(~state[S.used] & state[S.slot_mask])
            state[S.loader], state[S.reads] = _READ, _READ_CYCLES
    elif state[S.loader] == _READ:
        state[S.reads] -= 1
        if state[S.reads] == 0:
            kind = take(state[S.descriptor + state[S.next] * WORDS + PLACE.kind.word], PLACE.kind)
            state[S.loader] = _START if kind == KIND_DMA or kind == KIND_LOCAL else _SKIP
    elif state[S.loader] == _SKIP:
        state[S.next] += 1
        state[S.live] += 1
        state[S.loader] = _WAIT
    elif state[S.loader] == _LOAD:
        _make_live(state)
        state[S.loader] = _WAIT


@njit(cache=True)
def _walk(state, tile_enters):
    """One cycle of the walker."""
    if state[S.walker] == NOTHING:
        if state[S.pending]:
            slot = _lowest(state[S.pending])
            state[S.pending] &= ~(1 << slot)
            state[S.walker], state[S.walk_slot], state[S.walk_block] = FLUSH, slot, 0
        elif state[S.loader] == _START:
            state[S.walker], state[S.walk_slot], state[S.walk_block] = CLEAR, state[S.chosen], 0
            state[S.loader] = _CLEARING
    elif not tile_enters:
        enter(state, state[S.walker], state[S.walk_slot], state[S.walk_block])
        state[S.walk_block] += 1
        if state[S.walk_block] == state[S.blocks]:
            if state[S.walker] == CLEAR:
                state[S.loader] = _LOAD
            state[S.walker] = NOTHING


@njit(cache=True)
def _finish_chunk(state, pulse):
    """A chunk_done pulse of a used slot."""
    slot = take(pulse, CHUNK_DONE.slot)
    bit = 1 << slot
    if state[S.done] & bit:
        return
    state[S.done] |= bit
    state[S.chunks_done] += 1
    state[S.done_mask] |= 1 << state[S.slot + slot * ROW + WORDS]
    if take(pulse, CHUNK_DONE.overflowed):
        state[S.pending] |= bit & state[S.dma]


@njit(cache=True)
def _configure(state, words):
    """A configuration write."""
    address, value = config_address(words, _IN.config), config_data(words, _IN.config)
    if address == _CONTROL:
        if take(value, CONTROL.disarm):
            state[S.armed : S.descriptor] = 0
        elif take(value, CONTROL.arm):
            state[S.armed], state[S.limit] = 1, take(value, CONTROL.descriptors)
            state[S.next] = state[S.live] = 0
        return
    number, offset = divmod(address - _DESCRIPTOR_BASE, _DESCRIPTOR_STRIDE)
    if 0 <= number < state[S.descriptors] and offset < 8 * WORDS and offset & 7 == 0:
        state[S.descriptor + number * WORDS + (offset >> 3)] = value


@njit(cache=True)
def _is_idle(state):
    """Whether every machine rests until a pulse or a transfer of the command comes."""
    retiring = state[S.used] & state[S.done] & state[S.all_issued]
    if state[S.load_valid] | state[S.walker] | state[S.pending] | retiring:
        return False
    return state[S.loader] == _WAIT and not _may_load(state) and blocks_rest(state)


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    out[_OUT.command_valid] = state[S.command_valid]
    for word in range(4):
        out[_OUT.command_payload + word] = state[S.command + word]
    out[_OUT.load_valid] = state[S.load_valid]
    out[_OUT.load], out[_OUT.load + 1] = state[S.load], state[S.load + 1]
    out[_OUT.init_done] = 1
    out[_OUT.armed], out[_OUT.live], out[_OUT.chunks_done] = state[S.armed], state[S.live], state[S.chunks_done]
    out[_OUT.done_mask] = state[S.done_mask]
    out[_OUT.idle] = 1 if _is_idle(state) else 0
    out[_OUT.wake_at] = NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = _state_at(state_at)
    state[S.armed : S.tables] = 0
    _drive(state, int64_at(out_at, _OUT.size))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state, words = _state_at(state_at), int64_at(in_at, _IN.size)
    used = state[S.used]
    retired = used & state[S.done] & state[S.all_issued]
    tile, chunk = words[_IN.tile_done], words[_IN.chunk_done]
    tile_enters = words[_IN.tile_done_valid] & (used >> take(tile, TILE_DONE.slot)) & 1
    if state[S.load_valid]:
        state[S.live] += 1
        state[S.load_valid] = 0
    issue(state, words[_IN.command_ready] & 1)  # before stage B: a push is not seen in its cycle
    stage_b(state)
    for i in range(OPERATION.size):
        state[S.b + i] = state[S.a + i]
    state[S.a + OPERATION.kind] = NOTHING
    if tile_enters:
        slot = take(tile, TILE_DONE.slot)
        enter(state, TILE, slot, block_of(state, slot, tile))
    loading = state[S.loader]
    _walk(state, tile_enters)
    if state[S.loader] == loading:
        _load_next(state)
    state[S.used] &= ~retired
    if words[_IN.chunk_done_valid] & (used >> take(chunk, CHUNK_DONE.slot)) & 1:
        _finish_chunk(state, chunk)
    if words[_IN.config_valid] & 1:
        _configure(state, words)
    _drive(state, int64_at(out_at, _OUT.size))
