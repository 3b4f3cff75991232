"""Movers of lines: the DMA engine that the trigger commands, and the reduce-scatter and all-gather kernels on the CUs.

A mover walks a rectangle of tiles, a burst of a tile's row at a time: the DMA engine tile by tile, as the hardware
counts them; a kernel in the order of addresses, as software does, so that DRAM's rows stay open. It reads each burst
from one place, or from two that it adds (a reduce-scatter without NMC), and sends it over the link or back into this
GPU's memory. A read is issued only when room for its data is reserved, so reads never block what they wait for.
"""

from t3sim.common.compiled import compiled_inner
from t3sim.hardware.words import COMMAND, READ, get

from .requests import burst_lines, bytes_of_lines, make_burst, send
from .row_segments import allocate_row_segment, free_row_segment, transmit, write_row_segment
from .state import (
    COMM_READ,
    DMA,
    INT64,
    KERNEL,
    MOVER_READ,
    NEVER_CYCLE,
    NO_SOURCE,
    RS_READ,
    RS_WRITE,
    TILE,
    integers,
    record,
)
from .t3unit.words import TRIGGER, part_in, part_out
from .wakes import wake_unit

# States of the collective kernels' sequence.
WAITING_INPUT, LAUNCHING, MOVING = range(3)

# A rectangle of tiles that a mover reads and sends on; ``source2`` is NO_SOURCE if it does not add two. The fields of
# its tiles are those of a DmaCommand, which says all that the DMA engine knows of them.
TRANSFER = record(
    source="i8", source2="i8", target="i8", pitch="i8", row0="i4", row1="i4", col0="i4", col1="i4", chunk="i2",
    link="i1", tagged="i1", op="i1", read_cause="i1", write_cause="i1", drain="i1", need="i1", need_part="i4",
    tile_rows="i4", tile_lines="i4", wavefront_rows="i4", last_rows="i4", last_lines="i4", bottom="i1", right="i1",
)  # fmt: skip

# It is at row ``height`` of tile (``row``, ``col``), at ``line`` of that row. It reads ``lines_per_cycle_num`` /
# ``lines_per_cycle_den`` lines in a memory clock: each clock pays the numerator into its ``budget``, and a line that is
# read costs the denominator. Of the ``buffer_lines`` some are taken by lines in flight.
MOVER = integers(
    "buffer_lines", "lines_per_cycle_num", "lines_per_cycle_den",
    "active", "row", "col", "height", "line", "inflight_lines", "budget", "paid_cycle", "rows_out", "wake_cycle",
)  # fmt: skip

# The DMA engine's commands: heads and tails count all; ``commands_done``: those whose credit the trigger has yet to get
# (:mod:`.t3unit.unit` gives it); ``triggers``: all that came, ``by_tile`` or ``by_chunk``; ``bad_commands``: not
# carried out; ``premature_reads``: lines that were read before all their updates were performed, as :mod:`.completion`
# sees it.
DMA_ENGINE = integers(
    "command_head", "command_tail", "commands_done", "triggers", "by_tile", "by_chunk", "bad_commands",
    "premature_reads",
)  # fmt: skip

# The collective kernels: ``step`` of ``steps`` rectangles; ``state``: WAITING_INPUT, LAUNCHING, MOVING.
KERNELS = integers("steps", "overhead_cycles", "step", "state", "start_cycle", "wake_cycle")

FIELDS = {
    "dma": (DMA_ENGINE, 0),
    "kernel": (KERNELS, 0),
    "movers": (MOVER, 1),
    "current": (TRANSFER, 1),  # [movers] the TRANSFER that each walks
    "commands": (TRANSFER, 1),  # ring of TRANSFER
    # Per command in the order of their start: rows not yet gone, 1 more while it is walked.
    "command_rows": (INT64, 1),
    "fired": (INT64, 2),  # [.., 2] chunk, cycle of each command
    "transfers": (TRANSFER, 1),  # the kernels' rectangles, in order
    "received": (INT64, 2),  # [2, parts] lines performed of incoming parts of RS and AG
}


@compiled_inner
def _is_legal(g, move):
    """Whether a command reads and writes the output buffer alone: an address beyond it is no memory of this engine."""
    output = g.output
    if not (move.row0 < move.row1 <= output.rows and move.col0 < move.col1 <= output.cols):
        return False
    if not (0 < move.last_rows <= move.tile_rows and 0 < move.last_lines <= move.tile_lines and move.wavefront_rows):
        return False
    first = move.row0 * move.tile_rows * move.pitch + move.col0 * move.tile_lines
    last_row = (move.row1 - 1) * move.tile_rows + move.last_rows - 1
    last = last_row * move.pitch + (move.col1 - 1) * move.tile_lines + move.last_lines - 1
    end = output.line + output.m * output.pitch_lines
    lowest, highest = min(move.source, move.target), max(move.source, move.target)
    return lowest + first >= output.line and highest + last < end and g.dma.command_tail <= g.command_rows.shape[0]


@compiled_inner
def take_command(g, payload, now):
    """Queue the DMA command at word ``payload``; the caller has checked that the queue has room.

    The engine does not carry out one that leaves the output buffer, as a memory management unit sees to it.
    """
    comm, dma, words = g.comm, g.dma, g.words
    move = g.commands[dma.command_tail % g.commands.shape[0]]
    dma.command_tail = dma.command_tail + 1
    move.row0, move.col0 = get(words, payload, COMMAND.row), get(words, payload, COMMAND.col)
    move.row1 = move.row0 + get(words, payload, COMMAND.rows)
    move.col1 = move.col0 + get(words, payload, COMMAND.cols)
    move.pitch = get(words, payload, COMMAND.pitch)
    move.source, move.source2 = get(words, payload, COMMAND.base), NO_SOURCE
    move.target = get(words, payload, COMMAND.peer_base)
    move.op = get(words, payload, COMMAND.op)
    move.tile_rows, move.tile_lines = get(words, payload, COMMAND.tile_rows), get(words, payload, COMMAND.tile_lines)
    move.last_rows, move.last_lines = get(words, payload, COMMAND.last_rows), get(words, payload, COMMAND.last_lines)
    move.bottom, move.right = get(words, payload, COMMAND.bottom), get(words, payload, COMMAND.right)
    move.wavefront_rows = get(words, payload, COMMAND.wavefront_rows)
    move.link, move.tagged = 1, 1
    move.read_cause, move.write_cause = RS_READ, RS_WRITE
    dma.triggers = dma.triggers + 1
    if not _is_legal(g, move):
        dma.bad_commands = dma.bad_commands + 1
        dma.command_tail = dma.command_tail - 1
        return
    move.chunk = g.chunk_at[move.row0, move.col0]
    by_chunk = get(words, payload, COMMAND.by_chunk)
    dma.by_chunk = dma.by_chunk + by_chunk
    dma.by_tile = dma.by_tile + 1 - by_chunk
    if dma.triggers <= g.fired.shape[0]:
        g.fired[dma.triggers - 1, 0] = move.chunk
        g.fired[dma.triggers - 1, 1] = now
    comm.outgoing = comm.outgoing + 1
    g.movers[DMA].wake_cycle = now


@compiled_inner
def _start(g, which, move):
    """Begin to walk a rectangle."""
    mover = g.movers[which]
    g.current[which] = move
    mover.active = 1
    mover.row = move.row0
    mover.col = move.col0
    mover.height = mover.line = 0


@compiled_inner
def _command_done(g, command):
    """A burst of the DMA engine's command is gone, or its walk has ended; after the last one its credit goes back."""
    rows = g.command_rows[command] - 1
    g.command_rows[command] = rows
    if rows == 0:
        g.dma.commands_done = g.dma.commands_done + 1
        wake_unit(g)


@compiled_inner
def _down(mover, move):
    """To the next output row, down the tile rows; behind the last one back to the first: True."""
    mover.height = mover.height + 1
    if mover.height < (move.last_rows if mover.row == move.row1 - 1 else move.tile_rows):
        return False
    mover.height = 0
    mover.row = mover.row + 1
    if mover.row < move.row1:
        return False
    mover.row = move.row0
    return True


@compiled_inner
def _right(mover, move):
    """To the next tile column; behind the last one back to the first: True."""
    mover.col = mover.col + 1
    if mover.col < move.col1:
        return False
    mover.col = move.col0
    return True


@compiled_inner
def _advance(g, which):
    """To the next row of the walk: the kernels go along output rows, the DMA engine down each tile column."""
    mover, move = g.movers[which], g.current[which]
    if which == KERNEL:
        ended = _right(mover, move) and _down(mover, move)
    else:
        ended = _down(mover, move) and _right(mover, move)
    if ended:
        mover.active = 0
        if which == DMA:
            _command_done(g, g.dma.command_head - 1)


@compiled_inner
def _issue_burst(g, which, now):
    """Read the next burst of the rectangle: make its record and its requests. Returns the lines that are read."""
    comm, mover = g.comm, g.movers[which]
    move = g.current[which]
    offset = (mover.row * move.tile_rows + mover.height) * move.pitch + mover.col * move.tile_lines + mover.line
    last_row, last_col = mover.row == move.row1 - 1, mover.col == move.col1 - 1
    in_row = move.last_lines if last_col else move.tile_lines
    lines = burst_lines(move.source + offset, in_row - mover.line)
    r = allocate_row_segment(g)
    row = g.rows[r]
    row.mover, row.link, row.op, row.tagged = which, move.link, move.op, move.tagged
    row.cause, row.chunk = move.write_cause, move.chunk
    row.row, row.col, row.wf = mover.row, mover.col, mover.height // move.wavefront_rows
    row.right, row.bottom = int(move.right and last_col), int(move.bottom and last_row)
    row.line, row.lines = move.target + offset, lines
    row.bytes = bytes_of_lines(g, g.output.line + offset, lines)
    sources = 1 if move.source2 == NO_SOURCE else 2
    row.left = sources
    if which == DMA:
        row.command = g.dma.command_head - 1
        g.command_rows[row.command] = g.command_rows[row.command] + 1
    for source in range(sources):
        base = move.source if source == 0 else move.source2
        send(g, make_burst(g, base + offset, lines, READ, move.read_cause, COMM_READ, row.bytes, MOVER_READ, r), now)
    mover.inflight_lines = mover.inflight_lines + lines
    mover.rows_out = mover.rows_out + 1
    comm.outgoing = comm.outgoing + 1
    mover.line = mover.line + lines
    if mover.line == in_row:
        mover.line = 0
        _advance(g, which)
    return lines * sources


@compiled_inner
def run_mover(g, which, now):
    """One cycle of a mover: issue bursts as far as its rate and its buffer allow."""
    comm, dma, mover = g.comm, g.dma, g.movers[which]
    paid = mover.lines_per_cycle_num
    # A burst may cost more than a cycle pays; what it overdraws, the following cycles pay.
    budget = paid
    if now - mover.paid_cycle < -((mover.budget - paid) // paid):  # else it is full: nothing to multiply
        budget = mover.budget + (now - mover.paid_cycle) * paid
    mover.paid_cycle = now
    while budget > 0:
        if not mover.active:
            if which == KERNEL or dma.command_head == dma.command_tail:
                break
            _start(g, which, g.commands[dma.command_head % g.commands.shape[0]])
            g.command_rows[dma.command_head] = 1
            dma.command_head = dma.command_head + 1
            comm.outgoing = comm.outgoing - 1
        if mover.inflight_lines + g.output.tile_lines > mover.buffer_lines:
            break
        budget -= mover.lines_per_cycle_den * _issue_burst(g, which, now)
    mover.budget = budget
    mover.wake_cycle = now + -((budget - 1) // paid) if budget <= 0 else NEVER_CYCLE


@compiled_inner
def row_segment_read(g, r, done):
    """A burst of row segment ``r`` has been read (cycle ``done``): after the last one it is sent."""
    fabric, row = g.fabric, g.rows[r]
    row.left = row.left - 1
    if row.left == 0:
        if row.link:
            transmit(g, r, done + fabric.response_cycles)
        else:
            write_row_segment(g, r, done + fabric.response_cycles)


@compiled_inner
def release_row_segment(g, r, now):
    """A row segment has left its mover (sent, or written): its room is free."""
    row, comm, dma, egress = g.rows[r], g.comm, g.dma, g.egress
    comm.outgoing = comm.outgoing - 1
    if row.mover == TILE:
        egress.free_lines = egress.free_lines + row.lines
        for port in range(egress.ports):
            if g.flight_count[port] > 0:
                g.port_wake[port] = min(g.port_wake[port], now + 1)
    else:
        mover = g.movers[row.mover]
        mover.inflight_lines = mover.inflight_lines - row.lines
        mover.rows_out = mover.rows_out - 1
        if row.mover == DMA:
            _command_done(g, row.command)
        if mover.active or (row.mover == DMA and dma.command_head < dma.command_tail):
            mover.wake_cycle = min(mover.wake_cycle, now + 1)
    free_row_segment(g, r)


@compiled_inner
def offer_command(g, now):
    """Tell the trigger whether the DMA engine's queue has room, and take the command that it offers: True if taken."""
    dma = g.dma
    room = dma.command_tail - dma.command_head < g.commands.shape[0]
    at, out = g.at, part_out(g, TRIGGER, 0)
    g.words[part_in(g, TRIGGER, 0) + at.trigger_command_ready] = room
    if not room or not g.words[out + at.trigger_command_valid]:
        return False
    take_command(g, out + at.trigger_command_payload, now)
    return True


@compiled_inner
def run_kernel(g, now):
    """The collective kernels in sequence: a rectangle starts when its input is here and the last one is sent, or at
    least read if it does not ask for more."""
    kernel, mover = g.kernel, g.movers[KERNEL]
    kernel.wake_cycle = NEVER_CYCLE
    follows = kernel.step + 1 < kernel.steps and g.transfers[kernel.step + 1].drain == 0
    if kernel.state == MOVING and not mover.active and (mover.rows_out == 0 or follows):
        kernel.step = kernel.step + 1
        kernel.state = WAITING_INPUT
    if kernel.state == WAITING_INPUT and kernel.step < kernel.steps and _may_start(g):
        # The CUs learn of performed stores when the fabric's response is back.
        kernel.start_cycle = now + g.fabric.response_cycles + kernel.overhead_cycles
        kernel.state = LAUNCHING
    if kernel.state == LAUNCHING:
        kernel.wake_cycle = kernel.start_cycle
        if now >= kernel.start_cycle:
            _start(g, KERNEL, g.transfers[kernel.step])
            kernel.state = MOVING
            kernel.wake_cycle = NEVER_CYCLE
            mover.wake_cycle = now + 1


@compiled_inner
def _may_start(g):
    """Whether the next rectangle may start: its input has arrived, and before the first one the GEMM's part is done."""
    kernel = g.kernel
    if kernel.step == 0 and (g.gemm.end_cycle < 0 or g.own.done == 0):
        return False
    move = g.transfers[kernel.step]
    if move.need == 0:
        return True
    return g.received[move.need - 1, move.need_part] >= g.part_lines[move.need_part]
