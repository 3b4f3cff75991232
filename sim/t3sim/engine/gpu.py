"""One GPU in time: all of its models and hardware, from one cycle in which something happens to the next."""

from t3sim.common.compiled import compiled, compiled_inner

from .channel import run_channel
from .compute import dispatch_stage, run_cus
from .egress import run_port
from .link import return_credits, run_link, run_receiver, take_grants
from .mover import run_kernel, run_mover
from .nmc import run_updates
from .state import BINS, DMA, KERNEL, MOVERS
from .unit import gather_unit, step_unit, unit_wake
from .words import OF_MATCHER, OF_NMC, OF_SLICE, TRIGGER, part_out

COMPUTE, EXPOSED, IDLE_STATE = range(3)


@compiled_inner
def _next_cycle(g, rx_limit, grant_limit, now):
    """The earliest later cycle in which something can happen."""
    p, s = g.p[0], g.s[0]
    wake = min(s.cu_next, s.link_wake, unit_wake(g, now))
    if s.gemm_start < 0:
        wake = min(wake, p.start)
    wake = min(wake, g.movers[DMA].wake, g.movers[KERNEL].wake, s.kernel_wake)
    for port in range(p.ports):
        wake = min(wake, g.port_wake[port])
    if s.rx_tail < rx_limit:
        wake = min(wake, g.rx[s.rx_tail % g.rx.shape[0]].arrival)
    if s.credit_tail < grant_limit:
        wake = min(wake, g.grants[s.credit_tail % g.grants.shape[0]].arrival)
    for c in range(p.channels):
        wake = min(wake, g.channel_wake[c])
    return max(wake, now + 1)


@compiled_inner
def _account(g, now):
    """Close the interval of the GPU's state (compute, exposed, idle) when the state changes."""
    s = g.s[0]
    if s.resident > 0:
        state = COMPUTE
    elif s.outgoing > 0 or s.incoming > 0 or s.kernel_state > 0:
        state = EXPOSED
    else:
        state = IDLE_STATE
    if state == s.state:
        return
    close_state(g, now)
    s.state = state
    s.state_since = now


@compiled
def close_state(g, now):
    """Add the running interval to its kind."""
    s = g.s[0]
    cycles = now - s.state_since
    if s.state == COMPUTE:
        s.compute_cycles = s.compute_cycles + cycles
    elif s.state == EXPOSED:
        s.exposed_cycles = s.exposed_cycles + cycles
        if cycles > 0 and s.exposed_count < g.exposed.shape[0]:
            g.exposed[s.exposed_count, 0] = s.state_since
            g.exposed[s.exposed_count, 1] = now
            s.exposed_count = s.exposed_count + 1
    else:
        s.idle_cycles = s.idle_cycles + cycles


@compiled_inner
def _owned_chunk(g, now):
    """Record when this GPU's owned chunk is reduced: counted by the hardware and performed (T3), or written back.

    A neighbour that sends updates gets the room for them only now: before, the cache would write over them.
    """
    p, s = g.p[0], g.s[0]
    if p.cached_output:
        s.own_done = int(s.own_bytes == p.own_bytes)
        if s.own_done:
            s.credit_now = s.credit_now + p.posted_lines
            return_credits(g, now)
    else:
        counted = g.words[part_out(g, TRIGGER, 0) + g.at[0].trigger_done_mask] >> g.descriptor_of[p.gpu] & 1
        if counted and s.own_counted < p.own_lines:
            s.premature_chunks = 1
        s.own_done = int(counted and s.own_performed >= p.own_lines)


@compiled_inner
def _finished(g, now):
    """All rectangles sent and every chunk of the all-gather received."""
    p, s = g.p[0], g.s[0]
    if s.finish >= 0 or s.job < p.jobs or s.incoming > 0 or s.outgoing > 0:
        return
    for part in range(g.part_lines.shape[0]):
        if g.part_chunk[part] != p.gpu and g.received[1, part] < g.part_lines[part]:
            return
    s.finish = max(now, s.ag_last)


@compiled
def advance(g, steps, until, rx_limit, grant_limit):
    """Simulate from the GPU's present cycle to cycle ``until`` (exclusive).

    ``rx_limit``, ``grant_limit``: packets and credits of the neighbours' rings that are complete; those that arrive
    before ``until`` must be among them. ``steps``: the hardware's step functions in the order of parts.SIMULATED.
    Returns the next cycle in which something can happen here (NEVER_CYCLE: never, unless the neighbours send).
    """
    p, s = g.p[0], g.s[0]
    now = s.now
    while now < until:
        s.bin = min(now // p.bin_cycles, BINS - 1)
        if s.gemm_start < 0 and now >= p.start:
            s.gemm_start = now
            dispatch_stage(g, now)
        if s.cu_next <= now:
            run_cus(g, now)
        run_receiver(g, rx_limit, now)
        take_grants(g, grant_limit, now)
        state_changed = gather_unit(g, now)
        for port in range(p.ports):
            if g.port_wake[port] <= now:
                run_port(g, port, steps[OF_MATCHER], now)
        for which in range(MOVERS):
            if g.movers[which].wake <= now:
                run_mover(g, which, now)
        for c in range(p.channels):
            if state_changed or g.channel_wake[c] <= now:
                run_channel(g, c, steps[OF_SLICE], state_changed, now)
        step_unit(g, steps, now)
        if s.update_count:
            run_updates(g, steps[OF_NMC])
        if s.link_wake <= now:
            run_link(g, now)
        return_credits(g, now)
        if s.gemm_end >= 0:
            if s.own_done == 0:
                _owned_chunk(g, now)
            run_kernel(g, now)
            _finished(g, now)
        _account(g, now)
        now = _next_cycle(g, rx_limit, grant_limit, now)
    s.now = until
    return now
