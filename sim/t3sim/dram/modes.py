"""What a pseudo-channel serves: reads, writes or updates; and with mode-switched PIM, when it changes its mode.

With PIM, updates are served in compute mode only, all else in memory mode only. Changing takes long, so a mode is left

- when lines of the other mode fill more than ``drain_high`` of the write share and its own less than ``drain_low``,
- when nothing can be served in it for as long as a switch takes: waiting longer would cost more than switching,
- when it has lasted for the age limit and the other mode's oldest line has waited for it.
"""

from t3sim.common.compiled import njit

from .state import CLASSES, COMPUTE, FOREVER, NONE, READ, UPDATE, WRITE


@njit(cache=True, nogil=True)
def overdue(channel, now):
    """The mode's oldest line if it has waited for the age limit, or NONE.

    An active line counts too: others can keep the bus turned. One that waits for a line of the other mode does not.
    """
    oldest = channel.oldest[channel.mode]
    if oldest == NONE:
        return NONE
    line = channel.line[oldest]
    return oldest if now - line.arrived >= channel.distance.age_limit and not line.waits else NONE


@njit(cache=True, nogil=True)
def serves(channel, now):
    """The class that is served from now on."""
    if channel.mode == COMPUTE:
        return UPDATE
    oldest = overdue(channel, now)
    if oldest != NONE:
        return channel.line[oldest].served
    distance = channel.distance
    reads, writes = channel.waiting[READ], channel.waiting[WRITE]
    if channel.serving == WRITE:
        return READ if writes < distance.drain_below and reads > 0 else WRITE
    return WRITE if writes > distance.drain_above or reads == 0 else READ


@njit(cache=True, nogil=True)
def wants_switch(channel, now):
    """Whether the other PIM mode is wanted now. Never without PIM: no line is of compute mode."""
    if not channel.distance.pim:
        return False
    other = channel.oldest[1 - channel.mode]
    if other == NONE or channel.switching:
        return False
    return _is_crowded_out(channel, now) or now >= _switch_by_time(channel, other)


@njit(cache=True, nogil=True)
def next_switch(channel, now):
    """The first cycle after ``now`` at which the other PIM mode is wanted if nothing is enqueued or issued."""
    if not channel.distance.pim:
        return FOREVER
    other = channel.oldest[1 - channel.mode]
    if other == NONE or channel.switching:
        return FOREVER
    return now + 1 if _is_crowded_out(channel, now + 1) else max(now + 1, _switch_by_time(channel, other))


@njit(cache=True, nogil=True)
def _is_crowded_out(channel, now):
    """Whether few lines wait for the mode and many for the other one, and none of the few is overdue."""
    memory, compute = channel.waiting[READ] + channel.waiting[WRITE], channel.waiting[UPDATE]
    own, others = (compute, memory) if channel.mode == COMPUTE else (memory, compute)
    distance = channel.distance
    return own < distance.drain_below and others > distance.drain_above and overdue(channel, now) == NONE


@njit(cache=True, nogil=True)
def _switch_by_time(channel, other):
    """The cycle at which the mode has been idle or its lines have been preferred for long enough."""
    distance, since = channel.distance, channel.mode_since
    cycle = max(since, channel.line[other].arrived) + distance.age_limit
    first, end = (UPDATE, CLASSES) if channel.mode == COMPUTE else (READ, UPDATE)
    banks = channel.active_mask
    for served in range(first, end):
        banks |= channel.hit_mask[served] | channel.miss_mask[served]
    if not banks:
        cycle = min(cycle, max(since, channel.column_command.cycle) + distance.switch_to_refresh)
    return cycle
