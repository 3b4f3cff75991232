"""Programming the T3 unit: bus writes through ControlRegisters, with every part of the unit stepping in lock step."""

from t3sim.common.compiled import compiled, compiled_inner
from t3sim.hardware.abi import address_of

from .ports import CONFIG_PULSE, MATCHER_IN, MONITOR_IN, SLICE_IN, SLICE_OUT
from .unit import gather_unit
from .words import (
    LEAF,
    MATCHER,
    MONITOR,
    NMC,
    OF_LEAF,
    OF_MATCHER,
    OF_MONITOR,
    OF_NMC,
    OF_REGISTERS,
    OF_ROOT,
    OF_SLICE,
    OF_TRACKER,
    OF_TRIGGER,
    REGISTERS,
    ROOT,
    SLICE,
    TRACKER,
    TRIGGER,
    part_in,
    part_out,
)

TIMEOUT = 100_000
"""Cycles that a bus access or an initialisation may take."""
NO_ANSWER = 2
"""An error of a bus access beside the hardware's."""


@compiled_inner
def _broadcast(g):
    """Copy the registers' configuration pulse to every part."""
    at, words = g.at, g.words
    source = part_out(g, REGISTERS, 0) + at.registers_config_valid
    for i in range(CONFIG_PULSE):
        value = words[source + i]
        for c in range(g.fabric.channels):
            words[part_in(g, SLICE, c) + SLICE_IN.config_valid + i] = value
        for port in range(g.egress.ports):
            words[part_in(g, MATCHER, port) + MATCHER_IN.config_valid + i] = value
        words[part_in(g, TRACKER, 0) + at.tracker_config_valid + i] = value
        words[part_in(g, TRIGGER, 0) + at.trigger_config_valid + i] = value
        words[part_in(g, MONITOR, 0) + MONITOR_IN.config_valid + i] = value


@compiled_inner
def _is_ready(g):
    """Whether tracker and trigger have initialised their tables."""
    at, words = g.at, g.words
    tracker = words[part_out(g, TRACKER, 0) + at.tracker_init_done]
    return tracker & words[part_out(g, TRIGGER, 0) + at.trigger_init_done]


@compiled_inner
def _show_status(g):
    """Wire status outputs to the registers. Refused writes are the engine's to note."""
    at, words = g.at, g.words
    base = part_in(g, REGISTERS, 0)
    words[base + at.registers_init_done] = _is_ready(g)
    for i in range(g.shown.shape[0]):
        words[g.shown[i, 0]] = words[g.shown[i, 1]]
    corrected = uncorrectable = 0
    for i in range(g.fault_words.shape[1]):
        corrected |= words[g.fault_words[0, i]]
        uncorrectable |= words[g.fault_words[1, i]]
    words[base + at.registers_corrected] = corrected
    words[base + at.registers_uncorrectable] = uncorrectable


@compiled_inner
def _step_unit(g, functions):
    """Call the function of every part of the unit; ``functions`` are in the order of parts.SIMULATED."""
    for c in range(g.fabric.channels):
        _call(g, functions[OF_SLICE], SLICE, c)
    for port in range(g.egress.ports):
        _call(g, functions[OF_MATCHER], MATCHER, port)
    for leaf in range(g.unit.leaves):
        _call(g, functions[OF_LEAF], LEAF, leaf)
    for root in range(g.unit.roots):
        _call(g, functions[OF_ROOT], ROOT, root)
    _call(g, functions[OF_TRACKER], TRACKER, 0)
    _call(g, functions[OF_TRIGGER], TRIGGER, 0)
    _call(g, functions[OF_MONITOR], MONITOR, 0)
    _call(g, functions[OF_REGISTERS], REGISTERS, 0)


@compiled
def reset_unit(g, resets):
    """Reset every part; the words show the outputs of the first cycle. ``resets``: as in parts.SIMULATED."""
    _step_unit(g, resets)
    _call(g, resets[OF_NMC], NMC, 0)


@compiled_inner
def _call(g, function, part, index):
    words = g.words
    inputs, outputs = part_in(g, part, index), part_out(g, part, index)
    function(g.handles[part + index], address_of(words[inputs:]), address_of(words[outputs:]))


@compiled_inner
def _cycle(g, steps):
    """One cycle of the whole unit, nothing skipped. ``steps``: functions in the order of parts.SIMULATED."""
    fabric, time, unit = g.fabric, g.time, g.unit
    _broadcast(g)
    _show_status(g)
    gather_unit(g, time.now_cycle)
    for c in range(fabric.channels):
        g.words[part_in(g, SLICE, c) + SLICE_IN.now] = time.now_cycle + unit.epoch_cycles
    _step_unit(g, steps)
    for c in range(fabric.channels):
        if g.words[part_out(g, SLICE, c) + SLICE_OUT.comm_seen]:
            unit.comm_seen = 1
    fabric.live_chunks = g.words[part_out(g, TRIGGER, 0) + g.at.trigger_live]
    time.now_cycle = time.now_cycle + 1


@compiled
def run_cycles(g, steps, cycles):
    """Let the unit run alone for a number of cycles."""
    for _ in range(cycles):
        _cycle(g, steps)


@compiled
def wait_until_ready(g, steps):
    """Run until the tables are initialised; False on a timeout."""
    for _ in range(TIMEOUT):
        if _is_ready(g):
            return True
        _cycle(g, steps)
    return False


@compiled
def bus_access(g, steps, write, address, data):
    """One bus access: (error, data). Error NO_ANSWER: none came."""
    at, words = g.at, g.words
    base, out = part_in(g, REGISTERS, 0), part_out(g, REGISTERS, 0)
    words[base + at.registers_bus_valid] = 1
    words[base + at.registers_bus_write] = write
    words[base + at.registers_bus_privileged] = 1
    words[base + at.registers_bus_address] = address
    words[base + at.registers_bus_data] = data
    for _ in range(TIMEOUT):
        taken = words[out + at.registers_bus_ready]
        _cycle(g, steps)
        if taken:
            words[base + at.registers_bus_valid] = 0
        if words[out + at.registers_response_valid]:
            error, answer = words[out + at.registers_response_error], words[out + at.registers_response_data]
            _cycle(g, steps)
            return error, answer
    return NO_ANSWER, 0
