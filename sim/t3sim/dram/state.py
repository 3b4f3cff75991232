"""State of the HBM model: one record per pseudo-channel, with one record per queue entry.

Waiting lines stand in a list by age per bank. For each bank and class (below) the oldest line whose row is open
(*hit*) and the oldest whose row is not (*miss*) are remembered, so that the scheduler looks at banks, not at lines; and
for each command bus its next command (*plan*), so that it looks at banks only where something changed. A line whose row
has been activated leaves the queue for its bank's command register (*active*): its row stays open until its column
command, and its place in the queue is free again, as in Ramulator 2.1. There is one such register per bank.

The *class* of a line says with what it is served: READ, WRITE or UPDATE. Near-memory updates cross the channel as
writes and are served with them (class WRITE). With mode-switched PIM they are a class of their own, the only one of
compute mode. With atomics an update is first of class READ and, once its line was read and computed on, of class WRITE.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from t3hdl.interface.layouts import BANK_GROUPS, BANKS_PER_GROUP, MAX_ROW_LINES

from t3sim.common.compiled import njit
from t3sim.inputs.machine.hbm import MAX_QUEUE_LINES, HbmSection

from .timing import DISTANCES, FOREVER, READ, UPDATE, WRITE, distances

BANKS = BANK_GROUPS * BANKS_PER_GROUP
NONE = -1
OWNERS = 6
"""Kinds of traffic that a caller may tell apart."""
CLASSES = UPDATE + 1
CANDIDATES = CLASSES * BANKS
"""Of hits, and of misses: one of each class in each bank, numbered by class, then bank. A set of them is a mask."""
ALL_BANKS = (1 << BANKS) - 1
READS, WRITES, UPDATES = (ALL_BANKS << served * BANKS for served in range(CLASSES))
"""The candidates of a class."""
ALL_CLASSES = (1 << CANDIDATES) // ALL_BANKS
"""Times a mask of banks: the candidates of all classes in them."""
MEMORY, COMPUTE = 0, 1
"""Modes of a pseudo-channel with mode-switched PIM; any other stays in MEMORY."""

SLOTS = MAX_QUEUE_LINES + BANKS
"""Line slots: as many as can wait, and one command register per bank."""

GROUP = BANKS
ALL = BANKS + BANK_GROUPS
SCOPES = ALL + 1
"""Scopes of timing: banks from 0, bank groups from GROUP, the whole channel at ALL."""

ACT, PRE, COLUMN, PRE_ALL, REFRESH, SWITCH = 0, 1, 2, 3, 4, 5
COMMAND = np.dtype([("cycle", np.int64), ("command", np.int64), ("bank", np.int64), ("slot", np.int64)])
"""The last command on a bus: when, which, and for which bank and line (NONE where it has no meaning)."""

SLOT_BITS = 8
AGE_BITS = 39
"""Accesses of a channel are numbered; it would take weeks to simulate so many."""

PLAN = np.dtype([(name, np.int64) for name in ("cycle", "rank", "bank", "known")])
"""The next command of a bus if nothing is enqueued: from when it may issue (FOREVER: none), for the line of which rank
(see :mod:`t3sim.dram.plan`), and in which bank; ``known``: 0 if it is to be found anew."""

LINE = np.dtype(
    [
        ("rank", np.int64),
        ("arrived", np.int64),
        ("tag", np.int64),
        ("matures", np.int64),
        ("row", np.int32),
        *((name, np.int16) for name in ["column", "bank", "kind", "served", "keeps", "touched", "waits", "follower"]),
        ("owner", np.int16),
        *((name, np.int16) for name in ["older", "younger", "bank_older", "bank_younger"]),
    ],
    align=True,
)
"""One access. ``rank``: its age, see :func:`rank_of`; ``served``: its class; ``keeps``: 1 if it keeps its place in the
queue until it is done (an update by atomics); ``matures``: when such an update may write; ``waits``: for an older
access to the same line; ``follower``: the next younger one that waits for this; ``owner``: whose it is. ``younger``
also chains the free slots, ``bank_younger`` the maturing lines."""

STATISTICS = (
    *("reads", "writes", "updates"),
    *("row_hits", "row_misses", "row_conflicts"),
    *("turnarounds", "bus_cycles", "activates", "precharges", "refreshes"),
    *("atomic_reads", "mode_switches"),
)
"""Counts per channel: accesses by kind (when their last column command issues); row hits, misses (bank closed) and
conflicts (other row open), once per column command at the first command towards it; changes of data-bus direction;
data-bus clocks; row commands; reads that belong to an atomic update (besides ``reads``); PIM mode switches."""

CHANNEL = np.dtype(
    [
        ("wake", np.int64),
        ("next_choice", np.int64),  # when what is served is to be looked at: refresh, age, PIM mode, class
        ("next_refresh", np.int64),
        ("refresh_ready", np.int64),
        ("row_bus", np.int64),
        ("next_order", np.int64),
        ("serving", np.int64),  # the candidates of what is served
        ("overdue", np.int64),  # the line that is served first because it is overdue, and its bank, kept for it
        ("kept_bank", np.int64),
        ("refreshes_due", np.int64),
        ("mode", np.int64),
        ("mode_since", np.int64),
        ("switching", np.int64),  # 1 from when the other mode is wanted until the switch issues
        ("oldest", np.int64, (2,)),  # per mode in which they are served: of all lines that are not done
        ("youngest", np.int64, (2,)),
        ("maturing", np.int64),  # first and last update in the controller's ALU
        ("maturing_last", np.int64),
        ("next_mature", np.int64),
        ("free", np.int64),
        ("last_column", np.int64),  # READ or WRITE
        ("next_act", np.int64),  # place in recent_acts
        ("recent_acts", np.int64, (4,)),
        ("open_mask", np.int64),  # banks with an open row
        ("active_mask", np.int64),  # banks whose command register holds a line
        ("active_writes", np.int64),  # banks whose command register holds one that is written
        ("hit_mask", np.int64),  # the hits that there are
        ("miss_mask", np.int64),
        ("waiting", np.int64, (CLASSES,)),  # lines in the queue that may be served, or wait for one of the same line
        ("held", np.int64, (2,)),  # places of the queue in use: by reads, and by writes and updates
        *((name, np.int64) for name in STATISTICS),
        ("row_plan", PLAN),
        ("column_plan", PLAN),
        ("row_command", COMMAND),
        ("column_command", COMMAND),
        # Ranks of lines: of that in the command register, and of the oldest one whose row is open, or is not.
        ("active", np.int64, (BANKS,)),
        ("hit", np.int64, (CANDIDATES,)),
        ("miss", np.int64, (CANDIDATES,)),
        ("alike", np.uint8, (BANKS, MAX_ROW_LINES)),  # lines that are not done, by bank and column
        ("bank_oldest", np.int16, (BANKS,)),
        ("bank_youngest", np.int16, (BANKS,)),
        ("open_row", np.int64, (BANKS,)),
        ("row_owner", np.int64, (BANKS,)),  # whose line moved last in the open row, or opened it
        ("conflicts", np.int64, (OWNERS, OWNERS)),  # row conflicts: of whose line, with whose row
        # First cycles at which timing allows a command, per scope: every bank, bank group and the channel.
        ("column_ready", np.int64, (2, SCOPES)),
        ("act_ready", np.int64, (SCOPES,)),
        ("pre_ready", np.int64, (BANKS,)),
        ("distance", DISTANCES),
        ("line", LINE, (SLOTS,)),
    ],
    align=True,
)
"""State of one pseudo-channel. Slots are NONE if empty, ranks FOREVER."""


class HbmState(NamedTuple):
    """The pseudo-channels of one GPU."""

    channel: np.ndarray
    """[channel] :data:`CHANNEL` records."""


def new_hbm_state(parameters: HbmSection, channels: int) -> HbmState:
    """Idle pseudo-channels, all banks closed, before cycle 0. ValueError if ``channels`` is below 1."""
    if channels < 1:
        raise ValueError(f"HBM: channels must be at least 1, not {channels}")
    channel = np.zeros(channels, CHANNEL)
    channel["distance"] = distances(parameters)
    channel["next_refresh"] = channel["distance"]["refresh_interval"]
    channel["serving"] = READS
    channel["recent_acts"] = -FOREVER
    channel["next_mature"] = FOREVER
    channel["row_command"]["cycle"] = channel["column_command"]["cycle"] = NONE
    for name in (
        "overdue",
        "kept_bank",
        "oldest",
        "youngest",
        "maturing",
        "maturing_last",
        "last_column",
        "open_row",
        "bank_oldest",
        "bank_youngest",
    ):
        channel[name] = NONE
    for name in ("active", "hit", "miss"):
        channel[name] = FOREVER
    channel["line"]["younger"] = [*range(1, SLOTS), NONE]
    return HbmState(channel)


def statistics(hbm: HbmState, c: int) -> dict[str, int]:
    """The counts of channel ``c`` by name (see :data:`STATISTICS`)."""
    return {name: int(hbm.channel[c][name]) for name in STATISTICS}


@intrinsic
def lowest_bit(typingctx, mask):
    """Number of the lowest 1 of a non-zero int64."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@njit(cache=True, nogil=True)
def command_of(served):
    """The column command of a line of class ``served``: READ, or WRITE for writes and updates."""
    return READ if served == READ else WRITE


@njit(cache=True, nogil=True)
def candidate_of(served, bank):
    """The number of a bank's candidate of class ``served``."""
    return served * BANKS + bank


@njit(cache=True, nogil=True)
def rank_of(number, slot):
    """The rank of the access with this number, in ``slot``: lowest for the oldest."""
    return number << SLOT_BITS | slot


@njit(cache=True, nogil=True)
def slot_of(rank):
    """The slot of a line by its rank."""
    return rank & (1 << SLOT_BITS) - 1
