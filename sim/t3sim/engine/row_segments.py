"""Row segments: bursts of an output row of one wavefront tile, in flight on the link or to memory."""

from t3sim.common.compiled import compiled_inner

from .requests import append, deliver, make_burst, send, set_tile_identity
from .state import AG_READ, ARRIVAL, COMM_WRITE, INT64, LINE_WORDS, MOVER_WRITE, RS_READ, integers, record

# A row segment, which is stored or sent as one burst: lines of one output row of one wavefront tile. ``left``: reads
# that it waits for; ``carried``: bit i: line i carries data.
ROW = record(
    next="i4", left="i4", lines="i4", bytes="i4", command="i4", mover="i1", cause="i1", op="i1", tagged="i1",
    carried="i2", chunk="i2", row="i4", col="i4", wf="i4", right="i1", bottom="i1", link="i1",
    line="i8", available_cycle="i8",
)  # fmt: skip

# Communication as a whole: the first free row segment; ``outgoing``: commands and row segments that are not gone yet,
# from :mod:`.egress` and :mod:`.mover`; ``incoming``: bursts that have arrived, until they are performed or refused
# (:mod:`.completion`); first and last cycles of reduce-scatter and all-gather.
COMM = integers(
    "row_segment_free", "outgoing", "incoming",
    "rs_first_cycle", "rs_last_cycle", "ag_first_cycle", "ag_last_cycle",
)  # fmt: skip

FIELDS = {
    "comm": (COMM, 0),
    "rows": (ROW, 1),
    "row_data": (INT64, 3),  # [rows, BURST_LINES, LINE_WORDS]
}


@compiled_inner
def allocate_row_segment(g):
    """A free row record."""
    comm = g.comm
    r = comm.row_segment_free
    if r < 0:
        raise RuntimeError("the pool of rows is exhausted: a mover issues more than its buffer allows")
    comm.row_segment_free = g.rows[r].next
    g.rows[r].carried = 0
    return r


@compiled_inner
def free_row_segment(g, r):
    """Give a row record back."""
    g.rows[r].next = g.comm.row_segment_free
    g.comm.row_segment_free = r


@compiled_inner
def transmit(g, r, available):
    """Queue a row for the link, usable from cycle ``available``."""
    link = g.link
    g.rows[r].available_cycle = available
    g.tx[link.tx_tail % g.tx.shape[0]] = r
    if link.tx_head == link.tx_tail:
        link.wake_cycle = min(link.wake_cycle, available)
    link.tx_tail = link.tx_tail + 1


@compiled_inner
def carried_line(g, line):
    """The number of an output line among those that carry data, or -1."""
    offset = line - g.output.line
    if 0 <= offset < g.carry_of.shape[0]:
        return g.carry_of[offset]
    return -1


@compiled_inner
def write_packet(g, packet, source, now):
    """Write an arrived packet to memory: a request of the communication stream."""
    comm = g.comm
    n = make_burst(g, packet.line, packet.lines, packet.op, packet.cause, COMM_WRITE, packet.bytes, ARRIVAL, 0)
    burst = g.bursts[n]
    burst.part = g.part_at[packet.row, packet.col]
    for i in range(packet.lines):
        if carried_line(g, packet.line + i) >= 0:
            keep_data(g, burst, i, packet.data[i])
    comm.incoming = comm.incoming + 1
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
    n = make_burst(g, row.line, row.lines, row.op, row.cause, COMM_WRITE, row.bytes, MOVER_WRITE, r)
    append(g, n, COMM_WRITE, g.bursts[n].channel, now + g.fabric.request_cycles)


@compiled_inner
def note_communication(g, cause, now):
    """Note when communication of a kind was first and last active."""
    comm = g.comm
    if cause >= AG_READ:
        comm.ag_first_cycle = min(comm.ag_first_cycle, now)
        comm.ag_last_cycle = max(comm.ag_last_cycle, now)
    elif cause >= RS_READ:
        comm.rs_first_cycle = min(comm.rs_first_cycle, now)
        comm.rs_last_cycle = max(comm.rs_last_cycle, now)
