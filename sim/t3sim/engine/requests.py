"""Line requests: their pool, the words they show to a slice, and the queues in which they wait for it."""

from t3hdl.interface.layouts import INTERLEAVE_BITS, INTERLEAVE_LINES, LINE_BYTES

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
def allocate_request(g):
    """A free request record."""
    s = g.s[0]
    n = s.request_free
    if n < 0:
        raise RuntimeError("the pool of line requests is exhausted: a model issues more than its limits allow")
    s.request_free = g.line_requests[n].next
    s.requests_used = s.requests_used + 1
    return n


@compiled_inner
def free_request(g, n):
    """Give a request record back."""
    s = g.s[0]
    g.line_requests[n].next = s.request_free
    s.request_free = n
    s.requests_used = s.requests_used - 1


@compiled_inner
def append(g, n, queue, channel, available):
    """Put request ``n`` behind the others that wait for a slice's queue, usable from cycle ``available``."""
    node = g.line_requests[n]
    node.next = -1
    node.available = available
    tail = g.tail[queue, channel]
    if tail < 0:
        g.head[queue, channel] = n
        g.channel_wake[channel] = min(g.channel_wake[channel], available)
    else:
        g.line_requests[tail].next = n
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
def make_request(g, line, op, cause, queue, nbytes, owner):
    """A new untagged request for one line; its queue and owner are recorded, it waits nowhere yet."""
    n = allocate_request(g)
    node = g.line_requests[n]
    node.cause = cause
    node.queue = queue
    node.bytes = nbytes
    node.owner = owner
    node.carry = -1
    node.row = 0
    node.part = 0
    node.channel = channel_of_line(line, g.p[0].channels)
    node.word0 = request_word(line, op) | place(REQUEST.stream, stream_of(queue))
    node.word1 = place(REQUEST.tag, n)
    return n


@compiled_inner
def set_tile_identity(node, source, row, col, wf, right, bottom):
    """Give a request the name of its tile."""
    node.word0 |= place(REQUEST.source, source) | tile_part(wf, right, bottom)
    node.word1 |= tile_name(row, col)


@compiled_inner
def send(g, n, now):
    """Send request ``n`` over the fabric to its slice."""
    node = g.line_requests[n]
    append(g, n, node.queue, node.channel, now + g.p[0].request)


@compiled_inner
def deliver(g, n, now, descriptor):
    """Send a tracked store; one whose chunk is not live yet is held back, before the slices, chunk by chunk."""
    s = g.s[0]
    if descriptor < s.live:
        send(g, n, now)
        return
    g.line_requests[n].next = -1
    if g.held_head[descriptor] < 0:
        g.held_head[descriptor] = n
    else:
        g.line_requests[g.held_tail[descriptor]].next = n
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
            following = g.line_requests[n].next
            send(g, n, now)
            s.held = s.held - 1
            if s.held == 0:
                s.held_cycles = s.held_cycles + now - s.held_since
            n = following
    s.live = live


@compiled_inner
def request_llc_line(g, entry, line, now):
    """Read one LLC line from DRAM for LLC entry ``entry``; ``line`` counts LLC lines."""
    per_line = g.p[0].llc_line
    for i in range(per_line):
        n = make_request(g, line * per_line + i, READ, GEMM_READ, COMPUTE_READ, LINE_BYTES, entry)
        send(g, n, now)


@compiled_inner
def line_bytes(g, line):
    """Enabled bytes of an output line: the last line of each output row is partly padding."""
    p = g.p[0]
    return LINE_BYTES - p.slack if (line - p.out_base) % p.pitch == p.pitch - 1 else LINE_BYTES
