"""The GEMM on the CUs: workgroup tiles in dispatch order, a K-loop over slabs that are prefetched, then the stores.

A workgroup computes whole tiles, edge tiles included (masked lanes take their time). It holds its place on a CU until
its stores are accepted or performed, as the machine says. The workgroups of a CU share its matrix unit, its path from
the LLC and its store path, each in the order in which they ask for it.
"""

from t3sim.common.compiled import compiled_inner
from t3sim.common.scale import ceil_scaled

from .llc import flush, read_line, write_segment
from .state import (
    BINS,
    COMPUTING,
    CU_CLOCKS,
    IDLE,
    INT64,
    NEVER_CYCLE,
    RELEASING,
    STARTING,
    STORING,
    WAITING,
    integers,
    record,
)

# A place for a workgroup on a CU, and the one that it holds; ``end_clock``: CU clock at which its last slab is
# computed; ``store_row``, ``store_line``: the row of the tile, and the line of that, from which on it has yet to be
# stored.
WORKGROUP = record(
    state="i4", row="i4", col="i4", slab="i4", event_cycle="i8", end_clock="i8", store_left="i8", store_row="i4",
    store_line="i4", store_rows="i4", store_start_cycle="i8", stage="i4", stalled_since_cycle="i8",
)  # fmt: skip

# What the workgroups of a CU share: clocks from which its matrix unit, its path from the LLC and its store path are
# free, and the cycle until which its time is accounted for as computing or stalled.
CU = record(matrix_free_clock="i8", path_free_clock="i8", store_free_clock="i8", accounted_cycle="i8")

# A slab that is loaded: LLC lines that are missing, and the cycle from which on the others are there.
SLAB = record(left="i8", ready_cycle="i8")

# The GEMM on this GPU's CUs. Constants: ``places`` for workgroups on the ``cus``; ``clock_num / clock_den``: CU clocks
# in a memory clock; the inputs' first lines, and lines from row to row; ``hold_store``: a place is free when its stores
# are performed, not accepted. State: ``next_tile`` in dispatch order; ``resident`` workgroups; ``stage_left``: those of
# this stage that are not done; ``stores_held``: workgroups that wait until fewer lines are on their way from the LLC,
# which moves ``wake_cycle`` ahead when a slab is there. The launch is in :mod:`.gpu`.
GEMM = integers(
    "cus", "places", "clock_num", "clock_den", "k", "slab_k", "slabs", "slots", "slab_clocks", "last_slab_clocks",
    "prefetch_slabs", "stage_barrier", "hold_store", "store_bytes_per_clock", "a_line", "b_line", "a_pitch_lines",
    "b_pitch_lines", "launch_cycle",
    "next_tile", "tiles_done", "resident", "stage_left", "stores_held", "wake_cycle", "start_cycle", "end_cycle",
    "load_stall_cycles", "store_stall_cycles",
)  # fmt: skip

FIELDS = {
    "gemm": (GEMM, 0),
    "order": (INT64, 2),  # [tiles, 2] dispatch order
    "cus": (CU, 1),
    "workgroups": (WORKGROUP, 1),  # place i is on CU i % cus
    "slabs": (SLAB, 1),  # [workgroups * slots] with one slot more than slabs are prefetched
    "stages": (INT64, 2),  # [stages, 2] first dispatch, last release
}


@compiled_inner
def clock_at(g, cycle):
    """The first CU clock edge at or after a memory cycle."""
    return ceil_scaled(cycle, g.gemm.clock_num, g.gemm.clock_den)


@compiled_inner
def cycle_at(g, clock):
    """The first memory cycle at or after a CU clock edge."""
    return ceil_scaled(clock, g.gemm.clock_den, g.gemm.clock_num)


@compiled_inner
def _cu_of(g, wg):
    """The CU on which a workgroup's place is."""
    return g.cus[wg % g.gemm.cus]


@compiled_inner
def _stalled(g, wg, now):
    """Account for the time until ``now`` in which workgroup ``wg`` waited and its CU computed nothing: its cycles."""
    shared = _cu_of(g, wg)
    since = max(g.workgroups[wg].stalled_since_cycle, shared.accounted_cycle)
    shared.accounted_cycle = max(shared.accounted_cycle, now)
    return max(0, now - since)


@compiled_inner
def _schedule(g, c, state, event):
    gemm = g.gemm
    c.state = state
    c.event_cycle = event
    gemm.wake_cycle = min(gemm.wake_cycle, event)


@compiled_inner
def _load_block(g, n, base, pitch, k0, k1, first, last, now):
    """Load rows k0 to k1 of an input, elements ``first`` to ``last`` (FP16), through the LLC, for slab ``n``."""
    per_line = g.llc.entry_lines
    low, high = 2 * first // (32 * per_line), (2 * last - 1) // (32 * per_line)
    base, pitch = base // per_line, pitch // per_line  # both are whole LLC lines
    for k in range(k0, k1):
        start = base + k * pitch
        for line in range(start + low, start + high + 1):
            read_line(g, line, n, now)


@compiled_inner
def _slab_of(g, wg, slab):
    """The record of slab ``slab`` of a workgroup's tile."""
    return wg * g.gemm.slots + slab % g.gemm.slots


@compiled_inner
def _issue_slab(g, wg, slab, now):
    """Start to load slab ``slab`` of a tile: rows of A^T and of B, both stored with K as the row."""
    gemm, llc, output, c = g.gemm, g.llc, g.output, g.workgroups[wg]
    n = _slab_of(g, wg, slab)
    load = g.slabs[n]
    load.left, load.ready_cycle = 0, now
    k0, k1 = slab * gemm.slab_k, min(gemm.k, (slab + 1) * gemm.slab_k)
    row, col = c.row * output.tile_rows, c.col * output.tile_cols
    last_row, last_col = min(output.m, row + output.tile_rows), min(output.n, col + output.tile_cols)
    _load_block(g, n, gemm.a_line, gemm.a_pitch_lines, k0, k1, row, last_row, now)
    _load_block(g, n, gemm.b_line, gemm.b_pitch_lines, k0, k1, col, last_col, now)
    # FP16 elements take their turn on the CU's path from the cache; the first arrive after the cache's latency.
    shared = _cu_of(g, wg)
    nbytes = 2 * (k1 - k0) * (last_row - row + last_col - col)
    shared.path_free_clock = max(shared.path_free_clock, clock_at(g, now)) - (-nbytes // llc.bytes_per_clock)
    load.ready_cycle = max(load.ready_cycle, cycle_at(g, shared.path_free_clock) + llc.latency_cycles)


@compiled_inner
def _account_busy(g, start, end):
    """Add the CU clocks from ``start`` to ``end`` to the timeline's bins."""
    time = g.time
    while start < end:
        index = min(cycle_at(g, start) // time.bin_cycles, BINS - 1)
        until = end if index == BINS - 1 else min(end, max(start + 1, clock_at(g, (index + 1) * time.bin_cycles)))
        g.bins[CU_CLOCKS, index] += until - start
        start = until


@compiled_inner
def _await_slab(g, wg, now):
    """Start the next slab as soon as its data are there."""
    c = g.workgroups[wg]
    load = g.slabs[_slab_of(g, wg, c.slab)]
    c.stalled_since_cycle = now
    if load.left > 0:
        c.state = WAITING
        c.event_cycle = NEVER_CYCLE
    elif load.ready_cycle > now:
        _schedule(g, c, STARTING, load.ready_cycle)
    else:
        _compute(g, wg, now)


@compiled_inner
def _compute(g, wg, now):
    """Compute one slab, and let the load of a later one go into the buffer that this one's predecessor left."""
    gemm, c, shared = g.gemm, g.workgroups[wg], _cu_of(g, wg)
    gemm.load_stall_cycles = gemm.load_stall_cycles + _stalled(g, wg, now)
    clocks = gemm.last_slab_clocks if c.slab == gemm.slabs - 1 else gemm.slab_clocks
    # A slab that follows at once starts at the clock edge at which the last one ended, not at a rounded cycle.
    if c.stalled_since_cycle < now or c.slab == 0:
        c.end_clock = clock_at(g, now)
    start = max(c.end_clock, shared.matrix_free_clock)
    c.end_clock = start + clocks
    shared.matrix_free_clock = c.end_clock
    shared.accounted_cycle = cycle_at(g, c.end_clock)
    _account_busy(g, start, c.end_clock)
    if gemm.prefetch_slabs > 0 and c.slab + gemm.prefetch_slabs < gemm.slabs:
        _issue_slab(g, wg, c.slab + gemm.prefetch_slabs, now)
    _schedule(g, c, COMPUTING, cycle_at(g, c.end_clock))


@compiled_inner
def dispatch(g, wg, now):
    """Give a free place the next workgroup, if one is left."""
    gemm, c = g.gemm, g.workgroups[wg]
    if gemm.next_tile == g.output.tiles:
        c.state = IDLE
        c.event_cycle = NEVER_CYCLE
        return
    c.row, c.col = g.order[gemm.next_tile, 0], g.order[gemm.next_tile, 1]
    c.stage = gemm.next_tile // gemm.places
    g.stages[c.stage, 0] = min(g.stages[c.stage, 0], now)
    gemm.next_tile = gemm.next_tile + 1
    gemm.resident = gemm.resident + 1
    c.slab = 0
    for slab in range(min(gemm.slabs, max(1, gemm.prefetch_slabs))):
        _issue_slab(g, wg, slab, now)
    _await_slab(g, wg, now)


@compiled_inner
def dispatch_stage(g, now):
    """Launch: a workgroup for every place; every CU has one before any has two."""
    gemm = g.gemm
    gemm.stage_left = min(gemm.places, g.output.tiles - gemm.next_tile)
    for wg in range(gemm.places):
        dispatch(g, wg, now)


@compiled_inner
def _begin_stores(g, wg, now):
    """The tile is computed: write it to the LLC (cached output) or queue it at the CU's egress port."""
    gemm, output, c, shared = g.gemm, g.output, g.workgroups[wg], _cu_of(g, wg)
    rows = min(output.tile_rows, output.m - c.row * output.tile_rows)
    lines = min(output.tile_lines, output.pitch_lines - c.col * output.tile_lines)
    first = output.line + c.row * output.tile_rows * output.pitch_lines + c.col * output.tile_lines
    c.stalled_since_cycle = now
    start = max(c.end_clock, shared.store_free_clock)
    shared.store_free_clock = start - (-rows * lines * 32 // gemm.store_bytes_per_clock)
    if output.cached:
        for row in range(rows):
            write_segment(g, first + row * output.pitch_lines, lines, now)
        _schedule(g, c, RELEASING, cycle_at(g, shared.store_free_clock))
        return
    c.state = STORING
    c.event_cycle = NEVER_CYCLE
    c.store_row = c.store_line = 0
    c.store_rows = rows
    c.store_start_cycle = max(now, cycle_at(g, start))
    c.store_left = rows * lines
    port = wg % gemm.cus % g.egress.ports
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
    gemm, llc = g.gemm, g.llc
    if not g.output.cached or llc.write_backs <= llc.most_write_backs:
        return False
    c.event_cycle = NEVER_CYCLE
    gemm.stores_held = gemm.stores_held + 1
    return True


@compiled_inner
def written_back(g, now):
    """A write-back of the LLC is performed: workgroups leave their CUs when few enough are left."""
    gemm, llc = g.gemm, g.llc
    llc.write_backs = llc.write_backs - 1
    if gemm.stores_held == 0 or llc.write_backs > llc.most_write_backs:
        return
    gemm.stores_held = 0
    for wg in range(gemm.places):
        c = g.workgroups[wg]
        if c.state == RELEASING and c.event_cycle == NEVER_CYCLE:
            _schedule(g, c, RELEASING, now)


@compiled_inner
def _release(g, wg, now):
    gemm, c = g.gemm, g.workgroups[wg]
    gemm.store_stall_cycles = gemm.store_stall_cycles + _stalled(g, wg, now)
    gemm.resident = gemm.resident - 1
    gemm.tiles_done = gemm.tiles_done + 1
    c.state = IDLE
    c.event_cycle = NEVER_CYCLE
    g.stages[c.stage, 1] = max(g.stages[c.stage, 1], now)
    if gemm.tiles_done == g.output.tiles:
        gemm.end_cycle = now
        flush(g, now)
    elif not gemm.stage_barrier:
        dispatch(g, wg, now)
    else:
        gemm.stage_left = gemm.stage_left - 1
        if gemm.stage_left == 0:
            dispatch_stage(g, now)


@compiled_inner
def run_cus(g, now):
    """Handle the workgroups' events that are due, in order of their places."""
    gemm = g.gemm
    gemm.wake_cycle = NEVER_CYCLE
    for wg in range(gemm.places):
        c = g.workgroups[wg]
        while c.event_cycle <= now:
            state = c.state
            if state == COMPUTING:
                c.slab = c.slab + 1
                if c.slab == gemm.slabs:
                    _begin_stores(g, wg, now)
                else:
                    if gemm.prefetch_slabs == 0:
                        _issue_slab(g, wg, c.slab, now)
                    _await_slab(g, wg, now)
            elif state == RELEASING:
                if not _hold_stores(g, c):
                    _release(g, wg, now)
            else:
                _compute(g, wg, now)
    for wg in range(gemm.places):
        gemm.wake_cycle = min(gemm.wake_cycle, g.workgroups[wg].event_cycle)
