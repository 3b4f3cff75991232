"""HBM2 pseudo-channels, cycle by cycle: FR-FCFS scheduling with open rows (docs/guides/models.md, Memory).

Each cycle at most one column command (read, write, update) and one row command (activate, precharge, refresh) issue:
HBM has a command bus for each. What decides, and which mechanism it stands for:

- *Column bus*: active lines first (their row was opened for them), else hits of what is being served; among those
  whose timing allows it, the oldest (first-ready, first-come). With ``hit_order`` ``oldest`` no line of a bank passes
  an active one, nor an older hit of what is being served: each bank has one register for the line that comes next.
- *Row bus*: misses of what is being served, again the oldest whose timing allows it. With ``row_policy`` ``oldest`` a
  row is closed for a miss as soon as timing allows, unless its bank has an active line, even if younger or older hits
  wait. With ``hits-first`` it stays open while lines that are served hit in it, unless the miss is overdue.
- *Kind*: with ``service_order`` ``reads-first`` either reads are served or writes. Reads go first; writes are served
  when no read waits, or from above ``drain_high`` until below ``drain_low`` of the write share. In the shared queue the
  share is half of the lines, so that both queue modes drain at the same number of writes and differ only in who may use
  the room: either may fill the shared queue. With ``age`` both are served, the oldest of all first, and the bus turns
  when timing makes it so. With ``hits-first``, and hits in order of age, a bank is served as by the FR-FCFS of
  GPGPU-Sim without a write queue.
- *Overdue*: when a line has waited ``age_limit_cycles``, its kind alone is served, and nothing else of the queue may
  use its bank until it is issued. The oldest line is then served within a few row cycles, so the wait of every line in
  the queue is bounded.
- *Refresh*: every nREFI cycles the queue stops, active lines finish, all banks are precharged, and REF keeps them
  closed for nRFC.
- *Updates* (near-memory op-and-store) cross the channel as writes and hold their bank group for ``nmc_update_cycles``.
  With ``substrate`` ``pim`` they do so only in compute mode, and nothing else does: see :mod:`t3sim.dram.modes`. A mode
  switch needs what a refresh needs and takes ``pim_switch_cycles``. With ``atomics`` an update is a read, then
  ``atomic_cycles`` in the controller's ALU, then a write; the bank may serve others in between.

Every function is compiled (nogil) and allocates nothing. The caller calls :func:`tick` for a channel at the cycle that
it or, later, :func:`enqueue` returned, in order of time, and after what is enqueued in that cycle; cycles in between
need no call.
"""

from t3hdl.interface import layouts

from t3sim.common.compiled import njit

from .candidates import propose
from .commands import issue_column, issue_pause, issue_row
from .modes import age_event, find_overdue, is_paused, serves, switch_event
from .plan import correct_column, correct_row, forget_plans, make_plans, widen_plans
from .queue import has_room, insert, take_matured
from .state import (
    COMPUTE,
    FOREVER,
    MEMORY,
    NONE,
    READ,
    UPDATE,
    WRITE,
    HbmState,
    new_hbm_state,
    slot_of,
    statistics,
)

__all__ = [
    "FOREVER",
    "READ",
    "UPDATE",
    "WRITE",
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
def accepts(hbm, c, is_write, lines=1):
    """Whether the queue of channel ``c`` has room for ``lines`` more reads, or for so many more writes or updates."""
    return has_room(hbm.channel[c], WRITE if is_write else READ, lines)


@njit(cache=True, nogil=True)
def enqueue(hbm, c, now, local_line, lines, kind, tag, owner=0):
    """Puts an access to ``lines`` lines of channel ``c`` from ``local_line`` on into its queue in cycle ``now``.

    ``kind`` is READ, WRITE or UPDATE; the lines' tags, from ``tag`` (not negative) on, come back from :func:`tick`;
    ``owner``, below OWNERS: whose they are, for the count of row conflicts.
    Returns the cycle, ``now`` or later, at which that is to be called next. RuntimeError if the queue is full (see
    :func:`accepts`).
    """
    channel = hbm.channel[c]
    order, bank_hash = channel.distance.line_order, channel.distance.bank_hash
    banks = 0
    for i in range(lines):
        bank_group, bank, row, column = dram_address(local_line + i, order, bank_hash)
        banks |= _insert(channel, now, bank_group, bank, row, column, kind, tag + i, owner)
    widen_plans(channel, banks, now)
    channel.wake = max(now, min(channel.wake, _next_event(channel, now, False)))
    return channel.wake


@njit(cache=True, nogil=True)
def enqueue_address(hbm, c, now, bank_group, bank, row, column, kind, tag, owner=0):
    """:func:`enqueue` for a line whose address is already decoded."""
    channel = hbm.channel[c]
    banks = _insert(channel, now, bank_group, bank, row, column, kind, tag, owner)
    widen_plans(channel, banks, now)
    channel.wake = max(now, min(channel.wake, _next_event(channel, now, False)))
    return channel.wake


@njit(cache=True, nogil=True)
def _insert(channel, now, bank_group, bank, row, column, kind, tag, owner):
    """Puts a line into the queue: its bank, as a bit, if the line becomes a candidate; else 0."""
    bank += bank_group * layouts.BANKS_PER_GROUP
    slot = insert(channel, now, bank, row, column, kind, tag, owner)
    return 1 << bank if propose(channel, slot) else 0


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
    if now >= channel.next_choice:
        _begin(channel, now)
    tag, done = NONE, 0
    make_plans(channel, now)
    if channel.column_plan.cycle <= now:
        bank = channel.column_plan.bank
        tag, done = issue_column(channel, now, slot_of(channel.column_plan.rank))
        channel.column_plan.known = 0
        correct_row(channel, bank, now)
        _note_age(channel, now)
        _choose_class(channel)
        make_plans(channel, now)
    settled = True
    if channel.row_plan.cycle <= now:
        bank = channel.row_plan.bank
        channel.row_plan.known = 0
        settled = False
        if is_paused(channel):
            issue_pause(channel, now)
            forget_plans(channel)
            _note_age(channel, now)
        else:
            issue_row(channel, now, slot_of(channel.row_plan.rank))
            correct_column(channel, bank, now + 1)
    channel.wake = max(_next_event(channel, now + 1, settled), now + 1)
    return channel.wake, tag, done


@njit(cache=True, nogil=True)
def _begin(channel, now):
    """What happens in cycle ``now`` before commands issue."""
    if now >= channel.next_mature:
        slot = take_matured(channel)
        if propose(channel, slot):
            widen_plans(channel, 1 << channel.line[slot].bank, now)
    if now >= channel.next_refresh:
        channel.refreshes_due += 1
        channel.next_refresh += channel.distance.refresh_interval
        forget_plans(channel)
    _note_age(channel, now)
    if not is_paused(channel) and switch_event(channel) <= now:
        channel.switching = 1
        forget_plans(channel)
    _choose_class(channel)


@njit(cache=True, nogil=True)
def _note_age(channel, now):
    """Notes which line is overdue."""
    if find_overdue(channel, now):
        forget_plans(channel)


@njit(cache=True, nogil=True)
def _choose_class(channel):
    """Decides what is served, unless a pause has begun."""
    if is_paused(channel):
        return
    served = serves(channel)
    if served != channel.serving:
        channel.serving = served
        forget_plans(channel)


@njit(cache=True, nogil=True)
def _next_event(channel, start, settled):
    """The first cycle at which something may issue or change if nothing is enqueued; before ``start``: at once.

    ``settled``: what is served was decided after the last line had come or gone.
    """
    choice = min(channel.next_refresh, channel.next_mature)
    if not is_paused(channel):
        choice = min(choice, switch_event(channel))
        if channel.overdue == NONE:
            choice = min(choice, age_event(channel))
        if not settled and serves(channel) != channel.serving:
            choice = start
    channel.next_choice = choice
    if choice <= start:
        return choice
    make_plans(channel, start)
    return min(choice, channel.column_plan.cycle, channel.row_plan.cycle)
