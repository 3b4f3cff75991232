"""The ring link: row segments leave as packets one by one, arrive after the latency, and give room back as credits.

GPUs meet only here. A GPU writes packets and credits into rings that its neighbours read; both take at least the link's
latency, so GPUs that are simulated apart in windows of that latency see exactly what they would see in lock step.
"""

from t3hdl.interface.layouts import BURST_LINES, LINE_BYTES

from t3sim.common.compiled import compiled_inner

from .mover import release_row_segment
from .requests import burst_count, burst_lines, bytes_of_lines
from .row_segments import note_communication, write_packet
from .state import INT64, LINE_WORDS, LINK_BYTES, NEVER_CYCLE, integers, record

PACKET = record(
    arrival_cycle="i8", line="i8", lines="i4", bytes="i4", row="i4", col="i4", wf="i4", chunk="i2", right="i1",
    bottom="i1", cause="i1", op="i1", tagged="i1", carried="i2", sequence="i8", data=("i8", (BURST_LINES, LINE_WORDS)),
)  # fmt: skip

# ``taken``: packets that the receiver has taken, in all; ``missing``: it has met one behind that which it waits for.
CREDIT = record(arrival_cycle="i8", lines="i8", taken="i8", missing="i8")

# The link of GPU ``gpu`` of a ring of ``gpus``. Constants: ``byte_ps_num / byte_ps_den``: picoseconds of a byte;
# ``posted_lines``: room of the receive buffer that is granted only when the own output is in memory. State: heads and
# tails count all that ever was in a ring (:mod:`.row_segments` puts what is sent into ``tx``); ``credit_lines``: free
# room at the receiver; ``end_ps``: when the last byte has left, and ``left_ps_num / byte_ps_den``: what of its last
# picosecond is unused; ``freed_lines``: room of the receive buffer that :mod:`.completion`, or :mod:`.gpu` for what was
# posted, has freed in this cycle. Retries: numbers of packets sent, acknowledged and taken; ``resend_cycle``: when the
# receiver was silent for too long; ``answer_now``, ``missing_now``: what the next credit says.
LINK = integers(
    "gpu", "gpus", "memory_mhz", "byte_ps_num", "byte_ps_den", "latency_cycles", "header_bytes", "receive_lines",
    "posted_lines", "mirror", "retry", "retry_timeout_cycles",
    "tx_head", "tx_tail", "out_head", "rx_tail", "credit_head", "credit_tail", "credit_lines", "freed_lines",
    "end_ps", "left_ps_num", "busy_ps", "wake_cycle",
    "packets_sent", "packets_acknowledged", "packets_resent", "packets_taken", "packets_dropped",
    "resend_next", "resend_cycle", "answer_now", "missing", "missing_now",
)  # fmt: skip

FIELDS = {
    "link": (LINK, 0),
    "tx": (INT64, 1),  # ring of row indices
    "out": (PACKET, 1),  # ring of PACKET, written here, read by the neighbour
    "rx": (PACKET, 1),  # the neighbour's ring
    "replay": (PACKET, 1),  # with retries: what was sent and may have to be sent again, by its number
    "credits": (CREDIT, 1),  # ring of CREDIT to the sender
    "grants": (CREDIT, 1),  # ring of CREDIT from the receiver
    "reflect_first": (INT64, 2),  # [tile rows, tile columns] number of a tile's first output row within its chunk
    "reflect_start": (INT64, 1),  # [chunks + 1] first entry of a chunk in reflect_rows
    "reflect_rows": (INT64, 1),  # (tile number) * tile_rows + row in the tile
}


@compiled_inner
def _ps(g, cycle):
    """Picoseconds at a memory cycle."""
    return -(-cycle * 1_000_000 // g.link.memory_mhz)


@compiled_inner
def _cycle(g, ps):
    """The first memory cycle at or after a time in picoseconds."""
    return -(-ps * g.link.memory_mhz // 1_000_000)


@compiled_inner
def _serialise(g, nbytes, start_ps):
    """Occupy the link with ``nbytes``; when the last byte has left.

    Rounded times are not summed: the part of a picosecond that the last packet left unused belongs to this one.
    """
    link = g.link
    if link.end_ps < start_ps:
        link.end_ps, link.left_ps_num = start_ps, 0
    spent = nbytes * link.byte_ps_num - link.left_ps_num
    took = -(-spent // link.byte_ps_den)
    link.left_ps_num = took * link.byte_ps_den - spent
    link.end_ps = link.end_ps + took
    link.busy_ps = link.busy_ps + took
    return link.end_ps


@compiled_inner
def _free(g):
    """The cycle from which the link can take a packet.

    It follows the last one at once, also in the middle of a cycle: the link has a clock of its own.
    """
    return g.link.end_ps * g.link.memory_mhz // 1_000_000


@compiled_inner
def _next_packet(g, row, arrival):
    """The next packet of the ring, filled from a row record."""
    link = g.link
    packet = g.out[link.out_head % g.out.shape[0]]
    link.out_head = link.out_head + 1
    packet.arrival_cycle = arrival
    packet.sequence = link.packets_sent
    link.packets_sent = link.packets_sent + 1
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
    output = g.output
    region = output.receive_line if row.line >= output.receive_line else output.line
    height, place = divmod(row.line - region - row.row * output.tile_rows * output.pitch_lines, output.pitch_lines)
    first = place - row.col * output.tile_lines
    bursts = burst_count(row.line - first, min(output.tile_lines, output.pitch_lines - row.col * output.tile_lines))
    number = 0 if first == 0 else burst_count(row.line - first, first)
    index = g.reflect_first[row.row, row.col] + height
    source, target = row.chunk, (row.chunk + 1) % g.link.gpus
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
    output = g.output
    tile, height = code // output.tile_rows, code % output.tile_rows
    row, col = tile // output.cols, tile % output.cols
    begin = col * output.tile_lines
    first = (row * output.tile_rows + height) * output.pitch_lines + begin
    return first, min(output.tile_lines, output.pitch_lines - begin)


@compiled_inner
def _emit_reflected_burst(g, row, arrival, code, region, offset, lines):
    """A packet with ``lines`` lines at ``offset`` in the tile's row that ``code`` names, in return for row ``row``."""
    output = g.output
    packet = _next_packet(g, row, arrival)
    tile, height = code // output.tile_rows, code % output.tile_rows
    packet.row, packet.col, packet.wf = tile // output.cols, tile % output.cols, height // output.wavefront_rows
    packet.right, packet.bottom = int(packet.col == output.cols - 1), int(packet.row == output.rows - 1)
    packet.chunk = (row.chunk + 1) % g.link.gpus
    packet.line, packet.lines = region + offset, lines
    packet.bytes = bytes_of_lines(g, output.line + offset, lines)


@compiled_inner
def _emit(g, r, now):
    """Send row ``r``."""
    link, row = g.link, g.rows[r]
    nbytes = row.lines * LINE_BYTES + link.header_bytes
    arrival = _cycle(g, _serialise(g, nbytes, _ps(g, now))) + link.latency_cycles
    if link.mirror:
        # The receiver is this GPU, and gives back the room of what arrives here.
        link.credit_lines = link.credit_lines - _emit_reflected(g, row, arrival)
    else:
        packet = _next_packet(g, row, arrival)
        if row.carried:
            for i in range(row.lines):
                for word in range(LINE_WORDS):
                    packet.data[i, word] = g.row_data[r, i, word]
        link.credit_lines = link.credit_lines - row.lines
        if link.retry:
            _buffer_for_replay(g, packet, now)
    g.bins[LINK_BYTES, g.time.bin] += nbytes
    note_communication(g, row.cause, now)
    release_row_segment(g, r, now)


@compiled_inner
def _buffer_for_replay(g, packet, now):
    """Keep a packet until it is acknowledged, and set the time by which it must be."""
    link = g.link
    g.replay[packet.sequence % g.replay.shape[0]] = packet
    link.resend_next = link.packets_sent
    if link.resend_cycle == NEVER_CYCLE:
        link.resend_cycle = packet.arrival_cycle + link.retry_timeout_cycles - link.latency_cycles


@compiled_inner
def _resend(g, now):
    """Send again from the oldest packet on that is not acknowledged, if the receiver misses it or is silent for too
    long (go-back-N). Whether the link may go on to new packets."""
    link = g.link
    if now >= link.resend_cycle:
        link.resend_next = link.packets_acknowledged
        link.resend_cycle = now + link.retry_timeout_cycles
    while link.resend_next < link.packets_sent:
        free = _free(g)
        if free > now:
            link.wake_cycle = min(link.resend_cycle, free)
            return False
        packet = g.out[link.out_head % g.out.shape[0]]
        g.out[link.out_head % g.out.shape[0]] = g.replay[link.resend_next % g.replay.shape[0]]
        nbytes = packet.lines * LINE_BYTES + link.header_bytes
        packet.arrival_cycle = _cycle(g, _serialise(g, nbytes, _ps(g, now))) + link.latency_cycles
        g.bins[LINK_BYTES, g.time.bin] += nbytes
        link.out_head = link.out_head + 1
        link.resend_next = link.resend_next + 1
        link.packets_resent = link.packets_resent + 1
    return True


@compiled_inner
def _acknowledged(g, credit, now):
    """Acknowledgement: packets taken by the receiver, and whether the next one is missing."""
    link = g.link
    if credit.taken > link.packets_acknowledged:
        link.packets_acknowledged = credit.taken
        link.resend_next = max(link.resend_next, credit.taken)
        link.resend_cycle = now + link.retry_timeout_cycles if credit.taken < link.packets_sent else NEVER_CYCLE
    if credit.missing and credit.taken == link.packets_acknowledged:
        link.resend_next = credit.taken
        link.resend_cycle = now + link.retry_timeout_cycles


@compiled_inner
def run_link(g, now):
    """Send what waits, as far as the link is free in this cycle and the receiver has room."""
    link = g.link
    link.wake_cycle = NEVER_CYCLE
    if link.retry and not _resend(g, now):
        return
    while link.tx_head < link.tx_tail:
        r = g.tx[link.tx_head % g.tx.shape[0]]
        row = g.rows[r]
        free = _free(g)
        if row.available_cycle > now or free > now:
            link.wake_cycle = min(link.resend_cycle, max(row.available_cycle, free))
            return
        if link.credit_lines < row.lines:
            break
        link.tx_head = link.tx_head + 1
        _emit(g, r, now)
    link.wake_cycle = link.resend_cycle


@compiled_inner
def take_grants(g, limit, now):
    """Credits that have come back from the receiver."""
    link = g.link
    while link.credit_tail < limit and g.grants[link.credit_tail % g.grants.shape[0]].arrival_cycle <= now:
        credit = g.grants[link.credit_tail % g.grants.shape[0]]
        link.credit_lines = link.credit_lines + credit.lines
        if link.retry:
            _acknowledged(g, credit, now)
        link.credit_tail = link.credit_tail + 1
        link.wake_cycle = min(link.wake_cycle, now)


@compiled_inner
def return_credits(g, now):
    """Send back the room that this cycle freed in the receive buffer, and with retries what became of packets."""
    link = g.link
    if link.freed_lines == 0 and link.answer_now == 0:
        return
    credit = g.credits[link.credit_head % g.credits.shape[0]]
    credit.arrival_cycle = now + link.latency_cycles
    credit.lines = link.freed_lines
    credit.taken = link.packets_taken
    credit.missing = link.missing_now
    link.credit_head = link.credit_head + 1
    link.freed_lines = 0
    link.answer_now = 0
    link.missing_now = 0


@compiled_inner
def _in_order(g, sequence):
    """Whether a packet is the next one. Others are dropped: repeats, and what comes after a gap, named once a gap."""
    link = g.link
    link.answer_now = 1
    if sequence == link.packets_taken:
        link.packets_taken = link.packets_taken + 1
        link.missing = 0
        return True
    link.packets_dropped = link.packets_dropped + 1
    if sequence > link.packets_taken and link.missing == 0:
        link.missing, link.missing_now = 1, 1
    return False


@compiled_inner
def run_receiver(g, limit, now):
    """Take the packets that have arrived; ``limit`` packets of the ring are complete."""
    link = g.link
    while link.rx_tail < limit and g.rx[link.rx_tail % g.rx.shape[0]].arrival_cycle <= now:
        packet = g.rx[link.rx_tail % g.rx.shape[0]]
        link.rx_tail = link.rx_tail + 1
        if link.retry and not _in_order(g, packet.sequence):
            continue
        write_packet(g, packet, (link.gpu + 1) % link.gpus, now)
