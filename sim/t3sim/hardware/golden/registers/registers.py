"""Golden model of the ControlRegisters: the bus, what may be read and written when, events, the configuration pulse."""

from t3hdl.interface import layouts
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER, OCCUPANCY_BITS
from t3hdl.interface.words import fields_of

from t3sim.common.compiled import cfunc, njit
from t3sim.hardware.abi import CALL
from t3sim.hardware.words import ERRORS, INTERRUPTS, REFUSAL_RECORD, STATUS, STUCK, TILE_TWICE, int64_at, place, take

from .state import (
    IN,
    OUT,
    READABLE,
    S,
    access_of,
    armed_contexts,
    complete_contexts,
    init_state,
    input_word,
    pending_contexts,
    reset_state,
    unfinished_contexts,
)
from .write import DISARMED, GOOD, LOCKED, REFUSED, write

__all__ = ["init_state", "reset", "step"]

_ADDRESS_MASK = (1 << 16) - 1
_THRESHOLD_MASK = (1 << OCCUPANCY_BITS) - 1
_FLAGS_MASK = (1 << 5) - 1
_REFUSED_MASK, _MAX_REFUSED = (1 << 8) - 1, (1 << 32) - 1
_REFUSAL_MASK = (1 << layouts.Refusal.size) - 1
_CONTEXT = fields_of(regs.ContextRecord)
_CONTEXT_MASK = (1 << layouts.ContextStatus.size) - 1
_RISING = (
    place(INTERRUPTS.watchdog, 1)
    | place(INTERRUPTS.corrected, 1)
    | place(INTERRUPTS.uncorrectable, 1)
    | place(INTERRUPTS.tile_twice, 1)
)
_ERROR_LEVELS = regs.Interrupts.size
"""Lowest bit of the four error inputs in the remembered levels; the others lie where their interrupts do."""
_KEPT = (
    (regs.VERSION, S.version), (regs.CAPABILITY, S.capability), (regs.CAPABILITY_TRACKER, S.capability_tracker),
    (regs.ARBITER, S.arbiter), (regs.THRESHOLDS, S.thresholds), (regs.WATCHDOG, S.watchdog), (regs.LOCK, S.lock),
    (regs.TILE_MARKS, S.tile_marks),
    (regs.IRQ_STATUS, S.irq_status), (regs.IRQ_ENABLE, S.irq_enable), (regs.NMC_FLAGS, S.nmc_flags),
    (regs.VIOLATION, S.violation), (regs.VIOLATIONS, S.violations),
    (regs.STALE_UPDATE, S.stale_update), (regs.STALE_UPDATES, S.stale_updates),
)  # fmt: skip
"""Registers that are read as they are kept: address, word of the state."""
_SHOWN = tuple(
    (address, *input_word(name))
    for address, name in (
        (regs.PEAK_ENTRIES, "peak_entries"), (regs.OVERFLOWED, "overflowed"), (regs.STUCK, "stuck"),
        (regs.TILE_TWICE, "tile_twice"),
        (regs.DEBUG_DATA, "debug_data"), (regs.UPDATES, "updates"), (regs.TILES, "tiles"),
        (regs.TRIGGERS, "triggers"), (regs.COMMAND_STALL, "command_stall"), (regs.PEAK_READY, "peak_ready"),
        (regs.DONE_MASK, "done_mask"), (regs.POISONED, "poisoned"),
    )
)  # fmt: skip
"""Registers that show one input: address, word of the inputs, mask."""


@njit(cache=True)
def _status(state, words):
    """The STATUS register."""
    return (
        place(STATUS.init_done, words[IN.init_done])
        | place(STATUS.armed, words[IN.armed])
        | place(STATUS.live, words[IN.live])
        | place(STATUS.chunks_done, words[IN.chunks_done])
        | place(STATUS.unmatched, words[IN.unmatched])
        | place(STATUS.over_count, words[IN.over_count])
        | place(STATUS.over_total, words[IN.over_total])
        | place(STATUS.locked_write, state[S.locked_write])
        | place(STATUS.maintenance, words[IN.maintenance])
        | place(STATUS.abort_busy, words[IN.abort_busy] & 1 | (state[S.aborting] != 0))
        | place(STATUS.quiesced, words[IN.quiesced])
        | place(STATUS.quiet, words[IN.quiet])
    )


@njit(cache=True)
def _uncorrectable(state, words):
    """Whether a part says so, or an NMC unit has said so since the last disarm."""
    return words[IN.uncorrectable] & 1 | state[S.damage]


@njit(cache=True)
def _errors(state, words):
    """The ERRORS register."""
    return (
        place(ERRORS.unmatched, words[IN.unmatched])
        | place(ERRORS.over_count, words[IN.over_count])
        | place(ERRORS.over_total, words[IN.over_total])
        | place(ERRORS.locked_write, state[S.locked_write])
        | place(ERRORS.violation, take(state[S.violation], REFUSAL_RECORD.valid))
        | place(ERRORS.stale_update, take(state[S.stale_update], REFUSAL_RECORD.valid))
        | place(ERRORS.tile_twice, take(words[IN.tile_twice], TILE_TWICE.valid))
        | place(ERRORS.too_large, words[IN.too_large])
        | place(ERRORS.corrected, words[IN.corrected])
        | place(ERRORS.uncorrectable, _uncorrectable(state, words))
    )


@njit(cache=True)
def _context(state, words, context):
    """The CONTEXT register of a context."""
    return (
        words[IN.context_0 + context] & _CONTEXT_MASK
        | place(_CONTEXT.pending, pending_contexts(state, words) >> context)
        | place(_CONTEXT.aborting, state[S.aborting] >> context)
    )


@njit(cache=True)
def _read(state, words, address):
    """The value of a readable register."""
    if address == regs.ID:
        return regs.ID_VALUE
    if address == regs.STATUS:
        return _status(state, words)
    if address == regs.ERRORS:
        return _errors(state, words)
    if address == regs.THRESHOLD:
        return words[IN.threshold] & _THRESHOLD_MASK | (words[IN.chosen] & 1) << OCCUPANCY_BITS
    if address >= regs.CONTEXT:
        return _context(state, words, (address - regs.CONTEXT) // regs.CONTEXT_STRIDE)
    if address >= regs.QUOTA:
        return state[S.quota + (address - regs.QUOTA) // regs.QUOTA_STRIDE]
    for register, word in _KEPT:
        if address == register:
            return state[word]
    for register, word, mask in _SHOWN:
        if address == register:
            return words[word] & mask
    return 0


@njit(cache=True)
def _events(state, words):
    """The interrupts of this cycle, but for a locked write; remembers the status for the next cycle."""
    complete, stuck = complete_contexts(state, words), take(words[IN.stuck], STUCK.valid)
    levels = (
        place(INTERRUPTS.watchdog, stuck)
        | place(INTERRUPTS.corrected, words[IN.corrected])
        | place(INTERRUPTS.uncorrectable, _uncorrectable(state, words))
        | place(INTERRUPTS.tile_twice, take(words[IN.tile_twice], TILE_TWICE.valid))
        | (words[IN.unmatched] & 1) << _ERROR_LEVELS
        | (words[IN.over_count] & 1) << _ERROR_LEVELS + 1
        | (words[IN.over_total] & 1) << _ERROR_LEVELS + 2
        | (words[IN.too_large] & 1) << _ERROR_LEVELS + 3
    )
    rises = levels & ~state[S.levels]
    violations, stale = words[IN.violations] & _REFUSED_MASK, words[IN.stale_updates] & _REFUSED_MASK
    events = (
        rises & _RISING
        | place(INTERRUPTS.aborted, 1 if state[S.aborting_before] & ~state[S.aborting] else 0)
        | place(INTERRUPTS.complete, 1 if complete & ~state[S.complete] else 0)
        | place(INTERRUPTS.error, 1 if rises >> _ERROR_LEVELS else 0)
        | place(INTERRUPTS.violation, 1 if violations else 0)
        | place(INTERRUPTS.stale_update, 1 if stale else 0)
    )
    state[S.levels], state[S.complete], state[S.aborting_before] = levels, complete, state[S.aborting]
    state[S.busy] = 1 if violations or stale else 0
    return events


@njit(cache=True)
def _kept_aborts(state, words):
    """The contexts whose abort goes on: something of them is in flight, or the request of the last cycle is so new that
    the inputs do not show it."""
    if state[S.abort_begins] or words[IN.maintenance] & 1 or words[IN.abort_busy] & 1:
        return state[S.aborting]
    return state[S.aborting] & (pending_contexts(state, words) | unfinished_contexts(state, words))


@njit(cache=True)
def _record(state, number, refusal, count, first):
    """Count ``number`` refused writes at word ``count``, and keep the first one at word ``first``."""
    state[count] = min(state[count] + number, _MAX_REFUSED)
    if number and not take(state[first], REFUSAL_RECORD.valid):
        state[first] = refusal & _REFUSAL_MASK | place(REFUSAL_RECORD.valid, 1)


@njit(cache=True)
def _access(state, words):
    """The bus request of this cycle; returns what :func:`registers_write.write` says (``GOOD`` for a good read)."""
    address = words[IN.bus_address] & _ADDRESS_MASK
    value = 0
    if words[IN.bus_write] & 1:
        outcome = write(state, words, address)
    elif access_of(state, address) & READABLE:
        outcome, value = GOOD, _read(state, words, address)
    else:
        outcome = REFUSED
    state[S.response_valid], state[S.response_data] = 1, value
    state[S.response_error] = 0 if outcome == GOOD or outcome == DISARMED else 1
    return outcome


@njit(cache=True)
def _drive(state, out):
    """The outputs as functions of the state."""
    out[OUT.bus_ready] = 1 - state[S.response_valid]
    out[OUT.response_valid] = state[S.response_valid]
    out[OUT.response_error], out[OUT.response_data] = state[S.response_error], state[S.response_data]
    out[OUT.config_valid] = state[S.config_valid]
    out[OUT.config], out[OUT.config + 1] = state[S.config], state[S.config + 1]
    out[OUT.interrupt] = 1 if state[S.irq_status] & state[S.irq_enable] else 0
    out[OUT.idle] = 1 - (state[S.response_valid] | state[S.busy])
    out[OUT.wake_at] = NEVER


@cfunc(CALL, cache=True)
def reset(state_at, in_at, out_at):
    """State after reset, outputs of the first cycle."""
    state = int64_at(state_at, S.size)
    reset_state(state)
    _drive(state, int64_at(out_at, OUT.size))


@cfunc(CALL, cache=True)
def step(state_at, in_at, out_at):
    """One clock cycle."""
    state = int64_at(state_at, S.size)
    words = int64_at(in_at, IN.context_0 + state[S.contexts])
    taken = words[IN.bus_valid] & 1 and not state[S.response_valid]
    state[S.response_valid :] = 0
    events, outcome, kept = _events(state, words), REFUSED, _kept_aborts(state, words)
    state[S.busy] |= state[S.abort_begins] != 0 or state[S.aborting] != kept  # an end shows in the next cycle
    state[S.abort_begins] = 0
    if taken:
        outcome = _access(state, words)
    state[S.has_barred] &= ~(armed_contexts(state, words) & complete_contexts(state, words))
    if outcome == LOCKED:
        events |= place(INTERRUPTS.locked_write, 1)
    state[S.aborting] = state[S.aborting] & kept | state[S.abort_begins]
    state[S.busy] |= state[S.abort_begins] != 0
    if outcome == DISARMED:
        state[S.aborting] = 0
    else:
        violations, stale = words[IN.violations] & _REFUSED_MASK, words[IN.stale_updates] & _REFUSED_MASK
        _record(state, violations, words[IN.violation], S.violations, S.violation)
        _record(state, stale, words[IN.stale_update], S.stale_updates, S.stale_update)
    state[S.damage] |= words[IN.nmc_uncorrectable] & 1
    if state[S.damage] and not take(state[S.levels], INTERRUPTS.uncorrectable):
        state[S.busy] = 1  # the next cycle makes an interrupt of it
    state[S.irq_status] |= events
    state[S.nmc_flags] |= words[IN.nmc_flags] & _FLAGS_MASK
    _drive(state, int64_at(out_at, OUT.size))
