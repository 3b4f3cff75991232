"""The per-GPU parts of the T3 unit behind the slices: token network, tracker, trigger, occupancy monitor.

All parts are Moore machines: first every input of cycle t is gathered from outputs of cycle t, then the parts step. A
part is stepped only when something can change in it (docs/hardware.md, rule 5).
"""

from t3hdl.config import T3Config
from t3hdl.interface.layouts import NEVER
from t3hdl.interface.signatures import monitor_signature, tracker_signature, trigger_signature, word_map

from t3sim.common.compiled import inner
from t3sim.hardware.abi import address_of

from .channel import MEASURE, SERVED, THRESHOLD, TOKEN
from .mover import COMMAND_VALID, offer_command
from .requests import release_held
from .state import FAR
from .words import LEAF, MONITOR, ROOT, SLICE, TRACKER, TRIGGER, part_in, part_out

_BANKS = T3Config().tracker_banks
_TRACKER = word_map(tracker_signature(T3Config()))
_TRIGGER = word_map(trigger_signature(T3Config()))
_MONITOR = word_map(monitor_signature(T3Config()))

# Tracker words behind its token ports, whose number is a parameter: add 2 x banks (inputs) or banks (outputs).
LOAD_IN, TRACKER_NOW, TRACKER_CONFIG = (
    _TRACKER.inputs[name][0] - 2 * _BANKS for name in ("load_valid", "now", "config_valid")
)
TILE_DONE_OUT, CHUNK_DONE_OUT, TRACKER_INIT, ABORT_BUSY, POISON_OUT, TRACKER_IDLE, TRACKER_WAKE = (
    _TRACKER.outputs[name][0] - _BANKS
    for name in ("tile_done_valid", "chunk_done_valid", "init_done", "abort_busy", "poison_valid", "idle", "wake_at")
)
TILE_DONE_IN, CHUNK_DONE_IN, POISON_IN, ABORT_BUSY_IN, COMMAND_DONE_IN, TRIGGER_NOW, TRIGGER_CONFIG = (
    _TRIGGER.inputs[name][0]
    for name in (
        "tile_done_valid", "chunk_done_valid", "poison_valid", "abort_busy", "command_done_valid", "now",
        "config_valid",
    )
)  # fmt: skip
LOAD_OUT, TRIGGER_INIT, LIVE, DONE_MASK, TRIGGER_IDLE, TRIGGER_WAKE = (
    _TRIGGER.outputs[name][0] for name in ("load_valid", "init_done", "live", "done_mask", "idle", "wake_at")
)
MONITOR_CONFIG, MONITOR_TILE_DONE, MONITOR_COMM_SEEN, MONITOR_SERVED, MONITOR_NOW = (
    _MONITOR.inputs[name][0] for name in ("config_valid", "tile_done_valid", "comm_seen", "served", "now")
)
SELECT, MONITOR_MEASURE, MONITOR_THRESHOLD, MONITOR_IDLE = (
    _MONITOR.outputs[name][0] for name in ("select", "measure", "threshold", "idle")
)
# Indices into part_wake and part_active, behind the leaves.
ROOT_PART, TRACKER_PART, TRIGGER_PART, MONITOR_PART = 64, 65, 66, 67
PARTS = 68


@inner
def _copy(words, source, target, count):
    for i in range(count):
        words[target + i] = words[source + i]


@inner
def _gather_leaf(g, leaf, now):
    """Offer the slices' tokens to a leaf; slices whose token it takes must be evaluated in this cycle."""
    inputs = g.p[0].leaf_inputs
    base, out = part_in(g, LEAF, leaf), part_out(g, LEAF, leaf)
    active = False
    for i in range(inputs):
        valid = g.leaf_tokens[leaf] >> i & 1
        g.words[base + 2 * i + 1] = valid
        if valid:
            c = leaf * inputs + i
            g.words[base + 2 * i] = g.words[part_out(g, SLICE, c) + TOKEN]
            if g.words[out + i]:
                g.token_take[c] = True
                g.channel_wake[c] = now
                active = True
    return active


@inner
def _gather_network(g, now):
    """Inputs of the leaves and of the root."""
    p, words = g.p[0], g.words
    leaves, inputs, banks = p.nodes_per_tree, p.leaf_inputs, p.banks
    root_in, root_out = part_in(g, ROOT, 0), part_out(g, ROOT, 0)
    tracker_out = part_out(g, TRACKER, 0)
    root_active = False
    for leaf in range(leaves):
        out = part_out(g, LEAF, leaf)
        active = g.part_wake[leaf] <= now
        if g.leaf_tokens[leaf]:
            active |= _gather_leaf(g, leaf, now)
        else:
            for i in range(inputs):
                words[part_in(g, LEAF, leaf) + 2 * i + 1] = 0
        offered, room = words[out + inputs + 1], words[root_out + leaf]
        words[part_in(g, LEAF, leaf) + 2 * inputs] = room
        words[root_in + 2 * leaf] = words[out + inputs]
        words[root_in + 2 * leaf + 1] = offered
        if offered and room:
            active = True
            root_active = True
        g.part_active[leaf] = active
    for bank in range(banks):
        room = words[tracker_out + bank]
        words[root_in + 2 * leaves + bank] = room
        if room and words[root_out + leaves + 2 * bank + 1]:
            root_active = True
    g.part_active[ROOT_PART] = root_active or g.part_wake[ROOT_PART] <= now


@inner
def _gather_tracker(g, now):
    p, words = g.p[0], g.words
    base, out, root_out = part_in(g, TRACKER, 0), part_out(g, TRACKER, 0), part_out(g, ROOT, 0)
    active = g.part_wake[TRACKER_PART] <= now
    for bank in range(p.banks):
        _copy(words, root_out + p.nodes_per_tree + 2 * bank, base + 2 * bank, 2)
        if words[base + 2 * bank + 1] and words[out + bank]:
            active = True
    load = base + 2 * p.banks + LOAD_IN
    _copy(words, part_out(g, TRIGGER, 0) + LOAD_OUT, load, 3)
    words[base + 2 * p.banks + TRACKER_NOW] = now + p.epoch
    g.part_active[TRACKER_PART] = active or words[load] != 0


@inner
def _gather_trigger(g, now):
    p, s, words = g.p[0], g.s[0], g.words
    base, tracker_out = part_in(g, TRIGGER, 0), part_out(g, TRACKER, 0) + p.banks
    _copy(words, tracker_out + TILE_DONE_OUT, base + TILE_DONE_IN, 2)
    _copy(words, tracker_out + CHUNK_DONE_OUT, base + CHUNK_DONE_IN, 2)
    _copy(words, tracker_out + POISON_OUT, base + POISON_IN, 2)
    changed = words[base + ABORT_BUSY_IN] != words[tracker_out + ABORT_BUSY]
    words[base + ABORT_BUSY_IN] = words[tracker_out + ABORT_BUSY]
    words[base + TRIGGER_NOW] = now + p.epoch
    done = min(s.commands_done, 1)  # one credit per cycle, of context 0
    words[base + COMMAND_DONE_IN] = done
    s.commands_done = s.commands_done - done
    pulse = changed or done != 0 or words[base + TILE_DONE_IN] != 0 or words[base + CHUNK_DONE_IN] != 0
    taken = offer_command(g, now)
    g.part_active[TRIGGER_PART] = pulse or taken or g.part_wake[TRIGGER_PART] <= now


@inner
def _gather_monitor(g, now):
    """Inputs of the monitor, and its outputs to the slices; whether the latter changed."""
    p, s, words = g.p[0], g.s[0], g.words
    base, out = part_in(g, MONITOR, 0), part_out(g, MONITOR, 0)
    pulse = words[part_out(g, TRACKER, 0) + p.banks + TILE_DONE_OUT]
    changed = words[base + MONITOR_COMM_SEEN] != s.comm_seen
    words[base + MONITOR_TILE_DONE] = pulse
    words[base + MONITOR_COMM_SEEN] = s.comm_seen
    words[base + MONITOR_SERVED] = words[part_out(g, SLICE, words[out + SELECT]) + SERVED]
    words[base + MONITOR_NOW] = now + p.epoch
    g.part_active[MONITOR_PART] = pulse != 0 or changed or g.part_wake[MONITOR_PART] <= now
    if words[out + MONITOR_THRESHOLD] == s.threshold and words[out + MONITOR_MEASURE] == s.measure:
        return False
    s.threshold, s.measure = words[out + MONITOR_THRESHOLD], words[out + MONITOR_MEASURE]
    for c in range(p.channels):
        words[part_in(g, SLICE, c) + THRESHOLD] = s.threshold
        words[part_in(g, SLICE, c) + MEASURE] = s.measure
    return True


@inner
def gather_unit(g, now):
    """Inputs of all parts at ``now``; True if the monitor's outputs changed, so that every slice must be evaluated."""
    _gather_network(g, now)
    _gather_tracker(g, now)
    _gather_trigger(g, now)
    return _gather_monitor(g, now)


@inner
def _step_part(g, step, kind, part, index, slot, idle, now):
    """Step one part (``kind``: its place in words.PART_NAMES), and note when it must be stepped again.

    ``wake_at`` follows ``idle``; it is a time of the hardware, ``epoch`` ahead of the GPU's.
    """
    words = g.words
    out = part_out(g, part, index)
    step(g.handles[part + index], address_of(words[part_in(g, part, index) :]), address_of(words[out:]))
    g.evaluated[kind] += 1
    g.part_wake[slot] = now + 1
    if words[out + idle]:
        g.part_wake[slot] = FAR if words[out + idle + 1] == NEVER else words[out + idle + 1] - g.p[0].epoch


@inner
def step_unit(g, leaf_step, root_step, tracker_step, trigger_step, monitor_step, now):
    """Step the parts that :func:`gather_unit` found active, and act on what becomes live."""
    p, s = g.p[0], g.s[0]
    for leaf in range(p.nodes_per_tree):
        if g.part_active[leaf]:
            _step_part(g, leaf_step, 2, LEAF, leaf, leaf, p.leaf_inputs + 2, now)
    if g.part_active[ROOT_PART]:
        _step_part(g, root_step, 3, ROOT, 0, ROOT_PART, p.nodes_per_tree + 2 * p.banks, now)
    if g.part_active[TRACKER_PART]:
        _step_part(g, tracker_step, 4, TRACKER, 0, TRACKER_PART, p.banks + TRACKER_IDLE, now)
    if g.part_active[TRIGGER_PART]:
        _step_part(g, trigger_step, 5, TRIGGER, 0, TRIGGER_PART, TRIGGER_IDLE, now)
        live = g.words[part_out(g, TRIGGER, 0) + LIVE]
        if live > s.live:
            release_held(g, live, now)
    if g.part_active[MONITOR_PART]:
        _step_part(g, monitor_step, 6, MONITOR, 0, MONITOR_PART, MONITOR_IDLE, now)


@inner
def unit_wake(g, now):
    """The next cycle at which a part behind the slices can change."""
    p, words = g.p[0], g.words
    for leaf in range(p.nodes_per_tree):
        waiting = g.leaf_tokens[leaf] or words[part_out(g, LEAF, leaf) + p.leaf_inputs + 1]
        if waiting or g.part_wake[leaf] <= now + 1:
            return now + 1
    for bank in range(p.banks):
        if words[part_out(g, ROOT, 0) + p.nodes_per_tree + 2 * bank + 1]:
            return now + 1
    if words[part_out(g, TRIGGER, 0) + COMMAND_VALID] or g.s[0].commands_done:
        return now + 1
    if words[part_in(g, MONITOR, 0) + MONITOR_COMM_SEEN] != g.s[0].comm_seen:
        return now + 1
    wake = FAR
    for part in range(ROOT_PART, PARTS):
        wake = min(wake, g.part_wake[part])
    return wake
