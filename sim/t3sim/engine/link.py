"""The ring link: row segments leave as packets one by one, arrive after the latency, and give room back as credits.

GPUs meet only here. A GPU writes packets and credits into rings that its neighbours read; both take at least the link's
latency, so GPUs that are simulated apart in windows of that latency see exactly what they would see in lock step.
"""

from t3hdl.interface.layouts import LINE_BYTES

from t3sim.common.compiled import compiled_inner

from .mover import release_row_segment
from .requests import burst_count, burst_lines, bytes_of_lines
from .row_segments import note_communication, write_packet
from .state import LINE_WORDS, LINK_BYTES, NEVER_CYCLE


@compiled_inner
def _ps(g, cycle):
    """Picoseconds at a memory cycle."""
    return -(-cycle * 1_000_000 // g.p[0].memory_mhz)


@compiled_inner
def _cycle(g, ps):
    """The first memory cycle at or after a time in picoseconds."""
    return -(-ps * g.p[0].memory_mhz // 1_000_000)


@compiled_inner
def _serialise(g, nbytes, start_ps):
    """Occupy the link with ``nbytes``; when the last byte has left.

    Rounded times are not summed: the part of a picosecond that the last packet left unused belongs to this one.
    """
    p, s = g.p[0], g.s[0]
    if s.link_end_ps < start_ps:
        s.link_end_ps, s.link_left = start_ps, 0
    spent = nbytes * p.link_num - s.link_left
    took = -(-spent // p.link_den)
    s.link_left = took * p.link_den - spent
    s.link_end_ps = s.link_end_ps + took
    s.link_busy_ps = s.link_busy_ps + took
    return s.link_end_ps


@compiled_inner
def _free(g):
    """The cycle from which the link can take a packet.

    It follows the last one at once, also in the middle of a cycle: the link has a clock of its own.
    """
    return g.s[0].link_end_ps * g.p[0].memory_mhz // 1_000_000


@compiled_inner
def _next_packet(g, row, arrival):
    """The next packet of the ring, filled from a row record."""
    s = g.s[0]
    packet = g.out[s.out_head % g.out.shape[0]]
    s.out_head = s.out_head + 1
    packet.arrival = arrival
    packet.sequence = s.packets_sent
    s.packets_sent = s.packets_sent + 1
    packet.line, packet.lines, packet.bytes = row.line, row.lines, row.bytes
    packet.row, packet.col, packet.wf = row.row, row.col, row.wf
    packet.right, packet.bottom, packet.chunk = row.right, row.bottom, row.chunk
    packet.cause, packet.op, packet.tagged, packet.carried = row.cause, row.op, row.tagged, row.carried
    return packet


@compiled_inner
def _emit_reflected(g, row, arrival):
    """Mirror mode: the neighbour sends for chunk c + 1 what this GPU sends for chunk c.

    Row i of the s rows of chunk c stands for rows i t/s to (i + 1) t/s of the t rows of chunk c + 1, and burst j of its
    n bursts for bursts j b/n to (j + 1) b/n of the b of these; so each row of that chunk arrives exactly once, and
    identically when the two chunks have the same shape. Returns the lines that arrive.
    """
    p = g.p[0]
    region = p.temp_base if row.line >= p.temp_base else p.out_base
    height, place = divmod(row.line - region - row.row * p.tile_rows * p.pitch, p.pitch)
    first = place - row.col * p.tile_lines
    bursts = burst_count(row.line - first, min(p.tile_lines, p.pitch - row.col * p.tile_lines))
    number = 0 if first == 0 else burst_count(row.line - first, first)
    index = g.reflect_first[row.row, row.col] + height
    source, target = row.chunk, (row.chunk + 1) % p.gpus
    start = g.reflect_start[target]
    count, total = g.reflect_start[target + 1] - start, g.reflect_start[source + 1] - g.reflect_start[source]
    rows = g.reflect_rows[start + index * count // total : start + (index + 1) * count // total]
    arriving = 0
    for code in rows:
        offset, in_row = _reflected_row(g, code)
        arriving += burst_count(offset, in_row)
    lines, ordinal = 0, 0
    for code in rows:
        offset, in_row = _reflected_row(g, code)
        while in_row > 0:
            packet_lines = burst_lines(offset, in_row)
            if number * arriving // bursts <= ordinal < (number + 1) * arriving // bursts:
                _emit_reflected_burst(g, row, arrival, code, region, offset, packet_lines)
                lines += packet_lines
            offset, in_row, ordinal = offset + packet_lines, in_row - packet_lines, ordinal + 1
    return lines


@compiled_inner
def _reflected_row(g, code):
    """First line, from the output's first one, and lines of the tile's row that an entry of ``reflect_rows`` names."""
    p = g.p[0]
    tile, height = code // p.tile_rows, code % p.tile_rows
    row, col = tile // p.cols, tile % p.cols
    return (row * p.tile_rows + height) * p.pitch + col * p.tile_lines, min(p.tile_lines, p.pitch - col * p.tile_lines)


@compiled_inner
def _emit_reflected_burst(g, row, arrival, code, region, offset, lines):
    """A packet with ``lines`` lines at ``offset`` in the tile's row that ``code`` names, in return for row ``row``."""
    p = g.p[0]
    packet = _next_packet(g, row, arrival)
    tile, height = code // p.tile_rows, code % p.tile_rows
    packet.row, packet.col, packet.wf = tile // p.cols, tile % p.cols, height // p.wavefront_rows
    packet.right, packet.bottom = int(packet.col == p.cols - 1), int(packet.row == p.rows - 1)
    packet.chunk = (row.chunk + 1) % p.gpus
    packet.line, packet.lines = region + offset, lines
    packet.bytes = bytes_of_lines(g, p.out_base + offset, lines)


@compiled_inner
def _emit(g, r, now):
    """Send row ``r``."""
    p, s, row = g.p[0], g.s[0], g.rows[r]
    nbytes = row.lines * LINE_BYTES + p.header_bytes
    arrival = _cycle(g, _serialise(g, nbytes, _ps(g, now))) + p.link_latency
    if p.mirror:
        # The receiver is this GPU, and gives back the room of what arrives here.
        s.tx_credit = s.tx_credit - _emit_reflected(g, row, arrival)
    else:
        packet = _next_packet(g, row, arrival)
        if row.carried:
            for i in range(row.lines):
                for word in range(LINE_WORDS):
                    packet.data[i, word] = g.row_data[r, i, word]
        s.tx_credit = s.tx_credit - row.lines
        if p.retry:
            _buffer_for_replay(g, packet, now)
    g.bins[LINK_BYTES, s.bin] += nbytes
    note_communication(g, row.cause, now)
    release_row_segment(g, r, now)


@compiled_inner
def _buffer_for_replay(g, packet, now):
    """Keep a packet until it is acknowledged, and set the time by which it must be."""
    p, s = g.p[0], g.s[0]
    g.replay[packet.sequence % g.replay.shape[0]] = packet
    s.resend_next = s.packets_sent
    if s.resend_at == NEVER_CYCLE:
        s.resend_at = packet.arrival + p.retry_timeout - p.link_latency


@compiled_inner
def _resend(g, now):
    """Send again from the oldest packet on that is not acknowledged, if the receiver misses it or is silent for too
    long (go-back-N). Whether the link may go on to new packets."""
    p, s = g.p[0], g.s[0]
    if now >= s.resend_at:
        s.resend_next = s.packets_acknowledged
        s.resend_at = now + p.retry_timeout
    while s.resend_next < s.packets_sent:
        free = _free(g)
        if free > now:
            s.link_wake = min(s.resend_at, free)
            return False
        packet = g.out[s.out_head % g.out.shape[0]]
        g.out[s.out_head % g.out.shape[0]] = g.replay[s.resend_next % g.replay.shape[0]]
        nbytes = packet.lines * LINE_BYTES + p.header_bytes
        packet.arrival = _cycle(g, _serialise(g, nbytes, _ps(g, now))) + p.link_latency
        g.bins[LINK_BYTES, s.bin] += nbytes
        s.out_head = s.out_head + 1
        s.resend_next = s.resend_next + 1
        s.packets_resent = s.packets_resent + 1
    return True


@compiled_inner
def _acknowledged(g, credit, now):
    """Acknowledgement: packets taken by the receiver, and whether the next one is missing."""
    p, s = g.p[0], g.s[0]
    if credit.taken > s.packets_acknowledged:
        s.packets_acknowledged = credit.taken
        s.resend_next = max(s.resend_next, credit.taken)
        s.resend_at = now + p.retry_timeout if credit.taken < s.packets_sent else NEVER_CYCLE
    if credit.missing and credit.taken == s.packets_acknowledged:
        s.resend_next = credit.taken
        s.resend_at = now + p.retry_timeout


@compiled_inner
def run_link(g, now):
    """Send what waits, as far as the link is free in this cycle and the receiver has room."""
    p, s = g.p[0], g.s[0]
    s.link_wake = NEVER_CYCLE
    if p.retry and not _resend(g, now):
        return
    while s.tx_head < s.tx_tail:
        r = g.tx[s.tx_head % g.tx.shape[0]]
        row = g.rows[r]
        free = _free(g)
        if row.available > now or free > now:
            s.link_wake = min(s.resend_at, max(row.available, free))
            return
        if s.tx_credit < row.lines:
            break
        s.tx_head = s.tx_head + 1
        _emit(g, r, now)
    s.link_wake = s.resend_at


@compiled_inner
def take_grants(g, limit, now):
    """Credits that have come back from the receiver."""
    s = g.s[0]
    while s.credit_tail < limit and g.grants[s.credit_tail % g.grants.shape[0]].arrival <= now:
        credit = g.grants[s.credit_tail % g.grants.shape[0]]
        s.tx_credit = s.tx_credit + credit.lines
        if g.p[0].retry:
            _acknowledged(g, credit, now)
        s.credit_tail = s.credit_tail + 1
        s.link_wake = min(s.link_wake, now)


@compiled_inner
def return_credits(g, now):
    """Send back the room that this cycle freed in the receive buffer, and with retries what became of packets."""
    p, s = g.p[0], g.s[0]
    if s.credit_now == 0 and s.answer_now == 0:
        return
    credit = g.credits[s.credit_head % g.credits.shape[0]]
    credit.arrival = now + p.link_latency
    credit.lines = s.credit_now
    credit.taken = s.packets_taken
    credit.missing = s.missing_now
    s.credit_head = s.credit_head + 1
    s.credit_now = 0
    s.answer_now = 0
    s.missing_now = 0


@compiled_inner
def _in_order(g, sequence):
    """Whether a packet is the next one. Others are dropped: repeats, and what comes after a gap, named once a gap."""
    s = g.s[0]
    s.answer_now = 1
    if sequence == s.packets_taken:
        s.packets_taken = s.packets_taken + 1
        s.missing = 0
        return True
    s.packets_dropped = s.packets_dropped + 1
    if sequence > s.packets_taken and s.missing == 0:
        s.missing, s.missing_now = 1, 1
    return False


@compiled_inner
def run_receiver(g, limit, now):
    """Take the packets that have arrived; ``limit`` packets of the ring are complete."""
    s = g.s[0]
    while s.rx_tail < limit and g.rx[s.rx_tail % g.rx.shape[0]].arrival <= now:
        packet = g.rx[s.rx_tail % g.rx.shape[0]]
        s.rx_tail = s.rx_tail + 1
        if g.p[0].retry and not _in_order(g, packet.sequence):
            continue
        write_packet(g, packet, (g.p[0].gpu + 1) % g.p[0].gpus, now)
