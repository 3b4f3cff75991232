"""Lines without an entry in the golden Tracker: sums of each bank and slot, and whose turn it is to be counted."""

from t3sim.common.compiled import njit
from t3sim.hardware.words import EVENT_OVERFLOW, TILE_DONE, place

from .bank import EVENTS, KIND_SHIFT, LINES_SHIFT, SLOTS, S

_OVERFLOW = EVENT_OVERFLOW << KIND_SHIFT
NOTHING, COLLECTS = -1, -2
"""What :func:`drain` took, if it is no bank's tile: nothing, the lines of a slot."""


@njit(cache=True)
def _collect(state, slot):
    """Take the sums of all banks for a slot as one event."""
    lines = 0
    for bank in range(state[S.banks]):
        lines += state[S.lines + bank * SLOTS + slot]
        state[S.lines + bank * SLOTS + slot] = 0
        state[S.pending + bank] &= ~(1 << slot)
    state[S.drained], state[S.drained_event] = 1, place(TILE_DONE.slot, slot) | _OVERFLOW | lines << LINES_SHIFT


@njit(cache=True)
def drain(state, ended):
    """Take one event, round-robin over the banks' tiles and the slot that is chosen, to be counted in the next cycle.

    Returns the bank, or one of the constants above. ``ended``: slots, as bits, that end in this cycle. To be called
    before events of this cycle come in.
    """
    banks = state[S.banks]
    pending = 0
    for bank in range(banks):
        pending |= state[S.pending + bank]
    slot, taken = state[S.next_slot], NOTHING
    turn = state[S.drain_pointer]
    for _ in range(banks + 1):
        following = turn + 1 if turn < banks else 0
        if turn == banks:
            if state[S.waiting]:
                _collect(state, slot)
                taken = COLLECTS
        elif state[S.event_count + turn] > 0:
            first = state[S.event_first + turn]
            state[S.event_first + turn] = (first + 1) & (EVENTS - 1)
            state[S.event_count + turn] -= 1
            state[S.drained], state[S.drained_event] = 1, state[S.event + turn * EVENTS + first]
            taken = turn
        if taken != NOTHING:
            state[S.drain_pointer] = following
            break
        turn = following
    if state[S.waiting] and taken != COLLECTS:
        if ended >> slot & 1:
            state[S.waiting] = 0
        return taken
    if state[S.waiting]:
        pending &= ~(1 << slot)
    _choose(state, pending & ~ended)
    return taken


@njit(cache=True)
def _choose(state, candidates):
    """Choose the slot to be collected next, in turn."""
    state[S.waiting] = 0
    window = state[S.window]
    slot = state[S.slot_pointer]
    for _ in range(window):
        following = slot + 1 if slot + 1 < window else 0
        if candidates >> slot & 1:
            state[S.waiting], state[S.next_slot], state[S.slot_pointer] = 1, slot, following
            return
        slot = following


@njit(cache=True)
def note_excess(state, slot):
    """Lines that are pending for a slot whose chunk is told to be done are too many."""
    for bank in range(state[S.banks]):
        if state[S.pending + bank] >> slot & 1:
            state[S.over_total] = 1


@njit(cache=True)
def drop_pending(state, ended):
    """Slots that end in this cycle, as bits, have no sums any more."""
    for bank in range(state[S.banks]):
        state[S.pending + bank] &= ~ended
        for slot in range(state[S.window]):
            if ended >> slot & 1:
                state[S.lines + bank * SLOTS + slot] = 0
