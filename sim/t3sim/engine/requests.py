"""Requests for bursts: their pool, the words they show to a slice, and the queues in which they wait for it."""

from t3hdl.interface.layouts import BURST_LINES, INTERLEAVE_BITS, INTERLEAVE_LINES, LINE_BYTES

from t3sim.collective.driver import EPOCH
from t3sim.common.compiled import compiled_inner
from t3sim.dram.state import lowest_bit
from t3sim.hardware.words import READ, REQUEST, place

from .state import CACHE_FILL, COMM_READ, COMPUTE_READ, GEMM_READ, INT64, integers, record
from .wakes import wake_channel

# A burst, from its source until all its lines are performed: ``left`` of ``lines`` are not yet. Its index is its tag;
# ``row``: the row segment with the data of an arrived one, or -1; ``available_cycle``: when it is at its slice;
# ``issue_cycle``, ``done_cycle``: when the column command of its last line issues, and its data have moved.
BURST = record(
    next="i4", owner="i4", row="i4", part="i4", bytes="i2", lines="i1", left="i1", cause="i1", queue="i1", channel="i1",
    requester="i1", available_cycle="i8", issue_cycle="i8", done_cycle="i8", word0="i8", word1="i8",
)  # fmt: skip

# The fabric between the models and the channels. State: the first free burst, and how many are in use; chunks that are
# live (:mod:`.t3unit.program` sets it while the unit is programmed); stores that are ``held`` as theirs is not, since
# when, and for how long there were any.
FABRIC = integers(
    "channels", "request_cycles", "response_cycles",
    "burst_free", "bursts_used", "live_chunks", "held", "held_since_cycle", "held_cycles",
)  # fmt: skip

FIELDS = {
    "fabric": (FABRIC, 0),
    "bursts": (BURST, 1),
    "held_head": (INT64, 1),  # [64] by descriptor
    "held_tail": (INT64, 1),
}


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
    fabric = g.fabric
    n = fabric.burst_free
    if n < 0:
        raise RuntimeError("the pool of bursts is exhausted: a model issues more than its limits allow")
    fabric.burst_free = g.bursts[n].next
    fabric.bursts_used = fabric.bursts_used + 1
    return n


@compiled_inner
def free_burst(g, n):
    """Give a burst record back."""
    fabric = g.fabric
    g.bursts[n].next = fabric.burst_free
    fabric.burst_free = n
    fabric.bursts_used = fabric.bursts_used - 1


@compiled_inner
def append(g, n, queue, channel, available):
    """Put burst ``n`` behind the others that wait for a slice's queue, usable from cycle ``available``."""
    burst = g.bursts[n]
    burst.next = -1
    burst.available_cycle = available
    front = g.fronts[channel]
    if front.tail[queue] < 0:
        front.head[queue] = n
        front.usable_cycle[queue] = available
        front.due_cycle = min(front.due_cycle, available)
        wake_channel(g, channel, available)
    else:
        g.bursts[front.tail[queue]].next = n
    front.tail[queue] = n


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
def make_burst(g, line, lines, op, cause, queue, nbytes, requester, owner):
    """A new untagged request for ``lines`` lines of one aligned block, ``nbytes`` of them enabled; its queue and who
    asks for it are recorded, it waits nowhere yet."""
    n = _allocate_burst(g)
    burst = g.bursts[n]
    burst.cause = cause
    burst.queue = queue
    burst.bytes = nbytes
    burst.lines = burst.left = lines
    burst.requester, burst.owner = requester, owner
    burst.row = -1
    burst.part = 0
    burst.channel = channel_of_line(line, g.fabric.channels)
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
    append(g, n, burst.queue, burst.channel, now + g.fabric.request_cycles)


@compiled_inner
def deliver(g, n, now, descriptor):
    """Send a tracked store; one whose chunk is not live yet is held back, before the slices, chunk by chunk."""
    fabric = g.fabric
    if descriptor < fabric.live_chunks:
        send(g, n, now)
        return
    g.bursts[n].next = -1
    if g.held_head[descriptor] < 0:
        g.held_head[descriptor] = n
    else:
        g.bursts[g.held_tail[descriptor]].next = n
    g.held_tail[descriptor] = n
    if fabric.held == 0:
        fabric.held_since_cycle = now
    fabric.held = fabric.held + 1


@compiled_inner
def release_held(g, live, now):
    """Send what was held for the descriptors that became live."""
    fabric = g.fabric
    for descriptor in range(fabric.live_chunks, min(live, g.held_head.shape[0])):
        n = g.held_head[descriptor]
        g.held_head[descriptor] = -1
        while n >= 0:
            following = g.bursts[n].next
            send(g, n, now)
            fabric.held = fabric.held - 1
            if fabric.held == 0:
                fabric.held_cycles = fabric.held_cycles + now - fabric.held_since_cycle
            n = following
    fabric.live_chunks = live


@compiled_inner
def request_llc_line(g, entry, line, now):
    """Read one LLC line, number ``line``, from DRAM for LLC entry ``entry``; returns the bursts that it takes."""
    first, end, count = line * g.llc.entry_lines, (line + 1) * g.llc.entry_lines, 0
    while first < end:
        lines = burst_lines(first, end - first)
        nbytes = LINE_BYTES * lines
        send(g, make_burst(g, first, lines, READ, GEMM_READ, COMPUTE_READ, nbytes, CACHE_FILL, entry), now)
        first += lines
        count += 1
    return count


@compiled_inner
def line_bytes(g, line):
    """Enabled bytes of an output line: the last line of each output row is partly padding."""
    output = g.output
    return (
        LINE_BYTES - output.slack_bytes
        if (line - output.line) % output.pitch_lines == output.pitch_lines - 1
        else LINE_BYTES
    )


@compiled_inner
def bytes_of_lines(g, line, lines):
    """Enabled bytes of ``lines`` output lines from ``line`` on, all in one output row."""
    return LINE_BYTES * (lines - 1) + line_bytes(g, line + lines - 1)
