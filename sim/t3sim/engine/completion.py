"""What becomes of a burst when DRAM has moved its lines: their data move, and the model that asked for it is told.

A burst goes back to the model of its cause: LLC, DMA engine or kernel, workgroup, or whoever waits for what arrives.
"""

from t3hdl.interface.layouts import BURST_LINES, LINE_BYTES

from t3sim.common.compiled import compiled_inner
from t3sim.hardware.words import READ, REQUEST, STORE, take

from .compute import stored, written_back
from .llc import cache_burst_read
from .mover import release_row_segment, row_segment_read
from .nmc import apply_update, store_line
from .requests import NOBODY, free_burst
from .row_segments import carried_line, free_row_segment, note_communication
from .state import (
    AG_READ,
    BYTE,
    DMA,
    GEMM_READ,
    GEMM_WRITE,
    INCOMING_UPDATES,
    INT64,
    LINE_WORDS,
    LOCAL_UPDATES,
    RS_READ,
    RS_WRITE,
    integers,
)

# The chunk that this GPU owns: lines of its ``update_lines`` updates that :mod:`.channel` has seen counted, and that
# are performed. Without tracking: bytes of the whole output that were written back. :mod:`.gpu` draws the conclusions:
# ``done``: it is reduced, so that the all-gather may begin; ``premature``: the hardware reported it complete before its
# last update was counted.
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
def line_done(g, tag, now, done):
    """The column command of line ``tag`` % 8 of burst ``tag`` // 8 issues at ``now``; its data move by ``done``."""
    n, i = tag // BURST_LINES, tag % BURST_LINES
    burst = g.bursts[n]
    # What is not enabled lies in the last lines, so to speak: where it is does not matter to sums.
    nbytes = min(LINE_BYTES, burst.bytes)
    burst.bytes = burst.bytes - nbytes
    g.bytes_by_cause[burst.cause] += nbytes
    g.bins[burst.cause, g.time.bin] += nbytes
    if burst.cause == RS_READ or burst.cause == AG_READ:
        _line_read(g, burst, i)
    elif burst.cause != GEMM_READ:
        _line_written(g, burst, i, nbytes)
    burst.left = burst.left - 1
    if burst.left == 0:
        _burst_done(g, n, now, done)


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
def _line_written(g, burst, i, nbytes):
    """Line ``i`` of a store or update is performed: its data, if it carries some."""
    if burst.cause == GEMM_WRITE:
        g.bins[LOCAL_UPDATES, g.time.bin] += 1
        g.own.written_bytes = g.own.written_bytes + nbytes
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
        _carry_out(g, op, carried, g.partial[carried])
    elif burst.row >= 0:
        _carry_out(g, op, carried, g.row_data[burst.row, i])


@compiled_inner
def _carry_out(g, op, carried, data):
    """A store or update with ``data`` on a carried line."""
    if op == STORE:
        store_line(g, carried, data)
    else:
        apply_update(g, carried, op, data)


@compiled_inner
def _burst_done(g, n, now, done):
    """All lines of a burst are read, or in memory."""
    burst = g.bursts[n]
    cause = burst.cause
    if cause == GEMM_READ:
        cache_burst_read(g, burst.owner, done)
    elif cause == RS_READ or cause == AG_READ:
        note_communication(g, cause, now)
        row_segment_read(g, burst.owner, done)
    elif cause == GEMM_WRITE:
        _store_performed(g, burst, done)
    else:
        _communication_performed(g, burst, done)
    free_burst(g, n)


@compiled_inner
def _store_performed(g, burst, done):
    """A burst of the GEMM's output is in memory."""
    own = g.own
    if burst.owner == NOBODY:
        written_back(g, done)
    elif g.gemm.hold_store:
        stored(g, burst.owner, burst.lines, done)
    if not g.output.cached and g.part_chunk[burst.part] == g.link.gpu:
        own.performed_lines = own.performed_lines + burst.lines


@compiled_inner
def _communication_performed(g, burst, done):
    """A burst of a kernel of this GPU, or of a packet that has arrived, is in memory."""
    comm, own = g.comm, g.own
    note_communication(g, burst.cause, done)
    if burst.owner >= 0:
        release_row_segment(g, burst.owner, done)
        return
    comm.incoming = comm.incoming - 1
    if burst.row >= 0:
        free_row_segment(g, burst.row)
    g.received[0 if burst.cause == RS_WRITE else 1, burst.part] += burst.lines
    if burst.cause == RS_WRITE and g.part_chunk[burst.part] == g.link.gpu:
        own.performed_lines = own.performed_lines + burst.lines
