"""Requests for bursts: their pool, the words they show to a slice, and the queues in which they wait for it."""

from t3hdl.interface.layouts import BURST_LINES, INTERLEAVE_BITS, INTERLEAVE_LINES, LINE_BYTES

from t3sim.collective.driver import EPOCH
from t3sim.common.compiled import compiled_inner
from t3sim.dram.state import lowest_bit
from t3sim.hardware.words import READ, REQUEST, place

from .state import COMM_READ, COMPUTE_READ, GEMM_READ

NOBODY, ARRIVED = -1, -2
"""Owners of a request that is neither a workgroup's nor a row's: none; a packet, whose room in the receive buffer goes
back to the sender as a credit."""


@compiled_inner
def _channel_bits(slices):
    return lowest_bit(slices)


@compiled_inner
def channel_of_line(line, slices):
    """The channel of a line: layouts.channel_of for compiled code (a test compares them)."""
    bits = _channel_bits(slices)
    if bits == 0:
        return 0
    folded = line >> INTERLEAVE_BITS
    result = 0
    while folded:
        result ^= folded & (slices - 1)
        folded >>= bits
    return result


@compiled_inner
def local_line_of(line, slices):
    """The line number within its channel: layouts.local_line for compiled code."""
    above = line >> (INTERLEAVE_BITS + _channel_bits(slices))
    return (above << INTERLEAVE_BITS) | (line & (INTERLEAVE_LINES - 1))


@compiled_inner
def burst_lines(line, lines):
    """Lines of the first burst of ``lines`` lines from ``line`` on: those of its aligned block."""
    return min(lines, BURST_LINES - line % BURST_LINES)


@compiled_inner
def burst_count(line, lines):
    """Bursts that ``lines`` lines from ``line`` on take."""
    return (line % BURST_LINES + lines + BURST_LINES - 1) // BURST_LINES


@compiled_inner
def _allocate_burst(g):
    """A free burst record."""
    s = g.s[0]
    n = s.burst_free
    if n < 0:
        raise RuntimeError("the pool of bursts is exhausted: a model issues more than its limits allow")
    s.burst_free = g.bursts[n].next
    s.bursts_used = s.bursts_used + 1
    return n


@compiled_inner
def free_burst(g, n):
    """Give a burst record back."""
    s = g.s[0]
    g.bursts[n].next = s.burst_free
    s.burst_free = n
    s.bursts_used = s.bursts_used - 1


@compiled_inner
def append(g, n, queue, channel, available):
    """Put burst ``n`` behind the others that wait for a slice's queue, usable from cycle ``available``."""
    burst = g.bursts[n]
    burst.next = -1
    burst.available = available
    tail = g.tail[queue, channel]
    if tail < 0:
        g.head[queue, channel] = n
        g.channel_wake[channel] = min(g.channel_wake[channel], available)
    else:
        g.bursts[tail].next = n
    g.tail[queue, channel] = n


@compiled_inner
def stream_of(queue):
    """The stream of a request queue: 0 compute, 1 communication."""
    return int(queue >= COMM_READ)


@compiled_inner
def request_word(line, op):
    """The first word of an untagged request of the compute stream."""
    return place(REQUEST.line, line) | place(REQUEST.op, op)


@compiled_inner
def length_word(lines):
    """The lines of a request in its second word."""
    return place(REQUEST.length, lines - 1)


@compiled_inner
def tile_name(row, col):
    """The tile's name, and the job's epoch, in the second word of a request."""
    return place(REQUEST.row, row) | place(REQUEST.col, col) | place(REQUEST.epoch, EPOCH)


@compiled_inner
def tile_part(wf, right, bottom):
    """That a request is tagged, its wavefront and edge class, in its first word."""
    return (
        place(REQUEST.tagged, 1) | place(REQUEST.wf, wf) | place(REQUEST.right, right) | place(REQUEST.bottom, bottom)
    )


@compiled_inner
def make_burst(g, line, lines, op, cause, queue, nbytes, owner):
    """A new untagged request for ``lines`` lines of one aligned block, ``nbytes`` of them enabled; its queue and owner
    are recorded, it waits nowhere yet."""
    n = _allocate_burst(g)
    burst = g.bursts[n]
    burst.cause = cause
    burst.queue = queue
    burst.bytes = nbytes
    burst.lines = burst.left = lines
    burst.owner = owner
    burst.row = -1
    burst.part = 0
    burst.channel = channel_of_line(line, g.p[0].channels)
    burst.word0 = request_word(line, op) | place(REQUEST.stream, stream_of(queue))
    burst.word1 = place(REQUEST.tag, n) | length_word(lines)
    return n


@compiled_inner
def set_tile_identity(burst, source, row, col, wf, right, bottom):
    """Give a request the name of its tile."""
    burst.word0 |= place(REQUEST.source, source) | tile_part(wf, right, bottom)
    burst.word1 |= tile_name(row, col)


@compiled_inner
def send(g, n, now):
    """Send burst ``n`` over the fabric to its slice."""
    burst = g.bursts[n]
    append(g, n, burst.queue, burst.channel, now + g.p[0].request)


@compiled_inner
def deliver(g, n, now, descriptor):
    """Send a tracked store; one whose chunk is not live yet is held back, before the slices, chunk by chunk."""
    s = g.s[0]
    if descriptor < s.live:
        send(g, n, now)
        return
    g.bursts[n].next = -1
    if g.held_head[descriptor] < 0:
        g.held_head[descriptor] = n
    else:
        g.bursts[g.held_tail[descriptor]].next = n
    g.held_tail[descriptor] = n
    if s.held == 0:
        s.held_since = now
    s.held = s.held + 1


@compiled_inner
def release_held(g, live, now):
    """Send what was held for the descriptors that became live."""
    s = g.s[0]
    for descriptor in range(s.live, min(live, g.held_head.shape[0])):
        n = g.held_head[descriptor]
        g.held_head[descriptor] = -1
        while n >= 0:
            following = g.bursts[n].next
            send(g, n, now)
            s.held = s.held - 1
            if s.held == 0:
                s.held_cycles = s.held_cycles + now - s.held_since
            n = following
    s.live = live


@compiled_inner
def request_llc_line(g, entry, line, now):
    """Read one LLC line, number ``line``, from DRAM for LLC entry ``entry``; returns the bursts that it takes."""
    first, end, count = line * g.p[0].llc_line, (line + 1) * g.p[0].llc_line, 0
    while first < end:
        lines = burst_lines(first, end - first)
        send(g, make_burst(g, first, lines, READ, GEMM_READ, COMPUTE_READ, LINE_BYTES * lines, entry), now)
        first += lines
        count += 1
    return count


@compiled_inner
def line_bytes(g, line):
    """Enabled bytes of an output line: the last line of each output row is partly padding."""
    p = g.p[0]
    return LINE_BYTES - p.slack if (line - p.out_base) % p.pitch == p.pitch - 1 else LINE_BYTES


@compiled_inner
def bytes_of_lines(g, line, lines):
    """Enabled bytes of ``lines`` output lines from ``line`` on, all in one output row."""
    return LINE_BYTES * (lines - 1) + line_bytes(g, line + lines - 1)
