"""The state of the golden Trigger, and what all its machines look at: slots, contexts, turns.

Masks have a bit per slot, context or descriptor. Times are cycles of the unit's clock.
"""

from amaranth.lib import data
from t3hdl.interface import register_map
from t3hdl.interface.words import fields_of

from t3sim.common.compiled import njit
from t3sim.hardware.words import DESCRIPTOR, KIND_DMA, state_map

SLOTS, CONTEXTS, _DESCRIPTORS, WORDS = 64, 16, 64, register_map.DESCRIPTOR_WORDS
PLACE, SUMS, HERE, THERE, TILES, LAST = (
    fields._make(field._replace(word=word) for field in fields) for word, fields in enumerate(DESCRIPTOR)
)
"""Fields of the six descriptor words; the word of each is its word in the descriptor."""
ROW = WORDS + 1
"""Words of a slot table row: the descriptor and its number."""

NOTHING, TILE, FLUSH, CLEAR, SCAN, DROPPED = range(6)
"""Block operations, and what the walker does; ``DROPPED`` is a SCAN without effect."""
WAIT, READ, SKIP, START, CLEARING, LOADING = range(6)
"""States of the loader."""
FETCH, LOOKUP, BUILD = range(3)
"""States of the issuer of commands."""

OPERATION = fields_of(data.StructLayout({"kind": 3, "slot": 6, "block": 20, "row": 12, "col": 12}))
"""A block operation in stage A, B or C, in one word: block number, block row and column in the chunk; of a CLEAR the
number that is walked."""
S = state_map(
    words=1, descriptors=1, blocks=1, contexts=1, slot_mask=1, entries=1,
    slots_log=1, marks_log=1, wavefronts_log=1, word_log=1,  # parameters end here; the last one is of tiles
    # contexts: `loading` are the armed ones with descriptors left; lists of ready blocks, `waiting` their sum
    armed=1, loading=1, following=CONTEXTS, end=CONTEXTS, slots=CONTEXTS, outstanding=CONTEXTS,
    ready=CONTEXTS, oldest=CONTEXTS, newest=CONTEXTS, waiting=1, peak_ready=1,
    backlog=1,  # `waiting` and all of `outstanding`, a cycle ago
    changed=1, status=CONTEXTS,  # contexts whose status word is to be made anew; status words as at the ports
    quiesced=1, abort_busy=1, live=1, chunks_done=1, done_mask=1, poisoned_mask=1,
    # loader: state, READ cycles left, slot and context; load pulse
    loader=1, reads=1, chosen=1, load_context=1, load_turn=1, load_valid=1, load=2,
    # slot state: a bit per slot, counts
    used=1, dma=1, done=1, all_issued=1, pending=1, poisoned=1, unissued=SLOTS,
    walker=1, walk_slot=1, walk_block=1, walk_end=1, a=1, b=1, c=1,
    tile_a=1, tile_b=1, tile_c=1, share_b=1, share_c=1,  # TileDone words; log2 of the share of marks as of stage A
    tile_twice=1, too_large=1,
    since=1, scanning=1, noted=1, stuck=1,  # watchdog: `noted` as `stuck`, but for its valid bit and its slot
    issuer=1, issue=1, issue_turn=1, built=1, command_valid=1, command=4, triggers=1, command_stall=1,
    # configuration: survives a disarm
    watchdog=1, halvings=1, quota_slots=CONTEXTS, quota_credits=CONTEXTS, descriptor=_DESCRIPTORS * WORDS,
    slot=SLOTS * ROW, tables=0,  # slot table; then the block table, the links of the ready lists, the tile marks
)  # fmt: skip
"""The state of a Trigger. A block's number in its tables is slot x blocks + block."""


@njit(cache=True)
def lowest(mask):
    """Number of the lowest set bit of a mask that is not 0."""
    bit, width = 0, 32
    while width:
        if mask & ((1 << width) - 1) == 0:
            mask >>= width
            bit += width
        width >>= 1
    return bit


@njit(cache=True)
def unfinished(state):
    """Blocks that are ready, and commands that are not done, of all contexts."""
    blocks = state[S.waiting]
    for context in range(state[S.contexts]):
        blocks += state[S.outstanding + context]
    return blocks


@njit(cache=True)
def touch(state, context):
    """Something that the status of this context shows has changed."""
    state[S.changed] |= 1 << context


@njit(cache=True)
def slot_field(state, slot, field):
    """A descriptor field of a live slot."""
    return (state[S.slot + slot * ROW + field.word] >> field.shift) & field.mask


@njit(cache=True)
def next_context(state):
    """The context whose descriptor the loader takes next, by turns; -1 if there is none."""
    if state[S.loading] == 0:
        return -1
    for i in range(state[S.contexts]):
        context = (state[S.load_turn] + i) % state[S.contexts]
        if state[S.loading] >> context & 1 and state[S.slots + context] < state[S.quota_slots + context]:
            return context
    return -1


@njit(cache=True)
def next_ready(state):
    """The context whose oldest ready block becomes a command next, by turns; -1 if there is none with credit."""
    if state[S.waiting] == 0:
        return -1
    for i in range(state[S.contexts]):
        context = (state[S.issue_turn] + i) % state[S.contexts]
        credits = state[S.quota_credits + context]
        unlimited = credits == register_map.NO_CREDIT_LIMIT
        if state[S.ready + context] > 0 and (unlimited or state[S.outstanding + context] < credits):
            return context
    return -1


@njit(cache=True)
def share_log(state):
    """log2 of the workgroup tiles that each slot has marks for."""
    return state[S.marks_log] - state[S.slots_log] + min(state[S.halvings], state[S.slots_log])


@njit(cache=True)
def free_slots(state):
    """The slots that are not in use and have a share of the marks."""
    shares = 1 << state[S.marks_log] - share_log(state)
    usable = -1 if shares >= SLOTS else (1 << shares) - 1
    return ~state[S.used] & state[S.slot_mask] & usable


@njit(cache=True)
def may_load(state):
    """Whether the loader leaves WAIT: a slot is free and a context may take it."""
    free = free_slots(state)
    return free != 0 and not state[S.quiesced] and not state[S.abort_busy] and next_context(state) >= 0


@njit(cache=True)
def retiring(state):
    """The slots that can retire; the lowest one does."""
    return state[S.used] & state[S.done] & state[S.all_issued] & ~state[S.poisoned]


@njit(cache=True)
def stuck_slots(state):
    """The slots that the watchdog may scan, if it is on and has found none yet."""
    if state[S.watchdog] == 0 or state[S.quiesced] or state[S.scanning] or state[S.stuck]:
        return 0
    return state[S.used] & ~state[S.done] & ~state[S.poisoned]


@njit(cache=True)
def is_dma(state, slot):
    """Whether a live slot gives commands."""
    return slot_field(state, slot, PLACE.kind) == KIND_DMA
