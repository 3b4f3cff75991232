"""What waits in a GPU's queues whenever a bin of its timeline begins.

Between two cycles in which something happens no queue changes, so each is as long at the beginning of a bin as it is
before the first cycle in the bin in which something happens. Nothing is counted from cycle to cycle.
"""

from t3hdl.interface.layouts import LINE_BYTES

from t3sim.common.compiled import compiled_inner
from t3sim.dram.hbm import occupancy

from ..front import COMMUNICATION, COMPUTE, QUEUES_PER_STREAM
from ..state import INT64
from ..t3unit.ports import TOKEN_STRIDE
from ..t3unit.words import LEAF, ROOT, TRIGGER, part_out

(
    DRAM_LINES, DRAM_LARGEST, COMPUTE_BURSTS, COMMUNICATION_BURSTS, HELD_BURSTS, TOKENS, DMA_BLOCKS, LINK_BYTES,
) = range(8)  # fmt: skip
QUEUE_ROWS = LINK_BYTES + 1
"""Rows of ``queued``; docs/guides/results.md says what they are. DRAM_LINES is the sum over the channels."""
FIELDS = {
    "queued": (INT64, 2),  # [QUEUE_ROWS, BINS] what waits when a bin begins
    "queued_bins": (INT64, 1),  # bins that have begun, of which this was noted
}


@compiled_inner
def observe_queues(g):
    """Note the queues at the beginning of the present bin, and of those before it that had no cycle of their own.

    To be called before anything of the present cycle happens.
    """
    while g.queued_bins[0] <= g.time.bin:
        column = g.queued_bins[0]
        g.queued_bins[0] = column + 1
        _observe(g, g.queued[:, column], column * g.time.bin_cycles)


@compiled_inner
def _observe(g, rows, cycle):
    """Fill a column with the queues as they are at ``cycle``."""
    for c in range(g.fabric.channels):
        lines = occupancy(g, c)
        rows[DRAM_LINES] += lines
        rows[DRAM_LARGEST] = max(rows[DRAM_LARGEST], lines)
        rows[COMPUTE_BURSTS] += _at_slice(g, g.fronts[c], COMPUTE, cycle)
        rows[COMMUNICATION_BURSTS] += _at_slice(g, g.fronts[c], COMMUNICATION, cycle)
    rows[HELD_BURSTS] = g.fabric.held
    rows[TOKENS] = _tokens(g)
    rows[DMA_BLOCKS] = g.words[part_out(g, TRIGGER, 0) + g.at.trigger_backlog]
    rows[LINK_BYTES] = _for_the_link(g, cycle)


@compiled_inner
def _at_slice(g, front, stream, cycle):
    """Bursts of a stream within a slice, and those before it that the fabric has brought."""
    count = front.inside[stream]
    for queue in range(QUEUES_PER_STREAM * stream, QUEUES_PER_STREAM * (stream + 1)):
        n = front.head[queue]
        while n >= 0 and g.bursts[n].available_cycle <= cycle:
            count += 1
            n = g.bursts[n].next
    return count


@compiled_inner
def _tokens(g):
    """Tokens that a slice, a leaf or a root offers to what follows it on the way to the tracker."""
    unit, at, words = g.unit, g.at, g.words
    count = 0
    for leaf in range(unit.leaves):
        for root in range(unit.roots):
            count += words[part_out(g, LEAF, leaf) + at.leaf_token_out_valid + TOKEN_STRIDE * root]
        offered = g.leaf_tokens[leaf]
        while offered:
            offered &= offered - 1
            count += 1
    for root in range(unit.roots):
        for number in range(unit.tracker_banks // unit.roots):
            count += words[part_out(g, ROOT, root) + at.root_token_out_valid + TOKEN_STRIDE * number]
    return count


@compiled_inner
def _for_the_link(g, cycle):
    """Bytes, with headers, of packets whose data are there and that the link has not yet taken, or is to send again."""
    link = g.link
    lines, packets = 0, 0
    for i in range(link.tx_head, link.tx_tail):
        row = g.rows[g.tx[i % g.tx.shape[0]]]
        if row.available_cycle > cycle:
            break
        lines += row.lines
        packets += 1
    if link.retry:
        for number in range(link.resend_next, link.packets_sent):
            lines += g.replay[number % g.replay.shape[0]].lines
            packets += 1
    return lines * LINE_BYTES + packets * link.header_bytes
