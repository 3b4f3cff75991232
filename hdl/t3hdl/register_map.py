"""The register map: byte addresses of 64-bit registers, and the fields in them.

Everything that writes or decodes a register (RTL, golden model, driver, tests) takes it from here.
"""

from amaranth.lib import data

from .layouts import LINE_BITS, OCCUPANCY_BITS

ID = 0x000
"""Read: :data:`ID_VALUE`, ``T3`` and the number of the register map."""
CONTROL = 0x008
"""Write: :data:`Control`."""
STATUS = 0x010
"""Read: :data:`Status`."""
ARBITER = 0x018
"""Read, write: :data:`Arbiter`."""
THRESHOLDS = 0x020
"""Read, write: :data:`Thresholds`, for the four classes of first-stage data-bus use."""
PEAK_ENTRIES = 0x028
"""Read: most tile entries in use at the same time since the last disarm."""
OVERFLOWED = 0x030
"""Read: chunks that overflowed since the last disarm."""
THRESHOLD = 0x038
"""Read: the threshold that the occupancy monitor chose (bits 6:0), bit 7: chosen."""
VERSION = 0x040
"""Read: :data:`Version` of the hardware."""
CAPABILITY = 0x048
"""Read: :data:`Capability`, the configuration of unit and trigger."""
CAPABILITY_TRACKER = 0x050
"""Read: :data:`CapabilityTracker`, the configuration of tracker and queues."""
IRQ_STATUS = 0x058
"""Read; writing ones clears: :data:`Interrupts`."""
IRQ_ENABLE = 0x060
"""Read, write: :data:`Interrupts` that raise the interrupt line."""
ERRORS = 0x068
"""Read: :data:`Errors`, sticky, cleared by a disarm."""
VIOLATION = 0x070
"""Read: :data:`ViolationRecord`, the first refused write since the last disarm."""
VIOLATIONS = 0x078
"""Read: refused writes since the last disarm (32 bits, saturating)."""
WATCHDOG = 0x080
"""Read, write: cycles without progress after which the watchdog looks for a stuck block (32 bits); 0: off."""
STUCK = 0x088
"""Read: :data:`~t3hdl.layouts.Stuck`; writing WATCHDOG clears it."""
LOCK = 0x090
"""Read, write: :data:`Lock`; bits can be set, and are cleared by reset alone."""
DEBUG_SELECT = 0x098
"""Write: :data:`DebugSelect`, the tile entry to be read."""
DEBUG_DATA = 0x0A0
"""Read: :data:`DebugData`."""
UPDATES = 0x0A8
"""Read: updates counted since the last disarm (48 bits)."""
TILES = 0x0B0
"""Read: tiles completed since the last disarm (32 bits)."""
TRIGGERS = 0x0B8
"""Read: commands given since the last disarm (32 bits)."""
COMMAND_STALL = 0x0C0
"""Read: cycles that commands waited for the DMA engine since the last disarm (48 bits)."""
PEAK_READY = 0x0C8
"""Read: most ready blocks waiting at the same time since the last disarm."""
DONE_MASK = 0x0D0
"""Read: descriptors whose chunk is done since their context was armed."""
POISONED = 0x0D8
"""Read: descriptors cancelled by an error that could not be corrected."""
NMC_FLAGS = 0x0E0
"""Read; writing ones clears: sticky exception flags of the NMC units (:data:`~t3hdl.alu.Flags`)."""
RANGE = 0x100
RANGE_STRIDE = 0x20
"""Range i at RANGE + i * RANGE_STRIDE: +0 base line, +8 limit line (exclusive), +16 :data:`RangeAttributes`."""
QUOTA = 0x200
"""Read, write: :data:`Quota` of context c at QUOTA + 8 * c."""
CONTEXT = 0x280
"""Read: :data:`~t3hdl.layouts.ContextStatus` of context c at CONTEXT + 8 * c."""
PROFILE = 0x400
"""Lines of a wavefront tile, 16 bits, at PROFILE + 8 * (bottom * 32 + right * 16 + wf); zero: no such tile."""
DESCRIPTOR = 0x1000
DESCRIPTOR_STRIDE = 0x40
DESCRIPTOR_WORDS = 6
"""Descriptor i at DESCRIPTOR + i * DESCRIPTOR_STRIDE: words 0 to 5, see :data:`DESCRIPTOR_LAYOUTS`."""

ID_VALUE = 0x5433_0002
HARDWARE_VERSION = {"major": 1, "minor": 0, "patch": 0}
"""As in VERSION: major for what breaks a driver, minor for what one can find out by CAPABILITY."""
NO_CREDIT_LIMIT = 255
"""As ``Quota.credits``: commands are not limited."""

Control = data.StructLayout({
    "arm": 1, "disarm": 1, "descriptors": 7, "first": 6, "context": 4, "abort": 1, "quiesce": 1, "resume": 1,
})  # fmt: skip
"""``arm``: descriptors [first, first + descriptors) of ``context`` become live, in order. ``abort``: drop everything of
``context``. ``quiesce``: no new chunk, no new command until ``resume``. ``disarm``: clear every table of the unit (the
walkers run). At most one of the five in one write."""

Status = data.StructLayout({
    "init_done": 1, "armed": 1, "live": 7, "chunks_done": 7,
    "unmatched": 1, "over_count": 1, "over_total": 1, "locked_write": 1,
    "maintenance": 1, "abort_busy": 1, "quiesced": 1, "quiet": 1,
})  # fmt: skip
"""``live``: descriptors made live or skipped since disarm, ``chunks_done``: chunks done (both modulo 128)."""

Arbiter = data.StructLayout({"mca": 1, "fixed": 1, "threshold": OCCUPANCY_BITS, "starvation": 16, "burst": 8})
"""``mca`` 0: round-robin. ``fixed``: use ``threshold``, else the monitor's choice (no limit until it has chosen).
``starvation``: cycles that a communication head waits before it is let through, ``burst``: lines it then may send."""

Thresholds = data.StructLayout({"under_25": 8, "under_50": 8, "under_75": 8, "above": 8})

Version = data.StructLayout({"patch": 8, "minor": 8, "major": 8})

Capability = data.StructLayout({
    "slices": 7, "ranges": 3, "contexts": 5, "descriptors": 7, "chunk_window": 7, "blocks": 7, "wavefronts": 5,
    "egress_ports": 4, "dtypes": 4, "protect": 1, "performed": 1,
})  # fmt: skip
"""``dtypes``: a bit per :class:`~t3hdl.layouts.Dtype`. ``performed``: updates are counted when performed."""

CapabilityTracker = data.StructLayout({
    "sets": 13, "ways": 5, "banks": 4, "row_index_bits": 4, "tile_count_bits": 5, "chunk_count_bits": 6,
    "token_queue": 7, "event_queue": 5, "nmc_latency": 4,
})  # fmt: skip

Interrupts = data.StructLayout({
    "complete": 1,       # a context became complete
    "watchdog": 1,       # STUCK became valid
    "error": 1,          # unmatched, over_count or over_total rose
    "violation": 1,      # a write was refused
    "aborted": 1,        # an abort has ended
    "corrected": 1,      # a stored bit was put right
    "uncorrectable": 1,  # a stored error could not be
    "locked_write": 1,   # a write to a locked register was refused
})  # fmt: skip

Errors = data.StructLayout({
    "unmatched": 1, "over_count": 1, "over_total": 1, "locked_write": 1, "violation": 1, "corrected": 1,
    "uncorrectable": 1,
})  # fmt: skip

ViolationRecord = data.StructLayout({"line": LINE_BITS, "context": 4, "source": 8, "valid": 1})

Lock = data.StructLayout({"configuration": 1, "privileged": 1})
"""``configuration``: ARBITER, THRESHOLDS, WATCHDOG, RANGE, QUOTA, PROFILE and DESCRIPTOR cannot be written any more.
``privileged``: only privileged accesses (AxPROT[0] = 1) may write."""

DebugSelect = data.StructLayout({"way": 4, "bank": 3, "row": 12})

DebugData = data.StructLayout({
    "valid": 1, "context": 4, "epoch": 2, "wf": 4, "row": 12, "col": 12, "count": 16, "reserved": 12, "ready": 1,
})  # fmt: skip
"""The tile entry that DEBUG_SELECT named, as it was when ``ready`` became 1."""

Quota = data.StructLayout({"ways": 5, "slots": 7, "credits": 8})
"""Of one context: ways of a tracker set, live chunks, and commands that are not yet done, at most."""

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
