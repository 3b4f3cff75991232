"""What the golden Trigger shows: its outputs as functions of the state, and when it rests."""

from t3hdl.config import T3Config
from t3hdl.interface.signatures import trigger_signature
from t3hdl.interface.words import ports_of

from t3sim.common.compiled import njit
from t3sim.hardware.words import CONTEXT_STATUS, NEVER, place

from .commands import issuer_rests
from .state import FETCH, WAIT, S, may_load, retiring, stuck_slots, unfinished

IN, OUT = ports_of(trigger_signature(T3Config(contexts=1)))
"""First words of the ports; the outputs end with one status word per context."""


@njit(cache=True)
def _is_idle(state):
    """Whether every machine rests until a pulse, a transfer of the command or the watchdog's time comes."""
    if state[S.load_valid] | state[S.walker] | state[S.pending] | retiring(state):
        return False
    if state[S.a] | state[S.b] | state[S.c] or state[S.loader] != WAIT or state[S.waiting] > state[S.peak_ready]:
        return False
    if unfinished(state) != state[S.backlog] or (state[S.loading] and may_load(state)):
        return False
    return (state[S.issuer] == FETCH and state[S.waiting] == 0) or issuer_rests(state)


@njit(cache=True)
def _wake_at(state):
    """The cycle in which the watchdog looks for a stuck block."""
    return min(state[S.since] + state[S.watchdog], NEVER) if stuck_slots(state) else NEVER


@njit(cache=True)
def _is_quiet(state):
    """Whether quiesced, and everything that was given is done."""
    if not state[S.quiesced] or state[S.loader] != WAIT or state[S.issuer] != FETCH:
        return False
    if state[S.load_valid] or state[S.command_valid]:
        return False
    for context in range(state[S.contexts]):
        if state[S.outstanding + context] != 0:
            return False
    return True


@njit(cache=True)
def _make_status(state):
    """The status words of the contexts of which something changed."""
    for context in range(state[S.contexts]):
        if state[S.changed] >> context & 1:
            armed = state[S.armed] >> context & 1
            following, end, slots = state[S.following + context], state[S.end + context], state[S.slots + context]
            complete = armed if following == end and slots == 0 else 0
            state[S.status + context] = (
                place(CONTEXT_STATUS.armed, armed)
                | place(CONTEXT_STATUS.complete, complete)
                | place(CONTEXT_STATUS.following, following)
                | place(CONTEXT_STATUS.end, end)
                | place(CONTEXT_STATUS.slots, slots)
                | place(CONTEXT_STATUS.ready, state[S.ready + context])
                | place(CONTEXT_STATUS.outstanding, state[S.outstanding + context])
            )
    state[S.changed] = 0


@njit(cache=True)
def drive(state, out):
    """The outputs as functions of the state."""
    out[OUT.command_valid] = state[S.command_valid]
    for word in range(4):
        out[OUT.command_payload + word] = state[S.command + word]
    out[OUT.load_valid] = state[S.load_valid]
    out[OUT.load], out[OUT.load + 1] = state[S.load], state[S.load + 1]
    out[OUT.init_done] = 1
    out[OUT.armed] = 1 if state[S.armed] else 0
    out[OUT.live], out[OUT.chunks_done] = state[S.live], state[S.chunks_done]
    out[OUT.done_mask], out[OUT.poisoned] = state[S.done_mask], state[S.poisoned_mask]
    out[OUT.quiesced], out[OUT.quiet] = state[S.quiesced], 1 if _is_quiet(state) else 0
    out[OUT.stuck] = state[S.stuck]
    out[OUT.tile_twice], out[OUT.too_large] = state[S.tile_twice], state[S.too_large]
    out[OUT.triggers], out[OUT.command_stall] = state[S.triggers], state[S.command_stall]
    out[OUT.peak_ready], out[OUT.backlog] = state[S.peak_ready], state[S.backlog]
    out[OUT.corrected] = out[OUT.uncorrectable] = 0
    out[OUT.idle] = 1 if _is_idle(state) else 0
    out[OUT.wake_at] = _wake_at(state)
    if state[S.changed]:
        _make_status(state)
    for context in range(state[S.contexts]):
        out[OUT.context_0 + context] = state[S.status + context]
