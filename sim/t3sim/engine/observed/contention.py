"""What the two streams wait for at the memory slices.

What a stream waits for changes only when its channel is looked at, so it is noted then, for the cycles until the next
look. Nothing in the GPU depends on it: a run that is not to be observed leaves it out.
"""

from t3hdl.config import NO_LIMIT

from t3sim.common.compiled import compiled_inner
from t3sim.dram.hbm import occupancy
from t3sim.hardware.words import REQUEST, take

from ..front import COMMUNICATION, QUEUES_OF_STREAM, SLICE_IN, SLICE_OUT, finds_room
from ..state import INT64, QUEUES, STREAMS, integers
from ..t3unit.words import LEAF, SLICE, part_in, part_out

BY_STREAM, BY_THRESHOLD, BY_QUEUE, BY_TRACKER = CAUSES_OF_WAIT = range(4)
NOTHING = -1

# ``observed``: whether the waits are noted; ``stage``: that of the GEMM to which they are added.
CONTENTION = integers("observed", "stage")

FIELDS = {
    "contention": (CONTENTION, 0),
    "blocked_cycles": (INT64, 3),  # [stages + 1, streams, causes of wait]; the last row is after the GEMM
}


@compiled_inner
def account_waits(g, front, now):
    """Add the cycles since the last look at a channel to what each stream has waited for."""
    for stream in range(STREAMS):
        if front.blocked_by[stream] != NOTHING:
            g.blocked_cycles[g.contention.stage, stream, front.blocked_by[stream]] += now - front.visited_cycle
    front.visited_cycle = now


@compiled_inner
def note_stage(g, now):
    """Account for what was waited for until a new stage of the GEMM began, or the GEMM ended.

    A stage is begun by its first workgroup; with free dispatch the last ones of the stage before are still at work. To
    be called before any channel is looked at in this cycle.
    """
    gemm, contention = g.gemm, g.contention
    last = g.blocked_cycles.shape[0] - 1
    stage = last if gemm.end_cycle >= 0 else (gemm.next_tile - 1) // gemm.places
    if stage == contention.stage:
        return
    for c in range(g.fabric.channels):
        account_waits(g, g.fronts[c], now)
    contention.stage = stage


@compiled_inner
def note_causes(g, c, waiting, taken, now):
    """Note what each stream waits for from this look at channel ``c``, at ``now``, on.

    ``waiting``: request queues whose head waits for the slice, as bits; ``taken``: those whose head it has just taken,
    which could not be granted yet.
    """
    front = g.fronts[c]
    for stream in range(STREAMS):
        front.blocked_by[stream] = _cause_of_wait(g, c, front, stream, waiting, taken, now)


@compiled_inner
def _cause_of_wait(g, c, front, stream, waiting, taken, now):
    """What the bursts of a stream wait for (BY_*); NOTHING if none waits, or its own one has its turn."""
    words, base, out = g.words, part_in(g, SLICE, c), part_out(g, SLICE, c)
    offered, word0 = words[out + SLICE_OUT.dram_valid], words[out + SLICE_OUT.dram_payload]
    own = take(word0, REQUEST.stream) == stream
    held = front.inside[stream] - (offered and own)
    if offered:
        if held == 0 and waiting & QUEUES_OF_STREAM[stream] == 0:
            return NOTHING
        if not finds_room(g, c, out, now):
            return BY_QUEUE
        return NOTHING if own else BY_STREAM
    for queue in range(QUEUES):
        held -= taken & QUEUES_OF_STREAM[stream] & 1 << queue != 0
    if held == 0:
        return NOTHING
    limit = words[base + SLICE_IN.threshold]
    compute_first = g.unit.mca and not g.unit.behind
    # What the slice has last seen, or what it sees next: its own burst may have gone to the queue in this cycle.
    lines = max(front.occupancy_lines, occupancy(g, c))
    if stream == COMMUNICATION and compute_first and limit != NO_LIMIT and lines >= limit:
        return BY_THRESHOLD
    # With an empty output only a full token queue refuses a burst, and it is full only while its token has to wait.
    # Else the arbiter decides in the next cycle.
    return BY_TRACKER if _token_waits(g, c, out) else BY_STREAM


@compiled_inner
def _token_waits(g, c, out):
    """Whether the slice offers a token that its leaf does not take."""
    unit, words = g.unit, g.words
    taken = part_out(g, LEAF, c >> unit.leaf_bits) + g.at.leaf_token_in_ready + (c & (unit.leaf_inputs - 1))
    return words[out + SLICE_OUT.token_valid] != 0 and words[taken] == 0
