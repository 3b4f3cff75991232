"""Golden model of the OccupancyMonitor: picks the threshold for communication, says when communication is behind."""

import numpy as np
from t3hdl.config import NO_LIMIT, T3Config
from t3hdl.interface import register_map
from t3hdl.interface.layouts import BACKLOG_BITS, NEVER, OCCUPANCY_BITS, TIME_BITS
from t3hdl.interface.signatures import monitor_signature
from t3hdl.interface.words import ports_of

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.words import CONTROL, THRESHOLDS, config_address, config_data, int64_at, state_map, take

_IN, _OUT = ports_of(monitor_signature(T3Config()))
_OFF, _MEASURE, _SETTLE, _SCAN, _DECIDE, _DONE = range(6)
_SETTLE_CYCLES = 4
_SELECT_MASK = (1 << 6) - 1
_SERVED_MASK = (1 << 24) - 1
_TIME_MASK = (1 << TIME_BITS) - 1
_THRESHOLD_MASK = (1 << OCCUPANCY_BITS) - 1
_IN_TURNS = OCCUPANCY_BITS
"""Bit of a threshold that says that there is none: the streams take turns."""
_BACKLOG_MASK = (1 << BACKLOG_BITS) - 1
_PATIENCE_CYCLES = 64
_DEFAULTS = (
    NO_LIMIT << THRESHOLDS.under_25.shift
    | 30 << THRESHOLDS.under_50.shift
    | 10 << THRESHOLDS.under_75.shift
    | 5 << THRESHOLDS.above.shift
)

_S = state_map(
    # parameter
    slices=1,
    # configuration register: kept by disarm
    thresholds=1,
    # the rest
    phase=1, start=1, elapsed=1, settle=1, sum=1, select=1, threshold=1, chosen=1, turns=1,
    behind=1,  # of the cycle before, whatever the phase
    owing=1, late=1, deadline=1,  # some blocks wait; for too long; from when on that is so
)  # fmt: skip


def init_state(config: T3Config) -> np.ndarray:
    """State of the monitor of ``config``. Call ``reset`` before ``step``."""
    state = np.zeros(_S.size, np.int64)
    state[_S.slices] = config.slices
    return state


@njit(cache=True)
def _restart(state, phase, now):
    """The registers of the measurement as after reset, in ``phase`` since ``now``."""
    state[_S.phase : _S.behind] = 0
    state[_S.threshold] = NO_LIMIT
    state[_S.phase], state[_S.start] = phase, now


@njit(cache=True)
def _choose(state):
    """The limits' word for the data-bus use of the first stage: two cycles per line, in quarters of all cycles."""
    busy = 2 * state[_S.sum]
    available = state[_S.elapsed] * state[_S.slices]
    if 4 * busy < available:
        field = THRESHOLDS.under_25
    elif 2 * busy < available:
        field = THRESHOLDS.under_50
    elif 4 * busy < 3 * available:
        field = THRESHOLDS.under_75
    else:
        field = THRESHOLDS.above
    return take(state[_S.thresholds], field)


@njit(cache=True)
def _advance(state, words):
    """One cycle of the state machine."""
    phase = state[_S.phase]
    if phase == _MEASURE:
        if (words[_IN.tile_done_valid] | words[_IN.comm_seen]) & 1:
            state[_S.elapsed] = ((words[_IN.now] & _TIME_MASK) - state[_S.start]) & _TIME_MASK
            state[_S.settle] = _SETTLE_CYCLES
            state[_S.phase] = _SETTLE
    elif phase == _SETTLE:
        state[_S.settle] -= 1
        if state[_S.settle] == 0:
            state[_S.phase] = _SCAN
    elif phase == _SCAN:
        state[_S.sum] += words[_IN.served] & _SERVED_MASK
        if state[_S.select] == state[_S.slices] - 1:
            state[_S.phase] = _DECIDE
        state[_S.select] = (state[_S.select] + 1) & _SELECT_MASK
    elif phase == _DECIDE:
        choice = _choose(state)
        state[_S.threshold], state[_S.turns] = choice & _THRESHOLD_MASK, choice >> _IN_TURNS
        state[_S.chosen] = 1
        state[_S.phase] = _DONE


@njit(cache=True)
def _is_behind(state, words):
    """Whether as many DMA blocks wait as the limit says."""
    limit = take(state[_S.thresholds], THRESHOLDS.backlog)
    return 1 if limit != 0 and words[_IN.backlog] & _BACKLOG_MASK >= limit else 0


@njit(cache=True)
def _owes(state, words):
    """Whether blocks wait, and it matters for how long."""
    return take(state[_S.thresholds], THRESHOLDS.patience) != 0 and words[_IN.backlog] & _BACKLOG_MASK != 0


@njit(cache=True)
def _watch_lateness(state, words, written):
    """Whether some block has waited for so long at any time. ``written``: a limit is, so that it begins anew."""
    now = words[_IN.now] & _TIME_MASK
    if written or not _owes(state, words):
        state[_S.owing] = state[_S.late] = 0
    elif not state[_S.owing]:
        patience = take(state[_S.thresholds], THRESHOLDS.patience)
        state[_S.owing] = 1
        state[_S.deadline] = (now + patience * _PATIENCE_CYCLES) & _TIME_MASK
    elif now >= state[_S.deadline]:
        state[_S.late] = 1


@njit(cache=True)
def _configure(state, address, value, now):
    """One configuration write; after everything else in its cycle, since it acts from the next one on."""
    if address == register_map.THRESHOLDS:
        state[_S.thresholds] = value
    elif address == register_map.CONTROL:
        if take(value, CONTROL.disarm):
            _restart(state, _OFF, 0)
        elif take(value, CONTROL.arm):
            _restart(state, _MEASURE, now)


@njit(cache=True)
def _drive(state, comm_seen, out):
    """The outputs as functions of the state; ``idle`` also of ``comm_seen``, which ends the measurement."""
    phase = state[_S.phase]
    out[_OUT.select] = state[_S.select]
    out[_OUT.measure] = 1 if phase == _MEASURE else 0
    out[_OUT.threshold] = state[_S.threshold]
    out[_OUT.chosen] = state[_S.chosen]
    out[_OUT.behind] = state[_S.behind] | state[_S.late] | state[_S.turns]
    out[_OUT.idle] = 1 if phase == _OFF or phase == _DONE or (phase == _MEASURE and not comm_seen) else 0
    out[_OUT.wake_at] = state[_S.deadline] if state[_S.owing] and not state[_S.late] else NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, _S.size)
    state[_S.thresholds] = _DEFAULTS
    state[_S.phase : _S.size] = 0
    _restart(state, _OFF, 0)
    _drive(state, 0, int64_at(out_at, _OUT.size))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state, words = int64_at(state_at, _S.size), int64_at(in_at, _IN.size)
    _advance(state, words)
    behind = _is_behind(state, words)
    written = words[_IN.config_valid] & 1 and config_address(words, _IN.config) == register_map.THRESHOLDS
    _watch_lateness(state, words, written)
    if words[_IN.config_valid] & 1:
        now = words[_IN.now] & _TIME_MASK
        _configure(state, config_address(words, _IN.config), config_data(words, _IN.config), now)
    state[_S.behind] = behind
    out = int64_at(out_at, _OUT.size)
    _drive(state, words[_IN.comm_seen] & 1, out)
    if _is_behind(state, words) != behind or _owes(state, words) != state[_S.owing]:  # limits just written
        out[_OUT.idle] = 0
