"""The DRAM commands of one pseudo-channel: from when timing allows each, and what it does to the state."""

from t3hdl.interface.layouts import BANKS_PER_GROUP

from t3sim.common.compiled import njit

from .candidates import join_hits_to_misses, propose, sort_by_row, succeed_hit
from .queue import leave_queue, mature, release
from .state import (
    ACT,
    ALL,
    BANKS,
    COLUMN,
    FOREVER,
    GROUP,
    NONE,
    PRE,
    PRE_ALL,
    READ,
    REFRESH,
    SWITCH,
    UPDATE,
    WRITE,
    command_of,
)


@njit(cache=True, nogil=True)
def column_ready(channel, command, bank):
    """First cycle at which timing allows the read or write ``command`` in an open bank."""
    ready = channel.column_ready[command]
    return max(ready[bank], ready[GROUP + bank // BANKS_PER_GROUP], ready[ALL])


@njit(cache=True, nogil=True)
def pause_ready(channel):
    """First cycle at which timing allows what a refresh or mode switch needs next: all banks precharged, or itself."""
    if not channel.open_mask:
        return max(channel.refresh_ready, channel.row_bus)
    return max(channel.pre_ready.max(), channel.row_bus)


@njit(cache=True, nogil=True)
def issue_column(channel, now, slot):
    """Issues the line's next column command: (tag, cycle at which it is done), and frees its slot.

    The read of an update by atomics does not end it: (NONE, 0).
    """
    line, distance = channel.line[slot], channel.distance
    bank = line.bank
    group = GROUP + bank // BANKS_PER_GROUP
    command = command_of(line.served)
    ready = channel.column_ready
    _delay(ready[command], ALL, now + distance.column_any)
    _delay(ready[command], group, now + distance.column_group)
    if command == READ:
        _delay(ready[WRITE], ALL, now + distance.read_to_write)
        _delay(channel.pre_ready, bank, now + distance.read_to_pre)
    else:
        _delay(ready[READ], ALL, now + distance.write_to_read_any)
        _delay(ready[READ], group, now + distance.write_to_read_group)
        _delay(channel.pre_ready, bank, now + distance.write_to_pre)
    if line.kind == UPDATE:
        _delay(ready[READ], group, now + distance.update_group)
        _delay(ready[WRITE], group, now + distance.update_group)
    _count_column(channel, slot, command)
    _note(channel.column_command, now, COLUMN, bank, slot)
    channel.row_owner[bank] = line.owner
    if channel.active[bank] == line.rank:
        channel.active[bank] = FOREVER
        channel.active_mask &= ~(1 << bank)
        channel.active_writes &= ~(1 << bank)
    else:
        leave_queue(channel, slot)
        succeed_hit(channel, slot)
    if command == READ and line.keeps:
        mature(channel, slot, now + distance.atomic_write)
        return NONE, 0
    release(channel, slot)
    if line.follower != NONE:
        propose(channel, line.follower)
    return line.tag, now + (distance.read_done if command == READ else distance.write_done)


@njit(cache=True, nogil=True)
def issue_row(channel, now, slot):
    """Issues what a miss needs: a precharge if its bank is open, else the activate, which makes the line active."""
    line = channel.line[slot]
    bank = line.bank
    _count_first(channel, slot)
    if channel.open_mask >> bank & 1:
        _note(channel.row_command, now, PRE, bank, slot)
        _precharge(channel, now, bank)
    else:
        _note(channel.row_command, now, ACT, bank, slot)
        _activate(channel, now, bank, line.row)
        channel.row_owner[bank] = line.owner
        leave_queue(channel, slot)
        channel.active[bank] = line.rank
        channel.active_mask |= 1 << bank
        channel.active_writes |= command_of(line.served) << bank
        sort_by_row(channel, bank)


@njit(cache=True, nogil=True)
def issue_pause(channel, now):
    """Issues what a refresh or mode switch needs next: precharge of all banks if one is open, else itself."""
    distance = channel.distance
    if channel.open_mask:
        _note(channel.row_command, now, PRE_ALL, NONE, NONE)
        for bank in range(BANKS):
            if channel.open_mask >> bank & 1:
                _precharge(channel, now, bank)
        return
    channel.row_bus = now + 1
    if channel.refreshes_due:
        _note(channel.row_command, now, REFRESH, NONE, NONE)
        channel.refresh_ready = now + distance.refresh_to_refresh
        _delay(channel.act_ready, ALL, now + distance.refresh_to_act)
        channel.refreshes_due -= 1
        channel.refreshes += 1
    else:
        _note(channel.row_command, now, SWITCH, NONE, NONE)
        channel.refresh_ready = now + distance.switch_to_refresh
        _delay(channel.act_ready, ALL, now + distance.switch_to_act)
        channel.mode, channel.mode_since = 1 - channel.mode, now
        channel.switching = 0
        channel.mode_switches += 1


@njit(cache=True, nogil=True)
def _delay(ready, index, cycle):
    ready[index] = max(ready[index], cycle)


@njit(cache=True, nogil=True)
def _precharge(channel, now, bank):
    distance = channel.distance
    channel.open_row[bank] = NONE
    channel.open_mask &= ~(1 << bank)
    channel.row_bus = now + 1
    channel.precharges += 1
    _delay(channel.act_ready, bank, now + distance.pre_to_act)
    channel.refresh_ready = max(channel.refresh_ready, now + distance.pre_to_refresh)
    join_hits_to_misses(channel, bank)


@njit(cache=True, nogil=True)
def _activate(channel, now, bank, row):
    distance = channel.distance
    channel.open_row[bank] = row
    channel.open_mask |= 1 << bank
    channel.row_bus = now + distance.act_bus
    channel.activates += 1
    ready = channel.act_ready
    _delay(ready, bank, now + distance.act_to_act)
    _delay(ready, GROUP + bank // BANKS_PER_GROUP, now + distance.act_group)
    _delay(ready, ALL, now + distance.act_any)
    # The fourth ACT before the next one: the ring's oldest once this one is in.
    recent, index = channel.recent_acts, channel.next_act
    recent[index] = now
    channel.next_act = (index + 1) % 4
    _delay(ready, ALL, recent[channel.next_act] + distance.four_acts)
    _delay(channel.column_ready[READ], bank, now + distance.act_to_read)
    _delay(channel.column_ready[WRITE], bank, now + distance.act_to_write)
    _delay(channel.pre_ready, bank, now + distance.act_to_pre)
    channel.refresh_ready = max(channel.refresh_ready, now + distance.act_to_refresh)


@njit(cache=True, nogil=True)
def _count_first(channel, slot):
    """Counts what a column command met at the first command towards it: its row open, the bank closed, or another row
    open."""
    line = channel.line[slot]
    if line.touched:
        return
    line.touched = 1
    row = channel.open_row[line.bank]
    if row == line.row:
        channel.row_hits += 1
    elif row == NONE:
        channel.row_misses += 1
    else:
        channel.row_conflicts += 1
        channel.conflicts[line.owner, channel.row_owner[line.bank]] += 1


@njit(cache=True, nogil=True)
def _count_column(channel, slot, command):
    _count_first(channel, slot)
    kind = channel.line[slot].kind
    channel.reads += kind == READ
    channel.writes += kind == WRITE
    channel.updates += kind == UPDATE and command == WRITE
    channel.atomic_reads += kind == UPDATE and command == READ
    channel.bus_cycles += channel.distance.burst
    channel.turnarounds += channel.last_column >= 0 and channel.last_column != command
    channel.last_column = command


@njit(cache=True, nogil=True)
def _note(bus, now, command, bank, slot):
    """Notes the last command of a bus, for bus checkers."""
    bus.cycle, bus.command, bus.bank, bus.slot = now, command, bank, slot
