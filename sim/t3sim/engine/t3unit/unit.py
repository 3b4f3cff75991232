"""The per-GPU parts of the T3 unit behind the slices: token network, tracker, trigger, occupancy monitor.

All parts are Moore machines: first every input of cycle t is gathered from outputs of cycle t, then the parts step. A
part is stepped only when something can change in it (docs/hardware/rules.md, rule 5).
"""

from t3hdl.interface.layouts import NEVER

from t3sim.common.compiled import compiled_inner
from t3sim.dram.state import lowest_bit
from t3sim.hardware.abi import address_of

from ..mover import offer_command
from ..requests import release_held
from ..state import FLAG, INT64, NEVER_CYCLE, integers
from ..wakes import wake_channel
from .ports import (
    CHUNK_DONE_PULSE,
    LOAD_PULSE,
    MONITOR_IN,
    MONITOR_OUT,
    POISON_PULSE,
    SLICE_IN,
    SLICE_OUT,
    TILE_DONE_PULSE,
    TOKEN_STRIDE,
)
from .words import (
    LEAF,
    MONITOR,
    MOST_LEAVES,
    MOST_ROOTS,
    OF_LEAF,
    OF_MONITOR,
    OF_ROOT,
    OF_TRACKER,
    OF_TRIGGER,
    ROOT,
    SLICE,
    TRACKER,
    TRIGGER,
    part_in,
    part_out,
)

# Indices into part_wake and part_active, behind the leaves: of the first root, and behind the roots.
FIRST_ROOT = MOST_LEAVES
TRACKER_PART, TRIGGER_PART, MONITOR_PART = range(FIRST_ROOT + MOST_ROOTS, FIRST_ROOT + MOST_ROOTS + 3)
PARTS = MONITOR_PART + 1

# The T3 unit beside its parts. Constants: ``epoch_cycles``: what its time is ahead of the GPU's; ``mca``: its arbiters
# are communication-aware. State: the monitor's outputs as the slices have them (``threshold_lines`` to ``behind``);
# ``comm_seen``: a slice has seen communication; ``refused``: requests that slices refused. :mod:`.channel` sets both.
UNIT = integers(
    "epoch_cycles", "leaves", "leaf_inputs", "leaf_bits", "roots", "tracker_banks", "mca",
    "threshold_lines", "measure", "behind", "comm_seen", "refused",
)  # fmt: skip

FIELDS = {
    "unit": (UNIT, 0),
    "leaf_tokens": (INT64, 1),  # [leaves] slices with a token on offer, as bits
    "leaf_shown": (INT64, 1),  # [leaves] those that the leaf's inputs show
    "part_wake": (INT64, 1),  # leaves, roots, tracker, trigger, monitor
    "part_active": (FLAG, 1),
    "evaluated": (INT64, 1),  # [parts] evaluations, in the order of parts.SIMULATED
}


@compiled_inner
def _copy(words, source, target, count):
    for i in range(count):
        words[target + i] = words[source + i]


@compiled_inner
def _gather_leaf(g, leaf, now):
    """Offer the slices' tokens to a leaf; slices whose token it takes must be evaluated in this cycle."""
    at, inputs = g.at, g.unit.leaf_inputs
    base, taken = part_in(g, LEAF, leaf), part_out(g, LEAF, leaf) + at.leaf_token_in_ready
    active, changing = False, g.leaf_tokens[leaf] | g.leaf_shown[leaf]
    g.leaf_shown[leaf] = g.leaf_tokens[leaf]
    while changing:
        i = lowest_bit(changing)
        changing &= changing - 1
        valid = g.leaf_tokens[leaf] >> i & 1
        g.words[base + at.leaf_token_in_valid + TOKEN_STRIDE * i] = valid
        if valid:
            c = leaf * inputs + i
            token = g.words[part_out(g, SLICE, c) + SLICE_OUT.token_payload]
            g.words[base + at.leaf_token_in_payload + TOKEN_STRIDE * i] = token
            if g.words[taken + i]:
                g.fronts[c].token_take = True
                g.fronts[c].due_cycle = now
                wake_channel(g, c, now)
                active = True
    return active


@compiled_inner
def _root_output(g, bank):
    """The root that feeds a bank, and how far that output is behind its first one."""
    return bank % g.unit.roots, bank // g.unit.roots


@compiled_inner
def _gather_network(g, now):
    """Inputs of the leaves and of the roots."""
    unit, at, words = g.unit, g.at, g.words
    for root in range(unit.roots):
        g.part_active[FIRST_ROOT + root] = g.part_wake[FIRST_ROOT + root] <= now
    for leaf in range(unit.leaves):
        base = part_in(g, LEAF, leaf)
        active = g.part_wake[leaf] <= now
        if g.leaf_tokens[leaf] or g.leaf_shown[leaf]:
            active |= _gather_leaf(g, leaf, now)
        for root in range(unit.roots):
            out = part_out(g, LEAF, leaf) + TOKEN_STRIDE * root
            root_in = part_in(g, ROOT, root) + TOKEN_STRIDE * leaf
            offered = words[out + at.leaf_token_out_valid]
            room = words[part_out(g, ROOT, root) + at.root_token_in_ready + leaf]
            words[base + at.leaf_token_out_ready + root] = room
            words[root_in + at.root_token_in_payload] = words[out + at.leaf_token_out_payload]
            words[root_in + at.root_token_in_valid] = offered
            if offered and room:
                active = True
                g.part_active[FIRST_ROOT + root] = True
        g.part_active[leaf] = active
    ready = part_out(g, TRACKER, 0) + at.tracker_token_ready
    for bank in range(unit.tracker_banks):
        root, number = _root_output(g, bank)
        room = words[ready + bank]
        words[part_in(g, ROOT, root) + at.root_token_out_ready + number] = room
        if room and words[part_out(g, ROOT, root) + at.root_token_out_valid + TOKEN_STRIDE * number]:
            g.part_active[FIRST_ROOT + root] = True


@compiled_inner
def _gather_tracker(g, now):
    unit, at, words = g.unit, g.at, g.words
    base, out = part_in(g, TRACKER, 0), part_out(g, TRACKER, 0)
    active = g.part_wake[TRACKER_PART] <= now
    for bank in range(unit.tracker_banks):
        root, number = _root_output(g, bank)
        skip, source = TOKEN_STRIDE * bank, part_out(g, ROOT, root) + TOKEN_STRIDE * number
        _copy(words, source + at.root_token_out_payload, base + at.tracker_token_payload + skip, TOKEN_STRIDE)
        if words[base + at.tracker_token_valid + skip] and words[out + at.tracker_token_ready + bank]:
            active = True
    load = base + at.tracker_load_valid
    _copy(words, part_out(g, TRIGGER, 0) + at.trigger_load_valid, load, LOAD_PULSE)
    words[base + at.tracker_now] = now + unit.epoch_cycles
    g.part_active[TRACKER_PART] = active or words[load] != 0


@compiled_inner
def _gather_trigger(g, now):
    dma, at, words = g.dma, g.at, g.words
    base, tracker = part_in(g, TRIGGER, 0), part_out(g, TRACKER, 0)
    _copy(words, tracker + at.tracker_tile_done_valid, base + at.trigger_tile_done_valid, TILE_DONE_PULSE)
    _copy(words, tracker + at.tracker_chunk_done_valid, base + at.trigger_chunk_done_valid, CHUNK_DONE_PULSE)
    _copy(words, tracker + at.tracker_poison_valid, base + at.trigger_poison_valid, POISON_PULSE)
    abort_busy = words[tracker + at.tracker_abort_busy]
    changed = words[base + at.trigger_abort_busy] != abort_busy
    words[base + at.trigger_abort_busy] = abort_busy
    words[base + at.trigger_now] = now + g.unit.epoch_cycles
    done = min(dma.commands_done, 1)  # one credit per cycle, of context 0
    words[base + at.trigger_command_done_valid] = done
    dma.commands_done = dma.commands_done - done
    counted = words[base + at.trigger_tile_done_valid] != 0 or words[base + at.trigger_chunk_done_valid] != 0
    pulse = changed or done != 0 or counted
    taken = offer_command(g, now)
    g.part_active[TRIGGER_PART] = pulse or taken or g.part_wake[TRIGGER_PART] <= now


@compiled_inner
def _gather_monitor(g, now):
    """Inputs of the monitor, and its outputs to the slices; whether the latter changed."""
    unit, words = g.unit, g.words
    base, out = part_in(g, MONITOR, 0), part_out(g, MONITOR, 0)
    pulse = words[part_out(g, TRACKER, 0) + g.at.tracker_tile_done_valid]
    changed = words[base + MONITOR_IN.comm_seen] != unit.comm_seen
    words[base + MONITOR_IN.tile_done_valid] = pulse
    words[base + MONITOR_IN.comm_seen] = unit.comm_seen
    words[base + MONITOR_IN.served] = words[part_out(g, SLICE, words[out + MONITOR_OUT.select]) + SLICE_OUT.served]
    words[base + MONITOR_IN.now] = now + unit.epoch_cycles
    backlog = words[part_out(g, TRIGGER, 0) + g.at.trigger_backlog]
    changed |= words[base + MONITOR_IN.backlog] != backlog
    words[base + MONITOR_IN.backlog] = backlog
    g.part_active[MONITOR_PART] = pulse != 0 or changed or g.part_wake[MONITOR_PART] <= now
    threshold, measure, behind = (
        words[out + MONITOR_OUT.threshold],
        words[out + MONITOR_OUT.measure],
        words[out + MONITOR_OUT.behind],
    )
    if threshold == unit.threshold_lines and measure == unit.measure and behind == unit.behind:
        return False
    unit.threshold_lines, unit.measure, unit.behind = threshold, measure, behind
    for c in range(g.fabric.channels):
        words[part_in(g, SLICE, c) + SLICE_IN.threshold] = threshold
        words[part_in(g, SLICE, c) + SLICE_IN.measure] = measure
        words[part_in(g, SLICE, c) + SLICE_IN.behind] = behind
    return True


@compiled_inner
def gather_unit(g, now):
    """Inputs of all parts at ``now``; True if the monitor's outputs changed, so that every slice must be evaluated."""
    _gather_network(g, now)
    _gather_tracker(g, now)
    _gather_trigger(g, now)
    return _gather_monitor(g, now)


@compiled_inner
def _step_part(g, step, kind, part, index, slot, idle, wake_at, now):
    """Step one part (``kind``: its place in parts.SIMULATED), and note when it must be stepped again.

    ``idle`` and ``wake_at`` are the places of these outputs; the time is one of the hardware, ``epoch`` ahead of the
    GPU's.
    """
    words = g.words
    out = part_out(g, part, index)
    step(g.handles[part + index], address_of(words[part_in(g, part, index) :]), address_of(words[out:]))
    g.evaluated[kind] += 1
    g.part_wake[slot] = now + 1
    if words[out + idle]:
        wake = words[out + wake_at]
        g.part_wake[slot] = NEVER_CYCLE if wake == NEVER else wake - g.unit.epoch_cycles


@compiled_inner
def step_unit(g, steps, now):
    """Step the parts that :func:`gather_unit` found active, and act on what becomes live.

    ``steps``: functions in the order of parts.SIMULATED.
    """
    at = g.at
    for leaf in range(g.unit.leaves):
        if g.part_active[leaf]:
            _step_part(g, steps[OF_LEAF], OF_LEAF, LEAF, leaf, leaf, at.leaf_idle, at.leaf_wake_at, now)
    for root in range(g.unit.roots):
        slot = FIRST_ROOT + root
        if g.part_active[slot]:
            _step_part(g, steps[OF_ROOT], OF_ROOT, ROOT, root, slot, at.root_idle, at.root_wake_at, now)
    if g.part_active[TRACKER_PART]:
        idle, wake_at = at.tracker_idle, at.tracker_wake_at
        _step_part(g, steps[OF_TRACKER], OF_TRACKER, TRACKER, 0, TRACKER_PART, idle, wake_at, now)
    if g.part_active[TRIGGER_PART]:
        idle, wake_at = at.trigger_idle, at.trigger_wake_at
        _step_part(g, steps[OF_TRIGGER], OF_TRIGGER, TRIGGER, 0, TRIGGER_PART, idle, wake_at, now)
        live = g.words[part_out(g, TRIGGER, 0) + at.trigger_live]
        if live > g.fabric.live_chunks:
            release_held(g, live, now)
    if g.part_active[MONITOR_PART]:
        idle, wake_at = MONITOR_OUT.idle, MONITOR_OUT.wake_at
        _step_part(g, steps[OF_MONITOR], OF_MONITOR, MONITOR, 0, MONITOR_PART, idle, wake_at, now)


@compiled_inner
def unit_wake(g, now):
    """The next cycle at which a part behind the slices can change."""
    unit, at, words = g.unit, g.at, g.words
    for leaf in range(unit.leaves):
        if g.leaf_tokens[leaf] or g.part_wake[leaf] <= now + 1:
            return now + 1
        for root in range(unit.roots):
            if words[part_out(g, LEAF, leaf) + at.leaf_token_out_valid + TOKEN_STRIDE * root]:
                return now + 1
    for bank in range(unit.tracker_banks):
        root, number = _root_output(g, bank)
        if words[part_out(g, ROOT, root) + at.root_token_out_valid + TOKEN_STRIDE * number]:
            return now + 1
    if words[part_out(g, TRIGGER, 0) + at.trigger_command_valid] or g.dma.commands_done:
        return now + 1
    monitor = part_in(g, MONITOR, 0)
    if words[monitor + MONITOR_IN.comm_seen] != unit.comm_seen:
        return now + 1
    if words[monitor + MONITOR_IN.backlog] != words[part_out(g, TRIGGER, 0) + g.at.trigger_backlog]:
        return now + 1
    if words[part_out(g, MONITOR, 0) + MONITOR_OUT.behind] != unit.behind:
        return now + 1
    wake = NEVER_CYCLE
    for root in range(unit.roots):
        wake = min(wake, g.part_wake[FIRST_ROOT + root])
    for part in range(TRACKER_PART, PARTS):
        wake = min(wake, g.part_wake[part])
    return wake
