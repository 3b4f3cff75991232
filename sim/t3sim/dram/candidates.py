"""The oldest hit and the oldest miss of each class in a bank: kept while lines come and leave, and rows open and close.

A line that waits for an older access to the same line is none.
"""

from t3sim.common.compiled import njit

from .state import ALL_CLASSES, FOREVER, NONE, candidate_of


@njit(cache=True, nogil=True)
def propose(channel, slot):
    """Makes a line of the queue its bank's candidate if it is the oldest of its class; returns whether it is."""
    line = channel.line[slot]
    candidate = candidate_of(line.served, line.bank)
    is_hit = channel.open_row[line.bank] == line.row
    ranks = channel.hit if is_hit else channel.miss
    if line.waits or ranks[candidate] < line.rank:
        return False
    ranks[candidate] = line.rank
    if is_hit:
        channel.hit_mask |= 1 << candidate
    else:
        channel.miss_mask |= 1 << candidate
    return True


@njit(cache=True, nogil=True)
def succeed_hit(channel, slot):
    """After the bank's hit ``slot`` has left the queue: the next younger one of its class takes its place."""
    line = channel.line[slot]
    served, row, candidate = line.served, line.row, candidate_of(line.served, line.bank)
    slot = line.bank_younger
    while slot != NONE:
        line = channel.line[slot]
        if line.row == row and line.served == served and not line.waits:
            channel.hit[candidate] = line.rank
            return
        slot = line.bank_younger
    channel.hit[candidate] = FOREVER
    channel.hit_mask &= ~(1 << candidate)


@njit(cache=True, nogil=True)
def sort_by_row(channel, bank):
    """After a row of the bank was opened: finds its candidates anew, since some misses are hits now."""
    for served in range(channel.distance.classes):
        candidate = candidate_of(served, bank)
        channel.hit[candidate] = channel.miss[candidate] = FOREVER
    channel.hit_mask &= ~(ALL_CLASSES << bank)
    channel.miss_mask &= ~(ALL_CLASSES << bank)
    slot = channel.bank_oldest[bank]
    while slot != NONE:
        propose(channel, slot)
        slot = channel.line[slot].bank_younger


@njit(cache=True, nogil=True)
def join_hits_to_misses(channel, bank):
    """After the bank's row was closed: no line hits any more."""
    for served in range(channel.distance.classes):
        candidate = candidate_of(served, bank)
        channel.miss[candidate] = min(channel.miss[candidate], channel.hit[candidate])
        channel.hit[candidate] = FOREVER
    hits = channel.hit_mask & ALL_CLASSES << bank
    channel.miss_mask |= hits
    channel.hit_mask ^= hits
