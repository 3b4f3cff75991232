"""One GPU in time: all of its models and hardware, from one cycle in which something happens to the next."""

from t3sim.common.compiled import compiled, compiled_inner
from t3sim.dram.state import lowest_bit

from .channel import run_channel
from .compute import dispatch_stage, run_cus
from .egress import run_port
from .link import return_credits, run_link, run_receiver, take_grants
from .mover import run_kernel, run_mover
from .observed.contention import note_stage
from .observed.queues import observe_queues
from .state import BINS, DMA, INT64, KERNEL, MOVERS, integers
from .t3unit.unit import gather_unit, step_unit, unit_wake
from .t3unit.words import OF_MATCHER, OF_NMC, OF_SLICE, TRIGGER, part_out
from .wakes import next_awake, take_awake

COMPUTE, EXPOSED, IDLE_STATE = range(3)
# The GPU's time: the next cycle to simulate (:mod:`.t3unit.program` counts its own), and its bin of the timeline; since
# when the GPU is in its ``state`` (COMPUTE, EXPOSED, IDLE_STATE), cycles in each, and how many exposed intervals are
# noted; ``finish_cycle``: -1 until it is done.
TIME = integers(
    "bin_cycles", "now_cycle", "bin", "state", "state_since_cycle", "compute_cycles", "exposed_cycles", "idle_cycles",
    "exposed_count", "finish_cycle",
)  # fmt: skip

FIELDS = {
    "time": (TIME, 0),
    "bins": (INT64, 2),  # [BIN_ROWS, BINS]: bytes by cause, CU_CLOCKS, LINK_BYTES and so on
    "exposed": (INT64, 2),  # [.., 2]
}


@compiled_inner
def _next_cycle(g, rx_limit, grant_limit, now):
    """The earliest later cycle in which something can happen."""
    gemm, link = g.gemm, g.link
    wake = min(gemm.wake_cycle, link.wake_cycle, g.wakes.unit_cycle, next_awake(g))
    if gemm.start_cycle < 0:
        wake = min(wake, gemm.launch_cycle)
    wake = min(wake, g.movers[DMA].wake_cycle, g.movers[KERNEL].wake_cycle, g.kernel.wake_cycle)
    for port in range(g.egress.ports):
        wake = min(wake, g.port_wake[port])
    if link.rx_tail < rx_limit:
        wake = min(wake, g.rx[link.rx_tail % g.rx.shape[0]].arrival_cycle)
    if link.credit_tail < grant_limit:
        wake = min(wake, g.grants[link.credit_tail % g.grants.shape[0]].arrival_cycle)
    return max(wake, now + 1)


@compiled_inner
def _account(g, now):
    """Close the interval of the GPU's state (compute, exposed, idle) when the state changes."""
    comm, time = g.comm, g.time
    if g.gemm.resident > 0:
        state = COMPUTE
    elif comm.outgoing > 0 or comm.incoming > 0 or g.kernel.state > 0:
        state = EXPOSED
    else:
        state = IDLE_STATE
    if state == time.state:
        return
    close_state(g, now)
    time.state = state
    time.state_since_cycle = now


@compiled
def close_state(g, now):
    """Add the running interval to its kind."""
    time = g.time
    cycles = now - time.state_since_cycle
    if time.state == COMPUTE:
        time.compute_cycles = time.compute_cycles + cycles
    elif time.state == EXPOSED:
        time.exposed_cycles = time.exposed_cycles + cycles
        if cycles > 0 and time.exposed_count < g.exposed.shape[0]:
            g.exposed[time.exposed_count, 0] = time.state_since_cycle
            g.exposed[time.exposed_count, 1] = now
            time.exposed_count = time.exposed_count + 1
    else:
        time.idle_cycles = time.idle_cycles + cycles


@compiled_inner
def _owned_chunk(g, now):
    """Record when this GPU's owned chunk is reduced: counted by the hardware and performed (T3), or written back.

    A neighbour that sends updates gets the room for them only now: before, the cache would write over them.
    """
    link, own = g.link, g.own
    if g.output.cached:
        own.done = int(own.written_bytes == own.output_bytes)
        if own.done:
            link.freed_lines = link.freed_lines + link.posted_lines
            return_credits(g, now)
    else:
        counted = g.words[part_out(g, TRIGGER, 0) + g.at.trigger_done_mask] >> g.descriptor_of[link.gpu] & 1
        if counted and own.counted_lines < own.update_lines:
            own.premature = 1
        own.done = int(counted and own.performed_lines >= own.update_lines)


@compiled_inner
def _finished(g, now):
    """All rectangles sent and every chunk of the all-gather received."""
    comm, kernel, time = g.comm, g.kernel, g.time
    if time.finish_cycle >= 0 or kernel.step < kernel.steps or comm.incoming > 0 or comm.outgoing > 0:
        return
    for part in range(g.part_lines.shape[0]):
        if g.part_chunk[part] != g.link.gpu and g.received[1, part] < g.part_lines[part]:
            return
    time.finish_cycle = max(now, comm.ag_last_cycle)


@compiled
def advance(g, steps, until, rx_limit, grant_limit):
    """Simulate from the GPU's present cycle to cycle ``until`` (exclusive).

    ``rx_limit``, ``grant_limit``: packets and credits of the neighbours' rings that are complete; those that arrive
    before ``until`` must be among them. ``steps``: the hardware's step functions in the order of parts.SIMULATED.
    Returns the next cycle in which something can happen here (NEVER_CYCLE: never, unless the neighbours send).
    """
    gemm, time = g.gemm, g.time
    now = time.now_cycle
    while now < until:
        time.bin = min(now // time.bin_cycles, BINS - 1)
        limit = until if time.bin == BINS - 1 else min(until, (time.bin + 1) * time.bin_cycles)
        if g.queued_bins[0] <= time.bin:
            observe_queues(g)
        if gemm.start_cycle < 0 and now >= gemm.launch_cycle:
            gemm.start_cycle = now
            dispatch_stage(g, now)
        if gemm.wake_cycle <= now:
            run_cus(g, now)
            if g.contention.observed:
                note_stage(g, now)
        run_receiver(g, rx_limit, now)
        take_grants(g, grant_limit, now)
        unit_awake = g.wakes.unit_cycle <= now
        state_changed = gather_unit(g, now) if unit_awake else False
        for port in range(g.egress.ports):
            if g.port_wake[port] <= now:
                run_port(g, port, steps[OF_MATCHER], now)
        for which in range(MOVERS):
            if g.movers[which].wake_cycle <= now:
                run_mover(g, which, now)
        awake = take_awake(g, now)
        if state_changed:
            awake = (1 << g.fabric.channels - 1 << 1) - 1  # all of 1 to 64
        while awake:
            c = lowest_bit(awake)
            awake &= awake - 1
            run_channel(g, c, steps[OF_SLICE], steps[OF_NMC], state_changed, now, limit)
        if unit_awake:
            step_unit(g, steps, now)
            g.wakes.unit_cycle = unit_wake(g, now)
        if g.link.wake_cycle <= now:
            run_link(g, now)
        return_credits(g, now)
        if gemm.end_cycle >= 0:
            if g.own.done == 0:
                _owned_chunk(g, now)
            run_kernel(g, now)
            _finished(g, now)
        _account(g, now)
        now = _next_cycle(g, rx_limit, grant_limit, now)
    time.now_cycle = until
    return now
