"""One memory channel: request queues, the MemorySlice (RTL or golden), and the pseudo-channel behind it.

A slice is evaluated only in cycles in which something can change in it; by the hardware's idle promise
(docs/hardware/rules.md, rule 5) leaving out the others is exact. What counts as a change: a transfer on a stream, a
change of a level input (the occupancy only while communication waits below a threshold, since only that looks at it),
or its own deadline. Who asked for a burst a channel does not know: :mod:`.completion` does.
"""

from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import BURST_LINES, NEVER

from t3sim.common.compiled import compiled_inner
from t3sim.dram.hbm import enqueue, is_empty, occupancy, tick
from t3sim.dram.state import CHANNEL, lowest_bit
from t3sim.hardware.abi import address_of
from t3sim.hardware.words import READ, REQUEST, STORE, get, place, take

from .completion import burst_accepted, burst_entered, burst_performed, burst_refused, line_moved
from .front import (
    COMMUNICATION,
    COMPUTE,
    QUEUE_IN,
    QUEUE_READY,
    QUEUE_VALID,
    SLICE_IN,
    SLICE_OUT,
    finds_room,
    has_room,
)
from .observed.contention import account_waits, note_causes
from .requests import local_line_of, stream_of
from .state import INT64, NEVER_CYCLE, QUEUES, STREAMS
from .t3unit.words import OF_SLICE, SLICE, part_in, part_out
from .wakes import set_channel_wake, wake_unit

REFUSED_VALID = SLICE_OUT.compute_refused_valid, SLICE_OUT.comm_refused_valid
STALE_VALID = SLICE_OUT.compute_stale_valid, SLICE_OUT.comm_stale_valid
REFUSED = SLICE_OUT.compute_refused, SLICE_OUT.comm_refused
"""What is refused, for either reason: both ports have the same word."""
DRAM_READ, DRAM_WRITE, DRAM_UPDATE = range(3)
_OP = REQUEST.op.mask << REQUEST.op.shift
WAIT_BINS = 4096
"""Histogram of waiting times, in cycles; the last bin holds all longer ones."""
NO_BURST = -1

FIELDS = {
    "channel": (CHANNEL, 1),  # the HBM model's pseudo-channels
    "wait": (INT64, 2),  # [streams, WAIT_BINS] lines by the cycles that they waited for the DRAM queue
    "accepted": (INT64, 2),  # [streams, 2] bursts that the DRAM queue took, and updates among them
}


@compiled_inner
def run_channel(g, c, step, update, state_changed, now, limit):
    """Cycle ``now`` of channel ``c``; sets the cycle at which it must be looked at again.

    ``step``, ``update``: functions of slice and NMC unit. ``state_changed``: so has an input of all slices. DRAM may go
    ahead to ``limit`` (exclusive).
    """
    front = g.fronts[c]
    while front.hbm_wake_cycle < now:  # refreshes of an empty channel, for which no event was scheduled
        _command(g, c, update)
    due = state_changed or front.due_cycle <= now
    accepted, op, taken = _run_slice(g, c, step, state_changed, now) if due else (NO_BURST, 0, 0)
    if front.hbm_wake_cycle <= now:
        _command(g, c, update)
        if not due and (_has_room_now(g, c, now) or _falls_below_limit(g, c)):
            due = True
            if g.contention.observed:
                account_waits(g, front, now)
    while front.ended_cycle <= now:
        _tell_ended(g, front)
    if accepted != NO_BURST:
        _accept(g, c, accepted, op, now)
    if due:
        _set_due(g, c, taken, now)
    _run_ahead(g, c, update, now, limit)
    # Refreshes of an empty channel are issued later.
    wake = front.due_cycle if is_empty(g, c) else min(front.due_cycle, front.hbm_wake_cycle)
    set_channel_wake(g, c, max(min(wake, front.ended_cycle), now + 1))


@compiled_inner
def _command(g, c, update):
    """The cycle of DRAM's next event: at most one command on each bus, and with it perhaps the end of a burst."""
    front = g.fronts[c]
    front.hbm_cycle = front.hbm_wake_cycle
    front.hbm_wake_cycle, tag, done = tick(g, c, front.hbm_cycle)
    if tag < 0 or not line_moved(g, update, tag // BURST_LINES, tag % BURST_LINES):
        return
    n = tag // BURST_LINES
    burst = g.bursts[n]
    burst.next, burst.issue_cycle, burst.done_cycle = NO_BURST, front.hbm_cycle, done
    if front.ended_cycle == NEVER_CYCLE:
        front.ended_head, front.ended_cycle = n, front.hbm_cycle
    else:
        g.bursts[front.ended_tail].next = n
    front.ended_tail = n


@compiled_inner
def _tell_ended(g, front):
    """The GPU's time has come to the end of a burst: who asked for it is told."""
    n = front.ended_head
    burst = g.bursts[n]
    front.ended_head = burst.next
    front.ended_cycle = g.bursts[burst.next].issue_cycle if burst.next != NO_BURST else NEVER_CYCLE
    burst_performed(g, n, burst.issue_cycle, burst.done_cycle)


@compiled_inner
def _has_room_now(g, c, now):
    """Whether the slice offers a burst, and the DRAM queue has room for it."""
    out = part_out(g, SLICE, c)
    return g.words[out + SLICE_OUT.dram_valid] != 0 and finds_room(g, c, out, now)


@compiled_inner
def _run_ahead(g, c, update, now, limit):
    """Let DRAM go ahead of the GPU's time as long as nothing can be added to its queue.

    That is so while the slice is empty, until the next request may be there, which takes ``request_cycles``; and while
    it offers a burst for which there is no room, until there is: nothing else is granted meanwhile. What has ended is
    told when the GPU's time comes. Whatever looks at DRAM, the timeline's bins among it, looks no earlier than at
    ``limit``.
    """
    front, out = g.fronts[c], part_out(g, SLICE, c)
    offers = g.words[out + SLICE_OUT.dram_valid] != 0
    if not offers and (front.inside[COMPUTE] or front.inside[COMMUNICATION]):
        return
    horizon = min(front.due_cycle, now + g.fabric.request_cycles, limit)
    while front.hbm_wake_cycle < horizon and not is_empty(g, c):
        _command(g, c, update)
        if offers and has_room(g, c, out):
            front.due_cycle = horizon = front.hbm_cycle


@compiled_inner
def _run_slice(g, c, step, state_changed, now):
    """The slice's part in cycle ``now``.

    Returns the burst that the DRAM queue takes from it (NO_BURST: none), its op, and the request queues whose head the
    slice takes, as bits.
    """
    words, front = g.words, g.fronts[c]
    base, out = part_in(g, SLICE, c), part_out(g, SLICE, c)
    if g.contention.observed:
        account_waits(g, front, now)
    waiting = _waiting(front, now)
    taken = waiting & _ready_queues(words, out)
    accepted = NO_BURST
    op = get(words, out + SLICE_OUT.dram_payload, REQUEST.op)
    if words[out + SLICE_OUT.dram_valid] and finds_room(g, c, out, now - 1):
        accepted = get(words, out + SLICE_OUT.dram_payload, REQUEST.tag)
    lines = occupancy(g, c)
    moved = taken or accepted != NO_BURST or front.token_take
    if moved or state_changed or _falls_below_limit(g, c) or now >= front.slice_wake_cycle:
        _present(g, front, waiting, base)
        words[base + SLICE_IN.dram_ready] = accepted != NO_BURST
        words[base + SLICE_IN.token_ready] = front.token_take
        words[base + SLICE_IN.occupancy] = lines
        words[base + SLICE_IN.now] = now + g.unit.epoch_cycles
        front.occupancy_lines = lines
        step(g.handles[SLICE + c], address_of(words[base:]), address_of(words[out:]))
        g.evaluated[OF_SLICE] += 1
        front.token_take = False
        _after_step(g, c, out, now)
    if taken:
        _take(g, c, out, taken, now)
    return accepted, op, taken


@compiled_inner
def _waiting(front, now):
    """Request queues whose head can go into the slice at ``now``, as bits."""
    waiting = 0
    for queue in range(QUEUES):
        waiting |= int(front.usable_cycle[queue] <= now) << queue
    return waiting


@compiled_inner
def _ready_queues(words, out):
    """Request queues of which the slice takes the head, if there is one, as bits."""
    ready = 0
    for queue in range(QUEUES):
        ready |= words[out + QUEUE_READY[queue]] << queue
    return ready


@compiled_inner
def _falls_below_limit(g, c):
    """Whether the occupancy has changed so that communication may go, which waits below a threshold.

    The arbiter does nothing with the occupancy but to compare it, and only when it might grant.
    """
    words, base, out = g.words, part_in(g, SLICE, c), part_out(g, SLICE, c)
    limit = words[base + SLICE_IN.threshold]
    if words[out + SLICE_OUT.wake_at] == NEVER or words[out + SLICE_OUT.dram_valid] or limit == NO_LIMIT:
        return False
    lines = occupancy(g, c)
    return lines < limit and lines != g.fronts[c].occupancy_lines


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
def _after_step(g, c, out, now):
    """Sample the outputs of the slice after an evaluation."""
    unit, words, front = g.unit, g.words, g.fronts[c]
    front.slice_wake_cycle = now + 1
    if words[out + SLICE_OUT.idle]:
        wake = words[out + SLICE_OUT.wake_at]
        front.slice_wake_cycle = NEVER_CYCLE if wake == NEVER else max(now + 1, wake - unit.epoch_cycles)
    leaf, bit = c >> unit.leaf_bits, 1 << (c & (unit.leaf_inputs - 1))
    if words[out + SLICE_OUT.token_valid]:
        g.leaf_tokens[leaf] |= bit
        wake_unit(g)
    else:
        g.leaf_tokens[leaf] &= ~bit
    if words[out + SLICE_OUT.comm_seen] and not unit.comm_seen:
        unit.comm_seen = 1
        wake_unit(g)


@compiled_inner
def _take(g, c, out, taken, now):
    """The slice has taken the heads of some queues (as bits), or refused them."""
    while taken:
        queue = lowest_bit(taken)
        taken &= taken - 1
        _pop(g, g.fronts[c], queue)
    for stream in range(STREAMS):
        if g.words[out + REFUSED_VALID[stream]] or g.words[out + STALE_VALID[stream]]:
            g.fronts[c].inside[stream] -= 1
            burst_refused(g, get(g.words, out + REFUSED[stream], REQUEST.tag), now)


@compiled_inner
def _pop(g, front, queue):
    """The slice takes the head of a request queue."""
    burst = g.bursts[front.head[queue]]
    front.head[queue] = burst.next
    front.usable_cycle[queue] = g.bursts[burst.next].available_cycle if burst.next >= 0 else NEVER_CYCLE
    if burst.next < 0:
        front.tail[queue] = -1
    front.inside[stream_of(queue)] += 1
    burst_entered(g, burst)


@compiled_inner
def _accept(g, c, n, op, now):
    """The DRAM queue takes the lines of a burst out of the slice, with the op that this has made of it."""
    burst, front = g.bursts[n], g.fronts[c]
    line = take(burst.word0, REQUEST.line)
    kind = DRAM_READ if op == READ else (DRAM_WRITE if op == STORE else DRAM_UPDATE)
    # Visible to the scheduler from the next cycle on, like every registered word.
    first = local_line_of(line, g.fabric.channels)
    front.hbm_wake_cycle = enqueue(g, c, now + 1, first, burst.lines, kind, n * BURST_LINES, burst.cause)
    stream = stream_of(burst.queue)
    g.wait[stream, min(now - burst.available_cycle, WAIT_BINS - 1)] += burst.lines
    g.accepted[stream, 0] += 1
    g.accepted[stream, 1] += kind == DRAM_UPDATE
    front.inside[stream] -= 1
    burst.word0 = (burst.word0 & ~_OP) | place(REQUEST.op, op)
    burst_accepted(g, burst, op, now)


@compiled_inner
def _set_due(g, c, taken, now):
    """When the slice must be looked at again. ``taken``: request queues whose head it has just taken, as bits.

    That is when it can take or give a burst, and at its deadline. That there is room for what it offers, or that the
    occupancy has fallen below its limit, :func:`run_channel` notices.
    """
    front, words, out = g.fronts[c], g.words, part_out(g, SLICE, c)
    waiting = _waiting(front, now)
    if g.contention.observed:
        note_causes(g, c, waiting, taken, now)
    wake = front.slice_wake_cycle
    for queue in range(QUEUES):
        if not waiting >> queue & 1:
            wake = min(wake, front.usable_cycle[queue])
    takes = waiting & _ready_queues(words, out) != 0
    if takes or _has_room_now(g, c, now) or _falls_below_limit(g, c):
        wake = now + 1
    elif front.hbm_cycle > now and words[out + SLICE_OUT.dram_valid]:
        wake = min(wake, front.hbm_cycle)  # the command that makes room, if that is why DRAM has stopped there
    front.due_cycle = max(wake, now + 1)
