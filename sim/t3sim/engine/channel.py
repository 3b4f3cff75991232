"""One memory channel: request queues, the MemorySlice (RTL or golden), and the pseudo-channel behind it.

A slice is evaluated only in cycles in which something can change in it; by the hardware's idle promise
(docs/hardware/rules.md, rule 5) leaving out the others is exact. What counts as a change: a transfer on a stream, a
change of a level input (the occupancy only while communication waits, since only the arbiter's threshold looks at it),
or its own deadline.
"""

from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import BURST_LINES, NEVER

from t3sim.common.compiled import compiled_inner
from t3sim.dram.hbm import accepts, enqueue, is_empty, occupancy, tick
from t3sim.hardware.abi import address_of
from t3sim.hardware.words import READ, REQUEST, STORE, get, place, take

from .completion import is_update, line_done
from .compute import stored
from .ports import SLICE_IN, SLICE_OUT
from .requests import ARRIVED, free_burst, local_line_of, stream_of
from .row_segments import free_row_segment
from .state import GEMM_WRITE, NEVER_CYCLE, WAIT_BINS
from .words import OF_SLICE, SLICE, part_in, part_out

_QUEUES = ("compute_read", "compute_write", "comm_read", "comm_write")
QUEUE_IN = tuple(getattr(SLICE_IN, f"{name}_payload") for name in _QUEUES)
QUEUE_READY = tuple(getattr(SLICE_OUT, f"{name}_ready") for name in _QUEUES)
QUEUE_VALID = SLICE_IN.compute_read_valid - SLICE_IN.compute_read_payload
"""A request stream's valid, counted from its payload."""
QUEUES, STREAMS = len(_QUEUES), 2
QUEUES_PER_STREAM = QUEUES // STREAMS
COMPUTE, COMMUNICATION = range(STREAMS)
REFUSED_VALID = SLICE_OUT.compute_refused_valid, SLICE_OUT.comm_refused_valid
STALE_VALID = SLICE_OUT.compute_stale_valid, SLICE_OUT.comm_stale_valid
REFUSED = SLICE_OUT.compute_refused, SLICE_OUT.comm_refused
"""What is refused, for either reason: both ports have the same word."""
BY_STREAM, BY_THRESHOLD, BY_QUEUE, BY_TRACKER = range(4)
DRAM_READ, DRAM_WRITE, DRAM_UPDATE = range(3)
_OP = REQUEST.op.mask << REQUEST.op.shift


@compiled_inner
def _accept(g, c, n, op, now):
    """The DRAM queue takes the lines of a burst out of the slice: from now on they are counted."""
    p, s, burst = g.p[0], g.s[0], g.bursts[n]
    line = take(burst.word0, REQUEST.line)
    kind = DRAM_READ if op == READ else (DRAM_WRITE if op == STORE else DRAM_UPDATE)
    # Visible to the scheduler from the next cycle on, like every registered word.
    first = local_line_of(line, p.channels)
    g.hbm_wake[c] = enqueue(g, c, now + 1, first, burst.lines, kind, n * BURST_LINES)
    wait = now - burst.available
    stream = stream_of(burst.queue)
    g.wait[stream, min(wait, WAIT_BINS - 1)] += burst.lines
    g.inside[stream, c] -= 1
    if is_update(op) and g.part_chunk[burst.part] == p.gpu:
        s.own_counted = s.own_counted + burst.lines
    if burst.cause == GEMM_WRITE and not p.hold_store and burst.owner >= 0:
        stored(g, burst.owner, burst.lines, now + 1)
    burst.word0 = (burst.word0 & ~_OP) | place(REQUEST.op, op)


@compiled_inner
def _present(g, c, queue, base, now):
    """Put the head of a request queue on the slice's input; whether it is valid."""
    n = g.head[queue, c]
    at = base + QUEUE_IN[queue]
    valid = n >= 0 and g.bursts[n].available <= now
    g.words[at + QUEUE_VALID] = valid
    if valid:
        g.words[at] = g.bursts[n].word0
        g.words[at + 1] = g.bursts[n].word1
    return valid


@compiled_inner
def _pop(g, c, queue):
    """The slice took the head of a request queue. An arrived packet frees its room in the receive buffer."""
    n = g.head[queue, c]
    burst = g.bursts[n]
    g.head[queue, c] = burst.next
    if burst.next < 0:
        g.tail[queue, c] = -1
    g.inside[stream_of(queue), c] += 1
    if burst.owner == ARRIVED:
        g.s[0].credit_now = g.s[0].credit_now + burst.lines


@compiled_inner
def _has_room(g, c, out):
    """Whether the DRAM queue has room for all lines of the burst that the slice offers."""
    payload = out + SLICE_OUT.dram_payload
    is_write = get(g.words, payload, REQUEST.op) != READ
    return accepts(g, c, is_write, get(g.words, payload, REQUEST.length) + 1)


@compiled_inner
def _block_reason(g, c, base, out, stream):
    """What the bursts of a stream wait for after this visit (BY_*); -1 if none waits, or its own one has its turn."""
    words = g.words
    offered, word0 = words[out + SLICE_OUT.dram_valid], words[out + SLICE_OUT.dram_payload]
    own = take(word0, REQUEST.stream) == stream
    waiting = g.inside[stream, c] - (offered and own)
    first = QUEUES_PER_STREAM * stream
    for queue in range(first, first + QUEUES_PER_STREAM):
        waiting += g.head[queue, c] >= 0 and g.bursts[g.head[queue, c]].available <= g.visited[c]
    if waiting == 0:
        return -1
    if offered:
        if not _has_room(g, c, out):
            return BY_QUEUE
        return -1 if own else BY_STREAM
    limit = words[base + SLICE_IN.threshold]
    if stream == COMMUNICATION and g.p[0].mca and limit != NO_LIMIT and occupancy(g, c) >= limit:
        return BY_THRESHOLD
    # With an empty output only a full token queue refuses a burst.
    return BY_TRACKER if words[out + SLICE_OUT.token_valid] else -1


@compiled_inner
def _account_blocked(g, c, now):
    """Attribute the cycles since the last visit to what each stream waited for."""
    for stream in range(STREAMS):
        if g.block_reason[stream, c] >= 0:
            g.blocked[stream, g.block_reason[stream, c]] += now - g.visited[c]
    g.visited[c] = now


@compiled_inner
def run_channel(g, c, step, state_changed, now):
    """Cycle ``now`` of channel ``c``; sets the cycle at which it must be looked at again."""
    p = g.p[0]
    base, out = part_in(g, SLICE, c), part_out(g, SLICE, c)
    words = g.words
    while g.hbm_wake[c] < now:  # refreshes of an empty channel, for which no event was scheduled
        g.hbm_wake[c], _, _ = tick(g, c, g.hbm_wake[c])
    _account_blocked(g, c, now)
    transfer = state_changed or now >= g.slice_wake[c]
    taken = 0
    for queue in range(QUEUES):
        if _present(g, c, queue, base, now) and words[out + QUEUE_READY[queue]]:
            taken |= 1 << queue
    accepted = -1
    op = get(words, out + SLICE_OUT.dram_payload, REQUEST.op)
    if words[out + SLICE_OUT.dram_valid] and _has_room(g, c, out):
        accepted = get(words, out + SLICE_OUT.dram_payload, REQUEST.tag)
    lines = occupancy(g, c)
    if lines != g.occupancy[c] and words[out + SLICE_OUT.wake_at] != NEVER:
        transfer = True
    transfer = transfer or taken or accepted >= 0 or g.token_take[c]
    if transfer:
        words[base + SLICE_IN.dram_ready] = accepted >= 0
        words[base + SLICE_IN.token_ready] = g.token_take[c]
        words[base + SLICE_IN.occupancy] = lines
        words[base + SLICE_IN.now] = now + p.epoch
        g.occupancy[c] = lines
        step(g.handles[SLICE + c], address_of(words[base:]), address_of(words[out:]))
        g.evaluated[OF_SLICE] += 1
        g.token_take[c] = False
        _after_step(g, c, out, now)
    for queue in range(QUEUES):
        if taken >> queue & 1:
            _pop(g, c, queue)
    for stream in range(STREAMS):
        if taken and (words[out + REFUSED_VALID[stream]] or words[out + STALE_VALID[stream]]):
            _refused(g, c, stream, get(words, out + REFUSED[stream], REQUEST.tag), now)
    if now >= g.hbm_wake[c]:
        wake, tag, done = tick(g, c, now)
        g.hbm_wake[c] = wake
        if tag >= 0:
            line_done(g, tag, now, done)
    if accepted >= 0:
        _accept(g, c, accepted, op, now)
    for stream in range(STREAMS):
        g.block_reason[stream, c] = _block_reason(g, c, base, out, stream)
    _set_wake(g, c, out, now)


@compiled_inner
def _after_step(g, c, out, now):
    """Sample the outputs of the slice after an evaluation."""
    p, words = g.p[0], g.words
    g.slice_wake[c] = now + 1
    if words[out + SLICE_OUT.idle]:
        wake = words[out + SLICE_OUT.wake_at]
        g.slice_wake[c] = NEVER_CYCLE if wake == NEVER else max(now + 1, wake - p.epoch)
    leaf, bit = c >> p.leaf_bits, 1 << (c & (p.leaf_inputs - 1))
    if words[out + SLICE_OUT.token_valid]:
        g.leaf_tokens[leaf] |= bit
    else:
        g.leaf_tokens[leaf] &= ~bit
    if words[out + SLICE_OUT.comm_seen]:
        g.s[0].comm_seen = 1


@compiled_inner
def _refused(g, c, stream, n, now):
    """The slice refuses a write, to another context's range or of no live epoch: it ends here, with an error."""
    s, burst = g.s[0], g.bursts[n]
    s.refused = s.refused + 1
    g.inside[stream, c] -= 1
    if stream == COMPUTE:
        if burst.owner >= 0:
            stored(g, burst.owner, burst.lines, now)
    else:
        s.incoming = s.incoming - 1
        if burst.row >= 0:
            free_row_segment(g, burst.row)
    free_burst(g, n)


@compiled_inner
def _set_wake(g, c, out, now):
    """The next cycle at which something may happen in this channel. Refreshes of an empty channel are issued later."""
    wake = g.slice_wake[c] if is_empty(g, c) else min(g.slice_wake[c], g.hbm_wake[c])
    for queue in range(QUEUES):
        n = g.head[queue, c]
        if n >= 0:
            available = g.bursts[n].available
            if available > now:
                wake = min(wake, available)
            elif g.words[out + QUEUE_READY[queue]]:
                wake = now + 1
    if g.words[out + SLICE_OUT.dram_valid] and _has_room(g, c, out):
        wake = now + 1
    if occupancy(g, c) != g.occupancy[c] and g.words[out + SLICE_OUT.wake_at] != NEVER:
        wake = now + 1
    g.channel_wake[c] = max(wake, now + 1)
