"""Programming the T3 unit: bus writes through ControlRegisters, with every part of the unit stepping in lock step."""

from t3hdl.config import T3Config
from t3hdl.interface.signatures import (
    matcher_signature,
    monitor_signature,
    registers_signature,
    slice_signature,
    tracker_signature,
    trigger_signature,
    word_map,
)

from t3sim.common.compiled import inner, kernel
from t3sim.hardware.abi import address_of

from .channel import COMM_SEEN, NOW
from .unit import LIVE, MONITOR_CONFIG, TRACKER_CONFIG, TRACKER_INIT, TRIGGER_CONFIG, TRIGGER_INIT, gather_unit
from .words import LEAF, MATCHER, MONITOR, NMC, REGISTERS, ROOT, SLICE, TRACKER, TRIGGER, part_in, part_out

_REGISTERS = word_map(registers_signature(T3Config()))
_TRACKER, _TRIGGER, _MONITOR = (
    word_map(signature(T3Config())).outputs for signature in (tracker_signature, trigger_signature, monitor_signature)
)
_BANKS = T3Config().tracker_banks
SLICE_CONFIG = word_map(slice_signature(T3Config())).inputs["config_valid"][0]
MATCHER_CONFIG = word_map(matcher_signature(T3Config())).inputs["config_valid"][0]
BUS_VALID, BUS_WRITE, BUS_PRIVILEGED, BUS_ADDRESS, BUS_DATA, INIT_DONE_IN = (
    _REGISTERS.inputs[name][0]
    for name in ("bus_valid", "bus_write", "bus_privileged", "bus_address", "bus_data", "init_done")
)
CONTEXT_IN, CONTEXT_OUT = _REGISTERS.inputs["context.0"][0], _TRIGGER["context.0"][0]
BUS_READY, RESPONSE_VALID, RESPONSE_ERROR, RESPONSE_DATA, CONFIG_OUT = (
    _REGISTERS.outputs[name][0]
    for name in ("bus_ready", "response_valid", "response_error", "response_data", "config_valid")
)


def _shown(
    outputs: dict[str, tuple[int, int]], behind: int, *, without: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    """(word of the registers, word of the part): outputs of one word that the registers have an input for.

    ``behind``: words that an array port puts before them, whose number is a parameter.
    """
    names = [name for name in outputs if name in _REGISTERS.inputs and not name.startswith(without)]
    return tuple((_REGISTERS.inputs[name][0], outputs[name][0] - behind) for name in names)


_OWN = ("init_done", "corrected", "uncorrectable")  # several parts have it
TRACKER_SHOWN = _shown(_TRACKER, _BANKS, without=_OWN)
TRIGGER_SHOWN = _shown(_TRIGGER, 0, without=(*_OWN, "context."))
MONITOR_SHOWN = _shown(_MONITOR, 0, without=())
_FAULTS = ("corrected", "uncorrectable")
FAULTS_IN = tuple(_REGISTERS.inputs[name][0] for name in _FAULTS)
TRACKER_FAULTS = tuple(_TRACKER[name][0] - _BANKS for name in _FAULTS)
TRIGGER_FAULTS = tuple(_TRIGGER[name][0] for name in _FAULTS)
SLICE_FAULTS, MATCHER_FAULTS = (
    tuple(word_map(signature(T3Config())).outputs[name][0] for name in _FAULTS)
    for signature in (slice_signature, matcher_signature)
)
TIMEOUT = 100_000
"""Cycles that a bus access or an initialisation may take."""


@inner
def _broadcast(g):
    """Copy the registers' configuration pulse to every part."""
    p, words = g.p[0], g.words
    source = part_out(g, REGISTERS, 0) + CONFIG_OUT
    for i in range(3):
        value = words[source + i]
        for c in range(p.channels):
            words[part_in(g, SLICE, c) + SLICE_CONFIG + i] = value
        for port in range(p.ports):
            words[part_in(g, MATCHER, port) + MATCHER_CONFIG + i] = value
        words[part_in(g, TRACKER, 0) + 2 * p.banks + TRACKER_CONFIG + i] = value
        words[part_in(g, TRIGGER, 0) + TRIGGER_CONFIG + i] = value
        words[part_in(g, MONITOR, 0) + MONITOR_CONFIG + i] = value


@inner
def _show_status(g):
    """Wire status outputs to the registers. Refused writes are the engine's to note."""
    p, words = g.p[0], g.words
    base = part_in(g, REGISTERS, 0)
    tracker, trigger, monitor = part_out(g, TRACKER, 0) + p.banks, part_out(g, TRIGGER, 0), part_out(g, MONITOR, 0)
    words[base + INIT_DONE_IN] = words[tracker + TRACKER_INIT] & words[trigger + TRIGGER_INIT]
    for target, source in TRACKER_SHOWN:
        words[base + target] = words[tracker + source]
    for target, source in TRIGGER_SHOWN:
        words[base + target] = words[trigger + source]
    for target, source in MONITOR_SHOWN:
        words[base + target] = words[monitor + source]
    for i in range(2):
        seen = words[tracker + TRACKER_FAULTS[i]] | words[trigger + TRIGGER_FAULTS[i]]
        for c in range(p.channels):
            seen |= words[part_out(g, SLICE, c) + SLICE_FAULTS[i]]
        for port in range(p.ports):
            seen |= words[part_out(g, MATCHER, port) + MATCHER_FAULTS[i]]
        words[base + FAULTS_IN[i]] = seen
    for context in range(p.contexts):
        words[base + CONTEXT_IN + context] = words[trigger + CONTEXT_OUT + context]


@kernel
def reset_unit(g, resets):
    """Reset every part; the words show the outputs of the first cycle. ``resets``: as in words.PART_NAMES."""
    p = g.p[0]
    for c in range(p.channels):
        _call(g, resets[0], SLICE, c)
    for port in range(p.ports):
        _call(g, resets[1], MATCHER, port)
    for leaf in range(p.nodes_per_tree):
        _call(g, resets[2], LEAF, leaf)
    _call(g, resets[3], ROOT, 0)
    _call(g, resets[4], TRACKER, 0)
    _call(g, resets[5], TRIGGER, 0)
    _call(g, resets[6], MONITOR, 0)
    _call(g, resets[7], REGISTERS, 0)
    _call(g, resets[8], NMC, 0)


@inner
def _call(g, function, part, index):
    words = g.words
    inputs, outputs = part_in(g, part, index), part_out(g, part, index)
    function(g.handles[part + index], address_of(words[inputs:]), address_of(words[outputs:]))


@inner
def _cycle(g, steps):
    """One cycle of the whole unit, nothing skipped. ``steps``: functions in the order of words.PART_NAMES."""
    p, s = g.p[0], g.s[0]
    _broadcast(g)
    _show_status(g)
    gather_unit(g, s.now)
    for c in range(p.channels):
        g.words[part_in(g, SLICE, c) + NOW] = s.now + p.epoch
        _call(g, steps[0], SLICE, c)
        if g.words[part_out(g, SLICE, c) + COMM_SEEN]:
            s.comm_seen = 1
    for port in range(p.ports):
        _call(g, steps[1], MATCHER, port)
    for leaf in range(p.nodes_per_tree):
        _call(g, steps[2], LEAF, leaf)
    _call(g, steps[3], ROOT, 0)
    _call(g, steps[4], TRACKER, 0)
    _call(g, steps[5], TRIGGER, 0)
    _call(g, steps[6], MONITOR, 0)
    _call(g, steps[7], REGISTERS, 0)
    s.live = g.words[part_out(g, TRIGGER, 0) + LIVE]
    s.now = s.now + 1


@kernel
def run_cycles(g, steps, cycles):
    """Let the unit run alone for a number of cycles."""
    for _ in range(cycles):
        _cycle(g, steps)


@kernel
def wait_until_ready(g, steps):
    """Run until the tables are initialised; False on a timeout."""
    p = g.p[0]
    for _ in range(TIMEOUT):
        if (
            g.words[part_out(g, TRACKER, 0) + p.banks + TRACKER_INIT]
            and g.words[part_out(g, TRIGGER, 0) + TRIGGER_INIT]
        ):
            return True
        _cycle(g, steps)
    return False


@kernel
def bus_access(g, steps, write, address, data):
    """One bus access: (error, data). Error 2: no answer."""
    base, out = part_in(g, REGISTERS, 0), part_out(g, REGISTERS, 0)
    words = g.words
    words[base + BUS_VALID] = 1
    words[base + BUS_WRITE] = write
    words[base + BUS_PRIVILEGED] = 1
    words[base + BUS_ADDRESS] = address
    words[base + BUS_DATA] = data
    for _ in range(TIMEOUT):
        taken = words[out + BUS_READY]
        _cycle(g, steps)
        if taken:
            words[base + BUS_VALID] = 0
        if words[out + RESPONSE_VALID]:
            error, answer = words[out + RESPONSE_ERROR], words[out + RESPONSE_DATA]
            _cycle(g, steps)
            return error, answer
    return 2, 0
