"""Golden model of a MemorySlice: four queues, the match at entry, the arbiter, the token queue of one channel."""

import numpy as np
from numba import cfunc, njit
from t3hdl import register_map
from t3hdl.config import T3Config
from t3hdl.layouts import NEVER, OCCUPANCY_BITS, TIME_BITS
from t3hdl.signatures import slice_signature

from ..abi import CALL
from .ranges import RANGE_WORDS, find_range, range_attribute, write_range
from .words import (
    ADD,
    ARBITER,
    CONTROL,
    MAX,
    MIN,
    RANGE,
    REQUEST,
    STORE,
    TOKEN,
    TOKEN_LIMIT,
    config_address,
    config_data,
    int64_at,
    place,
    ports_of,
    state_map,
    take,
)

_IN, _OUT = ports_of(slice_signature(T3Config()))
# The four input queues have the number of their port: 2 x stream + (1 for writes).
_PORT_WORDS = _IN.compute_write_payload - _IN.compute_read_payload
_COMPUTE, _COMM, _NONE = 0, 1, -1
# An item: the two words of its request, the epoch of its range. A queue: the number of items, then two items.
_ITEM = 3
_QUEUE = 1 + 2 * _ITEM
_TOKEN_QUEUE_LIMIT = 64

_S = state_map(
    # parameters
    token_queue=1, performed=1, ranges=1,
    # configuration registers: kept by disarm
    mca=1, fixed=1, threshold=1, starvation=1, burst_length=1, table=4 * RANGE_WORDS,
    # the rest
    queue=4 * _QUEUE, out_valid=1, out=_ITEM, tokens=_TOKEN_QUEUE_LIMIT, token_head=1, token_level=1, outstanding=1,
    last_kind=2, last_stream=1, comm_waiting=1, comm_since=1, burst=1, served=1, comm_seen=1, armed=1,
)  # fmt: skip

_WORD1_MASK = REQUEST.row.mask << REQUEST.row.shift | REQUEST.col.mask << REQUEST.col.shift
_WORD1_MASK |= REQUEST.tag.mask << REQUEST.tag.shift
_TRACKED = REQUEST.tagged.mask << REQUEST.tagged.shift
_SET_BY_SLICE = _TRACKED | REQUEST.stream.mask << REQUEST.stream.shift
_OP = REQUEST.op.mask << REQUEST.op.shift
_DTYPE = REQUEST.dtype.mask << REQUEST.dtype.shift
_COUNT = TOKEN.n.mask << TOKEN.n.shift
_OCCUPANCY_MASK = (1 << OCCUPANCY_BITS) - 1
_NO_LIMIT = _OCCUPANCY_MASK
_TIME_MASK = (1 << TIME_BITS) - 1
_SERVED_LIMIT = (1 << 24) - 1
_OUTSTANDING_MASK = (1 << 16) - 1


def init_state(config: T3Config) -> np.ndarray:
    """State of a slice of ``config``. Call ``reset`` before ``step``."""
    state = np.zeros(_S.size, np.int64)
    state[_S.token_queue] = config.token_queue
    state[_S.performed] = config.count_on == "performed"
    state[_S.ranges] = config.ranges
    return state


@njit(cache=True)
def _restart(state):
    """All registers but the configuration as after reset."""
    state[_S.queue : _S.size] = 0
    state[_S.last_stream] = _COMM


@njit(cache=True)
def _offer(state, stream):
    """The queue whose head is the candidate of ``stream``, or ``_NONE``."""
    read = _S.queue + 2 * stream * _QUEUE
    write = read + _QUEUE
    can_write = state[write] > 0
    if can_write and state[write + 1] & _TRACKED:
        in_out = 1 if state[_S.out_valid] and state[_S.out] & _TRACKED else 0
        can_write = state[_S.token_level] + state[_S.outstanding] + in_out < state[_S.token_queue]
    if can_write and (state[read] == 0 or state[_S.last_kind + stream] == 0):
        return write
    return read if state[read] > 0 else _NONE


@njit(cache=True)
def _below_limit(state, words):
    """Whether the DRAM queue is empty enough for communication (T3-MCA)."""
    limit = state[_S.threshold] if state[_S.fixed] else words[_IN.threshold] & _OCCUPANCY_MASK
    level = (words[_IN.occupancy] & _OCCUPANCY_MASK) + state[_S.out_valid]
    return level < limit or limit == _NO_LIMIT


@njit(cache=True)
def _arbitrate(state, words, compute, comm):
    """The stream that is granted, or ``_NONE``; keeps ``burst``. ``compute``, ``comm``: there is a candidate."""
    if not state[_S.mca]:
        if compute and comm:
            return 1 - state[_S.last_stream]
        return _COMPUTE if compute else (_COMM if comm else _NONE)
    if comm and state[_S.burst] > 0:
        state[_S.burst] -= 1
        return _COMM
    waited = (words[_IN.now] & _TIME_MASK) - state[_S.comm_since]
    if comm and state[_S.comm_waiting] and waited >= state[_S.starvation]:
        state[_S.burst] = max(state[_S.burst_length] - 1, 0)
        return _COMM
    if compute:
        return _COMPUTE
    return _COMM if comm and _below_limit(state, words) else _NONE


@njit(cache=True)
def _watch_comm(state, words, waits, granted):
    """``comm_waiting``, ``comm_since`` and the end of a burst. ``waits``: comm has a candidate; ``granted``: stream."""
    if not state[_S.mca]:
        state[_S.comm_waiting] = 0
        state[_S.burst] = 0
        return
    if not waits:
        state[_S.burst] = 0
    if granted == _COMM:
        state[_S.comm_waiting] = 0
    elif waits and not state[_S.comm_waiting]:
        state[_S.comm_waiting] = 1
        state[_S.comm_since] = words[_IN.now] & _TIME_MASK


@njit(cache=True)
def _pop_to_out(state, queue):
    """Move the head of ``queue`` to ``out``."""
    for i in range(_ITEM):
        state[_S.out + i] = state[queue + 1 + i]
        state[queue + 1 + i] = state[queue + 1 + _ITEM + i]
    state[queue] -= 1
    state[_S.out_valid] = 1


@njit(cache=True)
def _record_grant(state, words, stream, queue):
    """What a grant leaves in the registers, beside the item itself."""
    state[_S.last_stream] = stream
    state[_S.last_kind + stream] = 1 if queue == _S.queue + (2 * stream + 1) * _QUEUE else 0
    if words[_IN.measure] & 1 and state[_S.served] < _SERVED_LIMIT:
        state[_S.served] += 1
    if stream == _COMM and state[_S.armed]:
        state[_S.comm_seen] = 1


@njit(cache=True)
def _push_token(state, word0, word1, epoch, level_before):
    """Count one update in the token queue. ``level_before``: its entries before this cycle's pop."""
    token = (
        place(TOKEN.context, take(word0, REQUEST.context))
        | place(TOKEN.epoch, epoch)
        | place(TOKEN.row, take(word1, REQUEST.row))
        | place(TOKEN.col, take(word1, REQUEST.col))
        | place(TOKEN.wf, take(word0, REQUEST.wf))
        | place(TOKEN.right, take(word0, REQUEST.right))
        | place(TOKEN.bottom, take(word0, REQUEST.bottom))
    )
    level = state[_S.token_level]
    if level_before > 1:  # else the last entry was the head, which must stay as it is
        last = _S.tokens + (state[_S.token_head] + level - 1) % _TOKEN_QUEUE_LIMIT
        if state[last] & ~_COUNT == token and take(state[last], TOKEN.n) < TOKEN_LIMIT:
            state[last] += 1 << TOKEN.n.shift
            return
    state[_S.tokens + (state[_S.token_head] + level) % _TOKEN_QUEUE_LIMIT] = token | 1 << TOKEN.n.shift
    state[_S.token_level] = level + 1


@njit(cache=True)
def _count(state, words, transfer):
    """Pop the token queue, count what is accepted or performed in this cycle. ``transfer``: ``out`` transfers."""
    level = state[_S.token_level]
    if level > 0 and words[_IN.token_ready] & 1:
        state[_S.token_head] = (state[_S.token_head] + 1) % _TOKEN_QUEUE_LIMIT
        state[_S.token_level] -= 1
    accepted = transfer and state[_S.out] & _TRACKED
    if not state[_S.performed]:
        if accepted:
            _push_token(state, state[_S.out], state[_S.out + 1], state[_S.out + 2], level)
        return
    outstanding = state[_S.outstanding]
    word0 = words[_IN.update_done]
    if outstanding and words[_IN.update_done_valid] & 1 and word0 & _TRACKED:
        hit = find_range(state, _S.table, state[_S.ranges], take(word0, REQUEST.line))
        epoch = range_attribute(state, _S.table, hit, RANGE.epoch) if hit >= 0 else 0
        _push_token(state, word0, words[_IN.update_done + 1], epoch, level)
        outstanding -= 1
    state[_S.outstanding] = (outstanding + 1 if accepted else outstanding) & _OUTSTANDING_MASK


@njit(cache=True)
def _match(state, word0):
    """The range that tracks an access with the request word ``word0`` at a write port, or -1."""
    op = take(word0, REQUEST.op)
    if not (word0 & _TRACKED and (op == STORE or op == ADD or op == MIN or op == MAX)):
        return -1
    hit = find_range(state, _S.table, state[_S.ranges], take(word0, REQUEST.line))
    if hit < 0 or range_attribute(state, _S.table, hit, RANGE.context) != take(word0, REQUEST.context):
        return -1
    return hit


@njit(cache=True)
def _enter(state, number, word0, word1):
    """Append an item to queue ``number``; in a write queue, it is matched first."""
    hit = _match(state, word0) if number & 1 else -1
    tracked, epoch = 0, 0
    if hit >= 0:
        tracked, epoch = 1, range_attribute(state, _S.table, hit, RANGE.epoch)
        if take(word0, REQUEST.op) == STORE:
            op = range_attribute(state, _S.table, hit, RANGE.op)
            word0 = word0 & ~_OP | place(REQUEST.op, op)
        dtype = range_attribute(state, _S.table, hit, RANGE.dtype)
        word0 = word0 & ~_DTYPE | place(REQUEST.dtype, dtype)
    queue = _S.queue + number * _QUEUE
    item = queue + 1 + state[queue] * _ITEM
    state[item] = word0 & ~_SET_BY_SLICE | place(REQUEST.tagged, tracked) | place(REQUEST.stream, number >> 1)
    state[item + 1] = word1 & _WORD1_MASK
    state[item + 2] = epoch
    state[queue] += 1


@njit(cache=True)
def _configure(state, address, value):
    """One configuration write; after everything else in its cycle, since it acts from the next one on."""
    if address == register_map.ARBITER:
        state[_S.mca] = take(value, ARBITER.mca)
        state[_S.fixed] = take(value, ARBITER.fixed)
        state[_S.threshold] = take(value, ARBITER.threshold)
        state[_S.starvation] = take(value, ARBITER.starvation)
        state[_S.burst_length] = take(value, ARBITER.burst)
    elif address == register_map.CONTROL:
        if take(value, CONTROL.disarm):
            _restart(state)
        elif take(value, CONTROL.arm):
            state[_S.armed] = 1
            state[_S.served] = 0
            state[_S.comm_seen] = 0
    else:
        write_range(state, _S.table, state[_S.ranges], address, value)


@njit(cache=True)
def _drive_idle(state, words, out):
    """``idle`` and ``wake_at``: whether the registers would change if the inputs stayed and nothing transferred."""
    compute, comm = _offer(state, _COMPUTE) != _NONE, _offer(state, _COMM) != _NONE
    wake_at = NEVER
    if state[_S.mca]:
        busy = not state[_S.comm_waiting] if comm else state[_S.burst] > 0
        if not state[_S.out_valid]:
            busy |= compute or (comm and (state[_S.burst] > 0 or _below_limit(state, words)))
            if comm:
                wake_at = min(state[_S.comm_since] + state[_S.starvation], NEVER)
    else:
        busy = state[_S.burst] > 0 or state[_S.comm_waiting] > 0 or (not state[_S.out_valid] and (compute or comm))
    out[_OUT.idle] = 0 if busy else 1
    out[_OUT.wake_at] = wake_at


@njit(cache=True)
def _drive(state, words, out):
    """The outputs as functions of the state (``idle`` also of the inputs just seen)."""
    for number in range(4):
        out[_OUT.compute_read_ready + number] = 1 if state[_S.queue + number * _QUEUE] < 2 else 0
    out[_OUT.dram_payload] = state[_S.out]
    out[_OUT.dram_payload + 1] = state[_S.out + 1]
    out[_OUT.dram_valid] = state[_S.out_valid]
    out[_OUT.token_payload] = state[_S.tokens + state[_S.token_head]]
    out[_OUT.token_valid] = 1 if state[_S.token_level] > 0 else 0
    out[_OUT.served] = state[_S.served]
    out[_OUT.comm_seen] = state[_S.comm_seen]
    _drive_idle(state, words, out)


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, _S.size)
    state[_S.mca : _S.queue] = 0
    state[_S.threshold], state[_S.starvation], state[_S.burst_length] = _NO_LIMIT, 64, 8
    _restart(state)
    _drive(state, int64_at(in_at, _IN.size), int64_at(out_at, _OUT.size))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state, words = int64_at(state_at, _S.size), int64_at(in_at, _IN.size)
    accepts = 0  # ready is a function of the state before this cycle
    for number in range(4):
        if state[_S.queue + number * _QUEUE] < 2 and words[_IN.compute_read_valid + number * _PORT_WORDS] & 1:
            accepts |= 1 << number
    transfer = state[_S.out_valid] and words[_IN.dram_ready] & 1
    compute, comm = _offer(state, _COMPUTE), _offer(state, _COMM)
    granted = _NONE
    if transfer or not state[_S.out_valid]:
        granted = _arbitrate(state, words, compute != _NONE, comm != _NONE)
    _watch_comm(state, words, comm != _NONE, granted)
    _count(state, words, transfer)
    if granted != _NONE:
        queue = comm if granted == _COMM else compute
        _pop_to_out(state, queue)
        _record_grant(state, words, granted, queue)
    elif transfer:
        state[_S.out_valid] = 0
    for number in range(4):
        if accepts >> number & 1:
            port = number * _PORT_WORDS
            _enter(state, number, words[port], words[port + 1])
    if words[_IN.config_valid] & 1:
        _configure(state, config_address(words, _IN.config), config_data(words, _IN.config))
    _drive(state, words, int64_at(out_at, _OUT.size))
