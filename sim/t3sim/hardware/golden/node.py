"""Golden model of a TokenNode: input queues to two-deep outputs, tokens of one tile merge while both are full."""

import numpy as np
from t3hdl.interface.signatures import node_signature
from t3hdl.interface.words import ports_of

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.words import NEVER, TOKEN, TOKEN_LIMIT, int64_at, state_map, take

_TOKEN_MASK = sum(field.mask << field.shift for field in TOKEN)
_NAME_MASK = _TOKEN_MASK & ~(TOKEN.n.mask << TOKEN.n.shift)

# Parameters, then arrays that start at these words of the state (each for the largest node).
_LIMIT = 16
_S = state_map(
    inputs=1, outputs=1, skip=1,
    count=_LIMIT, head=_LIMIT, tail=_LIMIT,  # input queues of depth 2: entries, first and second entry
    level=_LIMIT, front=_LIMIT, back=_LIMIT,  # outputs: tokens held (0 to 2), the visible one, the waiting one
    pointer=_LIMIT,  # round-robin
    requests=_LIMIT,  # within a step (else 0): inputs whose head goes to that output
)  # fmt: skip

# Words of each port, equal for every node: the strides of token_in.i and token_out.o.
_IN, _OUT = ports_of(node_signature(2, 2))
_INPUT_WORDS = _IN.token_in_1_payload - _IN.token_in_0_payload
_VALID = _IN.token_in_0_valid
_OUTPUT_WORDS = _OUT.token_out_1_payload - _OUT.token_out_0_payload
_OUT_VALID = _OUT.token_out_0_valid - _OUT.token_out_0_payload
# Outputs behind the streams: faults, idle and wake_at.
_FAULTS, _IDLE, _WAKE_AT = (port - _OUT.corrected for port in (_OUT.corrected, _OUT.idle, _OUT.wake_at))
_OTHERS = _OUT.size - _OUT.corrected


def init_state(inputs: int, outputs: int, skip: int = 0, protect: bool = False) -> np.ndarray:
    """State of a node of ``inputs`` x ``outputs`` (1 to 16; outputs a power of two), which are chosen by the bits of a
    bank's number above the lowest ``skip``. ``protect`` changes nothing: no bit is wrong here. Call ``reset`` before
    ``step``.

    Raises ValueError for a size out of range.
    """
    for name, value in (("inputs", inputs), ("outputs", outputs)):
        if not 1 <= value <= _LIMIT or (name == "outputs" and value & (value - 1)):
            raise ValueError(f"{name} of a node must be 1 to {_LIMIT} (outputs a power of two), not {value}")
    state = np.zeros(_S.size, np.int64)
    state[_S.inputs], state[_S.outputs], state[_S.skip] = inputs, outputs, skip
    return state


@njit(cache=True)
def _target(state, token):
    """The output that a token goes to, on the way to its bank."""
    bank = take(token, TOKEN.row) ^ take(token, TOKEN.col) ^ take(token, TOKEN.wf)
    return (bank >> state[_S.skip]) & (state[_S.outputs] - 1)


@njit(cache=True)
def _joins(token, back):
    """Whether ``token`` may be added to ``back``: same tile, and counts so small that the sum fits."""
    return (token ^ back) & _NAME_MASK == 0 and max(take(token, TOKEN.n), take(back, TOKEN.n)) <= TOKEN_LIMIT // 2


@njit(cache=True)
def _pop(state, i):
    """Take the head of input queue ``i``."""
    token = state[_S.head + i]
    state[_S.head + i] = state[_S.tail + i]
    state[_S.count + i] -= 1
    return token


@njit(cache=True)
def _request(state):
    """Fill ``requests``: all heads at once, since a pop for one output must not show the next head to another."""
    for i in range(state[_S.inputs]):
        if state[_S.count + i] > 0:
            state[_S.requests + _target(state, state[_S.head + i])] |= 1 << i


@njit(cache=True)
def _grant(state, o, mask):
    """The round-robin winner among the inputs in ``mask`` goes to ``front`` or ``back`` of output ``o``."""
    inputs = state[_S.inputs]
    winner = state[_S.pointer + o]
    while not mask >> winner & 1:
        winner = winner + 1 if winner + 1 < inputs else 0
    state[_S.pointer + o] = winner + 1 if winner + 1 < inputs else 0
    token = _pop(state, winner)
    if state[_S.level + o] == 0:
        state[_S.front + o] = token
    else:
        state[_S.back + o] = token
    state[_S.level + o] += 1


@njit(cache=True)
def _merge(state, o, mask):
    """Add the first input's head that is of the tile of ``back`` to it."""
    for i in range(state[_S.inputs]):
        if mask >> i & 1 and _joins(state[_S.head + i], state[_S.back + o]):
            state[_S.back + o] += take(_pop(state, i), TOKEN.n) << TOKEN.n.shift
            return


@njit(cache=True)
def _output(state, o, ready):
    """One cycle of output ``o``."""
    if ready and state[_S.level + o] > 0:
        state[_S.front + o] = state[_S.back + o]
        state[_S.level + o] -= 1
    mask = state[_S.requests + o]
    if mask == 0:
        return
    state[_S.requests + o] = 0
    if state[_S.level + o] < 2:
        _grant(state, o, mask)
    else:
        _merge(state, o, mask)


@njit(cache=True)
def _is_idle(state):
    """Whether no head can move before an output transfers."""
    for i in range(state[_S.inputs]):
        if state[_S.count + i] > 0:
            head = state[_S.head + i]
            o = _target(state, head)
            if state[_S.level + o] < 2 or _joins(head, state[_S.back + o]):
                return False
    return True


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    inputs, outputs = state[_S.inputs], state[_S.outputs]
    for i in range(inputs):
        out[i] = 1 if state[_S.count + i] < 2 else 0
    for o in range(outputs):
        first = inputs + o * _OUTPUT_WORDS
        out[first] = state[_S.front + o]
        out[first + _OUT_VALID] = 1 if state[_S.level + o] > 0 else 0
    first = inputs + outputs * _OUTPUT_WORDS
    out[first + _FAULTS] = out[first + _FAULTS + 1] = 0
    out[first + _IDLE] = 1 if _is_idle(state) else 0
    out[first + _WAKE_AT] = NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, _S.size)
    state[_S.count : _S.size] = 0
    _drive(state, int64_at(out_at, state[_S.inputs] + state[_S.outputs] * _OUTPUT_WORDS + _OTHERS))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state = int64_at(state_at, _S.size)
    inputs, outputs = state[_S.inputs], state[_S.outputs]
    words = int64_at(in_at, inputs * _INPUT_WORDS + outputs)
    accepts = 0  # ready is a function of the state before this cycle
    for i in range(inputs):
        if state[_S.count + i] < 2 and words[i * _INPUT_WORDS + _VALID] & 1:
            accepts |= 1 << i
    _request(state)
    for o in range(outputs):
        _output(state, o, words[inputs * _INPUT_WORDS + o] & 1)
    for i in range(inputs):
        if accepts >> i & 1:
            at = _S.head + i if state[_S.count + i] == 0 else _S.tail + i
            state[at] = words[i * _INPUT_WORDS] & _TOKEN_MASK
            state[_S.count + i] += 1
    _drive(state, int64_at(out_at, inputs + outputs * _OUTPUT_WORDS + _OTHERS))
