"""What a write to the golden ControlRegisters does, and why it may be refused."""

from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS

from t3sim.common.compiled import njit
from t3sim.hardware.words import ADD, CONTROL, LOCK, MAX, MIN, RANGE, STORE, put_config, take

from .state import (
    BROADCAST,
    IN,
    LOCKABLE,
    WRITABLE,
    S,
    access_of,
    active_contexts,
    pending_contexts,
    unfinished_contexts,
)

_CONTROL, _DEBUG_SELECT = regs.CONTROL, regs.DEBUG_SELECT
_RANGE_REGISTERS, _ATTRIBUTES = 4 * regs.RANGE_STRIDE, 16
_EPOCHS = 1 << EPOCH_BITS
_CONTEXTS = 16
_ARBITER_MASK = (1 << regs.Arbiter.size) - 1
_THRESHOLDS_MASK = (1 << regs.Thresholds.size) - 1
_WATCHDOG_MASK = (1 << 32) - 1
_TILE_MARKS_MASK = (1 << 3) - 1
_QUOTA_MASK = (1 << regs.Quota.size) - 1
_LOCK_MASK = (1 << regs.Lock.size) - 1
_INTERRUPTS_MASK = (1 << regs.Interrupts.size) - 1

REFUSED, LOCKED, GOOD, DISARMED = range(4)
"""What became of a write. ``LOCKED``: refused, and remembered. ``DISARMED``: good, and a disarm."""


@njit(cache=True)
def _in_window(state, active, number):
    """Whether a descriptor is in the window of one of these contexts."""
    for context in range(state[S.contexts]):
        inside = state[S.window_first + context] <= number < state[S.window_end + context]
        if active >> context & 1 and inside:
            return True
    return False


@njit(cache=True)
def _is_locked(state, words, address, access):
    """Whether a register may not be written now."""
    if not access & LOCKABLE:
        return False
    if take(state[S.lock], LOCK.configuration):
        return True
    active = active_contexts(state, words)
    if address >= regs.DESCRIPTOR:
        return _in_window(state, active, (address - regs.DESCRIPTOR) // regs.DESCRIPTOR_STRIDE)
    if address >= regs.PROFILE:
        return active != 0
    if address >= regs.QUOTA:
        return (active >> (address - regs.QUOTA) // regs.QUOTA_STRIDE & 1) != 0
    if address >= regs.RANGE:
        number = (address - regs.RANGE) // regs.RANGE_STRIDE
        return state[S.range_valid + number] & (active >> state[S.range_context + number]) & 1 != 0
    return address == regs.TILE_MARKS and active != 0


@njit(cache=True)
def _may_arm(state, words, value):
    """Whether a context may be armed with a window now."""
    context, first, count = take(value, CONTROL.context), take(value, CONTROL.first), take(value, CONTROL.descriptors)
    active, end = active_contexts(state, words), first + count
    in_use = active | pending_contexts(state, words) | state[S.aborting]
    if words[IN.quiesced] & 1 or in_use >> context & 1 or count == 0 or end > state[S.descriptors]:
        return False
    for other in range(state[S.contexts]):
        overlaps = state[S.window_first + other] < end and first < state[S.window_end + other]
        if active >> other & 1 and overlaps:
            return False
    return True


@njit(cache=True)
def _tables_are_free(words):
    """Whether the tracker's tables can be worked on."""
    return words[IN.init_done] & ~(words[IN.maintenance] | words[IN.abort_busy]) & 1 != 0


@njit(cache=True)
def _is_busy(state, words):
    """Whether a disarm would drop anything."""
    if words[IN.maintenance] & 1 or words[IN.abort_busy] & 1 or state[S.aborting]:
        return True
    in_flight = pending_contexts(state, words) | unfinished_contexts(state, words)
    return (active_contexts(state, words) | in_flight) != 0


@njit(cache=True)
def _is_barred(state, context, epoch):
    """Whether the epoch is one of those that the context's dropped jobs take away."""
    if not state[S.has_barred] >> context & 1:
        return False
    first, last = state[S.first_barred + context], state[S.last_barred + context]
    if last < first:
        last += _EPOCHS
    return first <= epoch <= last or epoch + _EPOCHS <= last


@njit(cache=True)
def _is_bad_range(state, address, value):
    """Whether these are attributes of a range in use that no job can have."""
    number, offset = (address - regs.RANGE) // regs.RANGE_STRIDE, (address - regs.RANGE) % regs.RANGE_STRIDE
    if not 0 <= number < regs.RANGE_COUNT or offset != _ATTRIBUTES or not take(value, RANGE.valid):
        return False
    op = take(value, RANGE.op)
    update = op == STORE or op == ADD or op == MIN or op == MAX
    context = take(value, RANGE.context)
    if not update or context >= state[S.contexts]:
        return True
    return _is_barred(state, context, take(value, RANGE.epoch))


@njit(cache=True)
def _control_is_good(state, words, value):
    """Whether a write to CONTROL is one that the unit can carry out now."""
    arm, abort = take(value, CONTROL.arm), take(value, CONTROL.abort)
    disarm, quiesce, resume = take(value, CONTROL.disarm), take(value, CONTROL.quiesce), take(value, CONTROL.resume)
    if arm + disarm + abort + quiesce + resume > 1:
        return False
    if disarm:
        return take(value, CONTROL.forced) != 0 or not _is_busy(state, words)
    if not (arm or abort):
        return True
    if take(value, CONTROL.context) >= state[S.contexts] or not _tables_are_free(words):
        return False
    return abort != 0 or _may_arm(state, words, value)


@njit(cache=True)
def _bar_epochs(state, contexts):
    """Contexts whose job is dropped: their ranges may not have its epoch again, nor those between it and the interval
    that is barred already, on the shorter side; upwards if both are alike."""
    for context in range(state[S.contexts]):
        epoch = state[S.job_epoch + context]
        if not contexts >> context & 1 or _is_barred(state, context, epoch):
            continue
        some = state[S.has_barred] >> context & 1
        up = (epoch - state[S.last_barred + context]) % _EPOCHS
        down = (state[S.first_barred + context] - epoch) % _EPOCHS
        if not some or down < up:
            state[S.first_barred + context] = epoch
        if not some or up <= down:
            state[S.last_barred + context] = epoch
    state[S.has_barred] |= contexts


@njit(cache=True)
def _control(state, words, value):
    """What a good write to CONTROL changes here."""
    context = take(value, CONTROL.context)
    active = active_contexts(state, words)
    if take(value, CONTROL.disarm):
        state[S.locked_write] = 0
        state[S.violation : S.aborting] = 0
        if take(value, CONTROL.forced):
            _bar_epochs(state, active)
            state[S.range_valid : S.range_context] = 0
        state[S.window_first : S.window_first + _CONTEXTS] = 0
        state[S.window_end : S.window_end + _CONTEXTS] = 0
        return DISARMED
    if take(value, CONTROL.arm):
        first = take(value, CONTROL.first)
        state[S.job_epoch + context] = state[S.last_epoch + context]
        state[S.window_first + context], state[S.window_end + context] = first, first + take(value, CONTROL.descriptors)
    elif take(value, CONTROL.abort):
        state[S.abort_begins] = 1 << context
        _bar_epochs(state, active & 1 << context)
        for number in range(S.range_context - S.range_valid):
            if state[S.range_context + number] == context:
                state[S.range_valid + number] = 0
    return GOOD


@njit(cache=True)
def _store(state, address, value):
    """What a good write to any other register changes here."""
    if address == regs.ARBITER:
        state[S.arbiter] = value & _ARBITER_MASK
    elif address == regs.THRESHOLDS:
        state[S.thresholds] = value & _THRESHOLDS_MASK
    elif address == regs.WATCHDOG:
        state[S.watchdog] = value & _WATCHDOG_MASK
    elif address == regs.TILE_MARKS:
        state[S.tile_marks] = value & _TILE_MARKS_MASK
    elif address == regs.IRQ_STATUS:
        state[S.irq_status] &= ~value
    elif address == regs.IRQ_ENABLE:
        state[S.irq_enable] = value & _INTERRUPTS_MASK
    elif address == regs.LOCK:
        state[S.lock] |= value & _LOCK_MASK
    elif address == regs.NMC_FLAGS:
        state[S.nmc_flags] &= ~value
    elif regs.QUOTA <= address < regs.CONTEXT:
        state[S.quota + (address - regs.QUOTA) // regs.QUOTA_STRIDE] = value & _QUOTA_MASK
    elif regs.RANGE <= address < regs.RANGE + _RANGE_REGISTERS:
        number, register = divmod(address - regs.RANGE, regs.RANGE_STRIDE)
        if register == _ATTRIBUTES:
            state[S.range_valid + number] = take(value, RANGE.valid)
            state[S.range_context + number] = take(value, RANGE.context)
            if take(value, RANGE.valid):
                state[S.last_epoch + take(value, RANGE.context)] = take(value, RANGE.epoch)


@njit(cache=True)
def write(state, words, address):
    """A write request: changes registers and gives the configuration pulse, or says why not."""
    value, access = words[IN.bus_data], access_of(state, address)
    if not access & WRITABLE or (take(state[S.lock], LOCK.privileged) and not words[IN.bus_privileged] & 1):
        return REFUSED
    if _is_locked(state, words, address, access):
        state[S.locked_write] = 1
        return LOCKED
    if address == _DEBUG_SELECT and not _tables_are_free(words):
        return REFUSED
    if _is_bad_range(state, address, value):
        return REFUSED
    outcome = GOOD
    if address == _CONTROL:
        if not _control_is_good(state, words, value):
            return REFUSED
        outcome = _control(state, words, value)
    else:
        _store(state, address, value)
    if access & BROADCAST:
        state[S.config_valid] = 1
        put_config(state, S.config, address, value)
    return outcome
