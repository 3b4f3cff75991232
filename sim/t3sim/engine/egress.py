"""The GPU's egress: every burst of a tile passes a RangeMatcher, which keeps it here or turns it into a link packet.

A row of a tile is one burst if it is aligned, else two.
"""

from t3hdl.interface.layouts import LINE_BYTES

from t3sim.common.compiled import compiled_inner
from t3sim.common.scale import cycles_of
from t3sim.hardware.abi import address_of
from t3sim.hardware.words import ROUTE, STORE, take

from .compute import stored
from .requests import (
    burst_lines,
    bytes_of_lines,
    deliver,
    length_word,
    make_burst,
    request_word,
    set_tile_identity,
    tile_name,
    tile_part,
)
from .row_segments import allocate_row_segment, carried_line, transmit
from .state import COMPUTE_WRITE, GEMM_WRITE, INT64, LINE_WORDS, NEVER_CYCLE, RS_WRITE, TILE, WORKGROUP, integers
from .t3unit.ports import MATCHER_IN, MATCHER_OUT
from .t3unit.words import MATCHER, OF_MATCHER, part_in, part_out

FLIGHT_WG, FLIGHT_ROW, FLIGHT_LINE, FLIGHT_WORDS = range(4)
"""Words of a record of ``flight``: workgroup, row of its tile, and first line of the burst in that row."""

# The egress ports with their buffer. State: its free lines, which :mod:`.mover` gives back when a packet has left;
# lines of stores that stayed here, as updates of the tracked output.
EGRESS = integers("ports", "buffer_lines", "free_lines", "updated_lines")

FIELDS = {
    "egress": (EGRESS, 0),
    "store_workgroups": (INT64, 2),  # [ports, workgroups] those that store through this port
    "store_count": (INT64, 1),
    "store_next": (INT64, 1),
    "flight": (INT64, 3),  # [ports, 4, FLIGHT_WORDS] the bursts inside the matcher
    "flight_count": (INT64, 1),
    "port_wake": (INT64, 1),
}


@compiled_inner
def _row_lines(g, wg):
    """Lines of a row of the tile that a workgroup stores."""
    output = g.output
    return min(output.tile_lines, output.pitch_lines - g.workgroups[wg].col * output.tile_lines)


@compiled_inner
def _tile_burst(g, wg, row, begin):
    """First line, lines, wavefront and edge class of the burst at line ``begin`` of row ``row`` of a workgroup's
    tile."""
    output, c = g.output, g.workgroups[wg]
    line = output.line + (c.row * output.tile_rows + row) * output.pitch_lines + c.col * output.tile_lines + begin
    lines = burst_lines(line, _row_lines(g, wg) - begin)
    right, bottom = c.col == output.cols - 1, c.row == output.rows - 1
    return line, lines, row // output.wavefront_rows, int(right), int(bottom)


@compiled_inner
def _store_locally(g, wg, row, begin, descriptor, now):
    """A burst stays here: an update of the compute stream."""
    egress, c = g.egress, g.workgroups[wg]
    line, lines, wf, right, bottom = _tile_burst(g, wg, row, begin)
    n = make_burst(g, line, lines, STORE, GEMM_WRITE, COMPUTE_WRITE, bytes_of_lines(g, line, lines), WORKGROUP, wg)
    burst = g.bursts[n]
    burst.part = g.part_at[c.row, c.col]
    if g.output.tracked:
        set_tile_identity(burst, g.link.gpu, c.row, c.col, wf, right, bottom)
    egress.updated_lines = egress.updated_lines + lines
    deliver(g, n, now, descriptor)


@compiled_inner
def _send_remote(g, wg, row, begin, line, op, now):
    """A burst becomes a packet for the neighbour: ``op`` on ``line`` there. The egress buffer has room for it."""
    comm, egress, c = g.comm, g.egress, g.workgroups[wg]
    here, lines, wf, right, bottom = _tile_burst(g, wg, row, begin)
    r = allocate_row_segment(g)
    out = g.rows[r]
    out.line, out.lines, out.bytes = line, lines, bytes_of_lines(g, here, lines)
    out.row, out.col, out.wf, out.right, out.bottom = c.row, c.col, wf, right, bottom
    out.cause, out.op, out.tagged, out.mover, out.link = RS_WRITE, op, 1, TILE, 1
    out.chunk = g.chunk_at[c.row, c.col]
    for i in range(lines):
        carry = carried_line(g, here + i)
        if carry >= 0:
            out.carried |= 1 << i
            for word in range(LINE_WORDS):
                g.row_data[r, i, word] = g.partial[carry, word]
    egress.free_lines = egress.free_lines - lines
    comm.outgoing = comm.outgoing + 1
    transmit(g, r, now)
    stored(g, wg, lines, now)


@compiled_inner
def _take_route(g, port, now):
    """Whether the matcher's result can be taken at ``now``; if so, act on it."""
    out = part_out(g, MATCHER, port)
    if not g.words[out + MATCHER_OUT.route_valid]:
        return False
    route = g.words[out + MATCHER_OUT.route_payload]
    flight = g.flight[port, 0]
    wg, row, begin = flight[FLIGHT_WG], flight[FLIGHT_ROW], flight[FLIGHT_LINE]
    if take(route, ROUTE.remote):
        if g.egress.free_lines < g.output.tile_lines:
            return False
        _send_remote(g, wg, row, begin, take(route, ROUTE.line), take(route, ROUTE.op), now)
    else:
        _store_locally(g, wg, row, begin, take(route, ROUTE.descriptor), now)
    g.flight_count[port] -= 1
    for i in range(g.flight_count[port]):
        for word in range(FLIGHT_WORDS):
            g.flight[port, i, word] = g.flight[port, i + 1, word]
    return True


@compiled_inner
def _burst_ready(g, wg):
    """The cycle by the end of which the next burst of a workgroup has passed its CU's store path.

    It is reckoned from the bytes until then, not from the time that has gone by, which may be too long to multiply.
    """
    gemm, c = g.gemm, g.workgroups[wg]
    _, lines, _, _, _ = _tile_burst(g, wg, c.store_row, c.store_line)
    nbytes = (c.store_row * _row_lines(g, wg) + c.store_line + lines) * LINE_BYTES
    return c.store_start_cycle - 1 + cycles_of(nbytes, gemm.store_bytes_per_clock, gemm.clock_num, gemm.clock_den)


@compiled_inner
def _pick(g, port, now):
    """The workgroup whose next burst this port stores: in turn, those that have one ready; and the cycle of that.

    If none is ready, -1 and the cycle at which the first one is.
    """
    count, soonest = g.store_count[port], NEVER_CYCLE
    for i in range(count):
        j = (g.store_next[port] + i) % count
        ready = _burst_ready(g, g.store_workgroups[port, j])
        if ready <= now:
            g.store_next[port] = j
            return g.store_workgroups[port, j], now
        soonest = min(soonest, ready)
    return -1, soonest


@compiled_inner
def _offer(g, port, base, now):
    """Put the next burst on the matcher's input; what :func:`_pick` says of it."""
    wg, ready = _pick(g, port, now)
    g.words[base + MATCHER_IN.store_valid] = wg >= 0
    if wg >= 0:
        c = g.workgroups[wg]
        line, lines, wf, right, bottom = _tile_burst(g, wg, c.store_row, c.store_line)
        tagged = g.output.tracked
        g.words[base + MATCHER_IN.store_payload] = request_word(line, STORE) | tagged * tile_part(wf, right, bottom)
        g.words[base + MATCHER_IN.store_payload + 1] = tagged * tile_name(c.row, c.col) | length_word(lines)
    return wg, ready


@compiled_inner
def _taken(g, port, wg):
    """The matcher took a burst of ``wg``: remember it, and leave the job when it was the last."""
    c = g.workgroups[wg]
    flight = g.flight[port, g.flight_count[port]]
    flight[FLIGHT_WG], flight[FLIGHT_ROW], flight[FLIGHT_LINE] = wg, c.store_row, c.store_line
    g.flight_count[port] += 1
    _, lines, _, _, _ = _tile_burst(g, wg, c.store_row, c.store_line)
    c.store_line = c.store_line + lines
    if c.store_line == _row_lines(g, wg):
        c.store_row, c.store_line = c.store_row + 1, 0
    if c.store_row < c.store_rows:
        g.store_next[port] += 1
        return
    count = g.store_count[port] - 1
    for j in range(g.store_next[port], count):
        g.store_workgroups[port, j] = g.store_workgroups[port, j + 1]
    g.store_count[port] = count


@compiled_inner
def run_port(g, port, step, now):
    """One cycle of one egress port; sets the cycle at which it must be looked at again.

    If its matcher rests, that is when the next burst is ready; mover.release_row_segment wakes it if it waits for room
    in the egress buffer.
    """
    base, out = part_in(g, MATCHER, port), part_out(g, MATCHER, port)
    room = g.words[out + MATCHER_OUT.store_ready] != 0
    wg, wake = -1, NEVER_CYCLE
    if room:
        wg, wake = _offer(g, port, base, now)
    route_taken = _take_route(g, port, now)
    g.words[base + MATCHER_IN.route_ready] = route_taken
    if wg >= 0 or route_taken or not g.words[out + MATCHER_OUT.idle]:
        step(g.handles[MATCHER + port], address_of(g.words[base:]), address_of(g.words[out:]))
        g.evaluated[OF_MATCHER] += 1
        wake = now + 1
    if wg >= 0:
        _taken(g, port, wg)
        g.words[base + MATCHER_IN.store_valid] = 0
    busy = g.store_count[port] > 0 or g.flight_count[port] > 0 or not g.words[out + MATCHER_OUT.idle]
    g.port_wake[port] = wake if busy else NEVER_CYCLE
