"""What the models of a GPU share: numbers of causes, queues and movers, maps of the output, how records are made."""

import numpy as np
from t3hdl.interface.layouts import LINE_BYTES
from t3hdl.interface.words import WORD_BYTES

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
QUEUES, STREAMS = 4, 2
# States of a place for a workgroup.
IDLE, WAITING, STARTING, COMPUTING, STORING, RELEASING = range(6)
# Who asks memory for a burst, and is told what becomes of it (:mod:`.completion`): a workgroup for its stores, the LLC
# for a line that is missing or given up, a mover for its reads and its writes, a packet that has arrived, and one who
# does not own what he writes to (faults/foreign.py). A burst's ``owner``: which workgroup, LLC entry or row segment.
REQUESTERS = WORKGROUP, CACHE_FILL, WRITE_BACK, MOVER_READ, MOVER_WRITE, ARRIVAL, OUTSIDER = range(7)
# What row segments come from: the two movers of lines, and tiles.
DMA, KERNEL, TILE = range(3)
MOVERS = KERNEL + 1
NO_SOURCE = -1
"""The second source of a rectangle that a mover only reads from one."""
BINS = 4096
LINE_WORDS = LINE_BYTES // WORD_BYTES
"""Words of a line's data."""


def record(**fields: object) -> np.dtype:
    """A record type: name -> type of NumPy."""
    return np.dtype([(name, kind) for name, kind in fields.items()], align=True)


def integers(*names: str) -> np.dtype:
    """A record type of 64-bit integers: of a model's one record, first its constants in a run, then its state."""
    return record(**dict.fromkeys(names, "i8"))


# The output of the GEMM: ``m`` x ``n`` elements in ``rows`` x ``cols`` workgroup tiles. ``line``, ``receive_line``:
# first lines of the output, and of the buffer into which the neighbour's reduce-scatter kernel writes; ``slack_bytes``:
# padding in the last line of an output row. ``cached``: it goes through the LLC; ``tracked``: the T3 hardware tracks
# it.
OUTPUT = integers(
    "m", "n", "tile_rows", "tile_cols", "wavefront_rows", "rows", "cols", "tiles", "pitch_lines", "tile_lines",
    "slack_bytes", "line", "receive_line", "cached", "tracked",
)  # fmt: skip

FIELDS = {
    "output": (OUTPUT, 0),
    "part_lines": (INT64, 1),
    "part_chunk": (INT64, 1),  # chunk of a part; with T3 the parts are the chunks
    "part_at": (INT64, 2),  # [tile rows, tile columns] part of a tile
    "descriptor_of": (INT64, 1),  # [chunks]
    "chunk_at": (INT64, 2),  # [tile rows, tile columns] chunk of a tile
}
