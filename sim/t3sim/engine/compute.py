"""The GEMM on the CUs: workgroup tiles in dispatch order, a K-loop over slabs that are prefetched, then the stores.

A workgroup computes whole tiles, edge tiles included (masked lanes take their time). It holds its CU until its stores
are accepted or performed, as the machine says.
"""

from .jit import inner
from .llc import flush, read_line, write_segment
from .state import CAUSES, COMPUTING, FAR, IDLE, RELEASING, STARTING, STORING, WAITING


@inner
def clock_at(g, cycle):
    """The first CU clock edge at or after a memory cycle."""
    p = g.p[0]
    return -(-cycle * p.clock_khz // (p.memory_mhz * 1000))


@inner
def cycle_at(g, clock):
    """The first memory cycle at or after a CU clock edge."""
    p = g.p[0]
    return -(-clock * p.memory_mhz * 1000 // p.clock_khz)


@inner
def _schedule(g, c, state, event):
    s = g.s[0]
    c.state = state
    c.event = event
    s.cu_next = min(s.cu_next, event)


@inner
def _load_block(g, cu, slot, base, pitch, k0, k1, first, last, now):
    """Load rows k0 to k1 of an input, elements ``first`` to ``last`` (FP16), through the LLC."""
    llc_bytes = g.p[0].llc_line * 32
    low, high = 2 * first // llc_bytes, (2 * last - 1) // llc_bytes
    for k in range(k0, k1):
        start = (base + k * pitch) // g.p[0].llc_line
        for line in range(start + low, start + high + 1):
            read_line(g, line, cu, slot, now)


@inner
def _issue_slab(g, cu, slab, now):
    """Start to load slab ``slab`` of a CU's tile: rows of A^T and of B, both stored with K as the row."""
    p, c = g.p[0], g.cus[cu]
    slot = slab % g.slab_left.shape[1]
    g.slab_left[cu, slot] = 0
    g.slab_ready[cu, slot] = now
    k0, k1 = slab * p.slab_k, min(p.k, (slab + 1) * p.slab_k)
    row, col = c.row * p.tile_rows, c.col * p.tile_cols
    _load_block(g, cu, slot, p.a_base, p.a_pitch, k0, k1, row, min(p.m, row + p.tile_rows), now)
    _load_block(g, cu, slot, p.b_base, p.b_pitch, k0, k1, col, min(p.n, col + p.tile_cols), now)


@inner
def _await_slab(g, cu, now):
    """Start the next slab as soon as its data are there."""
    c = g.cus[cu]
    slot = c.slab % g.slab_left.shape[1]
    c.stall_since = now
    if g.slab_left[cu, slot] > 0:
        c.state = WAITING
        c.event = FAR
    elif g.slab_ready[cu, slot] > now:
        _schedule(g, c, STARTING, g.slab_ready[cu, slot])
    else:
        _compute(g, cu, now)


@inner
def _compute(g, cu, now):
    """Compute one slab, and let the load of a later one go into the buffer that this one's predecessor left."""
    p, c, s = g.p[0], g.cus[cu], g.s[0]
    s.stall_cycles = s.stall_cycles + now - c.stall_since
    clocks = p.last_slab_clocks if c.slab == p.slabs - 1 else p.slab_clocks
    # A slab that follows at once starts at the clock edge at which the last one ended, not at a rounded cycle.
    if c.stall_since < now or c.slab == 0:
        c.clock = clock_at(g, now)
    c.clock = c.clock + clocks
    g.bins[CAUSES, s.bin] += clocks
    if p.prefetch > 0 and c.slab + p.prefetch < p.slabs:
        _issue_slab(g, cu, c.slab + p.prefetch, now)
    _schedule(g, c, COMPUTING, cycle_at(g, c.clock))


@inner
def dispatch(g, cu, now):
    """Give an idle CU the next workgroup, if one is left."""
    p, c, s = g.p[0], g.cus[cu], g.s[0]
    if s.wg_next == p.tiles:
        c.state = IDLE
        c.event = FAR
        return
    c.row, c.col = g.order[s.wg_next, 0], g.order[s.wg_next, 1]
    c.stage = s.wg_next // p.cus
    g.stages[c.stage, 0] = min(g.stages[c.stage, 0], now)
    s.wg_next = s.wg_next + 1
    s.resident = s.resident + 1
    c.dispatched = now
    c.slab = 0
    for slab in range(min(p.slabs, max(1, p.prefetch))):
        _issue_slab(g, cu, slab, now)
    _await_slab(g, cu, now)


@inner
def dispatch_stage(g, now):
    """Launch: one workgroup for every CU."""
    s = g.s[0]
    s.stage_left = min(g.p[0].cus, g.p[0].tiles - s.wg_next)
    for cu in range(g.p[0].cus):
        dispatch(g, cu, now)


@inner
def _begin_stores(g, cu, now):
    """The tile is computed: write it to the LLC (cached output) or queue it at the CU's egress port."""
    p, c = g.p[0], g.cus[cu]
    rows = min(p.tile_rows, p.m - c.row * p.tile_rows)
    lines = min(p.tile_lines, p.pitch - c.col * p.tile_lines)
    first = p.out_base + c.row * p.tile_rows * p.pitch + c.col * p.tile_lines
    c.stall_since = now
    if p.cached_output:
        for row in range(rows):
            write_segment(g, first + row * p.pitch, lines, now)
        clocks = -(-rows * lines * 32 // p.store_bytes_per_clock)
        _schedule(g, c, RELEASING, cycle_at(g, c.clock + clocks))
        return
    c.state = STORING
    c.event = FAR
    c.store_row = 0
    c.store_rows = rows
    c.store_start = now
    c.store_left = rows * lines
    port = cu % p.ports
    g.jobs_cu[port, g.jobs_count[port]] = cu
    g.jobs_count[port] += 1
    g.port_wake[port] = now


@inner
def stored(g, cu, lines, now):
    """``lines`` stores of a CU's tile are accepted (or performed); after the last one the CU is free."""
    c = g.cus[cu]
    c.store_left = c.store_left - lines
    if c.store_left == 0:
        _schedule(g, c, RELEASING, now)


@inner
def _release(g, cu, now):
    p, c, s = g.p[0], g.cus[cu], g.s[0]
    s.store_stall_cycles = s.store_stall_cycles + now - c.stall_since
    s.resident = s.resident - 1
    s.wg_done = s.wg_done + 1
    c.state = IDLE
    c.event = FAR
    g.stages[c.stage, 1] = max(g.stages[c.stage, 1], now)
    if s.wg_done == p.tiles:
        s.gemm_end = now
        flush(g, now)
    elif not p.stage_barrier:
        dispatch(g, cu, now)
    else:
        s.stage_left = s.stage_left - 1
        if s.stage_left == 0:
            dispatch_stage(g, now)


@inner
def run_cus(g, now):
    """Handle the CU events that are due, in order of CU number."""
    s = g.s[0]
    s.cu_next = FAR
    for cu in range(g.p[0].cus):
        c = g.cus[cu]
        while c.event <= now:
            state = c.state
            if state == COMPUTING:
                c.slab = c.slab + 1
                if c.slab == g.p[0].slabs:
                    _begin_stores(g, cu, now)
                else:
                    if g.p[0].prefetch == 0:
                        _issue_slab(g, cu, c.slab, now)
                    _await_slab(g, cu, now)
            elif state == RELEASING:
                _release(g, cu, now)
            else:
                _compute(g, cu, now)
    for cu in range(g.p[0].cus):
        s.cu_next = min(s.cu_next, g.cus[cu].event)
