"""The registers of the golden MemorySlice, and its arbiter: which of four queues may send its head to the DRAM."""

from t3hdl.config import T3Config
from t3hdl.interface.layouts import MAX_CONTEXTS, NEVER, OCCUPANCY_BITS, TIME_BITS
from t3hdl.interface.signatures import slice_signature
from t3hdl.interface.words import ports_of

from t3sim.common.compiled import njit
from t3sim.hardware.golden.ranges import RANGE_WORDS
from t3sim.hardware.words import REQUEST, state_map, take

IN, OUT = ports_of(slice_signature(T3Config()))
PORTS, STREAMS = 4, 2
# The input queues have the number of their port: 2 x stream + (1 for writes).
COMPUTE, COMM, NONE = 0, 1, -1
# An item: the two words of its request. A queue: the number of items, then two items.
ITEM = 2
QUEUE = 1 + 2 * ITEM
TOKEN_QUEUE_LIMIT = 64

S = state_map(
    # parameters
    token_queue=1, performed=1, ranges=1, contexts=1,
    # configuration registers: kept by disarm
    mca=1, fixed=1, threshold=1, starvation=1, quantum=1, quiet=1, table=4 * RANGE_WORDS,
    # the rest
    queue=PORTS * QUEUE, out_valid=1, out=ITEM, tokens=TOKEN_QUEUE_LIMIT, token_head=1, token_level=1, outstanding=1,
    last_kind=2, last_stream=1, comm_waiting=1, comm_overdue=1, comm_deadline=1, left=1,
    alone=1,  # lines of comm since compute was last granted
    served=1, comm_seen=1, armed=1,
    aborted=1,  # a bit per context
    pending=MAX_CONTEXTS,  # by context: tracked accesses from their entry to their count
    refused_valid=2, stale_valid=2, refused=2 * 2,  # by stream: why its write port gives an item back, and which
)  # fmt: skip
"""The state of a MemorySlice."""

TRACKED = REQUEST.tagged.mask << REQUEST.tagged.shift
_OCCUPANCY_MASK = (1 << OCCUPANCY_BITS) - 1
NO_LIMIT = _OCCUPANCY_MASK
_MOST_ALONE = 255
TIME_MASK = (1 << TIME_BITS) - 1


@njit(cache=True)
def offer(state, stream):
    """The queue whose head is the candidate of ``stream``, or ``NONE``."""
    read = S.queue + 2 * stream * QUEUE
    write = read + QUEUE
    can_write = state[write] > 0
    if can_write and state[write + 1] & TRACKED:
        in_out = 1 if state[S.out_valid] and state[S.out] & TRACKED else 0
        can_write = state[S.token_level] + state[S.outstanding] + in_out < state[S.token_queue]
    if can_write and (state[read] == 0 or state[S.last_kind + stream] == 0):
        return write
    return read if state[read] > 0 else NONE


@njit(cache=True)
def lines_of(word1):
    """Lines of a request, by its second word."""
    return take(word1, REQUEST.length) + 1


@njit(cache=True)
def below_limit(state, words):
    """Whether the DRAM queue is empty enough for communication, or compute absent for so long that it need not be
    (T3-MCA)."""
    if state[S.quiet] > 0 and state[S.alone] >= state[S.quiet]:
        return True
    limit = state[S.threshold] if state[S.fixed] else words[IN.threshold] & _OCCUPANCY_MASK
    level = words[IN.occupancy] & _OCCUPANCY_MASK
    if state[S.out_valid]:
        level += lines_of(state[S.out + 1])
    return level < limit or limit == NO_LIMIT


@njit(cache=True)
def mca_acts(state, words):
    """Whether compute goes first: T3-MCA is on, and communication is not behind."""
    return state[S.mca] and not words[IN.behind] & 1


@njit(cache=True)
def arbitrate(state, words, compute, comm):
    """The stream that is granted, or ``NONE``; keeps ``left``. ``compute``, ``comm``: the queue of the candidate, or
    ``NONE``."""
    if not mca_acts(state, words):
        if compute != NONE and comm != NONE:
            return 1 - state[S.last_stream]
        return COMPUTE if compute != NONE else (COMM if comm != NONE else NONE)
    if comm != NONE and (state[S.left] > 0 or state[S.comm_overdue]):
        if state[S.left] == 0:
            state[S.left] = state[S.quantum]
        state[S.left] = max(state[S.left] - lines_of(state[comm + ITEM]), 0)
        return COMM
    if compute != NONE:
        return COMPUTE
    return COMM if comm != NONE and below_limit(state, words) else NONE


@njit(cache=True)
def watch_comm(state, words, waits, granted):
    """The wait of comm, and the end of its quantum. ``waits``: comm has a candidate; ``granted``: a stream."""
    if not mca_acts(state, words):
        end_wait(state)
        state[S.left] = state[S.alone] = 0
        return
    if not waits:
        state[S.left] = 0
    if granted == COMM:
        end_wait(state)
    elif state[S.comm_waiting]:
        if words[IN.now] & TIME_MASK >= state[S.comm_deadline]:
            state[S.comm_overdue] = 1
    elif waits:
        wait_limit = max(state[S.starvation] - 1, 0)
        state[S.comm_waiting] = 1
        state[S.comm_overdue] = wait_limit == 0
        state[S.comm_deadline] = (words[IN.now] + wait_limit) & TIME_MASK


@njit(cache=True)
def count_alone(state, words, granted, lines):
    """Compute's absence, by the lines that comm was granted meanwhile. ``granted``: a stream, with so many lines."""
    if granted == COMPUTE or not mca_acts(state, words):
        state[S.alone] = 0
    elif granted == COMM:
        state[S.alone] = min(state[S.alone] + lines, _MOST_ALONE)


@njit(cache=True)
def end_wait(state):
    """Comm does not wait, or it begins anew."""
    state[S.comm_waiting] = 0
    state[S.comm_overdue] = 0


@njit(cache=True)
def drive_idle(state, words, out):
    """``idle`` and ``wake_at``: whether the registers would change if the inputs stayed and nothing transferred."""
    compute, comm = offer(state, COMPUTE) != NONE, offer(state, COMM) != NONE
    wake_at = NEVER
    if mca_acts(state, words):
        busy = not state[S.comm_waiting] if comm else state[S.left] > 0
        if not state[S.out_valid]:
            busy |= compute or (comm and (state[S.left] > 0 or below_limit(state, words)))
        if state[S.comm_waiting] and (not state[S.comm_overdue] or (comm and not state[S.out_valid])):
            wake_at = state[S.comm_deadline]
    else:
        busy = state[S.left] > 0 or state[S.alone] > 0 or state[S.comm_waiting] > 0
        busy |= not state[S.out_valid] and (compute or comm)
    for stream in range(STREAMS):
        busy |= state[S.refused_valid + stream] or state[S.stale_valid + stream]
    out[OUT.idle] = 0 if busy else 1
    out[OUT.wake_at] = wake_at
