"""Golden model of the NmcUnit: op-and-store on one line every beats cycles, requests to a line in flight wait.

A request in flight stays in one place of a ring until its write; its age follows from the cycle in which it was issued.
"""

import numpy as np
from t3hdl.config import T3Config
from t3hdl.interface.layouts import Dtype
from t3hdl.interface.signatures import nmc_signature
from t3hdl.interface.words import ports_of

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.words import (
    ADD,
    MAX,
    MIN,
    NEVER,
    NMC_REQUEST,
    READ_CLEAR,
    STORE,
    get,
    int64_at,
    state_map,
)

from .arithmetic import LANE_BITS, lane

_DATA_WORDS = 4
_REQUEST_WORDS = NMC_REQUEST.data.word + _DATA_WORDS
_LANE_BITS = tuple(LANE_BITS[dtype] for dtype in Dtype)
_READ_LATENCY = 2
"""Cycles from issue to ``read_data``: the registered read, then the memory."""
_LONGEST = 8 + 7 + _READ_LATENCY
"""Most cycles from issue to write (NMC latency 8, two lanes: eight beats)."""

_ENTRY = state_map(valid=1, request=_REQUEST_WORDS, done=_DATA_WORDS, write=_DATA_WORDS, write_mask=1, flags=1)
_S = state_map(
    cycles=1, beats=1, dtypes=1,  # parameters: cycles from issue to write and to issue, a bit for every built dtype
    queued=1, queue=2 * _REQUEST_WORDS,  # request queue
    now=1, in_flight=1, read_valid=1,  # place of the next issue, valid entries; a request was issued
    ring=_LONGEST * _ENTRY.size,
)  # fmt: skip
_IN, _OUT = ports_of(nmc_signature(T3Config()))


def init_state(config: T3Config) -> np.ndarray:
    """State of a unit with the latency, lanes and dtypes of ``config``. Call ``reset`` before ``step``."""
    state = np.zeros(_S.size, np.int64)
    state[_S.beats] = 16 // config.nmc_lanes
    state[_S.cycles] = _READ_LATENCY + config.nmc_latency + state[_S.beats] - 1
    state[_S.dtypes] = sum(1 << Dtype[name.upper()] for name in config.dtypes)
    return state


@njit(cache=True)
def _entry(state, age):
    """First word of the entry that was issued ``age`` cycles ago (0: the place of an issue now)."""
    place = state[_S.now] - age
    return _S.ring + (place if place >= 0 else place + state[_S.cycles]) * _ENTRY.size


@njit(cache=True)
def _is_in_flight(state, line):
    """Whether a request with ``line`` is between its issue and its write, inclusive."""
    if state[_S.in_flight] == 0:
        return False
    for place in range(state[_S.cycles]):
        entry = _S.ring + place * _ENTRY.size
        if state[entry + _ENTRY.valid] and get(state, entry + _ENTRY.request, NMC_REQUEST.line) == line:
            return True
    return False


@njit(cache=True)
def _alu_is_taken(state):
    """Whether a request that was issued before has beats to come when the ALU would get the next one."""
    for age in range(1, state[_S.beats]):
        if state[_entry(state, age) + _ENTRY.valid]:
            return True
    return False


@njit(cache=True)
def _byte_mask(mask):
    """The 64-bit word whose bytes are all ones where the low 8 bits of ``mask`` are 1."""
    result = 0
    for byte in range(8):
        if (mask >> byte) & 1:
            result |= 0xFF << (8 * byte)
    return result


@njit(cache=True)
def _arithmetic(op, dtype, mask, old, new):
    """One word of ADD, MIN or MAX, in whole lanes: (word, flags)."""
    bits = _LANE_BITS[dtype]
    lane_mask, lane_bytes = (1 << bits) - 1, (1 << (bits // 8)) - 1
    result, flags = old, 0
    for shift in range(0, 64, bits):
        if (mask >> (shift // 8)) & lane_bytes == lane_bytes:
            value, raised = lane(op, dtype, (old >> shift) & lane_mask, (new >> shift) & lane_mask)
            result = (result & ~(lane_mask << shift)) | (value << shift)
            flags |= raised
    return result, flags


@njit(cache=True)
def _compute(state, entry, words, read_data):
    """Apply the request of ``entry`` to the old line at word ``read_data`` of ``words``."""
    request = entry + _ENTRY.request
    op, dtype = get(state, request, NMC_REQUEST.op), get(state, request, NMC_REQUEST.dtype)
    mask = get(state, request, NMC_REQUEST.mask)
    calculates = (op == ADD or op == MIN or op == MAX) and (state[_S.dtypes] >> dtype) & 1
    flags = 0
    for word in range(_DATA_WORDS):
        old, new = words[read_data + word], state[request + NMC_REQUEST.data.word + word]
        bytes_here = mask >> (8 * word)
        result = old
        if calculates:
            result, raised = _arithmetic(op, dtype, bytes_here, old, new)
            flags |= raised
        elif op == STORE:
            result = old ^ ((old ^ new) & _byte_mask(bytes_here))
        elif op == READ_CLEAR:
            result = old & ~_byte_mask(bytes_here)
        state[entry + _ENTRY.write + word] = result
        state[entry + _ENTRY.done + word] = old if op == READ_CLEAR else result
    state[entry + _ENTRY.write_mask] = mask if calculates or op == STORE or op == READ_CLEAR else 0
    state[entry + _ENTRY.flags] = flags


@njit(cache=True)
def _issue(state):
    """Move the head of the queue into flight, if none there has its line; the request that is written now leaves."""
    issues = state[_S.queued] > 0 and not _alu_is_taken(state)
    issues = issues and not _is_in_flight(state, get(state, _S.queue, NMC_REQUEST.line))
    entry = _entry(state, 0)
    state[_S.in_flight] -= state[entry + _ENTRY.valid]
    state[entry + _ENTRY.valid] = 0
    state[_S.read_valid] = 0
    if issues:
        state[entry + _ENTRY.valid] = state[_S.read_valid] = 1
        state[_S.in_flight] += 1
        state[_S.queued] -= 1
        for word in range(_REQUEST_WORDS):
            state[entry + _ENTRY.request + word] = state[_S.queue + word]
            state[_S.queue + word] = state[_S.queue + _REQUEST_WORDS + word]


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    out[_OUT.request_ready] = 1 if state[_S.queued] < 2 else 0
    issued = _entry(state, 1)
    out[_OUT.read_valid] = state[_S.read_valid]
    out[_OUT.read_line] = get(state, issued + _ENTRY.request, NMC_REQUEST.line)
    oldest = _entry(state, 0)  # its place is the next one to be taken
    request = oldest + _ENTRY.request
    out[_OUT.write_valid] = out[_OUT.done_valid] = state[oldest + _ENTRY.valid]
    out[_OUT.write_line] = get(state, request, NMC_REQUEST.line)
    out[_OUT.write_mask], out[_OUT.done_flags] = state[oldest + _ENTRY.write_mask], state[oldest + _ENTRY.flags]
    out[_OUT.done_tag] = get(state, request, NMC_REQUEST.tag)
    for word in range(_DATA_WORDS):
        out[_OUT.write_data + word] = state[oldest + _ENTRY.write + word]
        out[_OUT.done_data + word] = state[oldest + _ENTRY.done + word]
    out[_OUT.uncorrectable] = 0
    out[_OUT.idle] = 1 if state[_S.queued] + state[_S.in_flight] == 0 else 0
    out[_OUT.wake_at] = NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, _S.size)
    state[_S.queued : _S.size] = 0
    _drive(state, int64_at(out_at, _OUT.size))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state, words = int64_at(state_at, _S.size), int64_at(in_at, _IN.size)
    accepts = words[_IN.request_valid] & 1 and state[_S.queued] < 2
    arriving = _entry(state, _READ_LATENCY)
    if state[arriving + _ENTRY.valid]:
        _compute(state, arriving, words, _IN.read_data)
    _issue(state)
    if state[_S.in_flight] > 0:  # an empty ring may rest anywhere
        state[_S.now] = state[_S.now] + 1 if state[_S.now] + 1 < state[_S.cycles] else 0
    if accepts:
        first = _S.queue + state[_S.queued] * _REQUEST_WORDS
        for word in range(_REQUEST_WORDS):
            state[first + word] = words[_IN.request_payload + word]
        state[_S.queued] += 1
    _drive(state, int64_at(out_at, _OUT.size))
