"""HBM2 pseudo-channels, cycle by cycle: FR-FCFS scheduling with open rows (DESIGN.md sections 2 and 2.1).

Each cycle at most one column command (read, write, update) and one row command (activate, precharge, refresh) issue:
HBM has a command bus for each. What decides, and which mechanism it stands for:

- *Column bus*: active lines first (their row was opened for them), else hits of the kind that is being served; among
  those whose timing allows it, the oldest (first-ready, first-come).
- *Row bus*: misses of the kind that is being served, again the oldest whose timing allows it. With ``row_policy``
  ``oldest`` a row is closed for a miss as soon as timing allows, unless its bank has an active line, even if younger or
  older hits wait. With ``hits-first`` it stays open while lines of the kind hit in it, unless the miss is overdue.
- *Kind*: reads go first. Writes are served when no read waits, or from above ``drain_high`` until below ``drain_low``
  of the write share. In the shared queue the share is half of the lines, so that both queue modes drain at the same
  number of writes and differ only in who may use the room: either may fill the shared queue.
- *Age*: a line that has waited ``age_limit_cycles`` decides the kind, and nothing else of the queue may use its bank
  until it is issued. The oldest line is then served within a few row cycles, so the wait of every line in the queue
  is bounded.
- *Refresh*: every nREFI cycles the queue stops, active lines finish, all banks are precharged, and REF keeps them
  closed for nRFC.
- *Updates* (near-memory op-and-store) cross the channel as writes and hold their bank group for ``nmc_update_cycles``.
  With ``substrate`` ``pim`` they do so only in compute mode, and nothing else does: see :mod:`t3sim.dram.modes`. A mode
  switch needs what a refresh needs and takes ``pim_switch_cycles``. With ``atomics`` an update is a read, then
  ``atomic_cycles`` in the controller's ALU, then a write; the bank may serve others in between.

Every function is compiled (nogil) and allocates nothing. The caller calls :func:`tick` for a channel at the cycle that
it returned as ``wake`` and at every cycle of an enqueue (after the enqueue), in order of time; cycles in between need
no call.
"""

from t3hdl.interface import layouts

from t3sim.common.compiled import njit

from .commands import column_ready, issue_column, issue_pause, issue_row, pause_ready, row_ready
from .modes import next_switch, overdue, serves, wants_switch
from .queue import has_room, insert, offer, take_matured
from .state import (
    COMPUTE,
    FOREVER,
    MEMORY,
    NONE,
    READ,
    UPDATE,
    WRITE,
    HbmState,
    command_of,
    lowest_bit,
    new_hbm_state,
    statistics,
)
from .timing import HbmParameters

__all__ = [
    "FOREVER",
    "READ",
    "UPDATE",
    "WRITE",
    "HbmParameters",
    "HbmState",
    "accepts",
    "dram_address",
    "enqueue",
    "enqueue_address",
    "is_empty",
    "new_hbm_state",
    "occupancy",
    "statistics",
    "tick",
]

dram_address = njit(cache=True, nogil=True)(layouts.dram_address)
"""(bank group, bank, row, column) of a line of a channel: :func:`t3hdl.interface.layouts.dram_address`, compiled."""


@njit(cache=True, nogil=True)
def occupancy(hbm, c):
    """Lines of all kinds in the queue of channel ``c`` (active lines have left it, except updates by atomics)."""
    held = hbm.channel[c].held
    return held[READ] + held[WRITE]


@njit(cache=True, nogil=True)
def is_empty(hbm, c):
    """Whether channel ``c`` holds no access: then :func:`tick` can only refresh, until something is enqueued."""
    oldest = hbm.channel[c].oldest
    return oldest[MEMORY] == NONE and oldest[COMPUTE] == NONE


@njit(cache=True, nogil=True)
def accepts(hbm, c, is_write):
    """Whether the queue of channel ``c`` has room for one more read, or for one more write or update."""
    return has_room(hbm.channel[c], WRITE if is_write else READ)


@njit(cache=True, nogil=True)
def enqueue(hbm, c, now, local_line, kind, tag):
    """Puts an access to line ``local_line`` of channel ``c`` into its queue in cycle ``now``.

    ``kind`` is READ, WRITE or UPDATE; ``tag`` (not negative) comes back from :func:`tick`, which is to be called
    for this cycle afterwards. RuntimeError if the queue is full (see :func:`accepts`).
    """
    bank_group, bank, row, column = dram_address(local_line, hbm.channel[c].distance.line_order)
    enqueue_address(hbm, c, now, bank_group, bank, row, column, kind, tag)


@njit(cache=True, nogil=True)
def enqueue_address(hbm, c, now, bank_group, bank, row, column, kind, tag):
    """:func:`enqueue` for an address that is already decoded."""
    channel = hbm.channel[c]
    slot = insert(channel, now, bank_group * layouts.BANKS_PER_GROUP + bank, row, column, kind, tag)
    if offer(channel, slot) or serves(channel, now) != channel.serving or wants_switch(channel, now):
        channel.wake = min(channel.wake, now)


@njit(cache=True, nogil=True)
def tick(hbm, c, now):
    """Cycle ``now`` of channel ``c``: (wake, tag, done).

    ``tag`` is that of the access whose column command issues in this cycle, or -1; ``done`` is the cycle at which its
    data are there (read: now + nCL + nBL) or are in memory (write, update: now + nCWL + nBL). Before ``wake`` no call
    can have an effect unless something is enqueued; FOREVER when nothing is to be done.
    """
    channel = hbm.channel[c]
    if now < channel.wake:
        return channel.wake, NONE, 0
    if now >= channel.next_mature:
        take_matured(channel)
    if now >= channel.next_refresh:
        channel.refreshes_due += 1
        channel.next_refresh += channel.distance.refresh_interval
    if not channel.refreshes_due and wants_switch(channel, now):
        channel.switching = 1
    paused = channel.refreshes_due or channel.switching
    if not paused:
        channel.serving = serves(channel, now)
    tag, done = NONE, 0
    slot = _pick_column(channel, now)
    if slot != NONE:
        tag, done = issue_column(channel, now, slot)
    if paused:
        if not channel.active_mask and pause_ready(channel) <= now:
            issue_pause(channel, now)
    else:
        channel.serving = serves(channel, now)
        slot = _pick_row(channel, now)
        if slot != NONE:
            issue_row(channel, now, slot)
    channel.wake = max(_next_event(channel, now), now + 1)
    return channel.wake, tag, done


@njit(cache=True, nogil=True)
def _kept_bank(channel, now):
    """The bank that only the oldest line may use, because it is overdue, or NONE."""
    oldest = overdue(channel, now)
    return channel.line[oldest].bank if oldest != NONE else NONE


@njit(cache=True, nogil=True)
def _miss_banks(channel, kept):
    """The banks, as bits, in which a row may be opened or closed for a miss of the class that is served."""
    hits = channel.hit_mask[channel.serving] & channel.distance.hits_first
    if kept != NONE:
        hits &= ~(1 << kept)
    return channel.miss_mask[channel.serving] & ~channel.active_mask & ~hits


@njit(cache=True, nogil=True)
def _pick_column(channel, now):
    """The line whose column command issues now, or NONE."""
    best, best_order = NONE, FOREVER
    mask = channel.active_mask
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        slot = channel.active[bank]
        line = channel.line[slot]
        if line.order < best_order and column_ready(channel, command_of(line.served), bank) <= now:
            best, best_order = slot, line.order
    if best != NONE or channel.refreshes_due or channel.switching:
        return best
    kept, oldest, served = _kept_bank(channel, now), channel.oldest[channel.mode], channel.serving
    command = command_of(served)
    mask = channel.hit_mask[served]
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        slot = channel.hit[served, bank]
        order = channel.line[slot].order
        if order < best_order and column_ready(channel, command, bank) <= now and (bank != kept or slot == oldest):
            best, best_order = slot, order
    return best


@njit(cache=True, nogil=True)
def _pick_row(channel, now):
    """The line for which an activate or precharge issues now, or NONE."""
    best, best_order = NONE, FOREVER
    kept, oldest = _kept_bank(channel, now), channel.oldest[channel.mode]
    mask = _miss_banks(channel, kept)
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        slot = channel.miss[channel.serving, bank]
        order = channel.line[slot].order
        if order < best_order and row_ready(channel, bank) <= now and (bank != kept or slot == oldest):
            best, best_order = slot, order
    return best


@njit(cache=True, nogil=True)
def _next_event(channel, now):
    """The first cycle after ``now`` at which something may issue or change, given no enqueue."""
    event = min(channel.next_refresh, channel.next_mature)
    mask = channel.active_mask
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        event = min(event, column_ready(channel, command_of(channel.line[channel.active[bank]].served), bank))
    if channel.refreshes_due or channel.switching:
        return event if channel.active_mask else min(event, pause_ready(channel))
    if serves(channel, now + 1) != channel.serving:
        return now + 1
    event = min(event, next_switch(channel, now))
    oldest, served = channel.oldest[channel.mode], channel.serving
    if oldest == NONE:
        return event
    kept = _kept_bank(channel, now + 1)
    if kept == NONE and not channel.line[oldest].waits:
        event = min(event, channel.line[oldest].arrived + channel.distance.age_limit)
    mask, command = channel.hit_mask[served], command_of(served)
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        if bank != kept or channel.hit[served, bank] == oldest:
            event = min(event, column_ready(channel, command, bank))
    mask = _miss_banks(channel, kept)
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        if bank != kept or channel.miss[served, bank] == oldest:
            event = min(event, row_ready(channel, bank))
    return event
