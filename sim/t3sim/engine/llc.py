"""The last-level cache: set-associative, write-back without fetch, misses to one line merged.

Inputs of the GEMM are read through it. Without T3 its output is written through it too; with T3 the output
bypasses it. Dirty state is kept per 32-byte sector, so a line that two tiles share is written back once per byte.
"""

from t3sim.common.compiled import compiled_inner
from t3sim.hardware.words import STORE

from .requests import NOBODY, burst_lines, line_bytes, make_burst, request_llc_line, send
from .state import COMPUTE_WRITE, GEMM_WRITE, WAITING

EMPTY = -1
WAITER_WG, WAITER_SLOT, WAITER_NEXT = range(3)
"""Words of a record of ``waiters``: workgroup, the slot of its slab, the next waiter."""
WAITER_WORDS = WAITER_NEXT + 1


@compiled_inner
def _set_of(g, line):
    """First entry of the set of an LLC line; upper address bits are folded in, so strides spread."""
    p = g.p[0]
    folded = line ^ (line >> 7) ^ (line >> 13) ^ (line >> 21)
    index = folded & p.llc_mask if p.llc_mask >= 0 else folded % p.llc_sets
    return index * p.llc_ways


@compiled_inner
def _find(g, line):
    """The entry that holds ``line``, or -1."""
    first = _set_of(g, line)
    for entry in range(first, first + g.p[0].llc_ways):
        if g.llc_tag[entry] == line:
            return entry
    return -1


@compiled_inner
def _store(g, line, lines, now):
    """Send output lines to memory, as bursts."""
    s = g.s[0]
    while lines > 0:
        count = burst_lines(line, lines)
        nbytes = 0
        for i in range(count):  # they may belong to two output rows
            nbytes += line_bytes(g, line + i)
        send(g, make_burst(g, line, count, STORE, GEMM_WRITE, COMPUTE_WRITE, nbytes, NOBODY), now)
        s.write_backs = s.write_backs + 1
        line += count
        lines -= count


@compiled_inner
def _write_back(g, entry, now):
    """Send an entry's dirty sectors to memory, those that follow each other together."""
    first = g.llc_tag[entry] * g.p[0].llc_line
    dirty = g.llc_dirty[entry] & 0xFFFFFFFF  # of 32 sectors the last one is the sign
    while dirty:
        while not dirty & 1:
            first, dirty = first + 1, dirty >> 1
        lines = 0
        while dirty & 1:
            lines, dirty = lines + 1, dirty >> 1
        _store(g, first, lines, now)
        first += lines
    g.llc_dirty[entry] = 0


@compiled_inner
def _lru_victim(g, first):
    """The entry of a set that is empty or least recently used; -1 if all wait for memory."""
    victim = -1
    oldest = 1 << 62
    for entry in range(first, first + g.p[0].llc_ways):
        if g.llc_left[entry] == 0 and g.llc_used[entry] < oldest:
            oldest = g.llc_used[entry]
            victim = entry
    return victim


@compiled_inner
def _random_victim(g, first):
    """The entry of a set that is empty or comes up by chance; -1 if all wait for memory.

    Chance is a hash of the set and of how often the cache was used (the multipliers are those of MurmurHash3's
    finalizer), so that a run can be repeated. A way that waits passes its turn to the next one.
    """
    ways = g.p[0].llc_ways
    for entry in range(first, first + ways):
        if g.llc_tag[entry] == EMPTY and g.llc_left[entry] == 0:
            return entry
    mixed = (first * 0x9E3779B1 + g.s[0].llc_stamp) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    turn = (mixed ^ (mixed >> 16)) % ways
    for i in range(ways):
        entry = first + (turn + i) % ways
        if g.llc_left[entry] == 0:
            return entry
    return -1


@compiled_inner
def _allocate(g, line, now):
    """An entry for ``line`` in its set, which is given up by another line; -1 if all wait for memory."""
    first = _set_of(g, line)
    victim = _random_victim(g, first) if g.p[0].llc_random else _lru_victim(g, first)
    if victim >= 0:
        if g.llc_dirty[victim]:
            _write_back(g, victim, now)
        g.llc_tag[victim] = line
    return victim


@compiled_inner
def _touch(g, entry):
    s = g.s[0]
    s.llc_stamp = s.llc_stamp + 1
    g.llc_used[entry] = s.llc_stamp


@compiled_inner
def _wait_for(g, entry, wg, slot):
    """Let a workgroup's slab wait for an entry's fill."""
    s = g.s[0]
    w = s.waiter_free
    if w < 0:
        raise RuntimeError("the pool of LLC waiters is exhausted")
    s.waiter_free = g.waiters[w, WAITER_NEXT]
    g.waiters[w, WAITER_WG] = wg
    g.waiters[w, WAITER_SLOT] = slot
    g.waiters[w, WAITER_NEXT] = g.llc_waiter[entry]
    g.llc_waiter[entry] = w
    g.slab_left[wg, slot] += 1


@compiled_inner
def read_line(g, line, wg, slot, now):
    """One LLC line of a slab: ready after the LLC's latency, or when DRAM has answered."""
    entry = _find(g, line)
    if entry < 0:
        entry = _allocate(g, line, now)
        if entry < 0:
            # Every way waits for memory: fetch without allocating, through a spare entry.
            s = g.s[0]
            entry = s.mshr_free
            if entry < 0:
                raise RuntimeError("the LLC's spare miss entries are exhausted")
            s.mshr_free = g.llc_used[entry]
            g.llc_tag[entry] = EMPTY
        g.llc_fill[entry] = 0
        g.llc_waiter[entry] = -1
        g.llc_left[entry] = request_llc_line(g, entry, line, now + g.p[0].llc_latency)
    if entry < g.p[0].llc_sets * g.p[0].llc_ways:
        _touch(g, entry)
    if g.llc_left[entry] > 0:
        _wait_for(g, entry, wg, slot)
        return
    ready = max(now, g.llc_fill[entry]) + g.p[0].llc_latency
    g.slab_ready[wg, slot] = max(g.slab_ready[wg, slot], ready)


@compiled_inner
def cache_burst_read(g, entry, done):
    """One burst of an entry is read at cycle ``done``: the last one wakes the slabs that wait for the LLC line."""
    p, s = g.p[0], g.s[0]
    g.llc_fill[entry] = max(g.llc_fill[entry], done)
    g.llc_left[entry] -= 1
    if g.llc_left[entry] > 0:
        return
    ready = g.llc_fill[entry] + p.response
    g.llc_fill[entry] = ready
    w = g.llc_waiter[entry]
    while w >= 0:
        wg, slot, following = g.waiters[w, WAITER_WG], g.waiters[w, WAITER_SLOT], g.waiters[w, WAITER_NEXT]
        g.slab_ready[wg, slot] = max(g.slab_ready[wg, slot], ready)
        g.slab_left[wg, slot] -= 1
        c = g.workgroups[wg]
        if c.state == WAITING and g.slab_left[wg, slot] == 0 and c.slab % g.slab_left.shape[1] == slot:
            c.event = g.slab_ready[wg, slot]
            s.cu_next = min(s.cu_next, c.event)
        g.waiters[w, WAITER_NEXT] = s.waiter_free
        s.waiter_free = w
        w = following
    g.llc_waiter[entry] = -1
    if entry >= p.llc_sets * p.llc_ways:
        g.llc_used[entry] = s.mshr_free
        s.mshr_free = entry


@compiled_inner
def write_segment(g, line, lines, now):
    """Write ``lines`` output lines from ``line`` on into the LLC (no fetch: sectors)."""
    per_line = g.p[0].llc_line
    end = line + lines
    while line < end:
        tag = line // per_line
        count = min(end, (tag + 1) * per_line) - line
        entry = _find(g, tag)
        if entry < 0:
            entry = _allocate(g, tag, now)
            if entry >= 0:
                g.llc_fill[entry] = now
        if entry >= 0:
            g.llc_dirty[entry] |= ((1 << count) - 1) << line % per_line
            _touch(g, entry)
        else:
            _store(g, line, count, now)
        line += count


@compiled_inner
def flush(g, now):
    """Kernel boundary: write back what is dirty, forget the rest."""
    for entry in range(g.p[0].llc_sets * g.p[0].llc_ways):
        if g.llc_dirty[entry]:
            _write_back(g, entry, now)
        g.llc_tag[entry] = EMPTY
        g.llc_used[entry] = 0
