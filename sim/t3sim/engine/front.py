"""What is in front of a channel's DRAM queue: where the ports of its slice are, and what that holds."""

from t3sim.common.compiled import compiled_inner
from t3sim.dram.hbm import accepts
from t3sim.hardware.words import READ, REQUEST, get

from .state import QUEUES, STREAMS, record
from .t3unit.ports import SLICE_IN, SLICE_OUT

_QUEUES = ("compute_read", "compute_write", "comm_read", "comm_write")
QUEUE_IN = tuple(getattr(SLICE_IN, f"{name}_payload") for name in _QUEUES)
QUEUE_READY = tuple(getattr(SLICE_OUT, f"{name}_ready") for name in _QUEUES)
QUEUE_VALID = SLICE_IN.compute_read_valid - SLICE_IN.compute_read_payload
"""A request stream's valid, counted from its payload."""
QUEUES_PER_STREAM = QUEUES // STREAMS
COMPUTE, COMMUNICATION = range(STREAMS)
QUEUES_OF_STREAM = tuple(((1 << QUEUES_PER_STREAM) - 1) << QUEUES_PER_STREAM * stream for stream in range(STREAMS))
"""The request queues of each stream, as bits."""

# A channel in front of DRAM. ``due_cycle``: from when on its slice must be looked at, of which ``slice_wake_cycle`` is
# when it must be evaluated; ``hbm_wake_cycle``: when DRAM must be; ``hbm_cycle``: that of DRAM's last command, which
# may be ahead of the GPU's time. Of the request queues the first and last burst, and from when on the first is usable
# (NEVER_CYCLE: there is none); of the streams the bursts in the slice; ``ended_head``, ``ended_tail``: bursts that are
# performed, of which the first will be at ``ended_cycle`` (NEVER_CYCLE: there is none); ``occupancy_lines``: what the
# slice last saw; ``token_take``: its token is taken in this cycle. Of :mod:`.observed`: what the streams have waited
# for since ``visited_cycle``.
FRONT = record(
    due_cycle="i8", slice_wake_cycle="i8", hbm_wake_cycle="i8", hbm_cycle="i8", ended_cycle="i8",
    usable_cycle=("i8", (QUEUES,)), head=("i4", (QUEUES,)), tail=("i4", (QUEUES,)), inside=("i4", (STREAMS,)),
    ended_head="i4", ended_tail="i4", occupancy_lines="i4", token_take="?",
    visited_cycle="i8", blocked_by=("i4", (STREAMS,)),
)  # fmt: skip

FIELDS = {
    "fronts": (FRONT, 1),  # [channels]
}


@compiled_inner
def finds_room(g, c, out, cycle):
    """Whether the burst that slice ``c`` offers, at words ``out``, has room in the DRAM queue after the commands of
    ``cycle``.

    DRAM that is ahead of that has no room then: it goes ahead of an offer only to the first command that makes some.
    """
    return g.fronts[c].hbm_cycle <= cycle and has_room(g, c, out)


@compiled_inner
def has_room(g, c, out):
    """Whether the DRAM queue, as it is, has room for the burst that slice ``c`` offers at words ``out``."""
    payload = out + SLICE_OUT.dram_payload
    is_write = get(g.words, payload, REQUEST.op) != READ
    return accepts(g, c, is_write, get(g.words, payload, REQUEST.length) + 1)
