"""The state of one simulated GPU: record types, and their allocation for a plan of a run."""

from typing import ClassVar

import numpy as np
from t3hdl.interface.layouts import BURST_LINES, LINE_BYTES
from t3hdl.interface.words import WORD_BYTES

from t3sim.dram.state import CHANNEL

from .ports import AT
from .reference import Bundle

INT64, INT32, FLAG, BYTE = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_), np.dtype(np.uint8)
NEVER_CYCLE = 1 << 62
"""A cycle that never comes."""

# Causes of DRAM traffic, in the order of request.CAUSES.
GEMM_READ, GEMM_WRITE, RS_READ, RS_WRITE, AG_READ, AG_WRITE = range(6)
CAUSES = 6
# Rows of the timeline: bytes of each cause, and then these.
CU_CLOCKS, LINK_BYTES, INCOMING_UPDATES, LOCAL_UPDATES = range(CAUSES, CAUSES + 4)
BIN_ROWS = LOCAL_UPDATES + 1
# Request queues into a slice.
COMPUTE_READ, COMPUTE_WRITE, COMM_READ, COMM_WRITE = range(4)
# States of a place for a workgroup.
IDLE, WAITING, STARTING, COMPUTING, STORING, RELEASING = range(6)
# The two movers of lines.
DMA, KERNEL = 0, 1
MOVERS, NO_MOVER = 2, -1  # a workgroup's rows have none
BINS = 4096
WAIT_BINS = 4096
"""Histogram of waiting times, in cycles; the last bin holds all longer ones."""
LINE_WORDS = LINE_BYTES // WORD_BYTES
"""Words of a line's data."""


def _record(**fields: object) -> np.dtype:
    return np.dtype([(name, kind) for name, kind in fields.items()], align=True)


# A burst, from its source until all its lines are performed: ``left`` of ``lines`` are not yet. Its index is its tag.
BURST = _record(
    next="i4", owner="i4", row="i4", part="i4", bytes="i2", lines="i1", left="i1", cause="i1", queue="i1", channel="i1",
    available="i8", word0="i8", word1="i8",
)  # fmt: skip

# A row segment, which is stored or sent as one burst: lines of one output row of one wavefront tile. ``left``: reads
# that it waits for; ``carried``: bit i: line i carries data.
ROW = _record(
    next="i4", left="i4", lines="i4", bytes="i4", command="i4", mover="i1", cause="i1", op="i1", tagged="i1",
    carried="i2", chunk="i2", row="i4", col="i4", wf="i4", right="i1", bottom="i1", link="i1",
    line="i8", available="i8",
)  # fmt: skip

PACKET = _record(
    arrival="i8", line="i8", lines="i4", bytes="i4", row="i4", col="i4", wf="i4", chunk="i2", right="i1", bottom="i1",
    cause="i1", op="i1", tagged="i1", carried="i2", sequence="i8", data=("i8", (BURST_LINES, LINE_WORDS)),
)  # fmt: skip

# ``taken``: packets that the receiver has taken, in all; ``missing``: it has met one behind that which it waits for.
CREDIT = _record(arrival="i8", lines="i8", taken="i8", missing="i8")

# A place for a workgroup on a CU, and the one that it holds; ``clock``: CU clock at which the last slab was computed;
# ``store_row``, ``store_line``: the row of the tile, and the line of that, from which on it has yet to be stored.
WORKGROUP = _record(
    state="i4", row="i4", col="i4", slab="i4", event="i8", clock="i8", store_left="i8", store_row="i4",
    store_line="i4", store_rows="i4", store_start="i8", stage="i4", stall_since="i8",
)  # fmt: skip

# What the workgroups of a CU share: clocks from which its matrix unit, its path from the LLC and its store path are
# free, and the cycle until which its time is accounted for as computing or stalled.
CU = _record(matrix_free="i8", path_free="i8", store_free="i8", accounted="i8")

NO_SOURCE = -1
# A rectangle of tiles that a mover reads and sends on; ``source2`` is NO_SOURCE if it does not add two. The fields of
# its tiles are those of a DmaCommand, which says all that the DMA engine knows of them.
TRANSFER = _record(
    source="i8", source2="i8", target="i8", pitch="i8", row0="i4", row1="i4", col0="i4", col1="i4", chunk="i2",
    link="i1", tagged="i1", op="i1", read_cause="i1", write_cause="i1", drain="i1", need="i1", need_part="i4",
    tile_rows="i4", tile_lines="i4", wavefront_rows="i4", last_rows="i4", last_lines="i4", bottom="i1", right="i1",
)  # fmt: skip

# It is at row ``height`` of tile (``row``, ``col``), at ``line`` of that row. Each memory clock pays ``rate`` into its
# budget; a line that is read costs ``line_cost`` of it.
MOVER = _record(
    active="i8",
    row="i8",
    col="i8",
    height="i8",
    line="i8",
    inflight="i8",
    limit="i8",
    rate="i8",
    line_cost="i8",
    budget="i8",
    paid="i8",
    rows_out="i8",
    wake="i8",
)

# ``clock_num / clock_den``: CU clocks in a memory clock. ``link_num / link_den``: picoseconds of a byte on the link.
CONSTANTS = _record(
    gpu="i8", gpus="i8", channels="i8", cus="i8", workgroups="i8", memory_mhz="i8", clock_num="i8", clock_den="i8",
    m="i8", n="i8", k="i8", tile_rows="i8", tile_cols="i8", wavefront_rows="i8", rows="i8", cols="i8",
    pitch="i8", tile_lines="i8", slack="i8",
    slab_k="i8", slabs="i8", slab_clocks="i8", last_slab_clocks="i8", prefetch="i8", stage_barrier="i8",
    hold_store="i8", store_bytes_per_clock="i8", a_base="i8", b_base="i8", a_pitch="i8", b_pitch="i8", out_base="i8",
    temp_base="i8", tiles="i8", cached_output="i8", tracked="i8", start="i8", epoch="i8",
    llc_sets="i8", llc_mask="i8", llc_ways="i8", llc_line="i8", llc_latency="i8", llc_random="i8",
    llc_bytes_per_clock="i8", write_backs="i8", request="i8", response="i8",
    link_num="i8", link_den="i8", link_latency="i8", header_bytes="i8", egress_lines="i8", mirror="i8",
    retry="i8", retry_timeout="i8",
    token_nodes_per_tree="i8", leaf_inputs="i8", leaf_bits="i8", banks="i8", contexts="i8", ports="i8", mca="i8",
    jobs="i8", own_lines="i8", own_bytes="i8", posted_lines="i8", bin_cycles="i8", kernel_overhead="i8",
)  # fmt: skip
"""What stays constant during a run: shape, machine, addresses (in 32-byte lines unless the name says otherwise)."""

SCALARS = _record(
    now="i8", bin="i8", burst_free="i8", row_segment_free="i8", waiter_free="i8", mshr_free="i8", bursts_used="i8",
    wg_next="i8", wg_done="i8", resident="i8", stage_left="i8", cu_next="i8", llc_stamp="i8",
    write_backs="i8", stores_held="i8", gemm_end="i8", gemm_start="i8",
    egress_free="i8", tx_head="i8", tx_tail="i8", tx_credit="i8", link_left="i8",
    link_end_ps="i8", link_wake="i8", out_head="i8", rx_tail="i8", credit_head="i8", credit_tail="i8", credit_now="i8",
    link_busy_ps="i8",
    packets_sent="i8", packets_acknowledged="i8", resend_next="i8", resend_at="i8", packets_resent="i8",
    packets_taken="i8", packets_dropped="i8", answer_now="i8", missing="i8", missing_now="i8",
    command_head="i8", command_tail="i8", commands_done="i8",
    job="i8", kernel_state="i8", kernel_start="i8", kernel_wake="i8",
    outgoing="i8", incoming="i8",
    live="i8", held="i8", held_since="i8", held_cycles="i8", comm_seen="i8", threshold="i8", measure="i8",
    own_performed="i8", own_bytes="i8", update_count="i8", own_done="i8", premature_reads="i8",
    own_counted="i8", premature_chunks="i8", bad_commands="i8", refused="i8",
    state="i8", state_since="i8", compute_cycles="i8", exposed_cycles="i8", idle_cycles="i8", exposed_count="i8",
    rs_first="i8", rs_last="i8", ag_first="i8", ag_last="i8", finish="i8", done="i8",
    triggers="i8", by_tile="i8", by_chunk="i8", updates_local="i8",
    stall_cycles="i8", store_stall_cycles="i8",
)  # fmt: skip


class GpuState(Bundle):
    """One GPU. First index of per-channel arrays is the channel; see the record types above for the rest."""

    FIELDS: ClassVar[dict[str, tuple[np.dtype, int]]] = {
        "p": (CONSTANTS, 1),
        "s": (SCALARS, 1),
        "channel": (CHANNEL, 1),  # the HBM model's pseudo-channels
        "bursts": (BURST, 1),
        "head": (INT64, 2),  # [4, channels]
        "tail": (INT64, 2),
        "rows": (ROW, 1),
        "row_data": (INT64, 3),  # [rows, BURST_LINES, LINE_WORDS]
        "order": (INT64, 2),  # [tiles, 2] dispatch order
        "cus": (CU, 1),
        "workgroups": (WORKGROUP, 1),  # place i is on CU i % cus
        "slab_left": (INT64, 2),  # [workgroups, prefetch + 1]
        "slab_ready": (INT64, 2),
        "llc_tag": (INT32, 1),  # [sets * ways + extra]
        "llc_used": (INT64, 1),
        "llc_fill": (INT64, 1),
        "llc_left": (INT32, 1),
        "llc_dirty": (INT32, 1),
        "llc_waiter": (INT32, 1),
        "waiters": (INT64, 2),  # [.., WAITER_WORDS]
        "store_workgroups": (INT64, 2),  # [ports, workgroups] those that store through this port
        "store_count": (INT64, 1),
        "store_next": (INT64, 1),
        "flight": (INT64, 3),  # [ports, 4, FLIGHT_WORDS] the bursts inside the matcher
        "flight_count": (INT64, 1),
        "port_wake": (INT64, 1),
        "movers": (MOVER, 1),
        "current": (TRANSFER, 1),  # [movers] the TRANSFER that each walks
        "commands": (TRANSFER, 1),  # ring of TRANSFER
        "command_rows": (
            INT64,
            1,
        ),  # per command in the order of their start: rows not yet gone, 1 more while it is walked
        "transfers": (TRANSFER, 1),  # the kernel's MOVEs, in order
        "tx": (INT64, 1),  # ring of row indices
        "out": (PACKET, 1),  # ring of PACKET, written here, read by the neighbour
        "rx": (PACKET, 1),  # the neighbour's ring
        "replay": (PACKET, 1),  # with retries: what was sent and may have to be sent again, by its number
        "credits": (CREDIT, 1),  # ring of CREDIT to the sender
        "grants": (CREDIT, 1),  # ring of CREDIT from the receiver
        "received": (INT64, 2),  # [2, parts] lines performed of incoming parts of RS and AG
        "part_lines": (INT64, 1),
        "part_chunk": (INT64, 1),  # chunk of a part; with T3 the parts are the chunks
        "chunk_addends": (INT64, 1),  # [chunks] updates that each line gets before the DMA engine may read it
        "performed": (BYTE, 1),  # [output lines] updates performed; with a tracked output only
        "part_at": (INT64, 2),  # [tile rows, tile columns] part of a tile
        "descriptor_of": (INT64, 1),  # [chunks]
        "chunk_at": (INT64, 2),  # [tile rows, tile columns] chunk of a tile
        "held_head": (INT64, 1),  # [64] by descriptor
        "held_tail": (INT64, 1),
        "reflect_first": (INT64, 2),  # [tile rows, tile columns] number of a tile's first output row within its chunk
        "reflect_start": (INT64, 1),  # [chunks + 1] first entry of a chunk in reflect_rows
        "reflect_rows": (INT64, 1),  # (tile number) * tile_rows + row in the tile
        "words": (INT64, 1),  # all input and output words
        "handles": (INT64, 1),
        "at": (AT, 1),  # places of ports that depend on the configuration
        "shown": (INT64, 2),  # [.., 2] word of the registers' inputs, word of a part's outputs that it shows
        "fault_words": (INT64, 2),  # [2, ..] outputs of parts: a stored bit was corrected, was uncorrectable
        "channel_wake": (INT64, 1),
        "slice_wake": (INT64, 1),
        "hbm_wake": (INT64, 1),
        "occupancy": (INT64, 1),  # that the slice last saw
        "visited": (INT64, 1),  # cycle of the last visit
        "inside": (INT64, 2),  # [2, channels] bursts of a stream in the slice
        "block_reason": (INT64, 2),  # [2, channels] what they wait for
        "token_take": (FLAG, 1),
        "leaf_tokens": (INT64, 1),  # [leaves] slices with a token on offer, as a bit mask
        "part_wake": (INT64, 1),  # leaves, root, tracker, trigger, monitor
        "part_active": (FLAG, 1),
        "carry_of": (INT32, 1),  # [output lines] carried line number or -1
        "partial": (INT64, 2),  # [carried, LINE_WORDS]
        "memory": (INT64, 2),  # [carried, LINE_WORDS]
        "updates": (INT64, 2),  # [.., UPDATE_WORDS] op-and-stores of this cycle
        "evaluated": (INT64, 1),  # [parts] evaluations, in the order of parts.SIMULATED
        "bytes_by_cause": (INT64, 1),
        "bins": (INT64, 2),  # [BIN_ROWS, BINS]: bytes by cause, CU_CLOCKS, LINK_BYTES and so on
        "wait": (INT64, 2),  # [2, WAIT_BINS]
        "blocked": (INT64, 2),  # [2, 4] cycles blocked, as in channel.BY_*
        "stages": (INT64, 2),  # [stages, 2] first dispatch, last release
        "exposed": (INT64, 2),  # [.., 2]
        "fired": (INT64, 2),  # [.., 2] descriptor, time
    }
