"""The arbiter of one channel's DRAM queue."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import sum_below
from ..config import NO_LIMIT
from ..interface import register_map as regs
from ..interface.layouts import LENGTH_BITS, NEVER, OCCUPANCY_BITS, TIME_BITS

Sources = data.StructLayout({"compute_read": 1, "compute_write": 1, "comm_read": 1, "comm_write": 1})
"""One bit per input queue of a slice."""

ArbiterSettings = data.StructLayout(
    {
        **{name: regs.Arbiter[name].shape for name in ("mca", "fixed", "threshold", "quantum", "quiet")},
        "wait_limit": regs.Arbiter["starvation"].shape,  # cycles that communication waits beyond the first
    }
)
"""The ARBITER register as the arbiter keeps it."""


def wait_limit_of(starvation: Value) -> Value:
    """How many cycles communication waits beyond the first one if it may wait ``starvation`` cycles."""
    return Mux(starvation == 0, 0, starvation - 1)[: len(starvation)]


class StreamArbiter(wiring.Component):
    """Grants one of the two streams: plain round-robin, or T3-MCA (compute first, communication below a threshold).

    T3-MCA is round-robin while communication is behind, and has no threshold while compute is absent: once
    ``settings.quiet`` lines of communication have gone since compute's last grant.

    Members
    -------
    settings : In(ArbiterSettings) : what the ARBITER register says.
    changed : In(1) : the settings are being written; a wait of communication begins anew.
    eligible : In(Sources) : heads that may be granted now.
    comm_read_length, comm_write_length : In : lines beyond the first of communication's heads.
    out_valid, out_lines, out_ready : In : the register behind the arbiter is occupied, with so many lines (0 while it
        is not), and is being taken.
    occupancy, threshold : In : lines in the DRAM queue, and the monitor's threshold for communication.
    behind : In(1) : communication is behind: round-robin, whatever the settings say.
    now : In : timestamp.
    offer : Out(Sources) : of each stream, the head whose turn it is, if it has one.
    comm : Out(1) : what goes, if anything does, is communication's, else compute's; arrives later in the cycle than
        ``offer``, and does not wait for the limit.
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
            "out_valid": In(1), "out_lines": In(LENGTH_BITS + 1), "out_ready": In(1),
            "occupancy": In(OCCUPANCY_BITS), "threshold": In(OCCUPANCY_BITS), "behind": In(1), "now": In(TIME_BITS),
            "offer": Out(Sources), "comm": Out(1),
            "free": Out(1), "granted": Out(1), "grant": Out(Sources),
            "settled": Out(1), "wake_at": Out(TIME_BITS),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Candidates of the two streams, then the choice between them."""
        m = Module()
        compute_wins, comm_wins, mca = (Signal(name=name) for name in ("compute_wins", "comm_wins", "mca_acts"))
        m.d.comb += mca.eq(self.settings.mca & ~self.behind)
        compute = self._alternate(m, "compute", compute_wins)
        comm = self._alternate(m, "comm", comm_wins)
        urgent = self._starvation(m, mca, comm, comm_wins & self.free)
        alone = self._absence(m, mca, compute_wins & self.free, comm_wins & self.free)

        # Below the limit: what the queue and the register hold, whatever the length of the head that would follow.
        below = Signal(name="below_limit")
        fixed, monitored = (
            (limit == NO_LIMIT) | sum_below(self.occupancy, self.out_lines, limit)
            for limit in (self.settings.threshold, self.threshold)
        )
        m.d.comb += below.eq(alone | Mux(self.settings.fixed, fixed, monitored))
        # The limit counts where compute has nothing: its sum comes late, and only communication's heads wait for it.
        last_stream, passes, may_go = Signal(init=1, name="last_stream"), Signal(name="passes"), Signal(name="may_go")
        m.d.comb += [
            passes.eq(comm & Mux(mca, urgent, ~last_stream)),
            may_go.eq(comm & (~mca | urgent | below)),
            compute_wins.eq(compute & ~passes),
            comm_wins.eq(Mux(compute, passes, may_go)),
            self.comm.eq(~compute_wins),
            self.free.eq(~self.out_valid | self.out_ready),
            self.granted.eq(self.free & (compute | may_go)),
        ]
        with m.If(self.granted):
            m.d.sync += last_stream.eq(self.comm)
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
            lines.eq(self._comm_lines()),
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

    def _absence(self, m: Module, mca: Signal, compute_goes: Value, comm_goes: Value) -> Signal:
        """Counts the lines of communication since compute last went; returns whether they are so many that compute is
        taken to be absent."""
        alone, enough = Signal(8, name="alone"), Signal(name="compute_absent")
        total = Signal(len(alone) + 1, name="alone_total")
        most = (1 << len(alone)) - 1
        m.d.comb += [
            total.eq(alone + self._comm_lines()),
            enough.eq((self.settings.quiet != 0) & (alone >= self.settings.quiet)),
        ]
        with m.If(~mca | compute_goes):
            m.d.sync += alone.eq(0)
        with m.Elif(comm_goes):
            m.d.sync += alone.eq(Mux(total > most, most, total))
        return enough

    def _comm_lines(self) -> Value:
        """Lines of communication's head whose turn it is."""
        return Mux(self.offer.comm_write, self.comm_write_length, self.comm_read_length) + 1
