"""One memory channel: request queues, the MemorySlice (RTL or golden), and the pseudo-channel behind it.

A slice is evaluated only in cycles in which something can change in it; by the hardware's idle promise
(docs/hardware.md, rule 5) leaving out the others is exact. What counts as a change: a transfer on a stream, a change of
a level input (the occupancy only while communication waits, since only the arbiter's threshold looks at it), or its own
deadline.
"""

from t3hdl.config import T3Config
from t3hdl.interface.layouts import NEVER, OCCUPANCY_BITS
from t3hdl.interface.signatures import slice_signature, word_map

from t3sim.common.compiled import inner
from t3sim.dram.hbm import accepts, enqueue, is_empty, occupancy, tick
from t3sim.hardware.abi import address_of

from .compute import stored
from .llc import filled
from .mover import row_gone, row_line_read
from .nmc import apply_update, store_line
from .requests import LINE_MASK, OP, STREAM, TAG, TAG_MASK, free_node, local_line_of
from .rows import communicated, free_row
from .state import AG_READ, CAUSES, FAR, GEMM_READ, GEMM_WRITE, RS_READ, RS_WRITE, WAIT_BINS
from .words import SLICE, part_in, part_out

_WORDS = word_map(slice_signature(T3Config()))
_QUEUES = ("compute_read", "compute_write", "comm_read", "comm_write")
QUEUE_IN = tuple(_WORDS.inputs[f"{name}.payload"][0] for name in _QUEUES)
QUEUE_READY = tuple(_WORDS.outputs[f"{name}.ready"][0] for name in _QUEUES)
DRAM_READY, TOKEN_READY = _WORDS.inputs["dram.ready"][0], _WORDS.inputs["token.ready"][0]
OCCUPANCY, THRESHOLD, MEASURE, NOW = (_WORDS.inputs[name][0] for name in ("occupancy", "threshold", "measure", "now"))
DRAM, DRAM_VALID = _WORDS.outputs["dram.payload"][0], _WORDS.outputs["dram.valid"][0]
TOKEN, TOKEN_VALID = _WORDS.outputs["token.payload"][0], _WORDS.outputs["token.valid"][0]
SERVED, COMM_SEEN = _WORDS.outputs["served"][0], _WORDS.outputs["comm_seen"][0]
REFUSED_VALID = tuple(_WORDS.outputs[f"{stream}_refused_valid"][0] for stream in ("compute", "comm"))
REFUSED = tuple(_WORDS.outputs[f"{stream}_refused"][0] for stream in ("compute", "comm"))
SLICE_IDLE, WAKE_AT = _WORDS.outputs["idle"][0], _WORDS.outputs["wake_at"][0]
NO_LIMIT = (1 << OCCUPANCY_BITS) - 1
BY_STREAM, BY_THRESHOLD, BY_QUEUE, BY_TRACKER = range(4)
READ_OP, STORE_OP, FIRST_UPDATE_OP = 0, 1, 2
DRAM_READ, DRAM_WRITE, DRAM_UPDATE = range(3)


@inner
def _carry_out(g, node, data):
    """A store or update with ``data`` on a carried line."""
    op = node.word0 >> OP & 7
    if op == STORE_OP:
        store_line(g, node.carry, data)
    else:
        apply_update(g, node.carry, op, data)


@inner
def _performed(g, n, done):
    """A write or update is in memory."""
    p, s, node = g.p[0], g.s[0], g.nodes[n]
    if node.word0 >> OP & 7 >= FIRST_UPDATE_OP:
        line = (node.word0 & LINE_MASK) - p.out_base
        if 0 <= line < g.performed.shape[0]:
            g.performed[line] += 1
    if node.cause == GEMM_WRITE:
        if p.hold_store and node.owner >= 0:
            stored(g, node.owner, 1, done)
        if node.carry >= 0:
            _carry_out(g, node, g.partial[node.carry])
        if p.cached_output:
            s.own_bytes = s.own_bytes + node.bytes
        elif g.part_chunk[node.part] == p.gpu:
            s.own_performed = s.own_performed + 1
        return
    communicated(g, node.cause, done)
    if node.owner >= 0:
        row = g.rows[node.owner]
        row.left = row.left - 1
        if row.left == 0:
            row_gone(g, node.owner, done)
        return
    s.incoming = s.incoming - 1
    if node.carry >= 0:
        _carry_out(g, node, g.row_data[node.row, 0])
        free_row(g, node.row)
    g.received[0 if node.cause == RS_WRITE else 1, node.part] += 1
    if node.cause == RS_WRITE and g.part_chunk[node.part] == p.gpu:
        s.own_performed = s.own_performed + 1


@inner
def _complete(g, n, now, done):
    """The column command of a request issued at ``now``; its data move by ``done``."""
    s, node = g.s[0], g.nodes[n]
    cause = node.cause
    g.bytes_by_cause[cause] += node.bytes
    g.bins[cause, s.bin] += node.bytes
    if cause == GEMM_READ:
        filled(g, node.owner, done)
    elif cause == RS_READ or cause == AG_READ:
        communicated(g, cause, now)
        row_line_read(g, n, done)
    else:
        if cause == RS_WRITE:
            g.bins[CAUSES + 2, s.bin] += 1
        elif cause == GEMM_WRITE:
            g.bins[CAUSES + 3, s.bin] += 1
        _performed(g, n, done)
    free_node(g, n)


@inner
def _accept(g, c, n, op, now):
    """The DRAM queue takes a request out of the slice: from now on it is counted."""
    p, s, node = g.p[0], g.s[0], g.nodes[n]
    line = node.word0 & LINE_MASK
    kind = DRAM_READ if op == READ_OP else (DRAM_WRITE if op == STORE_OP else DRAM_UPDATE)
    # Visible to the scheduler from the next cycle on, like every registered word.
    enqueue(g, c, now + 1, local_line_of(line, p.channels), kind, n)
    g.hbm_wake[c] = now + 1
    wait = now - node.available
    g.wait[node.queue >> 1, min(wait, WAIT_BINS - 1)] += 1
    g.inside[node.queue >> 1, c] -= 1
    if op >= FIRST_UPDATE_OP:
        s.own_counted = s.own_counted + (g.part_chunk[node.part] == p.gpu)
    if node.cause == GEMM_WRITE and not p.hold_store and node.owner >= 0:
        stored(g, node.owner, 1, now + 1)
    node.word0 = (node.word0 & ~(7 << OP)) | (op << OP)


@inner
def _present(g, c, queue, base, now):
    """Put the head of a request queue on the slice's input; whether it is valid."""
    n = g.head[queue, c]
    at = base + QUEUE_IN[queue]
    valid = n >= 0 and g.nodes[n].available <= now
    g.words[at + 2] = valid
    if valid:
        g.words[at] = g.nodes[n].word0
        g.words[at + 1] = g.nodes[n].word1
    return valid


@inner
def _pop(g, c, queue):
    """The slice took the head of a request queue. An arrived packet's line frees its room in the receive buffer."""
    n = g.head[queue, c]
    node = g.nodes[n]
    g.head[queue, c] = node.next
    if node.next < 0:
        g.tail[queue, c] = -1
    g.inside[queue >> 1, c] += 1
    if node.owner == -2:
        g.s[0].credit_now = g.s[0].credit_now + 1


@inner
def _block_reason(g, c, base, out, stream):
    """What the lines of a stream wait for after this visit (BY_*); -1 if none waits, or its own line has its turn."""
    waiting = g.inside[stream, c] - (g.words[out + DRAM_VALID] and g.words[out + DRAM] >> STREAM & 1 == stream)
    for queue in range(2 * stream, 2 * stream + 2):
        waiting += g.head[queue, c] >= 0 and g.nodes[g.head[queue, c]].available <= g.visited[c]
    if waiting == 0:
        return -1
    if g.words[out + DRAM_VALID]:
        if not accepts(g, c, g.words[out + DRAM] >> OP & 7 != READ_OP):
            return BY_QUEUE
        return -1 if g.words[out + DRAM] >> STREAM & 1 == stream else BY_STREAM
    limit = g.words[base + THRESHOLD]
    if stream == 1 and g.p[0].mca and limit != NO_LIMIT and occupancy(g, c) >= limit:
        return BY_THRESHOLD
    # With an empty output only a full token queue refuses a line.
    return BY_TRACKER if g.words[out + TOKEN_VALID] else -1


@inner
def _note_blocked(g, c, now):
    """Attribute the cycles since the last visit to what each stream waited for."""
    for stream in range(2):
        if g.block_reason[stream, c] >= 0:
            g.blocked[stream, g.block_reason[stream, c]] += now - g.visited[c]
    g.visited[c] = now


@inner
def run_channel(g, c, step, forced, now):
    """Cycle ``now`` of channel ``c``; sets the cycle at which it must be looked at again."""
    p = g.p[0]
    base, out = part_in(g, SLICE, c), part_out(g, SLICE, c)
    words = g.words
    while g.hbm_wake[c] < now:  # refreshes of an empty channel, for which nobody woke it
        g.hbm_wake[c], _, _ = tick(g, c, g.hbm_wake[c])
    _note_blocked(g, c, now)
    transfer = forced or now >= g.slice_wake[c]
    taken = 0
    for queue in range(4):
        if _present(g, c, queue, base, now) and words[out + QUEUE_READY[queue]]:
            taken |= 1 << queue
    accepted = -1
    op = words[out + DRAM] >> OP & 7
    if words[out + DRAM_VALID] and accepts(g, c, op != READ_OP):
        accepted = words[out + DRAM + 1] >> TAG & TAG_MASK
    lines = occupancy(g, c)
    if lines != g.occupancy[c] and words[out + WAKE_AT] != NEVER:
        transfer = True
    transfer = transfer or taken or accepted >= 0 or g.token_take[c]
    if transfer:
        words[base + DRAM_READY] = accepted >= 0
        words[base + TOKEN_READY] = g.token_take[c]
        words[base + OCCUPANCY] = lines
        words[base + NOW] = now + p.epoch
        g.occupancy[c] = lines
        step(g.handles[SLICE + c], address_of(words[base:]), address_of(words[out:]))
        g.evaluated[0] += 1
        g.token_take[c] = False
        _after_step(g, c, out, now)
    for queue in range(4):
        if taken >> queue & 1:
            _pop(g, c, queue)
    for stream in range(2):
        if taken and words[out + REFUSED_VALID[stream]]:
            _refused(g, c, stream, words[out + REFUSED[stream] + 1] >> TAG & TAG_MASK, now)
    if now >= g.hbm_wake[c]:
        wake, tag, done = tick(g, c, now)
        g.hbm_wake[c] = wake
        if tag >= 0:
            _complete(g, tag, now, done)
    if accepted >= 0:
        _accept(g, c, accepted, op, now)
    for stream in range(2):
        g.block_reason[stream, c] = _block_reason(g, c, base, out, stream)
    _set_wake(g, c, out, now)


@inner
def _after_step(g, c, out, now):
    """Take note of what the slice shows after an evaluation."""
    p, words = g.p[0], g.words
    g.slice_wake[c] = now + 1
    if words[out + SLICE_IDLE]:
        g.slice_wake[c] = FAR if words[out + WAKE_AT] == NEVER else max(now + 1, words[out + WAKE_AT] - p.epoch)
    leaf, bit = c >> p.leaf_bits, 1 << (c & (p.leaf_inputs - 1))
    if words[out + TOKEN_VALID]:
        g.leaf_tokens[leaf] |= bit
    else:
        g.leaf_tokens[leaf] &= ~bit
    if words[out + COMM_SEEN]:
        g.s[0].comm_seen = 1


@inner
def _refused(g, c, stream, n, now):
    """The slice gives a write back that no context but the range's own may make: it ends here, with an error."""
    s, node = g.s[0], g.nodes[n]
    s.refused = s.refused + 1
    g.inside[stream, c] -= 1
    if stream == 0:
        if node.owner >= 0:
            stored(g, node.owner, 1, now)
    else:
        s.incoming = s.incoming - 1
        if node.carry >= 0:
            free_row(g, node.row)
    free_node(g, n)


@inner
def _set_wake(g, c, out, now):
    """The next cycle at which something may happen in this channel. Refreshes of an empty one are made up for later."""
    wake = g.slice_wake[c] if is_empty(g, c) else min(g.slice_wake[c], g.hbm_wake[c])
    for queue in range(4):
        n = g.head[queue, c]
        if n >= 0:
            available = g.nodes[n].available
            if available > now:
                wake = min(wake, available)
            elif g.words[out + QUEUE_READY[queue]]:
                wake = now + 1
    if g.words[out + DRAM_VALID] and accepts(g, c, g.words[out + DRAM] >> OP & 7 != READ_OP):
        wake = now + 1
    if occupancy(g, c) != g.occupancy[c] and g.words[out + WAKE_AT] != NEVER:
        wake = now + 1
    g.channel_wake[c] = max(wake, now + 1)
