"""What becomes of a burst at the memory, and who is told: all who ask for bursts are known here, and to no channel.

A channel says that a burst has entered its slice, that the DRAM queue has taken it, that the slice has refused it, that
DRAM has moved a line of it, and that it is performed, all of its lines: then its requester is told, and its record is
free.
"""

from t3hdl.interface.layouts import LINE_BYTES

from t3sim.common.compiled import compiled_inner
from t3sim.hardware.words import READ, REQUEST, STORE, take

from .compute import stored, written_back
from .llc import cache_burst_read
from .mover import release_row_segment, row_segment_read
from .nmc import store_line, update_line
from .requests import free_burst
from .row_segments import carried_line, free_row_segment, note_communication
from .state import (
    ARRIVAL,
    BYTE,
    CACHE_FILL,
    DMA,
    GEMM_WRITE,
    INCOMING_UPDATES,
    INT64,
    LINE_WORDS,
    LOCAL_UPDATES,
    MOVER_READ,
    MOVER_WRITE,
    RS_WRITE,
    WORKGROUP,
    WRITE_BACK,
    integers,
)

# The chunk that this GPU owns: lines of its ``update_lines`` updates that are counted, and that are performed. Without
# tracking: bytes of the whole output that were written back. :mod:`.gpu` draws the conclusions: ``done``: it is
# reduced, so that the all-gather may begin; ``premature``: the hardware reported it complete before its last update was
# counted.
OWN = integers(
    "update_lines", "output_bytes", "counted_lines", "performed_lines", "written_bytes", "premature", "done",
)  # fmt: skip

FIELDS = {
    "own": (OWN, 0),
    "performed": (BYTE, 1),  # [output lines] updates performed; with a tracked output only
    "chunk_addends": (INT64, 1),  # [chunks] updates that each line gets before the DMA engine may read it
    "bytes_by_cause": (INT64, 1),
}


@compiled_inner
def is_update(op):
    """Whether ``op`` reads its line and writes it, at the bank."""
    return op != READ and op != STORE


@compiled_inner
def _is_of_own_chunk(g, burst):
    """Whether a burst of the output, or of a chunk that arrives, is of the chunk that this GPU owns."""
    return g.part_chunk[burst.part] == g.link.gpu


@compiled_inner
def burst_entered(g, burst):
    """The slice has taken a burst out of its request queue: an arrived packet frees its room in the receive buffer."""
    if burst.requester == ARRIVAL:
        g.link.freed_lines = g.link.freed_lines + burst.lines


@compiled_inner
def burst_accepted(g, burst, op, now):
    """The DRAM queue takes a burst, with the ``op`` that the slice made of it: from now on its lines are counted."""
    if is_update(op) and _is_of_own_chunk(g, burst):
        g.own.counted_lines = g.own.counted_lines + burst.lines
    if burst.requester == WORKGROUP and not g.gemm.hold_store:
        stored(g, burst.owner, burst.lines, now + 1)


@compiled_inner
def burst_refused(g, n, now):
    """The slice gives back a write, to another context's range or of no live epoch: it ends here, with an error."""
    burst = g.bursts[n]
    g.unit.refused = g.unit.refused + 1
    if burst.requester == WORKGROUP:
        stored(g, burst.owner, burst.lines, now)
    elif burst.requester == WRITE_BACK:
        written_back(g, now)
    elif burst.requester == MOVER_WRITE:
        release_row_segment(g, burst.owner, now)
    else:
        _arrival_ended(g, burst)
    free_burst(g, n)


@compiled_inner
def line_moved(g, update, n, i):
    """DRAM moves line ``i`` of burst ``n``: its bytes and its data. ``update``: the NMC unit's function.

    Nothing but this line depends on it, so it may come ahead of the GPU's time, within a bin of the timeline. Returns
    whether it is the last line of its burst; :func:`burst_performed` is then due when the GPU's time has come.
    """
    burst = g.bursts[n]
    # What is not enabled lies in the last lines, so to speak: where it is does not matter to sums.
    nbytes = max(0, min(LINE_BYTES, burst.bytes - LINE_BYTES * (burst.lines - burst.left)))
    g.bytes_by_cause[burst.cause] += nbytes
    g.bins[burst.cause, g.time.bin] += nbytes
    if burst.requester == MOVER_READ:
        _line_read(g, burst, i)
    elif burst.requester != CACHE_FILL:
        _line_written(g, update, burst, i)
    burst.left = burst.left - 1
    return burst.left == 0


@compiled_inner
def _line_read(g, burst, i):
    """Line ``i`` of a row segment is read: its data, and whether the DMA engine came too early."""
    line = take(burst.word0, REQUEST.line) + i
    row = g.rows[burst.owner]
    if row.mover == DMA and g.performed[line - g.output.line] < g.chunk_addends[row.chunk]:
        g.dma.premature_reads = g.dma.premature_reads + 1
    carried = carried_line(g, line)
    if carried >= 0:
        row.carried |= 1 << i
        for word in range(LINE_WORDS):
            g.row_data[burst.owner, i, word] = g.memory[carried, word]


@compiled_inner
def _line_written(g, update, burst, i):
    """Line ``i`` of a store or update is performed: its data, if it carries some."""
    if burst.cause == GEMM_WRITE:
        g.bins[LOCAL_UPDATES, g.time.bin] += 1
    elif burst.cause == RS_WRITE:
        g.bins[INCOMING_UPDATES, g.time.bin] += 1
    op, line = take(burst.word0, REQUEST.op), take(burst.word0, REQUEST.line) + i
    place = line - g.output.line
    if is_update(op) and 0 <= place < g.performed.shape[0]:
        g.performed[place] += 1
    carried = carried_line(g, line)
    if carried < 0:
        return
    if burst.cause == GEMM_WRITE:
        _carry_out(g, update, op, carried, g.partial[carried])
    elif burst.row >= 0:
        _carry_out(g, update, op, carried, g.row_data[burst.row, i])


@compiled_inner
def _carry_out(g, update, op, carried, data):
    """A store or update with ``data`` on a carried line."""
    if op == STORE:
        store_line(g, carried, data)
    else:
        update_line(g, update, carried, op, data)


@compiled_inner
def burst_performed(g, n, now, done):
    """The column command of the last line of a burst has issued at ``now``, its data move by ``done``: its requester
    goes on."""
    burst = g.bursts[n]
    requester = burst.requester
    if requester == CACHE_FILL:
        cache_burst_read(g, burst.owner, done)
    elif requester == MOVER_READ:
        note_communication(g, burst.cause, now)
        row_segment_read(g, burst.owner, done)
    elif requester == WORKGROUP:
        if g.gemm.hold_store:
            stored(g, burst.owner, burst.lines, done)
        _note_own(g, burst)
    elif requester == WRITE_BACK:
        written_back(g, done)
        g.own.written_bytes = g.own.written_bytes + burst.bytes
    else:
        note_communication(g, burst.cause, done)
        if requester == MOVER_WRITE:
            release_row_segment(g, burst.owner, done)
        else:
            _arrival_performed(g, burst)
    free_burst(g, n)


@compiled_inner
def _note_own(g, burst):
    """A burst of an update is in memory."""
    if not g.output.cached and _is_of_own_chunk(g, burst):
        g.own.performed_lines = g.own.performed_lines + burst.lines


@compiled_inner
def _arrival_performed(g, burst):
    """What a packet brought, or an outsider, is in memory."""
    reduces = burst.cause == RS_WRITE
    g.received[0 if reduces else 1, burst.part] += burst.lines
    if reduces and _is_of_own_chunk(g, burst):
        g.own.performed_lines = g.own.performed_lines + burst.lines
    _arrival_ended(g, burst)


@compiled_inner
def _arrival_ended(g, burst):
    """What a packet brought, or an outsider, is in memory or refused."""
    g.comm.incoming = g.comm.incoming - 1
    if burst.row >= 0:
        free_row_segment(g, burst.row)
