"""The register map: byte addresses of 64-bit registers, and the fields in them.

Everything that writes or decodes a register (RTL, golden model, driver, tests) takes it from here. Made from
``t3.rdl`` by ``python -m t3hdl.interface.rdl``; change that file, not this one.
"""

from amaranth.lib import data

ID = 0x0000
"""Read: Identification and register map number."""
TILE_MARKS = 0x0008
"""Read, write: How the slots of the chunk window share the trigger's tile marks."""
STATUS = 0x0010
"""Read: State of the unit."""
ARBITER = 0x0018
"""Read, write: How the two streams of a memory channel are arbitrated."""
THRESHOLDS = 0x0020
"""Read, write: The thresholds among which the monitor chooses; when communication is behind."""
PEAK_ENTRIES = 0x0028
"""Read: Most tile entries in use at the same time since the last disarm."""
OVERFLOWED = 0x0030
"""Read: Chunks that overflowed since the last disarm."""
THRESHOLD = 0x0038
"""Read: The monitor's choice."""
VERSION = 0x0040
"""Read: Version of the hardware."""
CAPABILITY = 0x0048
"""Read: Configuration of unit and trigger."""
CAPABILITY_TRACKER = 0x0050
"""Read: Configuration of tracker and queues."""
IRQ_STATUS = 0x0058
"""Read; ones clear: What happened; writing ones clears."""
IRQ_ENABLE = 0x0060
"""Read, write: Which bits of IRQ_STATUS raise the interrupt."""
ERRORS = 0x0068
"""Read: Sticky; cleared by a disarm."""
VIOLATION = 0x0070
"""Read: The first refused write since the last disarm: to another context's range, or improper."""
VIOLATIONS = 0x0078
"""Read: Refused writes since the last disarm, to another context's range or improper; saturating."""
WATCHDOG = 0x0080
"""Read, write: When to look for a stuck block."""
STUCK = 0x0088
"""Read: The block that the watchdog found."""
LOCK = 0x0090
"""Read; ones set: Bits that only a reset clears."""
DEBUG_SELECT = 0x0098
"""Write: Names a tile entry to be read."""
DEBUG_DATA = 0x00A0
"""Read: That entry, as it was when `ready` became 1."""
UPDATES = 0x00A8
"""Read: Updates counted since the last disarm."""
TILES = 0x00B0
"""Read: Tiles completed since the last disarm."""
TRIGGERS = 0x00B8
"""Read: Commands given since the last disarm."""
COMMAND_STALL = 0x00C0
"""Read: Cycles that commands waited for the DMA engine since the last disarm."""
PEAK_READY = 0x00C8
"""Read: Most ready blocks waiting at the same time since the last disarm."""
DONE_MASK = 0x00D0
"""Read: Descriptors whose chunk is done since their context was armed."""
POISONED = 0x00D8
"""Read: Descriptors cancelled since their context was armed: by a stored error, TILE_TWICE, or too_large."""
NMC_FLAGS = 0x00E0
"""Read; ones clear: Exceptions of the NMC units; writing ones clears."""
STALE_UPDATE = 0x00E8
"""Read: The first refused update of no live epoch since the last disarm."""
STALE_UPDATES = 0x00F0
"""Read: Refused updates of no live epoch since the last disarm, saturating."""
TILE_TWICE = 0x00F8
"""Read: The first wavefront tile since the last disarm that was complete a second time in its epoch."""
RANGE = 0x0100
"""4 of them, each with base +0x0, limit +0x8, attributes +0x10."""
RANGE_WORDS = 3
RANGE_STRIDE = 0x20
RANGE_COUNT = 4
RANGE_BASE = 0x0100
RANGE_LIMIT = 0x0108
RANGE_ATTRIBUTES = 0x0110
QUOTA = 0x0200
"""Read, write: What one context may use. (16 of them, 8 bytes apart)"""
QUOTA_STRIDE = 0x8
QUOTA_COUNT = 16
CONTEXT = 0x0280
"""Read: State of one context. (16 of them, 8 bytes apart)"""
CONTEXT_STRIDE = 0x8
CONTEXT_COUNT = 16
PROFILE = 0x0400
"""Write: Lines of a wavefront tile, at index bottom * 32 + right * 16 + wf. (64 of them, 8 bytes apart)"""
PROFILE_STRIDE = 0x8
PROFILE_COUNT = 64
DESCRIPTOR = 0x1000
"""64 of them, each with place +0x0, amount +0x8, buffer +0x10, target +0x18, tiles +0x20, last +0x28."""
DESCRIPTOR_WORDS = 6
DESCRIPTOR_STRIDE = 0x40
DESCRIPTOR_COUNT = 64
DESCRIPTOR_PLACE = 0x1000
DESCRIPTOR_AMOUNT = 0x1008
DESCRIPTOR_BUFFER = 0x1010
DESCRIPTOR_TARGET = 0x1018
DESCRIPTOR_TILES = 0x1020
DESCRIPTOR_LAST = 0x1028
CONTROL = 0x2000
"""Write: At most one of arm, disarm, abort, quiesce, resume in one write."""

ACCESS = {
    ID: "r",
    TILE_MARKS: "rw",
    STATUS: "r",
    ARBITER: "rw",
    THRESHOLDS: "rw",
    PEAK_ENTRIES: "r",
    OVERFLOWED: "r",
    THRESHOLD: "r",
    VERSION: "r",
    CAPABILITY: "r",
    CAPABILITY_TRACKER: "r",
    IRQ_STATUS: "w1c",
    IRQ_ENABLE: "rw",
    ERRORS: "r",
    VIOLATION: "r",
    VIOLATIONS: "r",
    WATCHDOG: "rw",
    STUCK: "r",
    LOCK: "w1s",
    DEBUG_SELECT: "w",
    DEBUG_DATA: "r",
    UPDATES: "r",
    TILES: "r",
    TRIGGERS: "r",
    COMMAND_STALL: "r",
    PEAK_READY: "r",
    DONE_MASK: "r",
    POISONED: "r",
    NMC_FLAGS: "w1c",
    STALE_UPDATE: "r",
    STALE_UPDATES: "r",
    TILE_TWICE: "r",
    CONTROL: "w",
}
"""How software uses each register that is not in an array: r, w, rw; w1c, w1s are rw with ones."""

Status = data.StructLayout({
    "init_done": 1,  # every table is written: tokens are counted, and arm is taken
    "armed": 1,  # some context is armed
    "live": 7,  # descriptors made live or skipped since disarm, modulo 128
    "chunks_done": 7,  # chunks done since disarm, modulo 128
    "unmatched": 1,  # see ERRORS
    "over_count": 1,  # see ERRORS
    "over_total": 1,  # see ERRORS
    "locked_write": 1,  # see ERRORS
    "maintenance": 1,  # the tracker's tables are being swept or read
    "abort_busy": 1,  # an abort is in progress, of any context
    "quiesced": 1,  # no new chunk, no new command
    "quiet": 1,  # quiesced, and every command is done
})  # fmt: skip

Arbiter = data.StructLayout({
    "mca": 1,  # 1: compute first, communication below the threshold (T3-MCA); 0: round-robin
    "fixed": 1,  # 1: `threshold`; 0: the monitor's choice, no limit until it has chosen
    "threshold": 7,  # DRAM queue entries from which communication waits; 127: no limit
    "starvation": 16,  # cycles that a communication head waits before it is let through
    "quantum": 8,  # lines that it then may send, rounded up to whole bursts
    "quiet": 8,  # communication lines since the last compute grant, from which no threshold applies; 0: one always does
})  # fmt: skip

Thresholds = data.StructLayout({
    "under_25": 8,  # bits 6:0: threshold for a data-bus use under 25 % in the first stage; bit 7: round-robin instead
    "under_50": 8,  # for 25 to 50 %
    "under_75": 8,  # for 50 to 75 %
    "above": 8,  # above
    "backlog": 16,  # DMA blocks, ready or under way, from which communication is behind (round-robin); 0: never
    "patience": 16,  # in 64 cycles: time with such blocks, after which communication is behind until none is; 0: never
})  # fmt: skip

Choice = data.StructLayout({
    "threshold": 7,  # what the monitor chose; 127 before
    "chosen": 1,  # it has chosen since the last arm
})  # fmt: skip

Version = data.StructLayout({
    "patch": 8,  # incremented for compatible fixes
    "minor": 8,  # incremented when CAPABILITY fields or ports are added
    "major": 8,  # incremented for changes that break drivers
})  # fmt: skip

Capability = data.StructLayout({
    "slices": 7,  # memory channels
    "ranges": 3,  # output buffers
    "contexts": 5,  # contexts
    "descriptors": 7,  # descriptors
    "chunk_window": 7,  # chunks that are live at the same time
    "blocks": 7,  # blocks per chunk
    "wavefronts": 5,  # wavefronts per workgroup
    "egress_ports": 4,  # egress matchers
    "dtypes": 4,  # a bit per data type that the NMC units add and compare
    "protect": 1,  # stored bits are protected
    "performed": 1,  # updates are counted when performed, else when accepted
})  # fmt: skip

CapabilityTracker = data.StructLayout({
    "sets": 13,  # sets of the tracker, all banks
    "ways": 5,  # ways
    "banks": 4,  # banks
    "row_index_bits": 4,  # set index bits from the tile row
    "tile_count_bits": 5,  # width of a tile counter
    "chunk_count_bits": 6,  # width of a chunk counter
    "token_queue": 7,  # depth of a slice's token queue
    "event_queue": 5,  # depth of a bank's event queue
    "nmc_latency": 4,  # stages of the NMC ALU
    "tile_marks_log": 5,  # log2 of the workgroup tiles that the trigger has marks for
})  # fmt: skip

Interrupts = data.StructLayout({
    "complete": 1,  # a context became complete
    "watchdog": 1,  # STUCK became valid
    "error": 1,  # unmatched, over_count, over_total or too_large rose
    "violation": 1,  # a write was refused: to another context's range, or improper
    "aborted": 1,  # an abort has ended
    "corrected": 1,  # a stored bit was corrected
    "uncorrectable": 1,  # ERRORS.uncorrectable rose
    "locked_write": 1,  # a write to a locked register was refused
    "stale_update": 1,  # an update of no live epoch was refused
    "tile_twice": 1,  # TILE_TWICE became valid
})  # fmt: skip

Errors = data.StructLayout({
    "unmatched": 1,  # a token of no live chunk
    "over_count": 1,  # a tile got more lines than its threshold
    "over_total": 1,  # a chunk got more lines than it expects, or is complete while a tile of it has an entry
    "locked_write": 1,  # a write to a locked register
    "violation": 1,  # a refused write, see VIOLATION
    "corrected": 1,  # a stored bit was corrected
    "uncorrectable": 1,  # an uncorrected wrong bit, also of an NMC unit: abort the job of POISONED, else force a disarm
    "stale_update": 1,  # a refused update, see STALE_UPDATE
    "tile_twice": 1,  # a tile was complete twice in an epoch, see TILE_TWICE and POISONED
    "too_large": 1,  # a chunk has more tiles than its slot has marks, see TILE_MARKS and POISONED
})  # fmt: skip

RefusalRecord = data.StructLayout({
    "line": 39,  # line address (byte address / 32)
    "context": 4,  # context of the access
    "source": 8,  # GPU that made it
    "epoch": 8,  # its epoch
    "valid": 1,  # this record is valid
})  # fmt: skip

Lock = data.StructLayout({
    "configuration": 1,  # TILE_MARKS, ARBITER, THRESHOLDS, WATCHDOG, RANGE, QUOTA, PROFILE, DESCRIPTOR are locked
    "privileged": 1,  # only privileged accesses (AxPROT[0] = 1) may write
})  # fmt: skip

DebugSelect = data.StructLayout({
    "way": 4,  # way of the set
    "bank": 3,  # bank of the tracker
    "row": 12,  # set within the bank
})  # fmt: skip

DebugData = data.StructLayout({
    "valid": 1,  # the entry is in use
    "context": 4,  # key: context
    "epoch": 8,  # key: epoch
    "wf": 4,  # key: wavefront
    "row": 12,  # key: tile row
    "col": 12,  # key: tile column
    "count": 16,  # lines counted
    "reserved": 6,
    "ready": 1,  # the entry that DEBUG_SELECT named is here
})  # fmt: skip

TileRecord = data.StructLayout({
    "valid": 1,  # this record is valid
    "descriptor": 6,  # its descriptor
    "context": 4,  # its context
    "row": 12,  # tile row
    "col": 12,  # tile column
    "wf": 4,  # wavefront
})  # fmt: skip

Line = data.StructLayout({
    "line": 39,  # line address (byte address / 32)
})  # fmt: skip

RangeAttributes = data.StructLayout({
    "valid": 1,  # the range is in use
    "context": 4,  # its owner; writes of other contexts are refused
    "epoch": 8,  # its live epoch, part of the tracker's key; tagged writes of another one are refused
    "op": 3,  # what a tagged STORE into it becomes: STORE, ADD, MIN or MAX
    "dtype": 2,  # data type of its elements
})  # fmt: skip

Quota = data.StructLayout({
    "ways": 5,  # ways of a tracker set, at most
    "slots": 7,  # live chunks, at most
    "credits": 8,  # commands given and not yet done, at most; 255: no limit
})  # fmt: skip

ContextRecord = data.StructLayout({
    "armed": 1,  # armed
    "complete": 1,  # every descriptor was made live or skipped, every chunk is retired
    "following": 7,  # the next descriptor to be made live
    "end": 7,  # the descriptor after the last one
    "slots": 7,  # chunks in use
    "ready": 13,  # blocks that wait to become commands
    "outstanding": 16,  # commands given and not yet reported done
    "pending": 1,  # tracked accesses are in the slices, or in the memory, and not yet counted
    "aborting": 1,  # an abort of the context is in progress
})  # fmt: skip

Place = data.StructLayout({
    "row0": 12,  # first tile row
    "row1": 12,  # tile row after the last one
    "col0": 12,  # first tile column
    "col1": 12,  # tile column after the last one
    "kind": 2,  # what happens to the chunk
    "op": 3,  # operation of packets and commands
    "peer": 8,  # GPU that gets it
})  # fmt: skip

Amount = data.StructLayout({
    "expected": 32,  # lines of the chunk, times addends
    "addends": 8,  # updates per line
    "context": 4,  # owner; must be the arming context
    "epoch": 8,  # as in the range
    "dtype": 2,  # elements
})  # fmt: skip

Buffer = data.StructLayout({
    "base": 39,  # first line of the output buffer here
    "pitch": 16,  # lines from one matrix row to the next
})  # fmt: skip

Target = data.StructLayout({
    "peer_base": 39,  # first line of the output buffer at the peer
    "row_shift": 4,  # log2 of a block's tile rows
    "col_shift": 4,  # log2 of a block's tile columns
    "row_blocks_log": 4,  # log2 of the block rows in a block's number
})  # fmt: skip

Tiles = data.StructLayout({
    "tiles_inner": 16,  # wavefront tiles of a block: interior
    "tiles_bottom": 16,  # in the last block row
    "tiles_right": 16,  # in the last block column
    "tiles_corner": 16,  # in both
})  # fmt: skip

Last = data.StructLayout({
    "last_block_row": 6,  # number of the last block row
    "last_block_col": 6,  # number of the last block column
    "tile_rows": 11,  # matrix rows of a tile
    "wavefront_rows": 11,  # matrix rows of a wavefront's tile
    "tile_lines": 4,  # lines of a row of a tile
    "last_rows": 11,  # matrix rows of the chunk's last tile row
    "last_lines": 4,  # lines of a row of the chunk's last tile column
    "bottom": 1,  # the chunk has the output's last tile row
    "right": 1,  # the chunk has the output's last tile column
})  # fmt: skip

Control = data.StructLayout({
    "arm": 1,  # `descriptors` descriptors of `context` from `first` on become live, in order
    "disarm": 1,  # clear every table (the walkers run), keep the configuration; refused while the unit is busy
    "descriptors": 7,  # for arm: number of descriptors
    "first": 6,  # for arm: the first descriptor
    "context": 4,  # for arm and abort
    "abort": 1,  # drop everything of `context`; IRQ_STATUS.aborted says when it is gone
    "quiesce": 1,  # no new chunk and no new command, until `resume`; counting goes on
    "resume": 1,  # ends `quiesce`
    "forced": 1,  # for disarm: also while the unit is busy; drops every job, and makes every range invalid
})  # fmt: skip

DESCRIPTOR_LAYOUTS = (Place, Amount, Buffer, Target, Tiles, Last)
"""The words of a descriptor, in their order."""

RESET = {
    ID: {"value": 1412628485},
    ARBITER: {"mca": 0, "fixed": 0, "threshold": 127, "starvation": 64, "quantum": 8, "quiet": 0},
    THRESHOLDS: {"under_25": 127, "under_50": 30, "under_75": 10, "above": 5, "backlog": 0, "patience": 0},
    VERSION: {"patch": 4, "minor": 2, "major": 4},
    QUOTA: {"ways": 16, "slots": 64, "credits": 255},
}
"""What is not 0 after reset (CAPABILITY tells of the configuration)."""

ID_VALUE = RESET[ID]["value"]
HARDWARE_VERSION = RESET[VERSION]
NO_CREDIT_LIMIT = RESET[QUOTA]["credits"]
"""As Quota.credits: commands are not limited."""
