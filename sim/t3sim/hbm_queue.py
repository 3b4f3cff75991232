"""State of the HBM model, and the queue of one pseudo-channel.

Waiting lines stand in a list by age per bank. For each bank and kind of command (read or write) the oldest line whose
row is open (*hit*) and the oldest whose row is not (*miss*) are remembered, so that the scheduler looks at banks, not
at lines. A line whose row has been activated leaves the queue for its bank's command register (*active*): its row stays
open until its column command, and its place in the queue is free again, as in Ramulator 2.1. There is one such register
per bank. A list by age of the whole channel has waiting and active lines.

Lines with the same address form a chain: only the oldest of them may issue, so that accesses to one line are never
reordered.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from t3hdl.layouts import BANK_GROUPS, BANKS_PER_GROUP

from t3sim.hbm_timing import DISTANCES, FOREVER, MAX_QUEUE_LINES, HbmParameters, distances

BANKS = BANK_GROUPS * BANKS_PER_GROUP
NONE = -1
READ, WRITE, UPDATE = 0, 1, 2
"""Kinds of access. Updates are issued as writes."""

SLOTS = MAX_QUEUE_LINES + BANKS
"""Line slots: as many as can wait, and one command register per bank."""

GROUP = BANKS
ALL = BANKS + BANK_GROUPS
SCOPES = ALL + 1
"""Scopes of timing: banks from 0, bank groups from GROUP, the whole channel at ALL."""

ACT, PRE, COLUMN, PRE_ALL, REFRESH = 0, 1, 2, 3, 4
COMMAND = np.dtype([("cycle", np.int64), ("command", np.int64), ("bank", np.int64), ("slot", np.int64)])
"""The last command on a bus: when, which, and for which bank and line (NONE where it has no meaning)."""

LINE = np.dtype(
    [
        ("order", np.int64),
        ("arrived", np.int64),
        ("tag", np.int64),
        ("row", np.int32),
        *((name, np.int16) for name in ["column", "bank", "kind", "touched", "waits", "follower"]),
        *((name, np.int16) for name in ["older", "younger", "bank_older", "bank_younger"]),
    ],
    align=True,
)
"""One access. ``waits``: for an older access to the same line; ``follower``: the next younger one that waits for this.
``younger`` also chains the free slots."""

STATISTICS = (
    *("reads", "writes", "updates"),
    *("row_hits", "row_misses", "row_conflicts"),
    *("turnarounds", "bus_cycles", "activates", "precharges", "refreshes"),
)
"""Counts per channel: accesses by kind (when their column command issues); row hits, misses (bank closed) and conflicts
(other row open), once per access at its first command; changes of data-bus direction; data-bus clocks; row commands."""

CHANNEL = np.dtype(
    [
        ("wake", np.int64),
        ("next_refresh", np.int64),
        ("refresh_ready", np.int64),
        ("row_bus", np.int64),
        ("next_order", np.int64),
        ("writing", np.int64),  # 1 while writes are served
        ("refreshes_due", np.int64),
        ("oldest", np.int64),  # of the waiting and active lines
        ("youngest", np.int64),
        ("free", np.int64),
        ("last_column", np.int64),  # READ or WRITE
        ("next_act", np.int64),  # place in recent_acts
        ("recent_acts", np.int64, (4,)),
        ("active_mask", np.int64),  # banks whose command register holds a line
        ("hit_mask", np.int64, (2,)),  # per kind: banks with a hit
        ("miss_mask", np.int64, (2,)),
        ("waiting", np.int64, (2,)),  # per kind: lines in the queue
        *((name, np.int64) for name in STATISTICS),
        ("row_command", COMMAND),
        ("column_command", COMMAND),
        ("active", np.int16, (BANKS,)),
        ("hit", np.int16, (2, BANKS)),  # oldest line whose row is open
        ("miss", np.int16, (2, BANKS)),  # oldest line whose row is not open
        ("bank_oldest", np.int16, (BANKS,)),
        ("bank_youngest", np.int16, (BANKS,)),
        ("open_row", np.int64, (BANKS,)),
        # First cycles at which timing allows a command, per scope: every bank, bank group and the channel.
        ("column_ready", np.int64, (2, SCOPES)),
        ("act_ready", np.int64, (SCOPES,)),
        ("pre_ready", np.int64, (BANKS,)),
        ("distance", DISTANCES),
        ("line", LINE, (SLOTS,)),
    ],
    align=True,
)
"""State of one pseudo-channel. Arrays with kinds have two: reads, and writes with updates. Slots are NONE if empty."""


class Hbm(NamedTuple):
    """The pseudo-channels of one GPU."""

    channel: np.ndarray
    """[channel] :data:`CHANNEL` records."""


def new_hbm(parameters: HbmParameters, channels: int) -> Hbm:
    """Idle pseudo-channels, all banks closed, before cycle 0. ValueError if ``channels`` is below 1."""
    if channels < 1:
        raise ValueError(f"HBM: channels must be at least 1, not {channels}")
    channel = np.zeros(channels, CHANNEL)
    channel["distance"] = distances(parameters)
    channel["next_refresh"] = channel["distance"]["refresh_interval"]
    channel["recent_acts"] = -FOREVER
    channel["row_command"]["cycle"] = channel["column_command"]["cycle"] = NONE
    for name in (
        "oldest",
        "youngest",
        "last_column",
        "open_row",
        "active",
        "hit",
        "miss",
        "bank_oldest",
        "bank_youngest",
    ):
        channel[name] = NONE
    channel["line"]["younger"] = [*range(1, SLOTS), NONE]
    return Hbm(channel)


def statistics(hbm: Hbm, c: int) -> dict[str, int]:
    """The counts of channel ``c`` by name (see :data:`STATISTICS`)."""
    return {name: int(hbm.channel[c][name]) for name in STATISTICS}


@intrinsic
def lowest_bit(typingctx, mask):
    """Number of the lowest 1 of a non-zero int64."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@njit(cache=True, nogil=True)
def command_kind(kind):
    """The column command of an access: READ, or WRITE for writes and updates."""
    return READ if kind == READ else WRITE


@njit(cache=True, nogil=True)
def has_room(channel, command):
    """Whether one more line that is read or written (``command`` READ or WRITE) can wait."""
    waiting, distance = channel.waiting, channel.distance
    limit = distance.read_lines if command == READ else distance.write_lines
    return waiting[command] < limit and waiting[READ] + waiting[WRITE] < distance.all_lines


@njit(cache=True, nogil=True)
def insert(channel, now, bank, row, column, kind, tag):
    """Puts an access into the queue (there must be room: RuntimeError) and returns its slot."""
    command = command_kind(kind)
    if not has_room(channel, command):
        raise RuntimeError("HBM: access to a full queue; ask accepts() before enqueue()")
    slot = channel.free
    line = channel.line[slot]
    channel.free = line.younger
    line.order = channel.next_order
    channel.next_order += 1
    line.arrived, line.tag, line.row, line.column = now, tag, row, column
    line.bank, line.kind, line.touched, line.follower = bank, kind, 0, NONE
    elder = _youngest_of_same_line(channel, bank, row, column)
    line.waits = elder != NONE
    if elder != NONE:
        channel.line[elder].follower = slot
    _append(channel, slot, bank)
    channel.waiting[command] += 1
    return slot


@njit(cache=True, nogil=True)
def _youngest_of_same_line(channel, bank, row, column):
    """The youngest access to the same line that has not issued, or NONE."""
    slot = channel.bank_youngest[bank]
    while slot != NONE:
        line = channel.line[slot]
        if line.row == row and line.column == column:
            return slot
        slot = line.bank_older
    slot = channel.active[bank]
    if slot != NONE and channel.line[slot].row == row and channel.line[slot].column == column:
        return slot
    return NONE


@njit(cache=True, nogil=True)
def _append(channel, slot, bank):
    """Makes the slot the youngest of the channel and of its bank."""
    line = channel.line[slot]
    line.older, line.younger = channel.youngest, NONE
    line.bank_older, line.bank_younger = channel.bank_youngest[bank], NONE
    if line.older == NONE:
        channel.oldest = slot
    else:
        channel.line[line.older].younger = slot
    if line.bank_older == NONE:
        channel.bank_oldest[bank] = slot
    else:
        channel.line[line.bank_older].bank_younger = slot
    channel.youngest = slot
    channel.bank_youngest[bank] = slot


@njit(cache=True, nogil=True)
def leave_queue(channel, slot):
    """Takes a line out of its bank's list and out of the counts: it issues, or becomes active."""
    line = channel.line[slot]
    if line.bank_older == NONE:
        channel.bank_oldest[line.bank] = line.bank_younger
    else:
        channel.line[line.bank_older].bank_younger = line.bank_younger
    if line.bank_younger == NONE:
        channel.bank_youngest[line.bank] = line.bank_older
    else:
        channel.line[line.bank_younger].bank_older = line.bank_older
    channel.waiting[command_kind(line.kind)] -= 1


@njit(cache=True, nogil=True)
def release(channel, slot):
    """Frees the slot of an issued line; the next access to the same line may issue from now on."""
    line = channel.line[slot]
    if line.follower != NONE:
        channel.line[line.follower].waits = 0
    if line.older == NONE:
        channel.oldest = line.younger
    else:
        channel.line[line.older].younger = line.younger
    if line.younger == NONE:
        channel.youngest = line.older
    else:
        channel.line[line.younger].older = line.older
    line.younger = channel.free
    channel.free = slot


@njit(cache=True, nogil=True)
def find_candidates(channel, bank):
    """Finds the bank's oldest hit and miss of each kind anew: after a command to the bank."""
    for command in (READ, WRITE):
        channel.hit[command, bank] = NONE
        channel.miss[command, bank] = NONE
    slot = channel.bank_oldest[bank]
    while slot != NONE:
        offer(channel, slot)
        slot = channel.line[slot].bank_younger
    bit = 1 << bank
    for command in (READ, WRITE):
        if channel.hit[command, bank] == NONE:
            channel.hit_mask[command] &= ~bit
        if channel.miss[command, bank] == NONE:
            channel.miss_mask[command] &= ~bit


@njit(cache=True, nogil=True)
def offer(channel, slot):
    """Makes a line its bank's candidate if there is none of its kind yet; returns whether it became one."""
    line = channel.line[slot]
    if line.waits:
        return False
    command, bank = command_kind(line.kind), line.bank
    is_hit = channel.open_row[bank] == line.row
    candidates = channel.hit if is_hit else channel.miss
    if candidates[command, bank] != NONE:
        return False
    candidates[command, bank] = slot
    mask = channel.hit_mask if is_hit else channel.miss_mask
    mask[command] |= 1 << bank
    return True
