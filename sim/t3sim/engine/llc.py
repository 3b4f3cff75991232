"""The last-level cache: set-associative, write-back without fetch, misses to one line merged.

Inputs of the GEMM are read through it. Without T3 its output is written through it too; with T3 the output
bypasses it. Dirty state is kept per 32-byte sector, so a line that two tiles share is written back once per byte.
"""

from t3sim.common.compiled import compiled_inner
from t3sim.hardware.words import STORE

from .requests import burst_lines, line_bytes, make_burst, request_llc_line, send
from .state import COMPUTE_WRITE, GEMM_WRITE, INT32, INT64, NEVER_CYCLE, WAITING, WRITE_BACK, integers, record

EMPTY = -1

# One way of a set of the LLC, or a spare entry for a miss that found every way waiting. ``left``: bursts that it waits
# for, and ``waiter`` the first of those who wait for them (-1: none); ``fill_cycle``: when it is filled; ``dirty``: a
# bit per sector; ``next_spare``: the next free spare entry.
LLC_ENTRY = record(fill_cycle="i8", tag="i4", waiter="i4", left="i4", dirty="i4", next_spare="i4")

# The cache. Constants: ``set_mask``: -1 unless ``sets`` is a power of two; ``entry_lines``: 32-byte lines of an LLC
# line; ``bytes_per_clock``: of a CU's path from it. State: how often it was used; the first spare entry that is free;
# bursts on their way from it to DRAM, which :mod:`.compute` counts down: workgroups leave their CUs while there are at
# most ``most_write_backs``.
LLC = integers(
    "sets", "set_mask", "ways", "entry_lines", "latency_cycles", "random", "bytes_per_clock", "most_write_backs",
    "uses", "spare_free", "write_backs",
)  # fmt: skip

FIELDS = {
    "llc": (LLC, 0),
    "llc_entries": (LLC_ENTRY, 1),  # [sets * ways + spare entries]
    "llc_used": (INT64, 1),  # [sets * ways] how often the cache had been used when an entry was; apart, to be searched
    "llc_place": (INT32, 1),  # [LLC lines of all buffers] the entry that holds a line, plus 1; 0: none
    "waiters": (INT32, 2),  # [workgroups * slots, lines of a slab] the next who waits for the same line
}


@compiled_inner
def _set_of(g, line):
    """First entry of the set of an LLC line; upper address bits are folded in, so strides spread."""
    llc = g.llc
    folded = line ^ (line >> 7) ^ (line >> 13) ^ (line >> 21)
    index = folded & llc.set_mask if llc.set_mask >= 0 else folded % llc.sets
    return index * llc.ways


@compiled_inner
def _store(g, line, lines, now):
    """Send output lines to memory, as bursts."""
    llc = g.llc
    while lines > 0:
        count = burst_lines(line, lines)
        nbytes = 0
        for i in range(count):  # they may belong to two output rows
            nbytes += line_bytes(g, line + i)
        send(g, make_burst(g, line, count, STORE, GEMM_WRITE, COMPUTE_WRITE, nbytes, WRITE_BACK, 0), now)
        llc.write_backs = llc.write_backs + 1
        line += count
        lines -= count


@compiled_inner
def _write_back(g, entry, now):
    """Send an entry's dirty sectors to memory, those that follow each other together."""
    first = entry.tag * g.llc.entry_lines
    dirty = entry.dirty & 0xFFFFFFFF  # of 32 sectors the last one is the sign
    while dirty:
        while not dirty & 1:
            first, dirty = first + 1, dirty >> 1
        lines = 0
        while dirty & 1:
            lines, dirty = lines + 1, dirty >> 1
        _store(g, first, lines, now)
        first += lines
    entry.dirty = 0


@compiled_inner
def _lru_victim(g, first):
    """The entry of a set that is empty or least recently used; -1 if all wait for memory."""
    oldest, victim = NEVER_CYCLE, -1
    for n in range(first, first + g.llc.ways):
        if g.llc_used[n] < oldest:
            oldest, victim = g.llc_used[n], n
    if g.llc_entries[victim].left == 0:  # nearly always: what waits for memory was used lately
        return victim
    oldest, victim = NEVER_CYCLE, -1
    for n in range(first, first + g.llc.ways):
        if g.llc_used[n] < oldest and g.llc_entries[n].left == 0:
            oldest, victim = g.llc_used[n], n
    return victim


@compiled_inner
def _random_victim(g, first):
    """The entry of a set that is empty or comes up by chance; -1 if all wait for memory.

    Chance is a hash of the set and of how often the cache was used (the multipliers are those of MurmurHash3's
    finalizer), so that a run can be repeated. A way that waits passes its turn to the next one.
    """
    ways = g.llc.ways
    for n in range(first, first + ways):
        if g.llc_entries[n].tag == EMPTY and g.llc_entries[n].left == 0:
            return n
    mixed = (first * 0x9E3779B1 + g.llc.uses) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    turn = (mixed ^ (mixed >> 16)) % ways
    for i in range(ways):
        n = first + (turn + i) % ways
        if g.llc_entries[n].left == 0:
            return n
    return -1


@compiled_inner
def _allocate(g, line, now):
    """An entry for ``line`` in its set, which is given up by another line; -1 if all wait for memory."""
    first = _set_of(g, line)
    victim = _random_victim(g, first) if g.llc.random else _lru_victim(g, first)
    if victim >= 0:
        entry = g.llc_entries[victim]
        if entry.dirty:
            _write_back(g, entry, now)
        if entry.tag != EMPTY:
            g.llc_place[entry.tag] = 0
        entry.tag = line
        g.llc_place[line] = victim + 1
    return victim


@compiled_inner
def _touch(g, n):
    llc = g.llc
    llc.uses = llc.uses + 1
    g.llc_used[n] = llc.uses


@compiled_inner
def _wait_for(g, entry, n):
    """Let slab ``n`` wait for an entry's fill. A slab asks for all its lines before the first is answered."""
    slab = g.slabs[n]
    g.waiters[n, slab.left] = entry.waiter
    entry.waiter = n * g.waiters.shape[1] + slab.left
    slab.left = slab.left + 1


@compiled_inner
def _miss(g, line, now):
    """Fetch a line that the LLC does not hold: the entry that waits for it."""
    n = _allocate(g, line, now)
    if n < 0:
        # Every way waits for memory: fetch without allocating, through a spare entry.
        n = g.llc.spare_free
        if n < 0:
            raise RuntimeError("the LLC's spare miss entries are exhausted")
        g.llc.spare_free = g.llc_entries[n].next_spare
        g.llc_entries[n].tag = EMPTY
    entry = g.llc_entries[n]
    entry.fill_cycle, entry.waiter = 0, -1
    entry.left = request_llc_line(g, n, line, now + g.llc.latency_cycles)
    return n


@compiled_inner
def read_line(g, line, n, now):
    """One LLC line of slab ``n``: ready after the LLC's latency, or when DRAM has answered."""
    place = g.llc_place[line] - 1
    if place < 0:
        place = _miss(g, line, now)
    entry = g.llc_entries[place]
    if entry.tag != EMPTY:
        _touch(g, place)
    if entry.left > 0:
        _wait_for(g, entry, n)
        return
    slab = g.slabs[n]
    slab.ready_cycle = max(slab.ready_cycle, max(now, entry.fill_cycle) + g.llc.latency_cycles)


@compiled_inner
def cache_burst_read(g, n, done):
    """One burst of entry ``n`` is read at cycle ``done``: the last one wakes the slabs that wait for the LLC line."""
    llc, entry = g.llc, g.llc_entries[n]
    entry.fill_cycle = max(entry.fill_cycle, done)
    entry.left = entry.left - 1
    if entry.left > 0:
        return
    entry.fill_cycle = entry.fill_cycle + g.fabric.response_cycles
    w = entry.waiter
    while w >= 0:
        slab = w // g.waiters.shape[1]
        _slab_answered(g, slab, entry.fill_cycle)
        w = g.waiters[slab, w % g.waiters.shape[1]]
    entry.waiter = -1
    if entry.tag == EMPTY:
        entry.next_spare = llc.spare_free
        llc.spare_free = n


@compiled_inner
def _slab_answered(g, n, ready):
    """A line that slab ``n`` waits for is there at cycle ``ready``; after the last one its workgroup can go on."""
    gemm, slab = g.gemm, g.slabs[n]
    slab.ready_cycle = max(slab.ready_cycle, ready)
    slab.left = slab.left - 1
    if slab.left > 0:
        return
    c = g.workgroups[n // gemm.slots]
    if c.state == WAITING and c.slab % gemm.slots == n % gemm.slots:
        c.event_cycle = slab.ready_cycle
        gemm.wake_cycle = min(gemm.wake_cycle, c.event_cycle)


@compiled_inner
def write_segment(g, line, lines, now):
    """Write ``lines`` output lines from ``line`` on into the LLC (no fetch: sectors)."""
    per_line = g.llc.entry_lines
    end = line + lines
    while line < end:
        tag = line // per_line
        count = min(end, (tag + 1) * per_line) - line
        n = g.llc_place[tag] - 1
        if n < 0:
            n = _allocate(g, tag, now)
            if n >= 0:
                g.llc_entries[n].fill_cycle = now
        if n >= 0:
            entry = g.llc_entries[n]
            entry.dirty = entry.dirty | ((1 << count) - 1) << line % per_line
            _touch(g, n)
        else:
            _store(g, line, count, now)
        line += count


@compiled_inner
def flush(g, now):
    """Kernel boundary: write back what is dirty, forget the rest."""
    for n in range(g.llc.sets * g.llc.ways):
        entry = g.llc_entries[n]
        if entry.dirty:
            _write_back(g, entry, now)
        if entry.tag != EMPTY:
            g.llc_place[entry.tag] = 0
        entry.tag = EMPTY
        g.llc_used[n] = 0
