"""Maintenance of the golden Tracker: what arm, abort and a debug read do to its tables, and the end of an abort."""

from t3hdl.interface import register_map

from t3sim.common.compiled import njit
from t3sim.hardware.words import CONTROL, DEBUG_DATA, DEBUG_SELECT, LOAD, bit_run, take

from .bank import LOAD_VALID, S, free_entry, pipelines_empty, shown_entry, slot_is_live, table_at

_NONE, _SWEEP, _READ = 0, 1, 2
_ARM_OR_ABORT = CONTROL.arm.mask << CONTROL.arm.shift | CONTROL.abort.mask << CONTROL.abort.shift
_READY = -1 << DEBUG_DATA.ready.shift  # bit 63 of a signed word


@njit(cache=True)
def swept_context(address, value):
    """The context of a configuration write that is an arm or an abort, or -1."""
    if address == register_map.CONTROL and value & _ARM_OR_ABORT:
        return take(value, CONTROL.context)
    return -1


@njit(cache=True)
def list_slots(state):
    """Note the valid slots, lowest first."""
    live = 0
    for slot in range(state[S.window]):
        if slot_is_live(state, slot):
            state[S.order + live] = slot
            live += 1
    state[S.live] = live


@njit(cache=True)
def end_slot(state, slot):
    """A complete chunk's slot matches nothing any more."""
    state[S.place0 + slot] &= ~LOAD_VALID
    list_slots(state)


@njit(cache=True)
def slots_of(state, context):
    """The slots with a chunk of a context, as bits."""
    slots = 0
    for slot in range(state[S.window]):
        if slot_is_live(state, slot) and take(state[S.place1 + slot], LOAD.context) == context:
            slots |= 1 << slot
    return slots


@njit(cache=True)
def start_sweep(state, value, deadline):
    """Arm or abort, as the CONTROL write ``value`` says; an abort ends at ``deadline`` at the earliest."""
    context = take(value, CONTROL.context)
    slots = slots_of(state, context)
    for slot in range(state[S.window]):
        if slots >> slot & 1:
            state[S.place0 + slot] &= ~LOAD_VALID
    list_slots(state)
    state[S.maintenance], state[S.elapsed], state[S.context] = _SWEEP, 0, context
    state[S.cleared_marks] = 0
    if take(value, CONTROL.arm):
        state[S.cleared_marks] = bit_run(take(value, CONTROL.first), take(value, CONTROL.descriptors))
    else:
        state[S.abort_busy], state[S.deadline] = 1, deadline


@njit(cache=True)
def start_read(state, value):
    """A DEBUG_SELECT write."""
    state[S.maintenance], state[S.elapsed] = _READ, 0
    state[S.selected], state[S.debug_data] = value, 0


@njit(cache=True)
def _sweep_row(state, row):
    """Clear what the request names in row ``row`` of every bank."""
    for bank in range(state[S.banks]):
        number = bank * state[S.rows] + row
        state[S.marks + number] &= ~state[S.cleared_marks]
        for at in range(table_at(state, number, 0), table_at(state, number, state[S.ways])):
            free_entry(state, at, state[S.context])


@njit(cache=True)
def _read_entry(state):
    """What DEBUG_DATA shows of the selected entry."""
    row, way = take(state[S.selected], DEBUG_SELECT.row), take(state[S.selected], DEBUG_SELECT.way)
    if row >= state[S.rows] or way >= state[S.ways]:
        return _READY
    bank = take(state[S.selected], DEBUG_SELECT.bank) % state[S.banks]
    return _READY | shown_entry(state[table_at(state, bank * state[S.rows] + row, way)])


@njit(cache=True)
def maintain(state, now):
    """One cycle of the request at work and of the abort. Before anything else in the cycle.

    The rows are read when they are written: no other write occurs in between.
    """
    if not state[S.maintenance]:
        if state[S.abort_busy] and now >= state[S.deadline]:
            state[S.abort_busy] = 0
        return
    elapsed = state[S.elapsed]
    if elapsed == 0:
        state[S.elapsed] = 1 if pipelines_empty(state) else 0
        return
    state[S.elapsed] = elapsed + 1
    if elapsed == 1:
        return
    if state[S.maintenance] == _READ:
        state[S.debug_data] = _read_entry(state)
        state[S.maintenance] = _NONE
    else:
        _sweep_row(state, elapsed - 2)
        if elapsed - 1 == state[S.rows]:
            state[S.maintenance] = _NONE
