"""The arbiter of one channel's DRAM queue, and the occupancy monitor that selects the GPU's threshold."""

import enum
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.broadcast import control_pulses, written
from ..config import NO_LIMIT, T3Config
from ..interface import register_map as regs
from ..interface.layouts import LENGTH_BITS, NEVER, OCCUPANCY_BITS, TIME_BITS
from ..interface.signatures import monitor_signature

Sources = data.StructLayout({"compute_read": 1, "compute_write": 1, "comm_read": 1, "comm_write": 1})
"""One bit per input queue of a slice."""

ArbiterSettings = data.StructLayout(
    {
        **{name: regs.Arbiter[name].shape for name in ("mca", "fixed", "threshold", "quantum")},
        "wait_limit": regs.Arbiter["starvation"].shape,  # cycles that communication waits beyond the first
    }
)
"""The ARBITER register as the arbiter keeps it."""


def wait_limit_of(starvation: Value) -> Value:
    """How many cycles communication waits beyond the first one if it may wait ``starvation`` cycles."""
    return Mux(starvation == 0, 0, starvation - 1)[: len(starvation)]


class StreamArbiter(wiring.Component):
    """Grants one of the two streams: plain round-robin, or T3-MCA (compute first, communication below a threshold).

    T3-MCA is round-robin while communication is behind.

    Members
    -------
    settings : In(ArbiterSettings) : what the ARBITER register says.
    changed : In(1) : the settings are being written; a wait of communication begins anew.
    eligible : In(Sources) : heads that may be granted now.
    comm_read_length, comm_write_length : In : lines beyond the first of communication's heads.
    out_valid, out_length, out_ready : In : the register behind the arbiter is occupied, with so many lines beyond the
        first, and is being taken.
    occupancy, threshold : In : lines in the DRAM queue, and the monitor's limit for communication.
    behind : In(1) : communication is behind: round-robin, whatever the settings say.
    now : In : timestamp.
    offer : Out(Sources) : of each stream, the head whose turn it is, if it has one.
    comm : Out(1) : it is communication's turn, else compute's, whether there is room or not;
        arrives later in the cycle than ``offer``.
    free : Out(1) : there is room: the register is empty or being taken.
    granted, grant : Out(1), Out(Sources) : a head leaves its queue in this cycle; which one.
    settled : Out(1) : wait and quantum of communication stay as they are until a head comes or goes, or ``wake_at``.
    wake_at : Out : when the wait of communication is over; ``NEVER`` without a wait, and after it if no head can go.

    Latency: 0. Throughput: one grant per cycle. Reset: compute's turn, read and write alternate from write.
    """

    def __init__(self) -> None:
        super().__init__({
            "settings": In(ArbiterSettings), "changed": In(1), "eligible": In(Sources),
            "comm_read_length": In(LENGTH_BITS), "comm_write_length": In(LENGTH_BITS),
            "out_valid": In(1), "out_length": In(LENGTH_BITS), "out_ready": In(1),
            "occupancy": In(OCCUPANCY_BITS), "threshold": In(OCCUPANCY_BITS), "behind": In(1), "now": In(TIME_BITS),
            "offer": Out(Sources), "comm": Out(1),
            "free": Out(1), "granted": Out(1), "grant": Out(Sources),
            "settled": Out(1), "wake_at": Out(TIME_BITS),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Candidates of the two streams, then the choice between them."""
        m = Module()
        compute_wins, comm_wins, mca = Signal(), self.comm, Signal(name="mca_acts")
        m.d.comb += mca.eq(self.settings.mca & ~self.behind)
        compute = self._alternate(m, "compute", compute_wins)
        comm = self._alternate(m, "comm", comm_wins)
        urgent = self._starvation(m, mca, comm, comm_wins & self.free)

        # Below the limit: what the queue and the register hold, whatever the length of the head that would follow.
        limit, out_lines, below = Signal(OCCUPANCY_BITS), Signal(LENGTH_BITS + 1), Signal()
        m.d.comb += [
            limit.eq(Mux(self.settings.fixed, self.settings.threshold, self.threshold)),
            out_lines.eq(Mux(self.out_valid, self.out_length + 1, 0)),
            below.eq((limit == NO_LIMIT) | (self.occupancy + out_lines < limit)),
        ]
        last_stream = Signal(init=1)
        with m.If(mca):
            m.d.comb += comm_wins.eq(comm & (urgent | (~compute & below)))
        with m.Else():
            m.d.comb += comm_wins.eq(comm & ~(compute & last_stream))

        m.d.comb += [
            compute_wins.eq(compute & ~comm_wins),
            self.free.eq(~self.out_valid | self.out_ready),
            # For either stream: independent of the selection, for timing.
            self.granted.eq(self.free & (compute | (comm & (~mca | urgent | below)))),
        ]
        with m.If(self.granted):
            m.d.sync += last_stream.eq(comm_wins)
        return m

    def _alternate(self, m: Module, stream: str, wins: Signal) -> Signal:
        """Chooses the stream's write head and read head in turn when it ``wins``; returns whether it offers one."""
        read, write = self.eligible[f"{stream}_read"], self.eligible[f"{stream}_write"]
        offered, is_write = Signal(name=f"{stream}_offered"), Signal(name=f"{stream}_is_write")
        last_kind = Signal(name=f"{stream}_last_kind")
        m.d.comb += [
            offered.eq(read | write),
            is_write.eq(write & ~(read & last_kind)),
            self.offer[f"{stream}_write"].eq(is_write),
            self.offer[f"{stream}_read"].eq(read & ~is_write),
            *(
                self.grant[f"{stream}_{kind}"].eq(wins & self.free & self.offer[f"{stream}_{kind}"])
                for kind in ("read", "write")
            ),
        ]
        with m.If(wins & self.free):
            m.d.sync += last_kind.eq(is_write)
        return offered

    def _starvation(self, m: Module, mca: Signal, comm: Signal, granted: Value) -> Signal:
        """Starvation timer of communication, and what is left of its quantum; returns whether it has priority.

        The time is compared a cycle before it counts: as wide as it is, it would come too late for the choice.
        """
        waiting, overdue = Signal(name="waiting"), Signal(name="overdue")
        left, next_left, deadline = Signal(8, name="left"), Signal(8), Signal(TIME_BITS, name="deadline")
        waits, urgent, lines, allowed = Signal(), Signal(), Signal(LENGTH_BITS + 1, name="comm_lines"), Signal(8)
        settings = self.settings
        m.d.comb += [
            waits.eq(mca & ~granted & (waiting | comm) & ~self.changed),
            urgent.eq((left != 0) | overdue),
            lines.eq(Mux(self.offer.comm_write, self.comm_write_length, self.comm_read_length) + 1),
            allowed.eq(Mux(left != 0, left, Mux(overdue, settings.quantum, 0))),
        ]
        with m.If(mca & comm):
            with m.If(~granted):
                m.d.comb += next_left.eq(left)
            with m.Elif(allowed > lines):
                m.d.comb += next_left.eq(allowed - lines)

        over = Mux(waiting, overdue | (self.now >= deadline), settings.wait_limit == 0)
        m.d.sync += [waiting.eq(waits), overdue.eq(waits & over), left.eq(next_left)]
        with m.If(mca & comm & ~waiting):  # also if it is granted at once: the grant arrives late in the cycle
            m.d.sync += deadline.eq(self.now + settings.wait_limit)
        m.d.comb += self.settled.eq((left == 0) & Mux(settings.mca, waiting | ~comm, ~waiting))
        # Once it is over, it counts only where it leads to a grant: with a head to send and room behind the arbiter.
        m.d.comb += self.wake_at.eq(Mux(waiting & (~overdue | (comm & ~self.out_valid)), deadline, NEVER))
        return urgent


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

    Communication is behind while THRESHOLDS.backlog DMA blocks or more are ready or under way (0: never).

    Parameters
    ----------
    config : the hardware configuration (``slices``).

    Members
    -------
    config_valid, config : In : configuration writes (CONTROL, THRESHOLDS).
    tile_done_valid : In : pulse of the tracker.
    comm_seen : In : a slice has granted communication.
    select, served : Out, In : number of a slice, and its count of lines in the same cycle.
    backlog : In : DMA blocks that are ready, or whose command is not done.
    now : In : timestamp.
    measure : Out : slices count the lines that they grant.
    threshold, chosen : Out : the limit for communication; ``NO_LIMIT`` until it is chosen.
    behind : Out : communication is behind.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is ``NEVER``.

    Latency: 6 + slices, from the end of the first stage to ``chosen``; 1 from ``backlog`` to ``behind``.
    Throughput: one choice per arm.
    Reset: off, thresholds 127, 30, 10, 5, backlog 0. Disarm turns it off and keeps the thresholds.
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
        threshold = Signal(OCCUPANCY_BITS, init=NO_LIMIT)
        all_cycles = Signal(TIME_BITS + slices.bit_length(), name="all_cycles")
        three_times = Signal(len(all_cycles) + 2, name="three_times")
        thresholds = Signal(regs.Thresholds, init=regs.RESET[regs.THRESHOLDS])
        with m.If(written(self.config_valid, self.config, regs.THRESHOLDS)):
            m.d.sync += thresholds.eq(self.config.data)
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
                m.d.sync += [state.eq(MonitorState.DONE), threshold.eq(choice), self.chosen.eq(1)]

        with m.If(control.arm | control.disarm):
            m.d.sync += [
                state.eq(Mux(control.disarm, MonitorState.OFF, MonitorState.MEASURE)),
                start.eq(self.now),
                total.eq(0),
                self.select.eq(0),
                self.chosen.eq(0),
                threshold.eq(NO_LIMIT),
            ]

        # Idle: a cycle in which nothing moved repeats itself until an input changes.
        measuring = self.measure & ~first_stage_over
        waits = state.matches(MonitorState.OFF, MonitorState.DONE) | measuring
        m.d.comb += [
            self.measure.eq(state == MonitorState.MEASURE),
            self.threshold.eq(threshold),
            self.wake_at.eq(NEVER),
        ]
        behind = Signal(name="now_behind")
        m.d.comb += behind.eq((thresholds.backlog != 0) & (self.backlog >= thresholds.backlog))
        m.d.sync += [self.behind.eq(behind), self.idle.eq(waits & ~self.config_valid)]
        return m

    def _choose(
        self, m: Module, thresholds: data.View, *, busy: Value, all_cycles: Value, three_times: Value
    ) -> Signal:
        """The threshold of the class that ``busy`` of ``all_cycles`` data-bus cycles falls into."""
        choice = Signal(OCCUPANCY_BITS)
        with m.If(4 * busy < all_cycles):
            m.d.comb += choice.eq(thresholds.under_25)
        with m.Elif(2 * busy < all_cycles):
            m.d.comb += choice.eq(thresholds.under_50)
        with m.Elif(4 * busy < three_times):
            m.d.comb += choice.eq(thresholds.under_75)
        with m.Else():
            m.d.comb += choice.eq(thresholds.above)
        return choice
