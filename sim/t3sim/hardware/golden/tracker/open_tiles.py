"""Tiles with an entry in the golden Tracker, by slot: one that is there when its chunk is complete is one too many."""

from t3sim.common.compiled import njit

from .bank import S, slot_is_live


@njit(cache=True)
def check_complete(state, slot):
    """The chunk of ``slot`` is told to be done: none of its tiles may have an entry. Before :func:`count_open`."""
    if slot_is_live(state, slot) and state[S.open + slot]:
        state[S.over_total] = 1


@njit(cache=True)
def count_open(state):
    """Count the entries that began or were completed in the cycle before; of a complete chunk none may begin."""
    state[S.changed] = 0
    for bank in range(state[S.banks]):
        slot = state[S.changed_slot + bank]
        change = state[S.change + bank]
        if change > 0 and state[S.complete + slot]:
            state[S.over_total] = 1
        state[S.open + slot] = (state[S.open + slot] + change) & state[S.open_mask]
        state[S.change + bank] = 0
