"""The bank side of the golden Tracker: its state, the pipeline of a bank, its table, its finished tiles and its sums.

The model keeps no copy of a table row in register R: between R's read and its update nothing else writes that row, and
the read sees the write of the same cycle, so reading the table at the update is the same.
"""

from t3sim.common.compiled import njit
from t3sim.hardware.words import (
    DEBUG_DATA,
    EVENT_OVERFLOW,
    EVENT_TILE,
    LOAD,
    TILE_DONE,
    TOKEN,
    place,
    state_map,
    take,
)

_BANKS, SLOTS, EVENTS, PROFILES, WAVEFRONTS, CONTEXTS = 8, 64, 16, 64, 16, 16
_UNMATCHED, _DROPPED = -1, -2  # instead of a slot
NO_CONTEXT, ALL_CONTEXTS = -1, -2  # instead of a context
_STAGE = state_map(valid=1, token=1, slot=1, lines=1, threshold=1, descriptor=1)
"""Pipeline registers M and R of a bank; slot < 0: not matched; threshold and descriptor: in R only."""
S = state_map(
    words=1, banks=1, ways=1, rows=1, event_limit=1, window=1, wavefronts=1, contexts=1, drain_cycles=1,
    rest_in=1, rest_out=1,  # first input and output word behind the token ports
    row_mask=1, col_mask=1, bank_bits=1, col_bits=1, tile_mask=1, chunk_mask=1, open_mask=1,  # parameters end here
    profile=PROFILES,  # lines by bottom, right, wf: survives disarm
    quota=CONTEXTS,  # ways of a row by context: survives disarm
    walked=1, entries=1, shown_entries=1, peak=1, overflowed=1, unmatched=1, over_count=1, over_total=1,
    tile_valid=1, tile=1, chunk_valid=1, chunk=1, drain_pointer=1, drained=1, drained_event=1, updates=1, tiles=1,
    # maintenance: the request at work, cycles since the pipelines were found empty, and what the request named
    maintenance=1, elapsed=1, context=1, cleared_marks=1, selected=1, debug_data=1, abort_busy=1, deadline=1,
    count=_BANKS, head=_BANKS, tail=_BANKS,  # input queues: entries, first and second entry
    m=_BANKS * _STAGE.size, r=_BANKS * _STAGE.size,
    event_stage_valid=_BANKS, event_stage=_BANKS,  # register E: whether there is an event, and the event
    event_count=_BANKS, event_first=_BANKS, event=_BANKS * EVENTS,  # rings of finished tiles
    pending=_BANKS, lines=_BANKS * SLOTS,  # lines without an entry: slots that have some, as bits; sums
    waiting=1, next_slot=1, slot_pointer=1,  # whether a slot is chosen to be collected; which; whose turn it is
    live=1, order=SLOTS,  # valid slots, lowest first
    place0=SLOTS, place1=SLOTS, left=SLOTS, flagged=SLOTS, complete=SLOTS,  # slots: load words, lines to come
    open=SLOTS, changed=1, change=_BANKS, changed_slot=_BANKS,  # tiles with an entry; by how many it changed, and where
    marks=0,  # tables: a word of mark bits per row, banks one after the other; then ways entries per row
)  # fmt: skip
"""The state of a Tracker."""


_KEY_MASK = sum(field.mask << field.shift for field in (TOKEN.context, TOKEN.epoch, TOKEN.row, TOKEN.col, TOKEN.wf))
TOKEN_MASK = sum(field.mask << field.shift for field in TOKEN)
# A table entry in one word: the key where a token has it; from a token's count on, the entry's, and the valid bit.
_COUNT_SHIFT = TOKEN.n.shift
_VALID = 1 << 62
_UPDATES_MASK = (1 << 48) - 1
# An event in one word: a TileDone, above it the kind and the lines.
TILE_MASK = sum(field.mask << field.shift for field in TILE_DONE)
KIND_SHIFT = TILE_MASK.bit_length()
LINES_SHIFT = KIND_SHIFT + 1
LOAD_VALID = LOAD.valid.mask << LOAD.valid.shift


@njit(cache=True)
def slot_is_live(state, slot):
    """Whether a slot has a chunk."""
    return state[S.place0 + slot] & LOAD_VALID != 0


@njit(cache=True)
def _row_of(state, bank, token):
    """Number of the table row (over all banks) of a token's tile."""
    row = (take(token, TOKEN.row) & state[S.row_mask]) >> state[S.bank_bits]
    col = take(token, TOKEN.col) & state[S.col_mask]
    return bank * state[S.rows] + (col | (row << state[S.col_bits]))


@njit(cache=True)
def _tile_in_event_stage(state, bank):
    """Whether register E of a bank has a finished tile."""
    return state[S.event_stage_valid + bank] and state[S.event_stage + bank] >> KIND_SHIFT & 1 == EVENT_TILE


@njit(cache=True)
def _queue_tile(state, bank):
    """A finished tile in register E goes to the event queue. What else there is stays."""
    if _tile_in_event_stage(state, bank):
        state[S.event_stage_valid + bank] = 0
        ring = state[S.event_first + bank] + state[S.event_count + bank]
        state[S.event + bank * EVENTS + (ring & (EVENTS - 1))] = state[S.event_stage + bank]
        state[S.event_count + bank] += 1


@njit(cache=True)
def _add_overflow(state, bank, event):
    """The OVERFLOW in register E of a bank goes to the sum of its slot; it is dropped if that has no chunk."""
    slot = take(event, TILE_DONE.slot)
    if slot_is_live(state, slot):
        state[S.pending + bank] |= 1 << slot
        state[S.lines + bank * SLOTS + slot] += event >> LINES_SHIFT
    elif state[S.complete + slot]:
        state[S.over_total] = 1


@njit(cache=True)
def _raise_event(state, bank, stage, kind, lines):
    """The token in register R makes an event."""
    token = state[stage + _STAGE.token]
    tile = (
        place(TILE_DONE.slot, state[stage + _STAGE.slot])
        | place(TILE_DONE.row, take(token, TOKEN.row))
        | place(TILE_DONE.col, take(token, TOKEN.col))
        | place(TILE_DONE.wf, take(token, TOKEN.wf))
    )
    state[S.event_stage_valid + bank] = 1
    state[S.event_stage + bank] = tile | (kind << KIND_SHIFT) | (lines << LINES_SHIFT)


@njit(cache=True)
def _change_entries(state, bank, stage, change):
    """An entry begins (1), or is freed because its tile is complete (-1)."""
    state[S.entries] += change
    state[S.changed] = 1
    state[S.change + bank], state[S.changed_slot + bank] = change, state[stage + _STAGE.slot]


@njit(cache=True)
def _count(state, bank, stage, at):
    """Update for a tile that has the entry at word ``at``."""
    threshold = state[stage + _STAGE.threshold]
    entry = state[at]
    count = ((entry & ~_VALID) >> _COUNT_SHIFT) + take(state[stage + _STAGE.token], TOKEN.n)
    if count == threshold:
        state[at] = 0
        _change_entries(state, bank, stage, -1)
        _raise_event(state, bank, stage, EVENT_TILE, threshold)
        return
    if count > threshold:
        state[S.over_count] = 1
        count = min(count, state[S.tile_mask])
    state[at] = _VALID | (count << _COUNT_SHIFT) | (entry & _KEY_MASK)


@njit(cache=True)
def _below_quota(state, token, row_at):
    """Whether the context of ``token`` may have one more way of the row at word ``row_at``, which has a free one."""
    context, ways = take(token, TOKEN.context), state[S.ways]
    if context >= state[S.contexts] or state[S.quota + context] >= ways:
        return True
    used = 0
    for at in range(row_at, row_at + ways):
        if state[at] & _VALID and take(state[at], TOKEN.context) == context:
            used += 1
    return used < state[S.quota + context]


@njit(cache=True)
def _begin(state, bank, stage, marks_at, row_at, free_at):
    """Update for a tile without an entry; ``row_at``: its table row, ``free_at``: the lowest free way there, or -1."""
    token, threshold = state[stage + _STAGE.token], state[stage + _STAGE.threshold]
    n = take(token, TOKEN.n)
    mark = 1 << state[stage + _STAGE.descriptor]
    if state[marks_at] & mark:
        _raise_event(state, bank, stage, EVENT_OVERFLOW, n)
    elif n == threshold:
        _raise_event(state, bank, stage, EVENT_TILE, n)
    elif n > threshold:
        state[S.over_count] = 1
    elif free_at >= 0 and _below_quota(state, token, row_at):
        state[free_at] = _VALID | (n << _COUNT_SHIFT) | (token & _KEY_MASK)
        _change_entries(state, bank, stage, 1)
    else:
        state[marks_at] |= mark
        _raise_event(state, bank, stage, EVENT_OVERFLOW, n)


@njit(cache=True)
def _update(state, bank, stage):
    """The token in register R acts on its table row."""
    if state[stage + _STAGE.slot] < 0:
        if state[stage + _STAGE.slot] == _UNMATCHED:
            state[S.unmatched] = 1
        return
    token, ways = state[stage + _STAGE.token], state[S.ways]
    state[S.updates] = (state[S.updates] + take(token, TOKEN.n)) & _UPDATES_MASK
    row = _row_of(state, bank, token)
    first = table_at(state, row, 0)
    free = -1
    for at in range(first, first + ways):
        entry = state[at]
        if entry & _VALID == 0:
            if free < 0:
                free = at
        elif (entry ^ token) & _KEY_MASK == 0:
            _count(state, bank, stage, at)
            return
    _begin(state, bank, stage, S.marks + row, first, free)


@njit(cache=True)
def _match(state, stage, token, refused):
    """Fill register M with ``token`` and its chunk; tokens of the context ``refused`` are dropped."""
    row, col = take(token, TOKEN.row), take(token, TOKEN.col)
    context, epoch = take(token, TOKEN.context), take(token, TOKEN.epoch)
    state[stage + _STAGE.valid] = 1
    state[stage + _STAGE.token] = token
    state[stage + _STAGE.slot] = _UNMATCHED
    if context == refused:
        state[stage + _STAGE.slot] = _DROPPED
        return
    for i in range(state[S.live]):
        slot = state[S.order + i]
        where, what = state[S.place0 + slot], state[S.place1 + slot]
        if (
            take(where, LOAD.col0) <= col < take(where, LOAD.col1)  # first: chunks differ in their columns
            and take(where, LOAD.row0) <= row < take(where, LOAD.row1)
            and context == take(what, LOAD.context)
            and epoch == take(what, LOAD.epoch)
        ):
            edge = take(token, TOKEN.bottom) * 2 + take(token, TOKEN.right)
            lines = state[S.profile + edge * WAVEFRONTS + take(token, TOKEN.wf)]
            state[stage + _STAGE.slot] = slot
            state[stage + _STAGE.lines] = lines
            return


@njit(cache=True)
def _move(state, m, r):
    """Register R takes what M holds, and what the slot says of it now."""
    for i in range(_STAGE.size):
        state[r + i] = state[m + i]
    slot = state[r + _STAGE.slot]
    if state[r] and slot >= 0:
        addends = take(state[S.place0 + slot], LOAD.addends)
        state[r + _STAGE.threshold] = (state[r + _STAGE.lines] * addends) & state[S.tile_mask]
        state[r + _STAGE.descriptor] = take(state[S.place1 + slot], LOAD.descriptor)


@njit(cache=True)
def advance(state, bank, drained, refused):
    """One cycle of a bank's pipeline.

    ``drained``: an event of its queue was taken in this cycle; ``refused``: the context whose tokens are dropped,
    ``NO_CONTEXT``, or ``ALL_CONTEXTS`` if no token may enter.
    """
    m, r = S.m + bank * _STAGE.size, S.r + bank * _STAGE.size
    if state[r] + state[m] + state[S.count + bank] + state[S.event_stage_valid + bank] == 0:
        return
    full = state[S.event_count + bank] + drained + _tile_in_event_stage(state, bank) >= state[S.event_limit]
    _queue_tile(state, bank)
    if state[S.event_stage_valid + bank]:
        state[S.event_stage_valid + bank] = 0
        _add_overflow(state, bank, state[S.event_stage + bank])
    if state[r]:
        if full:
            return
        _update(state, bank, r)
    _move(state, m, r)
    state[m] = 0
    if state[S.count + bank] > 0 and refused != ALL_CONTEXTS:
        token = state[S.head + bank]
        state[S.head + bank] = state[S.tail + bank]
        state[S.count + bank] -= 1
        _match(state, m, token, refused)


@njit(cache=True)
def bank_rests(state, bank):
    """Whether a bank's queues, pipeline and sums are empty."""
    stages = state[S.m + bank * _STAGE.size] + state[S.r + bank * _STAGE.size]
    events = state[S.event_stage_valid + bank] + state[S.event_count + bank]
    return state[S.count + bank] + stages + events == 0 and state[S.pending + bank] == 0


@njit(cache=True)
def pipelines_empty(state):
    """Whether M and R of all banks are empty."""
    for bank in range(state[S.banks]):
        if state[S.m + bank * _STAGE.size] or state[S.r + bank * _STAGE.size]:
            return False
    return True


@njit(cache=True)
def table_at(state, row, way):
    """The word of an entry, of row number ``row`` over all banks."""
    return S.marks + state[S.banks] * state[S.rows] + row * state[S.ways] + way


@njit(cache=True)
def free_entry(state, at, context):
    """Free the entry at word ``at`` if it is one of ``context``."""
    if state[at] & _VALID and take(state[at], TOKEN.context) == context:
        state[at] = 0
        state[S.entries] -= 1


@njit(cache=True)
def shown_entry(entry):
    """The fields of an entry as DEBUG_DATA shows them; 0 for one that is not valid."""
    if not entry & _VALID:
        return 0
    return (
        place(DEBUG_DATA.valid, 1)
        | place(DEBUG_DATA.context, take(entry, TOKEN.context))
        | place(DEBUG_DATA.epoch, take(entry, TOKEN.epoch))
        | place(DEBUG_DATA.wf, take(entry, TOKEN.wf))
        | place(DEBUG_DATA.row, take(entry, TOKEN.row))
        | place(DEBUG_DATA.col, take(entry, TOKEN.col))
        | place(DEBUG_DATA.count, (entry & ~_VALID) >> _COUNT_SHIFT)
    )
