"""The next command of each bus: found once, and corrected for a bank in which something changed.

A plan says from which cycle on timing allows the command, and for which line. It holds until a command issues on its
own bus, whose distances then concern all banks, or until what is served changes; then all banks with a candidate are
looked at. A command on the other bus, and a line that comes, change the candidates of one bank only.

Commands are compared by one number, lowest first: the cycles until timing allows the command, whether its line is not
yet active, and the line's rank.
"""

from t3hdl.interface.layouts import BANKS_PER_GROUP

from t3sim.common.compiled import njit

from .commands import column_ready, pause_ready
from .modes import is_paused
from .state import (
    AGE_BITS,
    ALL,
    ALL_BANKS,
    ALL_CLASSES,
    BANKS,
    FOREVER,
    GROUP,
    NONE,
    SLOT_BITS,
    candidate_of,
    command_of,
    lowest_bit,
    slot_of,
)

AFTER_ACTIVE = 1 << AGE_BITS + SLOT_BITS
"""Added to the rank of a hit: active lines go first."""
DELAY = AGE_BITS + SLOT_BITS + 1
"""Where the cycles begin in the number. 14 bits are left for them: more than the longest way between two commands."""


@njit(cache=True, nogil=True)
def forget_plans(channel):
    """What is served has changed: both plans are to be found anew."""
    channel.column_plan.known = channel.row_plan.known = 0


@njit(cache=True, nogil=True)
def make_plans(channel, start):
    """Finds the next commands, at ``start`` or later, that are not known.

    In a pause that of the row bus is what the refresh or mode switch needs, once no line is active.
    """
    plan = channel.column_plan
    if not plan.known:
        _clear(plan)
        _plan_column(channel, ALL_BANKS, start)
    plan = channel.row_plan
    if not plan.known:
        _clear(plan)
        if not is_paused(channel):
            _plan_row(channel, ALL_BANKS, start)
        elif not channel.active_mask:
            plan.cycle = max(start, pause_ready(channel))


@njit(cache=True, nogil=True)
def correct_column(channel, bank, start):
    """Corrects the plan of the column bus after a row command in ``bank``."""
    plan = channel.column_plan
    if plan.bank == bank:
        plan.known = 0
    elif plan.known:
        _plan_column(channel, 1 << bank, start)


@njit(cache=True, nogil=True)
def correct_row(channel, bank, start):
    """Corrects the plan of the row bus after a column command in ``bank``."""
    plan = channel.row_plan
    if plan.bank == bank or is_paused(channel):
        plan.known = 0
    elif plan.known:
        _plan_row(channel, 1 << bank, start)


@njit(cache=True, nogil=True)
def widen_plans(channel, banks, start):
    """Takes new candidates in ``banks`` (as bits) into account."""
    column, row = channel.column_plan, channel.row_plan
    if channel.distance.hits_by_age and column.bank != NONE and banks >> column.bank & 1:
        column.known = 0  # the line may be older than the one that is planned
    elif column.known:
        _plan_column(channel, banks, start)
    if channel.distance.hits_first and row.bank != NONE and banks >> row.bank & 1:
        row.known = 0  # the line may be a hit, which keeps the row open
    elif row.known and not is_paused(channel):
        _plan_row(channel, banks, start)


@njit(cache=True, nogil=True)
def _clear(plan):
    plan.cycle, plan.rank, plan.bank, plan.known = FOREVER, FOREVER, NONE, 1


@njit(cache=True, nogil=True)
def _plan_column(channel, banks, start):
    """Plans the next column command in ``banks`` (as bits), if it goes before the one that is planned."""
    best = FOREVER
    mask = channel.active_mask & banks
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        ready = column_ready(channel, channel.active_writes >> bank & 1, bank)
        best = min(best, (max(ready - start, 0) << DELAY) + channel.active[bank])
    if not is_paused(channel):
        mask = _hits(channel, banks)
        while mask:
            candidate = lowest_bit(mask)
            mask &= mask - 1
            bank = candidate % BANKS
            ready = column_ready(channel, command_of(candidate // BANKS), bank)
            best = min(best, (max(ready - start, 0) << DELAY) + AFTER_ACTIVE + channel.hit[candidate])
    _take_sooner(channel, channel.column_plan, start, best)


@njit(cache=True, nogil=True)
def _hits(channel, banks):
    """The hits in ``banks`` that are served, all as bits: of every class of a bank; in order of age its oldest only,
    and none of a bank with an active line."""
    hits = channel.hit_mask & channel.serving & ~_kept_from(channel, channel.hit) & banks * ALL_CLASSES
    if not channel.distance.hits_by_age:
        return hits
    hits &= ~(channel.active_mask * ALL_CLASSES)
    banks_hit = 0
    for served in range(channel.distance.classes):
        banks_hit |= hits >> served * BANKS & ALL_BANKS
    first = 0
    while banks_hit:
        bank = lowest_bit(banks_hit)
        banks_hit &= banks_hit - 1
        first |= 1 << _oldest_hit(channel, hits, bank)
    return first


@njit(cache=True, nogil=True)
def _oldest_hit(channel, hits, bank):
    """Of a bank's candidates among ``hits``, at least one, the oldest."""
    oldest = NONE
    for served in range(channel.distance.classes):
        candidate = candidate_of(served, bank)
        if hits >> candidate & 1 and (oldest == NONE or channel.hit[candidate] < channel.hit[oldest]):
            oldest = candidate
    return oldest


@njit(cache=True, nogil=True)
def _plan_row(channel, banks, start):
    """Plans the next activate or precharge in ``banks`` (as bits), if it goes before the one that is planned."""
    best = FOREVER
    misses, ranks, is_open = _misses(channel) & banks * ALL_CLASSES, channel.miss, channel.open_mask * ALL_CLASSES
    first, ready = max(start, channel.row_bus), channel.pre_ready
    mask = misses & is_open
    while mask:
        candidate = lowest_bit(mask)
        mask &= mask - 1
        cycle = max(first, ready[candidate % BANKS])
        best = min(best, (cycle - start << DELAY) + ranks[candidate])
    first, ready = max(first, channel.act_ready[ALL]), channel.act_ready
    mask = misses & ~is_open
    while mask:
        candidate = lowest_bit(mask)
        mask &= mask - 1
        bank = candidate % BANKS
        cycle = max(first, ready[bank], ready[GROUP + bank // BANKS_PER_GROUP])
        best = min(best, (cycle - start << DELAY) + ranks[candidate])
    _take_sooner(channel, channel.row_plan, start, best)


@njit(cache=True, nogil=True)
def _take_sooner(channel, plan, start, best):
    """Plans the command with the number ``best`` if there is one and it goes before the one that is planned."""
    cycle, rank = start + (best >> DELAY), best & (1 << DELAY) - 1
    if best < FOREVER and (cycle < plan.cycle or (cycle == plan.cycle and rank < plan.rank)):
        plan.cycle, plan.rank, plan.bank = cycle, rank, channel.line[slot_of(rank)].bank


@njit(cache=True, nogil=True)
def _misses(channel):
    """The misses, as bits, that are served and for which a row may be opened or closed."""
    taken = channel.active_mask
    if channel.distance.hits_first:
        hits = channel.hit_mask & channel.serving
        taken |= (hits | hits >> BANKS | hits >> 2 * BANKS) & ALL_BANKS
        if channel.kept_bank != NONE:
            taken &= ~(1 << channel.kept_bank) | channel.active_mask
    return channel.miss_mask & channel.serving & ~(taken * ALL_CLASSES | _kept_from(channel, channel.miss))


@njit(cache=True, nogil=True)
def _kept_from(channel, candidates):
    """The candidates, as bits, of the bank that is kept for an overdue line which is none of them; 0 if none is kept.

    While a line is overdue nothing but its class is served.
    """
    bank = channel.kept_bank
    if bank == NONE or slot_of(candidates[candidate_of(channel.line[channel.overdue].served, bank)]) == channel.overdue:
        return 0
    return ALL_CLASSES << bank
