"""Golden model of a MemorySlice: four queues, the match at entry, the token queue of one channel."""

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface import register_map
from t3hdl.interface.layouts import BURST_LINES

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.golden.ranges import (
    ALL_CONTEXTS,
    drop_ranges,
    find_range,
    is_improper,
    is_live,
    range_attribute,
    write_range,
)
from t3sim.hardware.words import (
    ADD,
    ARBITER,
    CONTROL,
    MAX,
    MIN,
    RANGE,
    READ,
    REQUEST,
    STORE,
    TOKEN,
    TOKEN_LIMIT,
    config_address,
    config_data,
    int64_at,
    place,
    take,
)

from .arbiter import (
    COMM,
    COMPUTE,
    IN,
    ITEM,
    NO_LIMIT,
    NONE,
    OUT,
    PORTS,
    QUEUE,
    STREAMS,
    TOKEN_QUEUE_LIMIT,
    TRACKED,
    S,
    arbitrate,
    count_alone,
    drive_idle,
    end_wait,
    lines_of,
    offer,
    watch_comm,
)

_PORT_WORDS = IN.compute_write_payload - IN.compute_read_payload
_REFUSED_WORDS = OUT.comm_refused - OUT.compute_refused
_STALE_WORDS = OUT.comm_stale - OUT.compute_stale
_STREAM = REQUEST.stream.mask << REQUEST.stream.shift
_SET_BY_SLICE = TRACKED | _STREAM
_OP = REQUEST.op.mask << REQUEST.op.shift
_DTYPE = REQUEST.dtype.mask << REQUEST.dtype.shift
_COUNT = TOKEN.n.mask << TOKEN.n.shift
_SERVED_LIMIT = (1 << 24) - 1


def init_state(config: T3Config) -> np.ndarray:
    """State of a slice of ``config``. Call ``reset`` before ``step``."""
    state = np.zeros(S.size, np.int64)
    state[S.token_queue] = config.token_queue
    state[S.performed] = config.count_on == "performed"
    state[S.ranges], state[S.contexts] = config.ranges, config.contexts
    return state


@njit(cache=True)
def _restart(state):
    """All registers but the configuration as after reset."""
    state[S.queue : S.size] = 0
    state[S.last_stream] = COMM


@njit(cache=True)
def _disarm(state, forced):
    """Forget what is counted; a forced disarm is an abort of every context as well. Accesses that were taken stay."""
    state[S.token_level] = state[S.served] = state[S.comm_seen] = state[S.armed] = 0
    state[S.aborted] = (1 << state[S.contexts]) - 1 if forced else 0
    if forced:
        drop_ranges(state, S.table, state[S.ranges], ALL_CONTEXTS)


@njit(cache=True)
def _pop_to_out(state, queue):
    """Move the head of ``queue`` to ``out``."""
    for i in range(ITEM):
        state[S.out + i] = state[queue + 1 + i]
        state[queue + 1 + i] = state[queue + 1 + ITEM + i]
    state[queue] -= 1
    state[S.out_valid] = 1


@njit(cache=True)
def _record_grant(state, words, stream, queue):
    """What a grant leaves in the registers, beside the item itself."""
    state[S.last_stream] = stream
    state[S.last_kind + stream] = 1 if queue == S.queue + (2 * stream + 1) * QUEUE else 0
    if words[IN.measure] & 1:
        state[S.served] = min(state[S.served] + lines_of(state[S.out + 1]), _SERVED_LIMIT)
    if stream == COMM and state[S.armed]:
        state[S.comm_seen] = 1


@njit(cache=True)
def _push_token(state, word0, word1, level_before):
    """Count one burst, unless its context is aborted. ``level_before``: tokens before this cycle's pop."""
    context = take(word0, REQUEST.context)
    if state[S.pending + context] > 0:
        state[S.pending + context] -= 1
    if state[S.aborted] >> context & 1:
        return
    token = (
        place(TOKEN.context, context)
        | place(TOKEN.epoch, take(word1, REQUEST.epoch))
        | place(TOKEN.row, take(word1, REQUEST.row))
        | place(TOKEN.col, take(word1, REQUEST.col))
        | place(TOKEN.wf, take(word0, REQUEST.wf))
        | place(TOKEN.right, take(word0, REQUEST.right))
        | place(TOKEN.bottom, take(word0, REQUEST.bottom))
    )
    level, lines = state[S.token_level], lines_of(word1)
    # An entry that was the head in this cycle is visible and must stay as it is; after a pop it is gone.
    for i in range(1 if level == level_before else 0, level):
        at = S.tokens + (state[S.token_head] + i) % TOKEN_QUEUE_LIMIT
        if state[at] & ~_COUNT == token and take(state[at], TOKEN.n) + BURST_LINES <= TOKEN_LIMIT:
            state[at] += lines << TOKEN.n.shift
            return
    state[S.tokens + (state[S.token_head] + level) % TOKEN_QUEUE_LIMIT] = token | lines << TOKEN.n.shift
    state[S.token_level] = level + 1


@njit(cache=True)
def _count(state, words, transfer):
    """Pop the token queue, count what is accepted or performed in this cycle. ``transfer``: ``out`` transfers."""
    level = state[S.token_level]
    if level > 0 and words[IN.token_ready] & 1:
        state[S.token_head] = (state[S.token_head] + 1) % TOKEN_QUEUE_LIMIT
        state[S.token_level] -= 1
    accepted = transfer and state[S.out] & TRACKED
    if not state[S.performed]:
        if accepted:
            _push_token(state, state[S.out], state[S.out + 1], level)
        return
    if accepted:  # before the report, which may come in the same cycle
        state[S.outstanding] += 1
    word0 = words[IN.update_done]
    if state[S.outstanding] and words[IN.update_done_valid] & 1 and word0 & TRACKED:
        _push_token(state, word0, words[IN.update_done + 1], level)
        state[S.outstanding] -= 1


@njit(cache=True)
def _write_tracked(state, word0, hit):
    """The request word ``word0`` of an access that range ``hit`` tracks: op and dtype are the range's."""
    if take(word0, REQUEST.op) == STORE:
        op = range_attribute(state, S.table, hit, RANGE.op)
        word0 = word0 & ~_OP | place(REQUEST.op, op)
    dtype = range_attribute(state, S.table, hit, RANGE.dtype)
    return word0 & ~_DTYPE | place(REQUEST.dtype, dtype)


@njit(cache=True)
def _refuse(state, cause, stream, word0, word1):
    """Give an item back at the write port of ``stream``; ``cause``: ``S.refused_valid`` or ``S.stale_valid``."""
    state[cause + stream] = 1
    state[S.refused + 2 * stream] = word0 & ~_STREAM | place(REQUEST.stream, stream)
    state[S.refused + 2 * stream + 1] = word1


@njit(cache=True)
def _stream_of(number):
    """The stream of port ``number``."""
    return COMM if number >= PORTS // STREAMS else COMPUTE


@njit(cache=True)
def _is_write_port(number):
    """Whether port ``number`` is a stream's write port."""
    return number % 2 == 1


@njit(cache=True)
def _enter(state, number, word0, word1):
    """Take an item at port ``number``; that of a write port is matched first, and perhaps refused."""
    tracked, stream = 0, _stream_of(number)
    op, context = take(word0, REQUEST.op), take(word0, REQUEST.context)
    if _is_write_port(number) and op != READ:
        line = take(word0, REQUEST.line)
        hit = find_range(state, S.table, state[S.ranges], line)
        foreign = hit >= 0 and range_attribute(state, S.table, hit, RANGE.context) != context
        if foreign or is_improper(state, S.table, state[S.ranges], line, take(word1, REQUEST.length)):
            _refuse(state, S.refused_valid, stream, word0, word1)
            return
        if word0 & TRACKED and (op == STORE or op == ADD or op == MIN or op == MAX):
            if not is_live(state, S.table, hit, state[S.contexts], context, take(word1, REQUEST.epoch)):
                _refuse(state, S.stale_valid, stream, word0, word1)
                return
            tracked = 1
            word0 = _write_tracked(state, word0, hit)
            state[S.pending + context] += 1
    queue = S.queue + number * QUEUE
    item = queue + 1 + state[queue] * ITEM
    state[item] = word0 & ~_SET_BY_SLICE | place(REQUEST.tagged, tracked) | place(REQUEST.stream, stream)
    state[item + 1] = word1
    state[queue] += 1


@njit(cache=True)
def _configure(state, address, value):
    """One configuration write; after everything else in its cycle, since it acts from the next one on."""
    if address == register_map.ARBITER:
        state[S.mca] = take(value, ARBITER.mca)
        state[S.fixed] = take(value, ARBITER.fixed)
        state[S.threshold] = take(value, ARBITER.threshold)
        state[S.starvation] = take(value, ARBITER.starvation)
        state[S.quantum] = take(value, ARBITER.quantum)
        state[S.quiet] = take(value, ARBITER.quiet)
        end_wait(state)
    elif address == register_map.CONTROL:
        if take(value, CONTROL.disarm):
            _disarm(state, take(value, CONTROL.forced))
        elif take(value, CONTROL.arm):
            state[S.armed] = 1
            state[S.served] = 0
            state[S.comm_seen] = 0
            state[S.aborted] &= ~(1 << take(value, CONTROL.context))
        elif take(value, CONTROL.abort):
            context = take(value, CONTROL.context)
            state[S.aborted] |= 1 << context
            drop_ranges(state, S.table, state[S.ranges], context)
    else:
        write_range(state, S.table, state[S.ranges], address, value)


@njit(cache=True)
def _drive(state, words, out):
    """The outputs as functions of the state (``idle`` also of the inputs just seen)."""
    for number in range(PORTS):
        out[OUT.compute_read_ready + number] = 1 if state[S.queue + number * QUEUE] < 2 else 0
    out[OUT.dram_payload] = state[S.out]
    out[OUT.dram_payload + 1] = state[S.out + 1]
    out[OUT.dram_valid] = state[S.out_valid]
    out[OUT.token_payload] = state[S.tokens + state[S.token_head]]
    out[OUT.token_valid] = 1 if state[S.token_level] > 0 else 0
    out[OUT.served] = state[S.served]
    out[OUT.comm_seen] = state[S.comm_seen]
    pending = 0
    for context in range(state[S.contexts]):
        pending |= (state[S.pending + context] > 0) << context
    out[OUT.pending] = pending
    for stream in range(STREAMS):
        refused, stale = stream * _REFUSED_WORDS, stream * _STALE_WORDS
        out[OUT.compute_refused_valid + refused] = state[S.refused_valid + stream]
        out[OUT.compute_stale_valid + stale] = state[S.stale_valid + stream]
        for word in range(2):
            item = state[S.refused + 2 * stream + word]
            out[OUT.compute_refused + refused + word] = out[OUT.compute_stale + stale + word] = item
    drive_idle(state, words, out)


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, S.size)
    state[S.mca : S.queue] = 0
    state[S.threshold], state[S.starvation], state[S.quantum] = NO_LIMIT, 64, 8
    _restart(state)
    out = int64_at(out_at, OUT.size)
    out[:] = 0  # a golden model has no faults: their outputs stay 0
    _drive(state, int64_at(in_at, IN.size), out)


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state, words = int64_at(state_at, S.size), int64_at(in_at, IN.size)
    accepts = 0  # ready is a function of the state before this cycle
    for number in range(PORTS):
        if state[S.queue + number * QUEUE] < 2 and words[IN.compute_read_valid + number * _PORT_WORDS] & 1:
            accepts |= 1 << number
    transfer = state[S.out_valid] and words[IN.dram_ready] & 1
    compute, comm = offer(state, COMPUTE), offer(state, COMM)
    granted = NONE
    if transfer or not state[S.out_valid]:
        granted = arbitrate(state, words, compute, comm)
    watch_comm(state, words, comm != NONE, granted)
    _count(state, words, transfer)
    if granted != NONE:
        queue = comm if granted == COMM else compute
        _pop_to_out(state, queue)
        _record_grant(state, words, granted, queue)
    elif transfer:
        state[S.out_valid] = 0
    count_alone(state, words, granted, lines_of(state[S.out + 1]))
    state[S.refused_valid : S.refused] = 0
    for number in range(PORTS):
        if accepts >> number & 1:
            port = number * _PORT_WORDS
            _enter(state, number, words[port], words[port + 1])
    if words[IN.config_valid] & 1:
        _configure(state, config_address(words, IN.config), config_data(words, IN.config))
    _drive(state, words, int64_at(out_at, OUT.size))
