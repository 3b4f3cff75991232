"""What a pseudo-channel serves: reads, writes or updates; and with mode-switched PIM, when it changes its mode.

With PIM, updates are served in compute mode only, all else in memory mode only. Changing takes long, so a mode is left

- when lines of the other mode fill more than ``drain_high`` of the write share and its own less than ``drain_low``,
- when nothing can be served in it for as long as a switch takes: waiting longer would cost more than switching,
- when it has lasted for the age limit and the other mode's oldest line has waited for it.
"""

from t3sim.common.compiled import njit

from .state import ALL_BANKS, COMPUTE, FOREVER, NONE, READ, READS, UPDATE, UPDATES, WRITE, WRITES, candidate_of

NOW = 0
"""A cycle that has come."""


@njit(cache=True, nogil=True)
def is_paused(channel):
    """Whether a refresh or a mode switch is under way: only active lines are served."""
    return channel.refreshes_due != 0 or channel.switching != 0


@njit(cache=True, nogil=True)
def find_overdue(channel, now):
    """Notes whether the mode's oldest line has waited for the age limit; returns whether that changed.

    An active line counts too: others can keep the bus turned. One that waits for a line of the other mode does not.
    """
    slot, bank = NONE, NONE
    if age_event(channel) <= now:
        slot = channel.oldest[channel.mode]
        bank = channel.line[slot].bank
    if slot == channel.overdue:
        return False
    channel.overdue, channel.kept_bank = slot, bank
    return True


@njit(cache=True, nogil=True)
def age_event(channel):
    """The cycle from which the mode's oldest line is overdue."""
    oldest = channel.oldest[channel.mode]
    if oldest == NONE or channel.line[oldest].waits:
        return FOREVER
    return channel.line[oldest].arrived + channel.distance.age_limit


@njit(cache=True, nogil=True)
def serves(channel):
    """The candidates of what is served from now on: of one class, or of reads and writes alike."""
    if channel.mode == COMPUTE:
        return UPDATES
    if channel.overdue != NONE:
        return ALL_BANKS << candidate_of(channel.line[channel.overdue].served, 0)
    distance = channel.distance
    if distance.by_age:
        return READS | WRITES
    reads, writes = channel.waiting[READ], channel.waiting[WRITE]
    if channel.serving == WRITES:
        return READS if writes < distance.drain_below and reads > 0 else WRITES
    return WRITES if writes > distance.drain_above or reads == 0 else READS


@njit(cache=True, nogil=True)
def switch_event(channel):
    """The cycle from which the other PIM mode is wanted. Never without PIM: no line is of compute mode."""
    if not channel.distance.pim:
        return FOREVER
    other = channel.oldest[1 - channel.mode]
    if other == NONE or channel.switching:
        return FOREVER
    return NOW if _is_crowded_out(channel) else _switch_by_time(channel, other)


@njit(cache=True, nogil=True)
def _is_crowded_out(channel):
    """Whether few lines wait for the mode and many for the other one, and none of the few is overdue."""
    memory, compute = channel.waiting[READ] + channel.waiting[WRITE], channel.waiting[UPDATE]
    own, others = (compute, memory) if channel.mode == COMPUTE else (memory, compute)
    distance = channel.distance
    return own < distance.drain_below and others > distance.drain_above and channel.overdue == NONE


@njit(cache=True, nogil=True)
def _switch_by_time(channel, other):
    """The cycle at which the mode has been idle or its lines have been preferred for long enough."""
    distance, since = channel.distance, channel.mode_since
    cycle = max(since, channel.line[other].arrived) + distance.age_limit
    own = UPDATES if channel.mode == COMPUTE else READS | WRITES
    if not (channel.active_mask or (channel.hit_mask | channel.miss_mask) & own):
        cycle = min(cycle, max(since, channel.column_command.cycle) + distance.switch_to_refresh)
    return cycle
