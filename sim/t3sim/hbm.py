"""HBM2 pseudo-channels, cycle by cycle: FR-FCFS scheduling with open rows (DESIGN.md sections 2 and 2.1).

Each cycle at most one column command (read, write, update) and one row command (activate, precharge, refresh) issue:
HBM has a command bus for each. What decides, and which mechanism it stands for:

- *Column bus*: active lines first (their row was opened for them), else hits of the kind that is being served; among
  those whose timing allows it, the oldest (first-ready, first-come).
- *Row bus*: misses of the kind that is being served, again the oldest whose timing allows it. A row is closed for a
  miss as soon as timing allows, unless its bank has an active line, even if younger or older hits wait.
- *Kind*: reads go first. Writes are served when no read waits, or from above ``drain_high`` until below ``drain_low``
  of the write share. In the shared queue the share is half of the lines, so that both queue modes drain at the same
  number of writes and differ only in who may use the room: either may fill the shared queue.
- *Age*: a line that has waited ``age_limit_cycles`` decides the kind, and nothing else of the queue may use its bank
  until it is issued. The oldest line is then served within a few row cycles, so the wait of every line in the queue
  is bounded.
- *Refresh*: every nREFI cycles the queue stops, active lines finish, all banks are precharged, and REF keeps them
  closed for nRFC.
- *Updates* (near-memory op-and-store) cross the channel as writes and hold their bank group for ``nmc_update_cycles``.

Every function is compiled (nogil) and allocates nothing. The caller calls :func:`tick` for a channel at the cycle that
it returned as ``wake`` and at every cycle of an enqueue (after the enqueue), in order of time; cycles in between need
no call.
"""

from numba import njit
from t3hdl import layouts

from t3sim.hbm_commands import column_ready, issue_column, issue_refresh, issue_row, refresh_ready, row_ready
from t3sim.hbm_queue import (
    FOREVER,
    NONE,
    READ,
    UPDATE,
    WRITE,
    Hbm,
    command_kind,
    has_room,
    insert,
    lowest_bit,
    new_hbm,
    offer,
    statistics,
)
from t3sim.hbm_timing import HbmParameters

__all__ = [
    "FOREVER",
    "READ",
    "UPDATE",
    "WRITE",
    "Hbm",
    "HbmParameters",
    "accepts",
    "dram_address",
    "enqueue",
    "enqueue_address",
    "new_hbm",
    "occupancy",
    "statistics",
    "tick",
]

dram_address = njit(cache=True, nogil=True)(layouts.dram_address)
"""(bank group, bank, row, column) of a line of a channel: :func:`t3hdl.layouts.dram_address`, compiled."""


@njit(cache=True, nogil=True)
def occupancy(hbm, c):
    """Lines of all kinds in the queue of channel ``c`` (active lines have left it)."""
    waiting = hbm.channel[c].waiting
    return waiting[READ] + waiting[WRITE]


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
    if offer(channel, slot) or _serves_writes(channel, now) != channel.writing:
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
    if now >= channel.next_refresh:
        channel.refreshes_due += 1
        channel.next_refresh += channel.distance.refresh_interval
    if not channel.refreshes_due:
        channel.writing = _serves_writes(channel, now)
    tag, done = NONE, 0
    slot = _pick_column(channel, now)
    if slot != NONE:
        tag = channel.line[slot].tag
        done = issue_column(channel, now, slot)
    if channel.refreshes_due:
        if not channel.active_mask and refresh_ready(channel) <= now:
            issue_refresh(channel, now)
    else:
        channel.writing = _serves_writes(channel, now)
        slot = _pick_row(channel, now)
        if slot != NONE:
            issue_row(channel, now, slot)
    channel.wake = max(_next_event(channel, now), now + 1)
    return channel.wake, tag, done


@njit(cache=True, nogil=True)
def _is_overdue(channel, now):
    """Whether the oldest line has waited for the age limit (an active one too: others can keep the bus turned)."""
    oldest = channel.oldest
    return oldest != NONE and now - channel.line[oldest].arrived >= channel.distance.age_limit


@njit(cache=True, nogil=True)
def _serves_writes(channel, now):
    """1 if writes are served from now on, 0 if reads are."""
    distance = channel.distance
    if _is_overdue(channel, now):
        return command_kind(channel.line[channel.oldest].kind)
    reads, writes = channel.waiting[READ], channel.waiting[WRITE]
    if channel.writing:
        return 0 if writes < distance.drain_below and reads > 0 else 1
    return 1 if writes > distance.drain_above or reads == 0 else 0


@njit(cache=True, nogil=True)
def _kept_bank(channel, now):
    """The bank that only the oldest line may use, because it is overdue, or NONE."""
    return channel.line[channel.oldest].bank if _is_overdue(channel, now) else NONE


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
        if line.order < best_order and column_ready(channel, command_kind(line.kind), bank) <= now:
            best, best_order = slot, line.order
    if best != NONE or channel.refreshes_due:
        return best
    kept = _kept_bank(channel, now)
    mask = channel.hit_mask[channel.writing]
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        slot = channel.hit[channel.writing, bank]
        order = channel.line[slot].order
        if (
            order < best_order
            and column_ready(channel, channel.writing, bank) <= now
            and (bank != kept or slot == channel.oldest)
        ):
            best, best_order = slot, order
    return best


@njit(cache=True, nogil=True)
def _pick_row(channel, now):
    """The line for which an activate or precharge issues now, or NONE."""
    best, best_order = NONE, FOREVER
    kept = _kept_bank(channel, now)
    mask = channel.miss_mask[channel.writing] & ~channel.active_mask
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        slot = channel.miss[channel.writing, bank]
        order = channel.line[slot].order
        if order < best_order and row_ready(channel, bank) <= now and (bank != kept or slot == channel.oldest):
            best, best_order = slot, order
    return best


@njit(cache=True, nogil=True)
def _next_event(channel, now):
    """The first cycle after ``now`` at which something may issue or change, given no enqueue."""
    event = channel.next_refresh
    mask = channel.active_mask
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        event = min(event, column_ready(channel, command_kind(channel.line[channel.active[bank]].kind), bank))
    if channel.refreshes_due:
        return event if channel.active_mask else min(event, refresh_ready(channel))
    if _serves_writes(channel, now + 1) != channel.writing:
        return now + 1
    if channel.oldest == NONE:
        return event
    kept, oldest = _kept_bank(channel, now + 1), channel.oldest
    if kept == NONE:
        event = min(event, channel.line[oldest].arrived + channel.distance.age_limit)
    mask = channel.hit_mask[channel.writing]
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        if bank != kept or channel.hit[channel.writing, bank] == oldest:
            event = min(event, column_ready(channel, channel.writing, bank))
    mask = channel.miss_mask[channel.writing] & ~channel.active_mask
    while mask:
        bank = lowest_bit(mask)
        mask &= mask - 1
        if bank != kept or channel.miss[channel.writing, bank] == oldest:
            event = min(event, row_ready(channel, bank))
    return event
