"""One memory channel: request queues, the MemorySlice (RTL or golden), and the pseudo-channel behind it.

A slice is evaluated only in cycles in which something can change in it; by the hardware's idle promise
(docs/hardware/rules.md, rule 5) leaving out the others is exact. What counts as a change: a transfer on a stream, a
change of a level input (the occupancy only while communication waits below a threshold, since only that looks at it),
or its own deadline.
"""

from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import BURST_LINES, NEVER

from t3sim.common.compiled import compiled_inner
from t3sim.dram.hbm import accepts, enqueue, is_empty, occupancy, tick
from t3sim.dram.state import CHANNEL
from t3sim.hardware.abi import address_of
from t3sim.hardware.words import READ, REQUEST, STORE, get, place, take

from .completion import is_update, line_done
from .compute import stored
from .ports import SLICE_IN, SLICE_OUT
from .requests import ARRIVED, free_burst, local_line_of, stream_of
from .row_segments import free_row_segment
from .state import GEMM_WRITE, INT64, NEVER_CYCLE, QUEUES, STREAMS, WAIT_BINS, record
from .words import OF_SLICE, SLICE, part_in, part_out

_QUEUES = ("compute_read", "compute_write", "comm_read", "comm_write")
QUEUE_IN = tuple(getattr(SLICE_IN, f"{name}_payload") for name in _QUEUES)
QUEUE_READY = tuple(getattr(SLICE_OUT, f"{name}_ready") for name in _QUEUES)
QUEUE_VALID = SLICE_IN.compute_read_valid - SLICE_IN.compute_read_payload
"""A request stream's valid, counted from its payload."""
QUEUES_PER_STREAM = QUEUES // STREAMS
COMPUTE, COMMUNICATION = range(STREAMS)
_OF_STREAM = tuple(((1 << QUEUES_PER_STREAM) - 1) << QUEUES_PER_STREAM * stream for stream in range(STREAMS))
"""The request queues of each stream, as bits."""
REFUSED_VALID = SLICE_OUT.compute_refused_valid, SLICE_OUT.comm_refused_valid
STALE_VALID = SLICE_OUT.compute_stale_valid, SLICE_OUT.comm_stale_valid
REFUSED = SLICE_OUT.compute_refused, SLICE_OUT.comm_refused
"""What is refused, for either reason: both ports have the same word."""
BY_STREAM, BY_THRESHOLD, BY_QUEUE, BY_TRACKER = range(4)
DRAM_READ, DRAM_WRITE, DRAM_UPDATE = range(3)
_OP = REQUEST.op.mask << REQUEST.op.shift

# A channel in front of DRAM. ``due``: the cycle from which on its slice must be looked at, of which ``slice_wake`` is
# when it must be evaluated; ``hbm_wake``: when DRAM must be. Of the request queues the first and last burst, and from
# which cycle on the first is ``usable`` (NEVER_CYCLE: there is none); of the streams the bursts in the slice and what
# they wait for; ``occupancy``: what the slice last saw; ``visited``: cycle of the last look at it; ``token_take``: its
# token is taken in this cycle.
FRONT = record(
    due="i8", slice_wake="i8", hbm_wake="i8", visited="i8", usable=("i8", (QUEUES,)),
    head=("i4", (QUEUES,)), tail=("i4", (QUEUES,)),
    inside=("i4", (STREAMS,)), blocked_by=("i4", (STREAMS,)), occupancy="i4", token_take="?",
)  # fmt: skip

FIELDS = {
    "channel": (CHANNEL, 1),  # the HBM model's pseudo-channels
    "channel_wake": (INT64, 1),
    "fronts": (FRONT, 1),  # [channels]
    "wait": (INT64, 2),  # [2, WAIT_BINS]
    "blocked": (INT64, 3),  # [stages + 1, 2, 4] cycles blocked, as in BY_*; the last row is after the GEMM
    "blocked_stage": (INT64, 1),  # the row of ``blocked`` that is counted in
}


@compiled_inner
def _accept(g, c, n, op, now):
    """The DRAM queue takes the lines of a burst out of the slice: from now on they are counted."""
    own, burst, front = g.own, g.bursts[n], g.fronts[c]
    line = take(burst.word0, REQUEST.line)
    kind = DRAM_READ if op == READ else (DRAM_WRITE if op == STORE else DRAM_UPDATE)
    # Visible to the scheduler from the next cycle on, like every registered word.
    first = local_line_of(line, g.fabric.channels)
    front.hbm_wake = enqueue(g, c, now + 1, first, burst.lines, kind, n * BURST_LINES, burst.cause)
    wait = now - burst.available
    stream = stream_of(burst.queue)
    g.wait[stream, min(wait, WAIT_BINS - 1)] += burst.lines
    front.inside[stream] -= 1
    if is_update(op) and g.part_chunk[burst.part] == g.link.gpu:
        own.counted_lines = own.counted_lines + burst.lines
    if burst.cause == GEMM_WRITE and not g.gemm.hold_store and burst.owner >= 0:
        stored(g, burst.owner, burst.lines, now + 1)
    burst.word0 = (burst.word0 & ~_OP) | place(REQUEST.op, op)


@compiled_inner
def _waiting(front, now):
    """Request queues whose head can go into the slice at ``now``, as bits."""
    waiting = 0
    for queue in range(QUEUES):
        if front.usable[queue] <= now:
            waiting |= 1 << queue
    return waiting


@compiled_inner
def _present(g, front, waiting, base):
    """Put the heads of the request queues that can go (as bits) on the slice's inputs."""
    for queue in range(QUEUES):
        at = base + QUEUE_IN[queue]
        valid = waiting >> queue & 1
        g.words[at + QUEUE_VALID] = valid
        if valid:
            burst = g.bursts[front.head[queue]]
            g.words[at] = burst.word0
            g.words[at + 1] = burst.word1


@compiled_inner
def _pop(g, front, queue):
    """The slice took the head of a request queue. An arrived packet frees its room in the receive buffer."""
    burst = g.bursts[front.head[queue]]
    front.head[queue] = burst.next
    front.usable[queue] = g.bursts[burst.next].available if burst.next >= 0 else NEVER_CYCLE
    if burst.next < 0:
        front.tail[queue] = -1
    front.inside[stream_of(queue)] += 1
    if burst.owner == ARRIVED:
        g.link.freed_lines = g.link.freed_lines + burst.lines


@compiled_inner
def _has_room(g, c, out):
    """Whether the DRAM queue has room for all lines of the burst that the slice offers."""
    payload = out + SLICE_OUT.dram_payload
    is_write = get(g.words, payload, REQUEST.op) != READ
    return accepts(g, c, is_write, get(g.words, payload, REQUEST.length) + 1)


@compiled_inner
def _heeds_occupancy(g, base, out):
    """Whether a change of the occupancy matters to the slice: its arbiter compares that while communication waits."""
    return g.words[out + SLICE_OUT.wake_at] != NEVER and g.words[base + SLICE_IN.threshold] != NO_LIMIT


@compiled_inner
def _block_reason(g, c, base, out, stream, waiting, taken):
    """What the bursts of a stream wait for after this visit (BY_*); -1 if none waits, or its own one has its turn.

    ``waiting``: queues whose head waits for the slice, as bits; ``taken``: those whose head it has just taken, which
    could not be granted yet.
    """
    words = g.words
    offered, word0 = words[out + SLICE_OUT.dram_valid], words[out + SLICE_OUT.dram_payload]
    own = take(word0, REQUEST.stream) == stream
    front = g.fronts[c]
    held = front.inside[stream] - (offered and own)
    if offered:
        if held == 0 and waiting & _OF_STREAM[stream] == 0:
            return -1
        if not _has_room(g, c, out):
            return BY_QUEUE
        return -1 if own else BY_STREAM
    for queue in range(QUEUES):
        held -= taken & _OF_STREAM[stream] & 1 << queue != 0
    if held == 0:
        return -1
    limit = words[base + SLICE_IN.threshold]
    compute_first = g.unit.mca and not g.unit.behind
    if stream == COMMUNICATION and compute_first and limit != NO_LIMIT and front.occupancy >= limit:
        return BY_THRESHOLD
    return BY_TRACKER  # with an empty output only a full token queue refuses a burst


@compiled_inner
def _account_blocked(g, front, now):
    """Attribute the cycles since the last visit to what each stream waited for."""
    for stream in range(STREAMS):
        if front.blocked_by[stream] >= 0:
            g.blocked[g.blocked_stage[0], stream, front.blocked_by[stream]] += now - front.visited
    front.visited = now


@compiled_inner
def note_stage(g, now):
    """Account for what was blocked until a new stage of the GEMM began, or the GEMM ended.

    A stage is begun by its first workgroup; with free dispatch the last ones of the stage before are still at work. To
    be called before any channel is looked at in this cycle.
    """
    gemm = g.gemm
    last = g.blocked.shape[0] - 1
    stage = last if gemm.end_cycle >= 0 else (gemm.next_tile - 1) // gemm.places
    if stage == g.blocked_stage[0]:
        return
    for c in range(g.fabric.channels):
        _account_blocked(g, g.fronts[c], now)
    g.blocked_stage[0] = stage


@compiled_inner
def run_channel(g, c, step, state_changed, now):
    """Cycle ``now`` of channel ``c``; sets the cycle at which it must be looked at again."""
    front = g.fronts[c]
    while front.hbm_wake < now:  # refreshes of an empty channel, for which no event was scheduled
        front.hbm_wake, _, _ = tick(g, c, front.hbm_wake)
    due = state_changed or front.due <= now
    accepted, op, taken = _run_slice(g, c, step, state_changed, now) if due else (-1, 0, 0)
    if now >= front.hbm_wake:
        front.hbm_wake, tag, done = tick(g, c, now)
        if tag >= 0:
            line_done(g, tag, now, done)
    if accepted >= 0:
        _accept(g, c, accepted, op, now)
    if due:
        _set_due(g, c, taken, now)
    # Refreshes of an empty channel are issued later.
    wake = front.due if is_empty(g, c) else min(front.due, front.hbm_wake)
    g.channel_wake[c] = max(wake, now + 1)


@compiled_inner
def _run_slice(g, c, step, state_changed, now):
    """The slice's part in cycle ``now``.

    Returns the burst that the DRAM queue takes from it (-1: none), its op, and the request queues whose head the slice
    takes, as bits.
    """
    words, front = g.words, g.fronts[c]
    base, out = part_in(g, SLICE, c), part_out(g, SLICE, c)
    _account_blocked(g, front, now)
    waiting, taken = _waiting(front, now), 0
    for queue in range(QUEUES):
        if words[out + QUEUE_READY[queue]]:
            taken |= waiting & 1 << queue
    accepted = -1
    op = get(words, out + SLICE_OUT.dram_payload, REQUEST.op)
    if words[out + SLICE_OUT.dram_valid] and _has_room(g, c, out):
        accepted = get(words, out + SLICE_OUT.dram_payload, REQUEST.tag)
    lines = occupancy(g, c)
    moved = taken or accepted >= 0 or front.token_take
    changed = lines != front.occupancy and _heeds_occupancy(g, base, out)
    if moved or state_changed or changed or now >= front.slice_wake:
        _present(g, front, waiting, base)
        words[base + SLICE_IN.dram_ready] = accepted >= 0
        words[base + SLICE_IN.token_ready] = front.token_take
        words[base + SLICE_IN.occupancy] = lines
        words[base + SLICE_IN.now] = now + g.unit.epoch_cycles
        front.occupancy = lines
        step(g.handles[SLICE + c], address_of(words[base:]), address_of(words[out:]))
        g.evaluated[OF_SLICE] += 1
        front.token_take = False
        _after_step(g, c, out, now)
    if taken:
        _take(g, c, out, taken, now)
    return accepted, op, taken


@compiled_inner
def _take(g, c, out, taken, now):
    """The slice has taken the heads of some queues (as bits), or refused them."""
    for queue in range(QUEUES):
        if taken >> queue & 1:
            _pop(g, g.fronts[c], queue)
    for stream in range(STREAMS):
        if g.words[out + REFUSED_VALID[stream]] or g.words[out + STALE_VALID[stream]]:
            _refused(g, c, stream, get(g.words, out + REFUSED[stream], REQUEST.tag), now)


@compiled_inner
def _after_step(g, c, out, now):
    """Sample the outputs of the slice after an evaluation."""
    unit, words, front = g.unit, g.words, g.fronts[c]
    front.slice_wake = now + 1
    if words[out + SLICE_OUT.idle]:
        wake = words[out + SLICE_OUT.wake_at]
        front.slice_wake = NEVER_CYCLE if wake == NEVER else max(now + 1, wake - unit.epoch_cycles)
    leaf, bit = c >> unit.leaf_bits, 1 << (c & (unit.leaf_inputs - 1))
    if words[out + SLICE_OUT.token_valid]:
        g.leaf_tokens[leaf] |= bit
    else:
        g.leaf_tokens[leaf] &= ~bit
    if words[out + SLICE_OUT.comm_seen]:
        unit.comm_seen = 1


@compiled_inner
def _refused(g, c, stream, n, now):
    """The slice refuses a write, to another context's range or of no live epoch: it ends here, with an error."""
    comm, unit, burst = g.comm, g.unit, g.bursts[n]
    unit.refused = unit.refused + 1
    g.fronts[c].inside[stream] -= 1
    if stream == COMPUTE:
        if burst.owner >= 0:
            stored(g, burst.owner, burst.lines, now)
    else:
        comm.incoming = comm.incoming - 1
        if burst.row >= 0:
            free_row_segment(g, burst.row)
    free_burst(g, n)


@compiled_inner
def _set_due(g, c, taken, now):
    """What the streams wait for from now on, and when the slice must be looked at again.

    ``taken``: as for :func:`_block_reason`.

    A slice with a burst before it, in it or on offer sees every cycle in which DRAM does something: room, and what its
    arbiter's threshold looks at, change then. An empty one waits for the next burst, or for its deadline.
    """
    front, words = g.fronts[c], g.words
    base, out = part_in(g, SLICE, c), part_out(g, SLICE, c)
    waiting = _waiting(front, now)
    for stream in range(STREAMS):
        front.blocked_by[stream] = _block_reason(g, c, base, out, stream, waiting, taken)
    wake = front.slice_wake
    if (waiting or front.inside[COMPUTE] or front.inside[COMMUNICATION]) and not is_empty(g, c):
        wake = min(wake, front.hbm_wake)
    for queue in range(QUEUES):
        if waiting >> queue & 1:
            if words[out + QUEUE_READY[queue]]:
                wake = now + 1
        else:
            wake = min(wake, front.usable[queue])
    if words[out + SLICE_OUT.dram_valid] and _has_room(g, c, out):
        wake = now + 1
    if occupancy(g, c) != front.occupancy and _heeds_occupancy(g, base, out):
        wake = now + 1
    front.due = max(wake, now + 1)
