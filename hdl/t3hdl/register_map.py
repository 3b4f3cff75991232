"""The register map: byte addresses of 64-bit registers, and the fields in them.

Everything that writes or decodes a register (RTL, golden model, driver, tests) takes it from here.
"""

from amaranth.lib import data

from .layouts import LINE_BITS, OCCUPANCY_BITS

ID = 0x000
"""Read: 0x5433_0001 (``T3``, version 1)."""
CONTROL = 0x008
"""Write: :data:`Control`."""
STATUS = 0x010
"""Read: :data:`Status`."""
ARBITER = 0x018
"""Write: :data:`Arbiter`."""
THRESHOLDS = 0x020
"""Write: :data:`Thresholds`, for the four classes of first-stage data-bus use."""
PEAK_ENTRIES = 0x028
"""Read: most tile entries in use at the same time since the last arm."""
OVERFLOWED = 0x030
"""Read: chunks that overflowed since the last arm."""
THRESHOLD = 0x038
"""Read: the threshold that the occupancy monitor chose (bits 6:0), bit 7: chosen."""
RANGE = 0x100
RANGE_STRIDE = 0x20
"""Range i at RANGE + i * RANGE_STRIDE: +0 base line, +8 limit line (exclusive), +16 :data:`RangeAttributes`."""
PROFILE = 0x400
"""Lines of a wavefront tile, 16 bits, at PROFILE + 8 * (bottom * 32 + right * 16 + wf); zero: no such tile."""
DESCRIPTOR = 0x1000
DESCRIPTOR_STRIDE = 0x40
DESCRIPTOR_WORDS = 6
"""Descriptor i at DESCRIPTOR + i * DESCRIPTOR_STRIDE: words 0 to 5, see :data:`DESCRIPTOR_LAYOUTS`."""

ID_VALUE = 0x5433_0001

Control = data.StructLayout({"arm": 1, "disarm": 1, "descriptors": 7})
"""``arm`` starts with ``descriptors`` descriptors live in order; ``disarm`` clears every table (the walker runs)."""

Status = data.StructLayout({
    "init_done": 1, "armed": 1, "live": 7, "chunks_done": 7,
    "unmatched": 1, "over_count": 1, "over_total": 1, "locked_write": 1,
})  # fmt: skip
"""``live``: descriptors made live since arm. The last four are sticky errors, cleared by ``disarm``."""

Arbiter = data.StructLayout({"mca": 1, "fixed": 1, "threshold": OCCUPANCY_BITS, "starvation": 16, "burst": 8})
"""``mca`` 0: round-robin. ``fixed``: use ``threshold``, else the monitor's choice (``threshold`` until it has one).
``starvation``: cycles that a communication head waits before it is let through, ``burst``: lines it then may send."""

Thresholds = data.StructLayout({"under_25": 8, "under_50": 8, "under_75": 8, "above": 8})

RangeAttributes = data.StructLayout({"valid": 1, "context": 4, "epoch": 2, "op": 3, "dtype": 2})
"""A tagged STORE into a valid range becomes ``op``; a tagged STORE, ADD, MIN or MAX in it is tracked."""

DESCRIPTOR_LAYOUTS = (
    data.StructLayout({"row0": 12, "row1": 12, "col0": 12, "col1": 12, "kind": 2, "op": 3, "peer": 8}),
    data.StructLayout({"expected": 32, "addends": 8, "context": 4, "epoch": 2, "dtype": 2}),
    data.StructLayout({"base": LINE_BITS, "pitch": 16}),
    data.StructLayout({"peer_base": LINE_BITS, "row_shift": 4, "col_shift": 4, "row_blocks_log": 4}),
    # tiles (wavefronts) in a block: interior, last block row, last block column, both
    data.StructLayout({"tiles_inner": 16, "tiles_bottom": 16, "tiles_right": 16, "tiles_corner": 16}),
    data.StructLayout({"last_block_row": 6, "last_block_col": 6}),
)
"""A chunk: tiles [row0, row1) x [col0, col1); lines expected in all; a block is 2**row_shift x 2**col_shift tiles of
workgroups; block number = ((col - col0) >> col_shift) << row_blocks_log | ((row - row0) >> row_shift)."""
