"""Rows: segments of an output row of one wavefront tile, on their way over the link or back into memory."""

from t3sim.common.compiled import inner

from .requests import append, deliver, line_bytes, make_request, send, tag_tile
from .state import AG_WRITE, COMM_WRITE, RS_WRITE


@inner
def new_row(g):
    """A free row record."""
    s = g.s[0]
    r = s.row_free
    if r < 0:
        raise RuntimeError("the pool of rows is exhausted: a mover issues more than its buffer allows")
    s.row_free = g.rows[r].next
    g.rows[r].carried = 0
    return r


@inner
def free_row(g, r):
    """Give a row record back."""
    g.rows[r].next = g.s[0].row_free
    g.s[0].row_free = r


@inner
def row_bytes(g, line, lines):
    """Enabled bytes of ``lines`` output lines from ``line`` on, all in one output row."""
    return 32 * (lines - 1) + line_bytes(g, line + lines - 1)


@inner
def transmit(g, r, available):
    """Queue a row for the link, usable from cycle ``available``."""
    s = g.s[0]
    g.rows[r].available = available
    g.tx[s.tx_tail % g.tx.shape[0]] = r
    if s.tx_head == s.tx_tail:
        s.link_wake = min(s.link_wake, available)
    s.tx_tail = s.tx_tail + 1


@inner
def carried_line(g, line):
    """The number of an output line among those that carry data, or -1."""
    offset = line - g.p[0].out_base
    if 0 <= offset < g.carry_of.shape[0]:
        return g.carry_of[offset]
    return -1


@inner
def write_packet(g, packet, source, now):
    """Write an arrived packet to memory: one request per line into the communication stream."""
    s = g.s[0]
    for i in range(packet.lines):
        line = packet.line + i
        n = make_request(g, line, packet.op, packet.cause, COMM_WRITE, 32, -2)
        node = g.nodes[n]
        node.part = g.part_at[packet.row, packet.col]
        node.carry = carried_line(g, line)
        if node.carry >= 0:
            node.row = store_data(g, packet.data[i])
        if i == packet.lines - 1:
            node.bytes = packet.bytes - 32 * i
        s.incoming = s.incoming + 1
        if packet.tagged:
            tag_tile(node, source, packet.row, packet.col, packet.wf, packet.right, packet.bottom)
            deliver(g, n, now, g.descriptor_of[packet.chunk])
        else:
            send(g, n, now)


@inner
def store_data(g, data):
    """Keep a line's data in a row record until its request is performed; the record's number."""
    r = new_row(g)
    for word in range(4):
        g.row_data[r, 0, word] = data[word]
    return r


@inner
def write_row(g, r, now):
    """A kernel's reduced row goes to this GPU's own memory; the record lives until all its lines are performed."""
    row = g.rows[r]
    row.left = row.lines
    for i in range(row.lines):
        line = row.line + i
        n = make_request(g, line, row.op, row.cause, COMM_WRITE, 32, r)
        node = g.nodes[n]
        if i == row.lines - 1:
            node.bytes = row.bytes - 32 * i
        append(g, n, COMM_WRITE, node.channel, now + g.p[0].request)


@inner
def communicated(g, cause, now):
    """Note when communication of a kind was first and last active."""
    s = g.s[0]
    if cause >= AG_WRITE - 1:
        s.ag_first = min(s.ag_first, now)
        s.ag_last = max(s.ag_last, now)
    elif cause >= RS_WRITE - 1:
        s.rs_first = min(s.rs_first, now)
        s.rs_last = max(s.rs_last, now)
