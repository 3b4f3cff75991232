"""Row segments: bursts of an output row of one wavefront tile, in flight on the link or to memory."""

from t3sim.common.compiled import compiled_inner

from .requests import ARRIVED, append, deliver, make_burst, send, set_tile_identity
from .state import AG_READ, COMM_WRITE, LINE_WORDS, RS_READ


@compiled_inner
def allocate_row_segment(g):
    """A free row record."""
    s = g.s[0]
    r = s.row_segment_free
    if r < 0:
        raise RuntimeError("the pool of rows is exhausted: a mover issues more than its buffer allows")
    s.row_segment_free = g.rows[r].next
    g.rows[r].carried = 0
    return r


@compiled_inner
def free_row_segment(g, r):
    """Give a row record back."""
    g.rows[r].next = g.s[0].row_segment_free
    g.s[0].row_segment_free = r


@compiled_inner
def transmit(g, r, available):
    """Queue a row for the link, usable from cycle ``available``."""
    s = g.s[0]
    g.rows[r].available = available
    g.tx[s.tx_tail % g.tx.shape[0]] = r
    if s.tx_head == s.tx_tail:
        s.link_wake = min(s.link_wake, available)
    s.tx_tail = s.tx_tail + 1


@compiled_inner
def carried_line(g, line):
    """The number of an output line among those that carry data, or -1."""
    offset = line - g.p[0].out_base
    if 0 <= offset < g.carry_of.shape[0]:
        return g.carry_of[offset]
    return -1


@compiled_inner
def write_packet(g, packet, source, now):
    """Write an arrived packet to memory: a request of the communication stream."""
    s = g.s[0]
    n = make_burst(g, packet.line, packet.lines, packet.op, packet.cause, COMM_WRITE, packet.bytes, ARRIVED)
    burst = g.bursts[n]
    burst.part = g.part_at[packet.row, packet.col]
    for i in range(packet.lines):
        if carried_line(g, packet.line + i) >= 0:
            keep_data(g, burst, i, packet.data[i])
    s.incoming = s.incoming + 1
    if packet.tagged:
        set_tile_identity(burst, source, packet.row, packet.col, packet.wf, packet.right, packet.bottom)
        deliver(g, n, now, g.descriptor_of[packet.chunk])
    else:
        send(g, n, now)


@compiled_inner
def keep_data(g, burst, i, data):
    """Keep the data of line ``i`` of a burst in a row record, which it gets if it has none, until it is performed."""
    if burst.row < 0:
        burst.row = allocate_row_segment(g)
    for word in range(LINE_WORDS):
        g.row_data[burst.row, i, word] = data[word]


@compiled_inner
def write_row_segment(g, r, now):
    """A kernel's reduced row goes to this GPU's own memory; the record lives until its burst is performed."""
    row = g.rows[r]
    n = make_burst(g, row.line, row.lines, row.op, row.cause, COMM_WRITE, row.bytes, r)
    append(g, n, COMM_WRITE, g.bursts[n].channel, now + g.p[0].request)


@compiled_inner
def note_communication(g, cause, now):
    """Note when communication of a kind was first and last active."""
    s = g.s[0]
    if cause >= AG_READ:
        s.ag_first = min(s.ag_first, now)
        s.ag_last = max(s.ag_last, now)
    elif cause >= RS_READ:
        s.rs_first = min(s.rs_first, now)
        s.rs_last = max(s.rs_last, now)
