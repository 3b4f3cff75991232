"""Golden model of a RangeMatcher: where a store row leaves the GPU to, by range and chunk."""

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import register_map
from t3hdl.interface.layouts import NEVER
from t3hdl.interface.signatures import matcher_signature
from t3hdl.interface.words import WORD_BYTES, ports_of

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.words import (
    CONTROL,
    DESCRIPTOR,
    KIND_NONE,
    KIND_REMOTE,
    REQUEST,
    ROUTE,
    config_address,
    config_data,
    get,
    int64_at,
    place,
    state_map,
    take,
)

from .ranges import ALL_CONTEXTS, RANGE_WORDS, drop_ranges, find_range, is_improper, is_live, range_base, write_range

_IN, _OUT = ports_of(matcher_signature(T3Config()))
_BOUNDS, _ATTRIBUTES, _, _PEER, _, _ = DESCRIPTOR  # the fields of each descriptor word
_WORDS = register_map.DESCRIPTOR_WORDS
_KEPT = tuple(WORD_BYTES * fields[0].word for fields in (_BOUNDS, _ATTRIBUTES, _PEER))
"""Bytes at which the words of a descriptor begin that are kept."""

_S = state_map(
    # parameters
    ranges=1, descriptors=1, contexts=1,
    # configuration registers: kept by disarm
    table=register_map.RANGE_COUNT * RANGE_WORDS, chunks=register_map.DESCRIPTOR_COUNT * _WORDS,
    # the rest; ``found``: the route of the row between queue and ``route``, by descriptor ``chosen`` (-1: none), and
    # what it is without one; ``begin``, ``end``: the window of each context, empty while it is not armed
    count=1, head=2, tail=2, found_valid=1, found=1, chosen=1, unmatched=1, route_valid=1, route=1, begin=16, end=16,
)  # fmt: skip


def init_state(config: T3Config) -> np.ndarray:
    """State of a matcher of ``config``. Call ``reset`` before ``step``."""
    state = np.zeros(_S.size, np.int64)
    state[_S.ranges], state[_S.descriptors], state[_S.contexts] = config.ranges, config.descriptors, config.contexts
    return state


@njit(cache=True)
def _find_chunk(state, word0, word1, written):
    """The lowest descriptor in its context's window whose chunk holds a request's tile, or -1; never ``written``."""
    row, col, context = take(word1, REQUEST.row), take(word1, REQUEST.col), take(word0, REQUEST.context)
    for i in range(state[_S.begin + context], state[_S.end + context]):
        chunk = _S.chunks + i * _WORDS
        bounds = state[chunk]
        if (
            i != written
            and take(bounds, _BOUNDS.row0) <= row < take(bounds, _BOUNDS.row1)
            and take(bounds, _BOUNDS.col0) <= col < take(bounds, _BOUNDS.col1)
            and take(bounds, _BOUNDS.kind) != KIND_NONE
            and get(state, chunk, _ATTRIBUTES.context) == context
        ):
            return i
    return -1


@njit(cache=True)
def _match(state, word0, word1, written):
    """Match one request, while descriptor ``written`` (or none, -1) is written."""
    line, op = take(word0, REQUEST.line), take(word0, REQUEST.op)
    state[_S.found] = state[_S.unmatched] = place(ROUTE.line, line) | place(ROUTE.op, op)
    state[_S.chosen] = -1
    hit = find_range(state, _S.table, state[_S.ranges], line) if take(word0, REQUEST.tagged) else -1
    if is_improper(state, _S.table, state[_S.ranges], line, take(word1, REQUEST.length)):
        hit = -1
    context, epoch = take(word0, REQUEST.context), take(word1, REQUEST.epoch)
    if not is_live(state, _S.table, hit, state[_S.contexts], context, epoch):
        return
    number = _find_chunk(state, word0, word1, written)
    if number < 0:
        return
    state[_S.chosen] = number
    chunk = _S.chunks + number * _WORDS
    found = place(ROUTE.matched, 1) | place(ROUTE.descriptor, number)
    if take(state[chunk], _BOUNDS.kind) != KIND_REMOTE:
        state[_S.found] |= found
        return
    there = line - range_base(state, _S.table, hit) + get(state, chunk, _PEER.peer_base)
    state[_S.found] = (
        found
        | place(ROUTE.remote, 1)
        | place(ROUTE.line, there)  # cut to the bits of a line
        | place(ROUTE.op, take(state[chunk], _BOUNDS.op))
        | place(ROUTE.peer, take(state[chunk], _BOUNDS.peer))
    )


@njit(cache=True)
def _written(state, words):
    """The descriptor of which this cycle's configuration write changes what is kept here, or -1."""
    offset = config_address(words, _IN.config) - register_map.DESCRIPTOR
    number, byte = offset // register_map.DESCRIPTOR_STRIDE, offset % register_map.DESCRIPTOR_STRIDE
    if not words[_IN.config_valid] & 1 or offset < 0 or number >= state[_S.descriptors]:
        return -1
    return number if byte in _KEPT else -1


@njit(cache=True)
def _configure(state, address, value):
    """One configuration write; after everything else in its cycle, since it acts from the next one on."""
    if address == register_map.CONTROL:
        if take(value, CONTROL.disarm):
            state[_S.begin : _S.size] = 0  # the windows; rows that were taken stay
            if take(value, CONTROL.forced):
                drop_ranges(state, _S.table, state[_S.ranges], ALL_CONTEXTS)
        elif take(value, CONTROL.arm):
            first = take(value, CONTROL.first)
            state[_S.begin + take(value, CONTROL.context)] = first
            state[_S.end + take(value, CONTROL.context)] = first + take(value, CONTROL.descriptors)
        elif take(value, CONTROL.abort):
            context = take(value, CONTROL.context)
            state[_S.begin + context] = state[_S.end + context] = 0
            drop_ranges(state, _S.table, state[_S.ranges], context)
    elif address >= register_map.DESCRIPTOR:
        offset = address - register_map.DESCRIPTOR
        number, byte = offset // register_map.DESCRIPTOR_STRIDE, offset % register_map.DESCRIPTOR_STRIDE
        if number < state[_S.descriptors] and byte % WORD_BYTES == 0 and byte // WORD_BYTES < _WORDS:
            state[_S.chunks + number * _WORDS + byte // WORD_BYTES] = value
    else:
        write_range(state, _S.table, state[_S.ranges], address, value)


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    out[_OUT.store_ready] = 1 if state[_S.count] < 2 else 0
    out[_OUT.route_payload] = state[_S.route]
    out[_OUT.route_valid] = state[_S.route_valid]
    behind = state[_S.found_valid] or state[_S.count] == 0
    out[_OUT.idle] = 1 if behind and (state[_S.route_valid] or not state[_S.found_valid]) else 0
    out[_OUT.wake_at] = NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, _S.size)
    state[_S.table : _S.size] = 0
    out = int64_at(out_at, _OUT.size)
    out[:] = 0  # a golden model has no faults: their outputs stay 0
    _drive(state, out)


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state, words = int64_at(state_at, _S.size), int64_at(in_at, _IN.size)
    accepts = words[_IN.store_valid] & 1 and state[_S.count] < 2  # ready is a function of the state before
    written = _written(state, words)
    if not state[_S.route_valid] or words[_IN.route_ready] & 1:
        state[_S.route_valid] = state[_S.found_valid]
        if state[_S.found_valid]:
            state[_S.route], state[_S.found_valid] = state[_S.found], 0
    if state[_S.found_valid]:
        if state[_S.chosen] >= 0 and state[_S.chosen] == written:
            state[_S.found], state[_S.chosen] = state[_S.unmatched], -1
    elif state[_S.count] > 0:
        _match(state, state[_S.head], state[_S.head + 1], written)
        state[_S.found_valid] = 1
        state[_S.head], state[_S.head + 1] = state[_S.tail], state[_S.tail + 1]
        state[_S.count] -= 1
    if accepts:
        item = _S.tail if state[_S.count] else _S.head
        state[item], state[item + 1] = words[_IN.store_payload], words[_IN.store_payload + 1]
        state[_S.count] += 1
    if words[_IN.config_valid] & 1:
        _configure(state, config_address(words, _IN.config), config_data(words, _IN.config))
    _drive(state, int64_at(out_at, _OUT.size))
