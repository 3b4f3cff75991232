"""The GEMM on the CUs: workgroup tiles in dispatch order, a K-loop over slabs that are prefetched, then the stores.

A workgroup computes whole tiles, edge tiles included (masked lanes take their time). It holds its place on a CU until
its stores are accepted or performed, as the machine says. The workgroups of a CU share its matrix unit, its path from
the LLC and its store path, each in the order in which they ask for it.
"""

from t3sim.common.compiled import compiled_inner
from t3sim.common.scale import ceil_scaled

from .llc import flush, read_line, write_segment
from .state import BINS, COMPUTING, CU_CLOCKS, IDLE, NEVER_CYCLE, RELEASING, STARTING, STORING, WAITING


@compiled_inner
def clock_at(g, cycle):
    """The first CU clock edge at or after a memory cycle."""
    return ceil_scaled(cycle, g.p[0].clock_num, g.p[0].clock_den)


@compiled_inner
def cycle_at(g, clock):
    """The first memory cycle at or after a CU clock edge."""
    return ceil_scaled(clock, g.p[0].clock_den, g.p[0].clock_num)


@compiled_inner
def _cu_of(g, wg):
    """The CU on which a workgroup's place is."""
    return g.cus[wg % g.p[0].cus]


@compiled_inner
def _stalled(g, wg, now):
    """Account for the time until ``now`` in which workgroup ``wg`` waited and its CU computed nothing: its cycles."""
    shared = _cu_of(g, wg)
    since = max(g.workgroups[wg].stall_since, shared.accounted)
    shared.accounted = max(shared.accounted, now)
    return max(0, now - since)


@compiled_inner
def _schedule(g, c, state, event):
    s = g.s[0]
    c.state = state
    c.event = event
    s.cu_next = min(s.cu_next, event)


@compiled_inner
def _load_block(g, wg, slot, base, pitch, k0, k1, first, last, now):
    """Load rows k0 to k1 of an input, elements ``first`` to ``last`` (FP16), through the LLC."""
    llc_bytes = g.p[0].llc_line * 32
    low, high = 2 * first // llc_bytes, (2 * last - 1) // llc_bytes
    for k in range(k0, k1):
        start = (base + k * pitch) // g.p[0].llc_line
        for line in range(start + low, start + high + 1):
            read_line(g, line, wg, slot, now)


@compiled_inner
def _issue_slab(g, wg, slab, now):
    """Start to load slab ``slab`` of a tile: rows of A^T and of B, both stored with K as the row."""
    p, c = g.p[0], g.workgroups[wg]
    slot = slab % g.slab_left.shape[1]
    g.slab_left[wg, slot] = 0
    g.slab_ready[wg, slot] = now
    k0, k1 = slab * p.slab_k, min(p.k, (slab + 1) * p.slab_k)
    row, col = c.row * p.tile_rows, c.col * p.tile_cols
    last_row, last_col = min(p.m, row + p.tile_rows), min(p.n, col + p.tile_cols)
    _load_block(g, wg, slot, p.a_base, p.a_pitch, k0, k1, row, last_row, now)
    _load_block(g, wg, slot, p.b_base, p.b_pitch, k0, k1, col, last_col, now)
    # FP16 elements take their turn on the CU's path from the cache; the first arrive after the cache's latency.
    shared = _cu_of(g, wg)
    nbytes = 2 * (k1 - k0) * (last_row - row + last_col - col)
    shared.path_free = max(shared.path_free, clock_at(g, now)) - (-nbytes // p.llc_bytes_per_clock)
    ready = cycle_at(g, shared.path_free) + p.llc_latency
    g.slab_ready[wg, slot] = max(g.slab_ready[wg, slot], ready)


@compiled_inner
def _account_busy(g, start, end):
    """Add the CU clocks from ``start`` to ``end`` to the timeline's bins."""
    p = g.p[0]
    while start < end:
        index = min(cycle_at(g, start) // p.bin_cycles, BINS - 1)
        until = end if index == BINS - 1 else min(end, max(start + 1, clock_at(g, (index + 1) * p.bin_cycles)))
        g.bins[CU_CLOCKS, index] += until - start
        start = until


@compiled_inner
def _await_slab(g, wg, now):
    """Start the next slab as soon as its data are there."""
    c = g.workgroups[wg]
    slot = c.slab % g.slab_left.shape[1]
    c.stall_since = now
    if g.slab_left[wg, slot] > 0:
        c.state = WAITING
        c.event = NEVER_CYCLE
    elif g.slab_ready[wg, slot] > now:
        _schedule(g, c, STARTING, g.slab_ready[wg, slot])
    else:
        _compute(g, wg, now)


@compiled_inner
def _compute(g, wg, now):
    """Compute one slab, and let the load of a later one go into the buffer that this one's predecessor left."""
    p, c, s, shared = g.p[0], g.workgroups[wg], g.s[0], _cu_of(g, wg)
    s.stall_cycles = s.stall_cycles + _stalled(g, wg, now)
    clocks = p.last_slab_clocks if c.slab == p.slabs - 1 else p.slab_clocks
    # A slab that follows at once starts at the clock edge at which the last one ended, not at a rounded cycle.
    if c.stall_since < now or c.slab == 0:
        c.clock = clock_at(g, now)
    start = max(c.clock, shared.matrix_free)
    c.clock = start + clocks
    shared.matrix_free = c.clock
    shared.accounted = cycle_at(g, c.clock)
    _account_busy(g, start, c.clock)
    if p.prefetch > 0 and c.slab + p.prefetch < p.slabs:
        _issue_slab(g, wg, c.slab + p.prefetch, now)
    _schedule(g, c, COMPUTING, cycle_at(g, c.clock))


@compiled_inner
def dispatch(g, wg, now):
    """Give a free place the next workgroup, if one is left."""
    p, c, s = g.p[0], g.workgroups[wg], g.s[0]
    if s.wg_next == p.tiles:
        c.state = IDLE
        c.event = NEVER_CYCLE
        return
    c.row, c.col = g.order[s.wg_next, 0], g.order[s.wg_next, 1]
    c.stage = s.wg_next // p.workgroups
    g.stages[c.stage, 0] = min(g.stages[c.stage, 0], now)
    s.wg_next = s.wg_next + 1
    s.resident = s.resident + 1
    c.slab = 0
    for slab in range(min(p.slabs, max(1, p.prefetch))):
        _issue_slab(g, wg, slab, now)
    _await_slab(g, wg, now)


@compiled_inner
def dispatch_stage(g, now):
    """Launch: a workgroup for every place; every CU has one before any has two."""
    s = g.s[0]
    s.stage_left = min(g.p[0].workgroups, g.p[0].tiles - s.wg_next)
    for wg in range(g.p[0].workgroups):
        dispatch(g, wg, now)


@compiled_inner
def _begin_stores(g, wg, now):
    """The tile is computed: write it to the LLC (cached output) or queue it at the CU's egress port."""
    p, c, shared = g.p[0], g.workgroups[wg], _cu_of(g, wg)
    rows = min(p.tile_rows, p.m - c.row * p.tile_rows)
    lines = min(p.tile_lines, p.pitch - c.col * p.tile_lines)
    first = p.out_base + c.row * p.tile_rows * p.pitch + c.col * p.tile_lines
    c.stall_since = now
    start = max(c.clock, shared.store_free)
    shared.store_free = start - (-rows * lines * 32 // p.store_bytes_per_clock)
    if p.cached_output:
        for row in range(rows):
            write_segment(g, first + row * p.pitch, lines, now)
        _schedule(g, c, RELEASING, cycle_at(g, shared.store_free))
        return
    c.state = STORING
    c.event = NEVER_CYCLE
    c.store_row = c.store_line = 0
    c.store_rows = rows
    c.store_start = max(now, cycle_at(g, start))
    c.store_left = rows * lines
    port = wg % p.cus % p.ports
    g.store_workgroups[port, g.store_count[port]] = wg
    g.store_count[port] += 1
    g.port_wake[port] = now


@compiled_inner
def stored(g, wg, lines, now):
    """``lines`` stores of a tile are accepted (or performed); after the last one its place is free."""
    c = g.workgroups[wg]
    c.store_left = c.store_left - lines
    if c.store_left == 0:
        _schedule(g, c, RELEASING, now)


@compiled_inner
def _hold_stores(g, c):
    """Whether workgroup ``c`` keeps its place, as too many lines are on their way from the LLC to DRAM."""
    p, s = g.p[0], g.s[0]
    if not p.cached_output or s.write_backs <= p.write_backs:
        return False
    c.event = NEVER_CYCLE
    s.stores_held = s.stores_held + 1
    return True


@compiled_inner
def written_back(g, now):
    """A write-back of the LLC is performed: stores go on when few enough are left."""
    p, s = g.p[0], g.s[0]
    s.write_backs = s.write_backs - 1
    if s.stores_held == 0 or s.write_backs > p.write_backs:
        return
    s.stores_held = 0
    for wg in range(p.workgroups):
        c = g.workgroups[wg]
        if c.state == RELEASING and c.event == NEVER_CYCLE:
            _schedule(g, c, RELEASING, now)


@compiled_inner
def _release(g, wg, now):
    p, c, s = g.p[0], g.workgroups[wg], g.s[0]
    s.store_stall_cycles = s.store_stall_cycles + _stalled(g, wg, now)
    s.resident = s.resident - 1
    s.wg_done = s.wg_done + 1
    c.state = IDLE
    c.event = NEVER_CYCLE
    g.stages[c.stage, 1] = max(g.stages[c.stage, 1], now)
    if s.wg_done == p.tiles:
        s.gemm_end = now
        flush(g, now)
    elif not p.stage_barrier:
        dispatch(g, wg, now)
    else:
        s.stage_left = s.stage_left - 1
        if s.stage_left == 0:
            dispatch_stage(g, now)


@compiled_inner
def run_cus(g, now):
    """Handle the workgroups' events that are due, in order of their places."""
    s = g.s[0]
    s.cu_next = NEVER_CYCLE
    for wg in range(g.p[0].workgroups):
        c = g.workgroups[wg]
        while c.event <= now:
            state = c.state
            if state == COMPUTING:
                c.slab = c.slab + 1
                if c.slab == g.p[0].slabs:
                    _begin_stores(g, wg, now)
                else:
                    if g.p[0].prefetch == 0:
                        _issue_slab(g, wg, c.slab, now)
                    _await_slab(g, wg, now)
            elif state == RELEASING:
                if not _hold_stores(g, c):
                    _release(g, wg, now)
            else:
                _compute(g, wg, now)
    for wg in range(g.p[0].workgroups):
        s.cu_next = min(s.cu_next, g.workgroups[wg].event)
