"""The GPU's egress: every store row passes a RangeMatcher, which keeps it here or turns it into a link packet."""

from t3hdl.config import T3Config
from t3hdl.interface.layouts import Route
from t3hdl.interface.signatures import matcher_signature, word_map

from t3sim.common.compiled import inner
from t3sim.hardware.abi import address_of

from .compute import stored
from .requests import BOTTOM, COL, LINE_MASK, OP, RIGHT, ROW, TAGGED, WF, deliver, make_request, tag_tile
from .rows import carried_line, new_row, row_bytes, transmit
from .scale import cycles_of
from .state import COMPUTE_WRITE, FAR, GEMM_WRITE, RS_WRITE
from .words import MATCHER, part_in, part_out

_WORDS = word_map(matcher_signature(T3Config()))
STORE, STORE_VALID = _WORDS.inputs["store.payload"][0], _WORDS.inputs["store.valid"][0]
ROUTE_READY = _WORDS.inputs["route.ready"][0]
STORE_READY = _WORDS.outputs["store.ready"][0]
ROUTE, ROUTE_VALID = _WORDS.outputs["route.payload"][0], _WORDS.outputs["route.valid"][0]
MATCHER_IDLE = _WORDS.outputs["idle"][0]
REMOTE, DESCRIPTOR = Route["remote"].offset, Route["descriptor"].offset
ROUTE_OP = Route["op"].offset
STORE_OP = 1


@inner
def _tile_row(g, wg, row):
    """First line, lines, wavefront and edge class of row ``row`` of the tile that a workgroup stores."""
    p, c = g.p[0], g.workgroups[wg]
    line = p.out_base + (c.row * p.tile_rows + row) * p.pitch + c.col * p.tile_lines
    lines = min(p.tile_lines, p.pitch - c.col * p.tile_lines)
    right, bottom = c.col == p.cols - 1, c.row == p.rows - 1
    return line, lines, row // p.wavefront_rows, int(right), int(bottom)


@inner
def _keep(g, wg, row, descriptor, now):
    """A row stays here: local updates, one per line, into the compute stream."""
    p, s, c = g.p[0], g.s[0], g.workgroups[wg]
    line, lines, wf, right, bottom = _tile_row(g, wg, row)
    for i in range(lines):
        n = make_request(g, line + i, STORE_OP, GEMM_WRITE, COMPUTE_WRITE, 32, wg)
        node = g.nodes[n]
        node.part = g.part_at[c.row, c.col]
        node.carry = carried_line(g, line + i)
        if i == lines - 1:
            node.bytes = row_bytes(g, line, lines) - 32 * i
        tag_tile(node, p.gpu, c.row, c.col, wf, right, bottom)
        s.updates_local = s.updates_local + 1
        deliver(g, n, now, descriptor)


@inner
def _send_away(g, wg, row, line, op, now):
    """A row becomes a packet for the neighbour: ``op`` on ``line`` there. The egress buffer has room for it."""
    s, c = g.s[0], g.workgroups[wg]
    here, lines, wf, right, bottom = _tile_row(g, wg, row)
    r = new_row(g)
    out = g.rows[r]
    out.line, out.lines, out.bytes = line, lines, row_bytes(g, here, lines)
    out.row, out.col, out.wf, out.right, out.bottom = c.row, c.col, wf, right, bottom
    out.cause, out.op, out.tagged, out.mover, out.link = RS_WRITE, op, 1, -1, 1
    out.chunk = g.chunk_at[c.row, c.col]
    for i in range(lines):
        carry = carried_line(g, here + i)
        if carry >= 0:
            out.carried |= 1 << i
            for word in range(4):
                g.row_data[r, i, word] = g.partial[carry, word]
    s.egress_free = s.egress_free - lines
    s.outgoing = s.outgoing + 1
    transmit(g, r, now)
    stored(g, wg, lines, now)


@inner
def _take_route(g, port, now):
    """Whether the matcher's result can be taken at ``now``; if so, act on it."""
    out = part_out(g, MATCHER, port)
    if not g.words[out + ROUTE_VALID]:
        return False
    route = g.words[out + ROUTE]
    wg, row = g.flight[port, 0, 0], g.flight[port, 0, 1]
    if route >> REMOTE & 1:
        if g.s[0].egress_free < g.p[0].tile_lines:
            return False
        _send_away(g, wg, row, route & LINE_MASK, route >> ROUTE_OP & 7, now)
    else:
        _keep(g, wg, row, route >> DESCRIPTOR & 63, now)
    g.flight_count[port] -= 1
    for i in range(g.flight_count[port]):
        g.flight[port, i, 0] = g.flight[port, i + 1, 0]
        g.flight[port, i, 1] = g.flight[port, i + 1, 1]
    return True


@inner
def _row_ready(g, wg):
    """The cycle by the end of which the next row of a workgroup has passed its CU's store path.

    It is reckoned from the row's bytes, not from the time that has gone by, which may be too long to multiply.
    """
    p, c = g.p[0], g.workgroups[wg]
    nbytes = (c.store_row + 1) * 32 * min(p.tile_lines, p.pitch - c.col * p.tile_lines)
    return c.store_start - 1 + cycles_of(nbytes, p.store_bytes_per_clock, p.clock_num, p.clock_den)


@inner
def _pick(g, port, now):
    """The workgroup whose next row this port stores: in turn, those that have one ready; and the cycle for which it is.

    If none is ready, -1 and the cycle at which the first one is.
    """
    count, soonest = g.jobs_count[port], FAR
    for i in range(count):
        j = (g.jobs_next[port] + i) % count
        ready = _row_ready(g, g.jobs_wg[port, j])
        if ready <= now:
            g.jobs_next[port] = j
            return g.jobs_wg[port, j], now
        soonest = min(soonest, ready)
    return -1, soonest


@inner
def _offer(g, port, base, now):
    """Put the next store row on the matcher's input; what :func:`_pick` says of it."""
    wg, ready = _pick(g, port, now)
    g.words[base + STORE_VALID] = wg >= 0
    if wg >= 0:
        c = g.workgroups[wg]
        line, _, wf, right, bottom = _tile_row(g, wg, c.store_row)
        g.words[base + STORE] = (
            line | (STORE_OP << OP) | (1 << TAGGED) | (wf << WF) | (right << RIGHT) | (bottom << BOTTOM)
        )
        g.words[base + STORE + 1] = (c.row << ROW) | (c.col << COL)
    return wg, ready


@inner
def _taken(g, port, wg):
    """The matcher took a row of ``wg``: remember it, and leave the job when it was the last."""
    c = g.workgroups[wg]
    i = g.flight_count[port]
    g.flight[port, i, 0] = wg
    g.flight[port, i, 1] = c.store_row
    g.flight_count[port] = i + 1
    c.store_row = c.store_row + 1
    if c.store_row < c.store_rows:
        g.jobs_next[port] += 1
        return
    count = g.jobs_count[port] - 1
    for j in range(g.jobs_next[port], count):
        g.jobs_wg[port, j] = g.jobs_wg[port, j + 1]
    g.jobs_count[port] = count


@inner
def run_port(g, port, step, now):
    """One cycle of one egress port; sets the cycle at which it must be looked at again.

    If its matcher rests, that is when the next row is ready; mover.row_gone wakes it if it waits for room in the egress
    buffer.
    """
    base, out = part_in(g, MATCHER, port), part_out(g, MATCHER, port)
    room = g.words[out + STORE_READY] != 0
    wg, wake = -1, FAR
    if room:
        wg, wake = _offer(g, port, base, now)
    route_taken = _take_route(g, port, now)
    g.words[base + ROUTE_READY] = route_taken
    if wg >= 0 or route_taken or not g.words[out + MATCHER_IDLE]:
        step(g.handles[MATCHER + port], address_of(g.words[base:]), address_of(g.words[out:]))
        g.evaluated[1] += 1
        wake = now + 1
    if wg >= 0:
        _taken(g, port, wg)
        g.words[base + STORE_VALID] = 0
    busy = g.jobs_count[port] > 0 or g.flight_count[port] > 0 or not g.words[out + MATCHER_IDLE]
    g.port_wake[port] = wake if busy else FAR
