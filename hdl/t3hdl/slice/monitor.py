"""The occupancy monitor: it selects the GPU's threshold for communication, and says when communication is behind."""

import enum
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from ..common.broadcast import control_pulses, written
from ..config import NO_LIMIT, T3Config
from ..interface import register_map as regs
from ..interface.layouts import NEVER, OCCUPANCY_BITS, TIME_BITS
from ..interface.signatures import monitor_signature

PATIENCE_SHIFT = 6
"""log2 of the cycles that THRESHOLDS.patience counts in."""


class MonitorState(enum.IntEnum):
    """What the occupancy monitor is doing."""

    OFF = 0
    MEASURE = 1
    SETTLE = 2
    SCAN = 3
    DECIDE = 4
    DONE = 5


class OccupancyMonitor(wiring.Component):
    """Measures how busy the memory is in the GEMM's first stage; picks the threshold for communication, once per arm;
    and says when communication is behind.

    The first stage ends at the GPU's first complete tile or first communication access. Then the grants of all
    slices are summed, one slice per cycle; a line is two cycles of the data bus.

    Communication is behind while THRESHOLDS.backlog DMA blocks or more are ready or under way (0: never), and while it
    is late: some were at any time for 64 x THRESHOLDS.patience cycles (0: never), until there are none. It is behind
    all the time if THRESHOLDS says so for the use that was measured (bit 7 of its threshold): memory is busy anyway.

    Parameters
    ----------
    config : the hardware configuration (``slices``).

    Members
    -------
    config_valid, config : In : configuration writes (CONTROL, THRESHOLDS).
    tile_done_valid : In : pulse of the tracker.
    comm_seen : In : a slice has granted communication.
    select : Out : number of a slice.
    served : In : the count of lines of slice ``select``, in the same cycle.
    backlog : In : DMA blocks that are ready, or whose command is not done.
    now : In : timestamp.
    measure : Out : slices count the lines that they grant.
    threshold, chosen : Out : the limit for communication; ``NO_LIMIT`` until it is chosen.
    behind : Out : communication is behind.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is when communication will be late.

    Latency: 6 + slices, from the end of the first stage to ``chosen``; 1 from ``backlog`` to ``behind``.
    Throughput: one choice per arm.
    Reset: off, thresholds 127, 30, 10, 5, backlog 0, patience 0. Disarm turns it off and keeps the thresholds.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(monitor_signature(config))
        self._parameters = config

    @property
    def parameters(self) -> T3Config:
        """The hardware configuration (``config`` is the port of the configuration writes)."""
        return self._parameters

    @property
    def latency(self) -> int:
        """Cycles from the end of the first stage to ``chosen``."""
        return 6 + self._parameters.slices

    def elaborate(self, platform: Any) -> Module:
        """One state machine: measure, let the last grants settle, sum over the slices, decide."""
        m = Module()
        slices = self._parameters.slices
        control = control_pulses(m, self.config_valid, self.config)
        state = Signal(MonitorState)
        start, elapsed = Signal(TIME_BITS, name="start"), Signal(TIME_BITS)
        settle, total = Signal(2, name="settle"), Signal(24 + slices.bit_length())
        threshold, turns = Signal(OCCUPANCY_BITS, init=NO_LIMIT), Signal(name="turns")
        all_cycles = Signal(TIME_BITS + slices.bit_length(), name="all_cycles")
        three_times = Signal(len(all_cycles) + 2, name="three_times")
        thresholds = Signal(regs.Thresholds, init=regs.RESET[regs.THRESHOLDS])
        changed = written(self.config_valid, self.config, regs.THRESHOLDS)
        with m.If(changed):
            m.d.sync += thresholds.eq(self.config.data)
        self._watch(m, thresholds, changed, turns)
        choice = self._choose(m, thresholds, busy=2 * total, all_cycles=all_cycles, three_times=three_times)
        first_stage_over = self.tile_done_valid | self.comm_seen

        with m.Switch(state):
            with m.Case(MonitorState.MEASURE), m.If(first_stage_over):
                m.d.sync += [state.eq(MonitorState.SETTLE), settle.eq(0), elapsed.eq(self.now - start)]
            with m.Case(MonitorState.SETTLE):  # 4 cycles
                # There is a cycle for each product.
                m.d.sync += [settle.eq(settle + 1), all_cycles.eq(elapsed * slices), three_times.eq(3 * all_cycles)]
                with m.If(settle == 3):
                    m.d.sync += state.eq(MonitorState.SCAN)
            with m.Case(MonitorState.SCAN):
                m.d.sync += [total.eq(total + self.served), self.select.eq(self.select + 1)]
                with m.If(self.select == slices - 1):
                    m.d.sync += state.eq(MonitorState.DECIDE)
            with m.Case(MonitorState.DECIDE):
                m.d.sync += [state.eq(MonitorState.DONE), Cat(threshold, turns).eq(choice), self.chosen.eq(1)]

        with m.If(control.arm | control.disarm):
            m.d.sync += [
                state.eq(Mux(control.disarm, MonitorState.OFF, MonitorState.MEASURE)),
                start.eq(self.now),
                total.eq(0),
                self.select.eq(0),
                self.chosen.eq(0),
                threshold.eq(NO_LIMIT),
                turns.eq(0),
            ]

        # Idle: a cycle in which nothing moved repeats itself until an input changes.
        measuring = self.measure & ~first_stage_over
        waits = state.matches(MonitorState.OFF, MonitorState.DONE) | measuring
        m.d.comb += [self.measure.eq(state == MonitorState.MEASURE), self.threshold.eq(threshold)]
        m.d.sync += self.idle.eq(waits & ~self.config_valid)
        return m

    def _watch(self, m: Module, thresholds: data.View, changed: Value, turns: Signal) -> None:
        """Says whether communication is behind: by the blocks that wait, or by how long some have waited; or whether
        the streams take turns in any case.

        The time is compared a cycle before it counts; a write of the limits begins it anew.
        """
        many, owing, late = Signal(name="many"), Signal(name="owing"), Signal(name="late")
        deadline, owes = Signal(TIME_BITS, name="deadline"), Signal(name="owes")
        m.d.comb += [
            owes.eq((self.backlog != 0) & (thresholds.patience != 0) & ~changed),
            self.behind.eq(many | late | turns),
            self.wake_at.eq(Mux(owing & ~late, deadline, NEVER)),
        ]
        m.d.sync += [
            many.eq((thresholds.backlog != 0) & (self.backlog >= thresholds.backlog)),
            owing.eq(owes),
            late.eq(owes & owing & (late | (self.now >= deadline))),
        ]
        with m.If(owes & ~owing):
            m.d.sync += deadline.eq(self.now + (thresholds.patience << PATIENCE_SHIFT))

    def _choose(
        self, m: Module, thresholds: data.View, *, busy: Value, all_cycles: Value, three_times: Value
    ) -> Signal:
        """What THRESHOLDS says for the class that ``busy`` of ``all_cycles`` data-bus cycles falls into."""
        choice = Signal(OCCUPANCY_BITS + 1)
        with m.If(4 * busy < all_cycles):
            m.d.comb += choice.eq(thresholds.under_25)
        with m.Elif(2 * busy < all_cycles):
            m.d.comb += choice.eq(thresholds.under_50)
        with m.Elif(4 * busy < three_times):
            m.d.comb += choice.eq(thresholds.under_75)
        with m.Else():
            m.d.comb += choice.eq(thresholds.above)
        return choice
