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
from .state import COMM_READ, DMA, KERNEL, NEVER_CYCLE, NO_MOVER, NO_SOURCE, RS_READ, RS_WRITE
from .words import TRIGGER, part_in, part_out

# States of the collective kernels' sequence.
WAITING_INPUT, LAUNCHING, MOVING = range(3)


@compiled_inner
def _is_legal(g, move):
    """Whether a command reads and writes the output buffer alone: an address beyond it is no memory of this engine."""
    p = g.p[0]
    if not (move.row0 < move.row1 <= p.rows and move.col0 < move.col1 <= p.cols):
        return False
    if not (0 < move.last_rows <= move.tile_rows and 0 < move.last_lines <= move.tile_lines and move.wavefront_rows):
        return False
    first = move.row0 * move.tile_rows * move.pitch + move.col0 * move.tile_lines
    last_row = (move.row1 - 1) * move.tile_rows + move.last_rows - 1
    last = last_row * move.pitch + (move.col1 - 1) * move.tile_lines + move.last_lines - 1
    end = p.out_base + p.m * p.pitch
    lowest, highest = min(move.source, move.target), max(move.source, move.target)
    return lowest + first >= p.out_base and highest + last < end and g.s[0].command_tail <= g.command_rows.shape[0]


@compiled_inner
def take_command(g, payload, now):
    """Queue the DMA command at word ``payload``; the caller has checked that the queue has room.

    The engine does not carry out one that leaves the output buffer, as a memory management unit sees to it.
    """
    s, words = g.s[0], g.words
    move = g.commands[s.command_tail % g.commands.shape[0]]
    s.command_tail = s.command_tail + 1
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
    s.triggers = s.triggers + 1
    if not _is_legal(g, move):
        s.bad_commands = s.bad_commands + 1
        s.command_tail = s.command_tail - 1
        return
    move.chunk = g.chunk_at[move.row0, move.col0]
    by_chunk = get(words, payload, COMMAND.by_chunk)
    s.by_chunk = s.by_chunk + by_chunk
    s.by_tile = s.by_tile + 1 - by_chunk
    if s.triggers <= g.fired.shape[0]:
        g.fired[s.triggers - 1, 0] = move.chunk
        g.fired[s.triggers - 1, 1] = now
    s.outgoing = s.outgoing + 1
    g.movers[DMA].wake = now


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
        g.s[0].commands_done = g.s[0].commands_done + 1


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
            _command_done(g, g.s[0].command_head - 1)


@compiled_inner
def _issue_burst(g, which, now):
    """Read the next burst of the rectangle: make its record and its requests. Returns the lines that are read."""
    p, s, mover = g.p[0], g.s[0], g.movers[which]
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
    row.bytes = bytes_of_lines(g, p.out_base + offset, lines)
    sources = 1 if move.source2 == NO_SOURCE else 2
    row.left = sources
    if which == DMA:
        row.command = s.command_head - 1
        g.command_rows[row.command] = g.command_rows[row.command] + 1
    for source in range(sources):
        base = move.source if source == 0 else move.source2
        send(g, make_burst(g, base + offset, lines, READ, move.read_cause, COMM_READ, row.bytes, r), now)
    mover.inflight = mover.inflight + lines
    mover.rows_out = mover.rows_out + 1
    s.outgoing = s.outgoing + 1
    mover.line = mover.line + lines
    if mover.line == in_row:
        mover.line = 0
        _advance(g, which)
    return lines * sources


@compiled_inner
def run_mover(g, which, now):
    """One cycle of a mover: issue bursts as far as its rate and its buffer allow."""
    s, mover = g.s[0], g.movers[which]
    # A burst may cost more than one cycle's rate; what it overdraws, the following cycles pay.
    budget = mover.rate
    if now - mover.paid < -((mover.budget - mover.rate) // mover.rate):  # else it is full: nothing to multiply
        budget = mover.budget + (now - mover.paid) * mover.rate
    mover.paid = now
    while budget > 0:
        if not mover.active:
            if which == KERNEL or s.command_head == s.command_tail:
                break
            _start(g, which, g.commands[s.command_head % g.commands.shape[0]])
            g.command_rows[s.command_head] = 1
            s.command_head = s.command_head + 1
            s.outgoing = s.outgoing - 1
        if mover.inflight + g.p[0].tile_lines > mover.limit:
            break
        budget -= mover.line_cost * _issue_burst(g, which, now)
    mover.budget = budget
    mover.wake = now + -((budget - 1) // mover.rate) if budget <= 0 else NEVER_CYCLE


@compiled_inner
def row_segment_read(g, r, done):
    """A burst of row segment ``r`` has been read (cycle ``done``): after the last one it is sent."""
    p, row = g.p[0], g.rows[r]
    row.left = row.left - 1
    if row.left == 0:
        if row.link:
            transmit(g, r, done + p.response)
        else:
            write_row_segment(g, r, done + p.response)


@compiled_inner
def release_row_segment(g, r, now):
    """A row segment has left its mover (sent, or written): its room is free."""
    row, s = g.rows[r], g.s[0]
    s.outgoing = s.outgoing - 1
    if row.mover == NO_MOVER:
        s.egress_free = s.egress_free + row.lines
        for port in range(g.p[0].ports):
            if g.flight_count[port] > 0:
                g.port_wake[port] = min(g.port_wake[port], now + 1)
    else:
        mover = g.movers[row.mover]
        mover.inflight = mover.inflight - row.lines
        mover.rows_out = mover.rows_out - 1
        if row.mover == DMA:
            _command_done(g, row.command)
        if mover.active or (row.mover == DMA and s.command_head < s.command_tail):
            mover.wake = min(mover.wake, now + 1)
    free_row_segment(g, r)


@compiled_inner
def offer_command(g, now):
    """Tell the trigger whether the DMA engine's queue has room, and take the command that it offers: True if taken."""
    s = g.s[0]
    room = s.command_tail - s.command_head < g.commands.shape[0]
    at, out = g.at[0], part_out(g, TRIGGER, 0)
    g.words[part_in(g, TRIGGER, 0) + at.trigger_command_ready] = room
    if not room or not g.words[out + at.trigger_command_valid]:
        return False
    take_command(g, out + at.trigger_command_payload, now)
    return True


@compiled_inner
def run_kernel(g, now):
    """The collective kernels in sequence: a rectangle starts when its input is here and the last one is sent, or at
    least read if it does not ask for more."""
    p, s, mover = g.p[0], g.s[0], g.movers[KERNEL]
    s.kernel_wake = NEVER_CYCLE
    follows = s.job + 1 < p.jobs and g.transfers[s.job + 1].drain == 0
    if s.kernel_state == MOVING and not mover.active and (mover.rows_out == 0 or follows):
        s.job = s.job + 1
        s.kernel_state = WAITING_INPUT
    if s.kernel_state == WAITING_INPUT and s.job < p.jobs and _may_start(g):
        # The CUs learn of performed stores when the fabric's response is back.
        s.kernel_start = now + p.response + p.kernel_overhead
        s.kernel_state = LAUNCHING
    if s.kernel_state == LAUNCHING:
        s.kernel_wake = s.kernel_start
        if now >= s.kernel_start:
            _start(g, KERNEL, g.transfers[s.job])
            s.kernel_state = MOVING
            s.kernel_wake = NEVER_CYCLE
            mover.wake = now + 1


@compiled_inner
def _may_start(g):
    """Whether the next rectangle may start: its input has arrived, and before the first one the GEMM's part is done."""
    s = g.s[0]
    if s.job == 0 and (s.gemm_end < 0 or s.own_done == 0):
        return False
    move = g.transfers[s.job]
    if move.need == 0:
        return True
    return g.received[move.need - 1, move.need_part] >= g.part_lines[move.need_part]
