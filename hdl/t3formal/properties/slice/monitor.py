"""The occupancy monitor chooses, once per arm, the threshold of the use that it measured; what slices count for it."""

from typing import Any

from amaranth.hdl import Const, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.common.broadcast import control_written
from t3hdl.config import NO_LIMIT, T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, NEVER, TIME_BITS, MemoryRequest
from t3hdl.slice.arbiter import Sources
from t3hdl.slice.monitor import PATIENCE_SHIFT, MonitorState, OccupancyMonitor
from t3hdl.slice.slice import MemorySlice

from ...models.queue_places import places
from ...prover.harness import Harness
from ...prover.proof import Proof

_SETTLES = 4
"""Cycles from the end of the first stage to the first slice's count, less one."""
_WAIT_BITS = 16 + PATIENCE_SHIFT + 1
"""Width of a counter of cycles up to the longest patience, and one more."""


def _chooses(config: T3Config) -> Harness:
    """The model knows when the first stage began and ended; it accumulates the counts in turn, and then divides."""
    part = OccupancyMonitor(config=config)
    harness = Harness(part)
    m, slices = harness.m, config.slices
    write, control = part.config, data.View(regs.Control, part.config.data[: regs.Control.size])
    action = control_written(part.config_valid, write)
    thresholds = Signal(regs.Thresholds, init=regs.RESET[regs.THRESHOLDS])
    with m.If(part.config_valid & (write.address == regs.THRESHOLDS)):
        m.d.sync += thresholds.eq(write.data)

    last = _SETTLES + slices + 1
    measuring, after = Signal(), Signal(range(last + 2))  # after: cycles since the first stage, 0 before it is over
    begin, cycles, lines = Signal(TIME_BITS), Signal(TIME_BITS), Signal(24 + slices.bit_length())
    over = measuring & (part.tile_done_valid | part.comm_seen)
    turn = (after > _SETTLES) & (after < last)
    with m.If(over):
        m.d.sync += [measuring.eq(0), after.eq(1), cycles.eq(part.now - begin)]
    with m.Elif((after != 0) & (after <= last)):
        m.d.sync += [after.eq(after + 1), lines.eq(Mux(turn, lines + part.served, lines))]
    with m.If(action & (control.arm | control.disarm)):
        m.d.sync += [measuring.eq(control.arm & ~control.disarm), after.eq(0), begin.eq(part.now), lines.eq(0)]

    busy, quarter = 2 * lines, cycles * slices  # a line is two cycles of the data bus; in quarters: 4 * busy
    choice, chosen = Signal(8), after > last
    expected = Mux(
        4 * busy < quarter,
        thresholds.under_25,
        Mux(
            4 * busy < 2 * quarter,
            thresholds.under_50,
            Mux(4 * busy < 3 * quarter, thresholds.under_75, thresholds.above),
        ),
    )
    with m.If(after == last):
        m.d.sync += choice.eq(expected)
    harness.claim("it measures from arm to the first tile or communication", part.measure == measuring)
    harness.claim("it asks each slice in turn", ~turn | (part.select == after - _SETTLES - 1))
    harness.claim("it has chosen 6 + slices cycles later, once per arm", part.chosen == chosen)
    harness.claim("it chose by the rule; no limit before", part.threshold == Mux(chosen, choice[:7], NO_LIMIT))
    harness.cover("it chooses for a use under 75 %", chosen & (choice == thresholds.under_75) & (choice == 1))
    harness.cover("it chooses for a use above", chosen & (lines != 0) & (choice == thresholds.above) & (choice == 126))
    model = {"measuring": measuring, "after": after, "begin": begin, "cycles": cycles, "lines": lines}
    _claim_behind(harness, thresholds, chosen & choice[7])
    _claim_inside(harness, {**model, "thresholds": thresholds}, slices)
    return harness


def _claim_behind(harness: Harness, thresholds: data.View, turns: Value) -> None:
    """The model counts the cycles in which blocks have waited without one in which none did; ``turns``: its choice."""
    part, m, inside = harness.dut, harness.m, harness.inside
    harness.assume("now counts every cycle", harness.first | (part.now == harness.past(part.now) + 1))
    changed = part.config_valid & (part.config.address == regs.THRESHOLDS)
    patience = thresholds.patience << PATIENCE_SHIFT
    harness.assume("now is far from its end", part.now <= NEVER - (1 << _WAIT_BITS))  # else deadlines are of the past
    many, waited = Signal(), Signal(_WAIT_BITS)
    m.d.sync += many.eq((thresholds.backlog != 0) & (part.backlog >= thresholds.backlog))
    with m.If((part.backlog == 0) | (thresholds.patience == 0) | changed):
        m.d.sync += waited.eq(0)
    with m.Elif(waited <= patience):
        m.d.sync += waited.eq(waited + 1)
    late = waited > patience
    harness.claim(
        "communication is behind when as many blocks waited a cycle ago, or some for as long as they may, or by choice",
        part.behind == (many | (late & (thresholds.patience != 0)) | turns),
    )
    harness.cover("the streams take turns though nothing waits", part.behind & ~many & ~late & (part.backlog == 0))
    harness.cover("it is behind with as many as the limit", many & harness.past(part.backlog == thresholds.backlog))
    harness.cover("it is no more when fewer wait", harness.past(part.behind) & ~part.behind & (part.backlog != 0))
    # What makes it inductive.
    harness.claim("it takes turns by its choice alone", inside["turns"] == turns)
    harness.claim("blocks wait while the part says so", inside["owing"] == (waited != 0))
    begun = (waited != 0) & ~late
    harness.claim("it knows since when", ~begun | (inside["deadline"] == part.now - waited + patience))
    harness.claim("the wait fits", waited <= patience + 1)
    harness.claim("it is late when they have waited too long", inside["late"] == (late & (thresholds.patience != 0)))


def _claim_inside(harness: Harness, model: dict[str, Any], slices: int) -> None:
    """What makes it inductive: where the part's state machine is while the model counts."""
    inside, after, measuring = harness.inside, model["after"], model["measuring"]
    state, settle, select = inside["state"], inside["settle"], inside["select"]
    last = _SETTLES + slices + 1
    phase = Mux(
        after == 0,
        Mux(measuring, MonitorState.MEASURE, MonitorState.OFF),
        Mux(
            after <= _SETTLES,
            MonitorState.SETTLE,
            Mux(after < last, MonitorState.SCAN, Mux(after == last, MonitorState.DECIDE, MonitorState.DONE)),
        ),
    )
    harness.claim("its state follows the cycles", Value.cast(state) == phase)
    harness.claim("it measures before that", ~measuring | (after == 0))
    harness.claim("it settles for 4 cycles", (after == 0) | (after > _SETTLES) | (settle == after - 1))
    harness.claim("it begins with slice 0", (after > _SETTLES) | ((after == 0) & ~measuring) | (select == 0))
    harness.claim("its sum is the model's", inside["total"] == model["lines"])
    harness.claim("its first stage began then", ~measuring | (inside["start"] == model["begin"]))
    harness.claim("its first stage lasted as long", (after == 0) | (inside["elapsed"] == model["cycles"]))
    full = model["cycles"] * slices
    harness.claim("it knows all cycles two cycles later", (after < 2) | (inside["all_cycles"] == full))
    harness.claim("and three times them a cycle after that", (after < 3) | (inside["three_times"] == 3 * full))
    harness.claim("its limits are those written", inside["thresholds"] == Value.cast(model["thresholds"]))


def _measures(config: T3Config) -> Harness:
    """The model is a sum of the lines of what goes, with as many bits as it needs, cut where it is compared."""
    part = MemorySlice(config=config)
    harness = Harness(part)
    m, grant = harness.m, data.View(Sources, harness.inside["arbiter.grant"])
    control = data.View(regs.Control, part.config.data[: regs.Control.size])
    again = control_written(part.config_valid, part.config) & (control.arm | control.disarm)
    lines: Value = Const(0)
    for name in Sources.members:
        head = data.View(MemoryRequest, places(harness.inside, name)[0][1])
        lines = lines + Mux(grant[name], head.length + 1, 0)
    most = (1 << len(part.served)) - 1
    total = Signal(len(part.served) + 1)
    with m.If(again):
        m.d.sync += total.eq(0)
    with m.Elif(part.measure & (total < most)):
        m.d.sync += total.eq(total + lines)
    harness.claim(
        "the lines that went while it measured, as many as it can say", part.served == Mux(total > most, most, total)
    )
    harness.claim("the sum ends with the burst that reaches the end", total < most + BURST_LINES)
    harness.cover("whole blocks were measured", part.served == 2 * BURST_LINES)
    return harness


PROOFS = (
    Proof(
        name="slice.measures",
        invariants=(),
        says="`served` is the number of lines that left the slice's queues while `measure` was 1, since the last arm "
        "or disarm; from 2^24 - 1 on it stays.",
        harness=_measures,
        sizes={"1 range": preset("small", ranges=1, token_queue=2)},
        method="induction",
        depth=1,
        cover_depth=8,
    ),
    Proof(
        name="monitor.chooses",
        invariants=(),
        says="Once per arm, 6 + slices cycles after the first tile or communication, the threshold becomes the one "
        "that belongs to the use of the data bus until then; before, there is no limit. Communication is behind while "
        "as many blocks wait as the limit says, and once some have waited for the patience, until none does.",
        harness=_chooses,
        sizes={
            "1 slice": preset("small", slices=1, node_inputs=1),
            "4 slices": preset("small"),
            "8 slices": preset("small", slices=8),
        },
        method="induction",
        depth=1,
        cover_depth=16,
    ),
)
