"""Line requests: their pool, the words they show to a slice, and the queues in which they wait for it."""

from t3hdl.interface.layouts import INTERLEAVE_LINES, MemoryRequest

from t3sim.common.compiled import inner
from t3sim.dram.state import lowest_bit

from .state import GEMM_READ


def _shift(name: str, word: int = 0) -> int:
    return MemoryRequest[name].offset - 64 * word


DTYPE, OP, STREAM, SOURCE = _shift("dtype"), _shift("op"), _shift("stream"), _shift("source")
TAGGED, WF, RIGHT, BOTTOM = _shift("tagged"), _shift("wf"), _shift("right"), _shift("bottom")
ROW, COL, TAG = _shift("row", 1), _shift("col", 1), _shift("tag", 1)
TAG_MASK = (1 << MemoryRequest["tag"].width) - 1
INTERLEAVE_BITS = INTERLEAVE_LINES.bit_length() - 1
LINE_MASK = (1 << MemoryRequest["line"].width) - 1


@inner
def _channel_bits(slices):
    return lowest_bit(slices)


@inner
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


@inner
def local_line_of(line, slices):
    """The line number within its channel: layouts.local_line for compiled code."""
    above = line >> (INTERLEAVE_BITS + _channel_bits(slices))
    return (above << INTERLEAVE_BITS) | (line & (INTERLEAVE_LINES - 1))


@inner
def new_node(g):
    """A free request record."""
    s = g.s[0]
    n = s.node_free
    if n < 0:
        raise RuntimeError("the pool of line requests is exhausted: a model issues more than its limits allow")
    s.node_free = g.nodes[n].next
    s.nodes_used = s.nodes_used + 1
    return n


@inner
def free_node(g, n):
    """Give a request record back."""
    s = g.s[0]
    g.nodes[n].next = s.node_free
    s.node_free = n
    s.nodes_used = s.nodes_used - 1


@inner
def append(g, n, queue, channel, available):
    """Put request ``n`` behind the others that wait for a slice's queue, usable from cycle ``available``."""
    node = g.nodes[n]
    node.next = -1
    node.available = available
    tail = g.tail[queue, channel]
    if tail < 0:
        g.head[queue, channel] = n
        g.channel_wake[channel] = min(g.channel_wake[channel], available)
    else:
        g.nodes[tail].next = n
    g.tail[queue, channel] = n


@inner
def make_request(g, line, op, cause, queue, nbytes, owner):
    """A new untagged request for one line; its queue and owner are recorded, it waits nowhere yet."""
    n = new_node(g)
    node = g.nodes[n]
    node.cause = cause
    node.queue = queue
    node.bytes = nbytes
    node.owner = owner
    node.carry = -1
    node.row = 0
    node.part = 0
    node.channel = channel_of_line(line, g.p[0].channels)
    node.word0 = line | (op << OP) | ((queue >> 1) << STREAM)
    node.word1 = n << TAG
    return n


@inner
def tag_tile(node, source, row, col, wf, right, bottom):
    """Give a request the name of its tile."""
    node.word0 |= (source << SOURCE) | (1 << TAGGED) | (wf << WF) | (right << RIGHT) | (bottom << BOTTOM)
    node.word1 |= row | (col << COL)


@inner
def send(g, n, now):
    """Send request ``n`` over the fabric to its slice."""
    node = g.nodes[n]
    append(g, n, node.queue, node.channel, now + g.p[0].request)


@inner
def deliver(g, n, now, descriptor):
    """Send a tracked store; one whose chunk is not live yet is held back, before the slices, chunk by chunk."""
    s = g.s[0]
    if descriptor < s.live:
        send(g, n, now)
        return
    g.nodes[n].next = -1
    if g.held_head[descriptor] < 0:
        g.held_head[descriptor] = n
    else:
        g.nodes[g.held_tail[descriptor]].next = n
    g.held_tail[descriptor] = n
    if s.held == 0:
        s.held_since = now
    s.held = s.held + 1


@inner
def release_held(g, live, now):
    """Send what was held for the descriptors that became live."""
    s = g.s[0]
    for descriptor in range(s.live, min(live, g.held_head.shape[0])):
        n = g.held_head[descriptor]
        g.held_head[descriptor] = -1
        while n >= 0:
            following = g.nodes[n].next
            send(g, n, now)
            s.held = s.held - 1
            if s.held == 0:
                s.held_cycles = s.held_cycles + now - s.held_since
            n = following
    s.live = live


@inner
def request_llc_line(g, entry, line, now):
    """Read one LLC line from DRAM for LLC entry ``entry``; ``line`` counts LLC lines."""
    per_line = g.p[0].llc_line
    for i in range(per_line):
        n = make_request(g, line * per_line + i, 0, GEMM_READ, 0, 32, entry)
        send(g, n, now)


@inner
def line_bytes(g, line):
    """Enabled bytes of an output line: the last line of each output row is partly padding."""
    p = g.p[0]
    return 32 - p.slack if (line - p.out_base) % p.pitch == p.pitch - 1 else 32
