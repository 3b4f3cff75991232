"""Golden model of the ControlRegisters: the bus, what may be read and written when, the configuration pulse."""

import numpy as np
from numba import cfunc, njit
from t3hdl import register_map
from t3hdl.config import T3Config
from t3hdl.layouts import NEVER, OCCUPANCY_BITS
from t3hdl.signatures import registers_signature

from ..abi import CALL
from .words import CONTROL, STATUS, int64_at, place, ports_of, put_config, state_map, take

_IN, _OUT = ports_of(registers_signature(T3Config()))
_ADDRESS_MASK = (1 << 16) - 1
_PEAK_MASK = (1 << 16) - 1
_OVERFLOWED_MASK = (1 << 7) - 1
_THRESHOLD_MASK = (1 << OCCUPANCY_BITS) - 1
_PROFILE_WAVEFRONTS = 16  # wavefronts of one edge class in the register map
_PROFILE_WORDS = 4 * _PROFILE_WAVEFRONTS
_RANGE_REGISTERS = 3
# What a write to an address does.
_UNKNOWN, _OPEN, _LOCKED = range(3)

_S = state_map(
    # parameters
    ranges=1, wavefronts=1, descriptors=1,
    # registers; the address and data of a configuration pulse as at the port
    locked_write=1, response_valid=1, response_error=1, response_data=1, config_valid=1, config=2,
)  # fmt: skip


def init_state(config: T3Config) -> np.ndarray:
    """State of the registers of ``config``. Call ``reset`` before ``step``."""
    state = np.zeros(_S.size, np.int64)
    state[_S.ranges], state[_S.wavefronts] = config.ranges, config.wavefronts
    state[_S.descriptors] = config.descriptors
    return state


@njit(cache=True)
def _in_table(address, first, count, stride, registers):
    """Whether ``address`` is one of the ``registers`` of one of ``count`` entries from ``first`` on."""
    offset = address - first
    return 0 <= offset < count * stride and offset % stride < 8 * registers


@njit(cache=True)
def _writable(state, address):
    """Whether an address can be written: ``_OPEN``, ``_LOCKED`` (not while armed) or ``_UNKNOWN``."""
    if address % 8:
        return _UNKNOWN
    if address == register_map.CONTROL or address == register_map.ARBITER or address == register_map.THRESHOLDS:
        return _OPEN
    profile = address - register_map.PROFILE
    if (
        _in_table(address, register_map.RANGE, state[_S.ranges], register_map.RANGE_STRIDE, _RANGE_REGISTERS)
        or (0 <= profile < 8 * _PROFILE_WORDS and profile // 8 % _PROFILE_WAVEFRONTS < state[_S.wavefronts])
        or _in_table(
            address,
            register_map.DESCRIPTOR,
            state[_S.descriptors],
            register_map.DESCRIPTOR_STRIDE,
            register_map.DESCRIPTOR_WORDS,
        )
    ):
        return _LOCKED
    return _UNKNOWN


@njit(cache=True)
def _control_is_legal(state, words, value):
    """Whether a write to CONTROL is one that the unit can carry out now."""
    if not take(value, CONTROL.arm):
        return True
    if take(value, CONTROL.disarm) or words[_IN.armed] & 1 or not words[_IN.init_done] & 1:
        return False
    return 1 <= take(value, CONTROL.descriptors) <= state[_S.descriptors]


@njit(cache=True)
def _write(state, words, address):
    """A write request; True if it is good."""
    value = words[_IN.bus_data]
    access = _writable(state, address)
    if access == _UNKNOWN:
        return False
    if access == _LOCKED and words[_IN.armed] & 1:
        state[_S.locked_write] = 1
        return False
    if address == register_map.CONTROL:
        if not _control_is_legal(state, words, value):
            return False
        if take(value, CONTROL.disarm):
            state[_S.locked_write] = 0
    state[_S.config_valid] = 1
    put_config(state, _S.config, address, value)
    return True


@njit(cache=True)
def _status(state, words):
    """The STATUS register."""
    return (
        place(STATUS.init_done, words[_IN.init_done])
        | place(STATUS.armed, words[_IN.armed])
        | place(STATUS.live, words[_IN.live])
        | place(STATUS.chunks_done, words[_IN.chunks_done])
        | place(STATUS.unmatched, words[_IN.unmatched])
        | place(STATUS.over_count, words[_IN.over_count])
        | place(STATUS.over_total, words[_IN.over_total])
        | place(STATUS.locked_write, state[_S.locked_write])
    )


@njit(cache=True)
def _read(state, words, address):
    """A read request: whether it is good, and the data."""
    if address == register_map.ID:
        return True, register_map.ID_VALUE
    if address == register_map.STATUS:
        return True, _status(state, words)
    if address == register_map.PEAK_ENTRIES:
        return True, words[_IN.peak_entries] & _PEAK_MASK
    if address == register_map.OVERFLOWED:
        return True, words[_IN.overflowed] & _OVERFLOWED_MASK
    if address == register_map.THRESHOLD:
        threshold = words[_IN.threshold] & _THRESHOLD_MASK
        return True, threshold | (words[_IN.chosen] & 1) << OCCUPANCY_BITS
    return False, 0


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    out[_OUT.bus_ready] = 1 - state[_S.response_valid]
    out[_OUT.response_valid] = state[_S.response_valid]
    out[_OUT.response_error] = state[_S.response_error]
    out[_OUT.response_data] = state[_S.response_data]
    out[_OUT.config_valid] = state[_S.config_valid]
    out[_OUT.config] = state[_S.config]
    out[_OUT.config + 1] = state[_S.config + 1]
    out[_OUT.idle] = 1 - state[_S.response_valid]
    out[_OUT.wake_at] = NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, _S.size)
    state[_S.locked_write : _S.size] = 0
    _drive(state, int64_at(out_at, _OUT.size))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state, words = int64_at(state_at, _S.size), int64_at(in_at, _IN.size)
    taken = words[_IN.bus_valid] & 1 and not state[_S.response_valid]
    state[_S.response_valid : _S.size] = 0
    if taken:
        address = words[_IN.bus_address] & _ADDRESS_MASK
        if words[_IN.bus_write] & 1:
            good, value = _write(state, words, address), 0
        else:
            good, value = _read(state, words, address)
        state[_S.response_valid] = 1
        state[_S.response_error] = 0 if good else 1
        state[_S.response_data] = value
    _drive(state, int64_at(out_at, _OUT.size))
