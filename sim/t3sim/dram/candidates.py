"""The oldest hit and the oldest miss of each class in a bank: kept while lines come and leave, and rows open and close.

A line that waits for an older access to the same line is none.
"""

from t3sim.common.compiled import njit

from .state import FOREVER, NONE


@njit(cache=True, nogil=True)
def propose(channel, slot):
    """Makes a line of the queue its bank's candidate if it is the oldest of its class; returns whether it is."""
    line = channel.line[slot]
    served, bank = line.served, line.bank
    is_hit = channel.open_row[bank] == line.row
    candidates = channel.hit if is_hit else channel.miss
    if line.waits or candidates[served, bank] < line.rank:
        return False
    candidates[served, bank] = line.rank
    mask = channel.hit_mask if is_hit else channel.miss_mask
    mask[served] |= 1 << bank
    return True


@njit(cache=True, nogil=True)
def succeed_hit(channel, slot):
    """After the bank's hit ``slot`` has left the queue: the next younger one of its class takes its place."""
    line = channel.line[slot]
    served, bank, row = line.served, line.bank, line.row
    slot = line.bank_younger
    while slot != NONE:
        line = channel.line[slot]
        if line.row == row and line.served == served and not line.waits:
            channel.hit[served, bank] = line.rank
            return
        slot = line.bank_younger
    channel.hit[served, bank] = FOREVER
    channel.hit_mask[served] &= ~(1 << bank)


@njit(cache=True, nogil=True)
def sort_by_row(channel, bank):
    """After a row of the bank was opened: finds its candidates anew, since some misses are hits now."""
    others = ~(1 << bank)
    for served in range(channel.distance.classes):
        channel.hit[served, bank] = channel.miss[served, bank] = FOREVER
        channel.hit_mask[served] &= others
        channel.miss_mask[served] &= others
    slot = channel.bank_oldest[bank]
    while slot != NONE:
        propose(channel, slot)
        slot = channel.line[slot].bank_younger


@njit(cache=True, nogil=True)
def join_hits_to_misses(channel, bank):
    """After the bank's row was closed: no line hits any more."""
    bit = 1 << bank
    for served in range(channel.distance.classes):
        channel.miss[served, bank] = min(channel.miss[served, bank], channel.hit[served, bank])
        channel.hit[served, bank] = FOREVER
        channel.miss_mask[served] |= channel.hit_mask[served] & bit
        channel.hit_mask[served] &= ~bit
