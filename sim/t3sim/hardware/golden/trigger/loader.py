"""The loader of the golden Trigger, which makes descriptors live, and the walker over the blocks of a slot."""

from t3sim.common.compiled import njit
from t3sim.hardware.words import KIND_DMA, KIND_LOCAL, LOAD, place, take

from .blocks import block_place, enter
from .commands import blocks_of_chunk
from .marks import last_place, too_many_tiles, words_of
from .state import (
    CLEAR,
    CLEARING,
    FLUSH,
    LAST,
    LOADING,
    NOTHING,
    PLACE,
    READ,
    ROW,
    SCAN,
    SKIP,
    START,
    SUMS,
    WAIT,
    WORDS,
    S,
    free_slots,
    is_dma,
    lowest,
    may_load,
    next_context,
    slot_field,
    stuck_slots,
    touch,
)

_READ_CYCLES = 7
_LIVE_MASK = (1 << 7) - 1


@njit(cache=True)
def count_live(state):
    """One more descriptor was made live or skipped."""
    state[S.live] = (state[S.live] + 1) & _LIVE_MASK


@njit(cache=True)
def _follow(state, context):
    """The next descriptor of a context is the following one."""
    state[S.following + context] += 1
    touch(state, context)
    if state[S.following + context] == state[S.end + context]:
        state[S.loading] &= ~(1 << context)


@njit(cache=True)
def _drive_load(state, slot, number):
    """The load pulse of a slot."""
    state[S.load_valid] = 1
    state[S.load] = (
        place(LOAD.row0, slot_field(state, slot, PLACE.row0))
        | place(LOAD.row1, slot_field(state, slot, PLACE.row1))
        | place(LOAD.col0, slot_field(state, slot, PLACE.col0))
        | place(LOAD.col1, slot_field(state, slot, PLACE.col1))
        | place(LOAD.addends, slot_field(state, slot, SUMS.addends))
        | place(LOAD.slot, slot)
        | place(LOAD.valid, 1)
    )
    state[S.load + 1] = (
        place(LOAD.expected, slot_field(state, slot, SUMS.expected))
        | place(LOAD.context, slot_field(state, slot, SUMS.context))
        | place(LOAD.epoch, slot_field(state, slot, SUMS.epoch))
        | place(LOAD.descriptor, number)
    )


@njit(cache=True)
def _make_live(state):
    """LOAD: the slot table row, the slot's bits, the load pulse."""
    slot, context = state[S.chosen], state[S.load_context]
    number = state[S.following + context]
    to, bit = S.slot + slot * ROW, 1 << slot
    for word in range(WORDS):
        state[to + word] = state[S.descriptor + number * WORDS + word]
    state[to + WORDS] = number
    dma = bit if is_dma(state, slot) else 0
    state[S.used] |= bit
    state[S.done] &= ~bit
    state[S.poisoned] &= ~bit
    state[S.dma] = (state[S.dma] & ~bit) | dma
    state[S.all_issued] = (state[S.all_issued] | bit) & ~dma
    rows, cols = slot_field(state, slot, LAST.last_block_row) + 1, slot_field(state, slot, LAST.last_block_col) + 1
    state[S.unissued + slot] = blocks_of_chunk(rows, cols)
    state[S.slots + context] += 1
    if too_many_tiles(state, S.slot + slot * ROW):
        state[S.too_large] = 1
        state[S.poisoned] |= bit
        state[S.poisoned_mask] |= 1 << number
        count_live(state)
    else:
        _drive_load(state, slot, number)
    _follow(state, context)


@njit(cache=True)
def _begin(state):
    """WAIT: take the next descriptor, if one may be made live."""
    if may_load(state):
        context = next_context(state)
        state[S.load_turn] = (context + 1) % state[S.contexts]
        state[S.load_context] = context
        state[S.chosen] = lowest(free_slots(state))
        state[S.loader], state[S.reads] = READ, _READ_CYCLES


@njit(cache=True)
def _after_read(state):
    """The state after the last cycle of READ: descriptors that make nothing live are skipped."""
    first = S.descriptor + state[S.following + state[S.load_context]] * WORDS
    kind = take(state[first + PLACE.kind.word], PLACE.kind)
    here = take(state[first + SUMS.context.word], SUMS.context) == state[S.load_context]
    return START if here and (kind == KIND_DMA or kind == KIND_LOCAL) else SKIP


@njit(cache=True)
def load_next(state, aborted):
    """One cycle of the loader (the walker moves it out of START and CLEAR).

    ``aborted`` is the context that is aborted in this cycle (-1: none): nothing of it is made live or skipped.
    """
    if state[S.loader] == WAIT:
        _begin(state)
    elif state[S.load_context] == aborted:
        return
    elif state[S.loader] == READ:
        state[S.reads] -= 1
        if state[S.reads] == 0:
            state[S.loader] = _after_read(state)
    elif state[S.loader] == SKIP:
        _follow(state, state[S.load_context])
        count_live(state)
        state[S.loader] = WAIT
    elif state[S.loader] == LOADING:
        _make_live(state)
        state[S.loader] = WAIT


@njit(cache=True)
def _take_walk(state, now):
    """The idle walker takes a flush, else a clear, else the watchdog's scan."""
    if state[S.pending]:
        slot = lowest(state[S.pending])
        state[S.pending] &= ~(1 << slot)
        state[S.walker], state[S.walk_slot] = FLUSH, slot
        state[S.walk_end] = state[S.blocks]
    elif state[S.loader] == START:
        state[S.walker], state[S.walk_slot] = CLEAR, state[S.chosen]
        first = S.descriptor + state[S.following + state[S.load_context]] * WORDS
        words = 0 if too_many_tiles(state, first) else words_of(state, last_place(state, first))
        state[S.walk_end] = max(state[S.blocks], words)
        state[S.loader] = CLEARING
    elif state[S.watchdog] and now >= state[S.since] + state[S.watchdog]:
        slots = stuck_slots(state)
        if slots:
            state[S.walker], state[S.walk_slot] = SCAN, lowest(slots)
            state[S.walk_end] = state[S.blocks]
            state[S.scanning], state[S.noted] = 1, 0


@njit(cache=True)
def walk(state, tile_enters, now):
    """One cycle of the walker; a tile takes its place in the block pipeline."""
    if state[S.walker] == NOTHING:
        state[S.walk_block] = 0
        _take_walk(state, now)
    elif not tile_enters:
        row, col = block_place(state, state[S.walk_slot], state[S.walk_block])
        enter(state, state[S.walker], state[S.walk_slot], state[S.walk_block], row, col)
        state[S.walk_block] += 1
        if state[S.walk_block] == state[S.walk_end]:
            state[S.walk_block] = 0
            if state[S.walker] == CLEAR and state[S.loader] == CLEARING:
                state[S.loader] = LOADING
            state[S.walker] = NOTHING
