"""The queue of one pseudo-channel: admission, age, order of accesses to one line.

Lines with the same address form a chain: only the oldest of them may issue, so that accesses to one line are never
reordered. An update that is done by atomics keeps its place in the queue until its write has issued; between its two
column commands it is in the controller's ALU (*maturing*), a first-in-first-out list.
"""

from t3sim.common.compiled import njit

from .state import COMPUTE, FOREVER, MEMORY, NONE, READ, UPDATE, WRITE, command_of, rank_of, slot_of


@njit(cache=True, nogil=True)
def has_room(channel, command, lines):
    """Whether ``lines`` more lines that are read or written (``command`` READ or WRITE) can wait."""
    held, distance = channel.held, channel.distance
    limit = distance.read_lines if command == READ else distance.write_lines
    return held[command] + lines <= limit and held[READ] + held[WRITE] + lines <= distance.all_lines


@njit(cache=True, nogil=True)
def insert(channel, now, bank, row, column, kind, tag, owner):
    """Puts an access into the queue (there must be room: RuntimeError) and returns its slot."""
    command, distance = command_of(kind), channel.distance
    if not has_room(channel, command, 1):
        raise RuntimeError("HBM: access to a full queue; ask accepts() before enqueue()")
    slot = channel.free
    line = channel.line[slot]
    channel.free = line.younger
    line.rank = rank_of(channel.next_order, slot)
    channel.next_order += 1
    line.arrived, line.tag, line.row, line.column = now, tag, row, column
    line.bank, line.kind, line.touched, line.follower = bank, kind, 0, NONE
    line.owner = owner
    line.served, line.keeps = kind, 0
    if kind == UPDATE:
        line.served, line.keeps = distance.update_served, distance.atomic
    elder = _youngest_of_same_line(channel, bank, row, column)
    channel.alike[bank, column] += 1
    line.waits = elder != NONE
    if elder != NONE:
        channel.line[elder].follower = slot
    _append(channel, slot, bank)
    channel.held[command] += 1
    channel.waiting[line.served] += 1
    return slot


@njit(cache=True, nogil=True)
def _youngest_of_same_line(channel, bank, row, column):
    """The youngest access to the same line that is not done, or NONE."""
    if not channel.alike[bank, column]:
        return NONE
    slot = channel.bank_youngest[bank]
    while slot != NONE:
        line = channel.line[slot]
        if line.row == row and line.column == column:
            return slot
        slot = line.bank_older
    if channel.active_mask >> bank & 1:
        slot = slot_of(channel.active[bank])
        if channel.line[slot].row == row and channel.line[slot].column == column:
            return slot
    slot = channel.maturing
    while slot != NONE:
        line = channel.line[slot]
        if line.bank == bank and line.row == row and line.column == column:
            return slot
        slot = line.bank_younger
    return NONE


@njit(cache=True, nogil=True)
def mode_of(served):
    """The mode in which a class is served: COMPUTE for updates of a class of their own, else MEMORY."""
    return COMPUTE if served == UPDATE else MEMORY


@njit(cache=True, nogil=True)
def _append(channel, slot, bank):
    """Makes the slot the youngest of its mode and of its bank."""
    line = channel.line[slot]
    mode = mode_of(line.served)
    line.older, line.younger = channel.youngest[mode], NONE
    line.bank_older, line.bank_younger = channel.bank_youngest[bank], NONE
    if line.older == NONE:
        channel.oldest[mode] = slot
    else:
        channel.line[line.older].younger = slot
    if line.bank_older == NONE:
        channel.bank_oldest[bank] = slot
    else:
        channel.line[line.bank_older].bank_younger = slot
    channel.youngest[mode] = slot
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
    channel.waiting[line.served] -= 1
    channel.held[command_of(line.kind)] -= 1 - line.keeps


@njit(cache=True, nogil=True)
def release(channel, slot):
    """Frees the slot of an issued line; the next access to the same line may issue from now on."""
    line = channel.line[slot]
    mode = mode_of(line.served)
    if line.follower != NONE:
        channel.line[line.follower].waits = 0
    if line.older == NONE:
        channel.oldest[mode] = line.younger
    else:
        channel.line[line.older].younger = line.younger
    if line.younger == NONE:
        channel.youngest[mode] = line.older
    else:
        channel.line[line.younger].older = line.older
    line.younger = channel.free
    channel.free = slot
    channel.alike[line.bank, line.column] -= 1
    channel.held[command_of(line.kind)] -= line.keeps


@njit(cache=True, nogil=True)
def mature(channel, slot, cycle):
    """Puts an update whose line was read into the controller's ALU, to be written from ``cycle`` on."""
    line = channel.line[slot]
    line.served, line.matures, line.touched, line.bank_younger = WRITE, cycle, 0, NONE
    if channel.maturing == NONE:
        channel.maturing, channel.next_mature = slot, cycle
    else:
        channel.line[channel.maturing_last].bank_younger = slot
    channel.maturing_last = slot


@njit(cache=True, nogil=True)
def take_matured(channel):
    """Puts the oldest update of the controller's ALU back into its bank's list, by age, to be written: its slot."""
    slot = channel.maturing
    line = channel.line[slot]
    channel.maturing = line.bank_younger
    channel.next_mature = channel.line[channel.maturing].matures if channel.maturing != NONE else FOREVER
    older, younger = NONE, channel.bank_oldest[line.bank]
    while younger != NONE and channel.line[younger].rank < line.rank:
        older, younger = younger, channel.line[younger].bank_younger
    line.bank_older, line.bank_younger = older, younger
    if older == NONE:
        channel.bank_oldest[line.bank] = slot
    else:
        channel.line[older].bank_younger = slot
    if younger == NONE:
        channel.bank_youngest[line.bank] = slot
    else:
        channel.line[younger].bank_older = slot
    channel.waiting[WRITE] += 1
    return slot
