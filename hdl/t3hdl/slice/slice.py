"""Per-channel front end of the DRAM scheduler: range match, arbitration, counting of updates."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, wiring

from ..common.broadcast import ControlPulses, control_pulses, written
from ..common.choose import chosen
from ..common.queues import PingPongQueue
from ..common.range_table import RangeTable, find_range
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import MemoryRequest, Op
from ..interface.signatures import slice_signature
from .arbiter import ArbiterSettings, Sources, StreamArbiter, wait_limit_of
from .token_queue import TokenQueue

MatchedRequest = data.StructLayout({"request": MemoryRequest, "epoch": 2})
"""A request after the match: ``tagged`` means tracked, and then ``epoch`` is its range's."""

_SERVED_MAX = (1 << 24) - 1


class MemorySlice(wiring.Component):
    """Front end of one memory channel: arbitrates two streams to the DRAM queue and counts tracked updates as tokens.

    Parameters
    ----------
    config : the hardware configuration (``ranges``, ``contexts``, ``token_queue``, ``count_on``, ``protect``).

    Members
    -------
    compute_read, compute_write, comm_read, comm_write : In(stream(MemoryRequest)) : the two streams' accesses.
    dram : Out(stream(MemoryRequest)) : to the channel's DRAM queue; ``tagged`` is 1 if the access is tracked.
    token : Out(stream(Token)) : counted updates, merged per tile while they wait.
    update_done_valid, update_done : In : pulse; the memory has performed a ``dram`` request (count_on = performed).
    compute_refused_valid, compute_refused : Out : pulse; a compute write into another context's range, dropped.
    comm_refused_valid, comm_refused : Out : likewise, of the communication stream.
    occupancy, threshold : In : entries in the DRAM queue, and the monitor's limit for communication.
    measure, served : In, Out : grants counted while ``measure`` is 1, saturating.
    comm_seen : Out : communication was granted since arm.
    now : In : timestamp.
    config_valid, config : In : configuration writes (ranges, ARBITER, CONTROL).
    corrected, uncorrectable : Out(1) : sticky; a token was corrected; a token was lost or a range is damaged (it
        matches nothing then). Cleared by a disarm.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is the end of communication's wait.

    Latency: 2 from an input to ``dram``; 1 from ``dram`` (or ``update_done``) to ``token``, and from an input to its
    refusal. Throughput: one request per cycle. Reset: empty, ready at once. Disarm empties all queues and keeps
    ranges and ARBITER.
    """

    def __init__(self, *, config: T3Config) -> None:
        super().__init__(slice_signature(config))
        self._parameters = config

    @property
    def parameters(self) -> T3Config:
        """The hardware configuration (``config`` is the port of the configuration writes)."""
        return self._parameters

    @property
    def latency(self) -> int:
        """Cycles from an input to ``dram`` when nothing waits."""
        return 2

    @property
    def token_latency(self) -> int:
        """Cycles from the transfer on ``dram`` (or from ``update_done``) to ``token`` when nothing waits."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """Match at the entry of the four queues, one arbiter, the output register, the token queue behind it."""
        m = Module()
        control = control_pulses(m, self.config_valid, self.config)
        m.submodules.ranges = table = RangeTable(entries=self._parameters.ranges, protect=self._parameters.protect)
        m.d.comb += [table.config_valid.eq(self.config_valid), table.config.eq(self.config)]

        epoch = Signal(2)
        tokens = TokenQueue(depth=self._parameters.token_queue, protect=self._parameters.protect)
        m.submodules.tokens = ResetInserter(control.disarm)(tokens)
        token_space, counting = self._count(m, control, table.ranges, epoch, tokens)
        heads, taking = self._enqueue(m, control, table.ranges)
        arbiter = self._arbiter(m, control, heads, token_space)

        # The output register, whenever it is free, takes the head whose turn it is: nothing of it, if there is none.
        transferred = self.dram.valid & self.dram.ready
        next_request = Signal(MatchedRequest)
        compute, comm = (
            chosen(Cat(arbiter.offer[name] for name in names), [heads[name].payload for name in names])
            for names in (("compute_read", "compute_write"), ("comm_read", "comm_write"))
        )
        m.d.comb += next_request.eq(Mux(arbiter.comm, comm, compute))
        with m.If(arbiter.free):
            m.d.sync += [
                self.dram.valid.eq(arbiter.granted),
                self.dram.payload.eq(next_request.request),
                self.dram.payload.stream.eq(arbiter.comm),
                epoch.eq(next_request.epoch),
            ]
        with m.If(control.disarm):
            m.d.sync += [self.dram.valid.eq(0), self.dram.payload.eq(0), epoch.eq(0)]

        self._measure(m, control, arbiter.granted, arbiter.grant.comm_read | arbiter.grant.comm_write)

        # Idle: the cycle after one in which something moved settles wait and burst of the arbiter; from then on every
        # cycle repeats itself until something moves, an input changes or the deadline comes.
        moved = taking | arbiter.granted | transferred | counting | self.config_valid
        no_activity, new_uncorrectable = Signal(), table.damaged | tokens.uncorrectable
        m.d.sync += [
            no_activity.eq(~moved),
            self.corrected.eq((self.corrected | tokens.corrected) & ~control.disarm),
            self.uncorrectable.eq((self.uncorrectable | new_uncorrectable) & ~control.disarm),
        ]
        fault = tokens.uncorrectable | (table.damaged & ~self.uncorrectable) | (tokens.corrected & ~self.corrected)
        m.d.comb += [self.idle.eq(no_activity & ~fault), self.wake_at.eq(arbiter.wake_at)]
        return m

    def _enqueue(self, m: Module, control: ControlPulses, ranges: Any) -> tuple[dict[str, Any], Value]:
        """The four input queues behind the match; returns their heads, and whether one takes an item."""
        heads, taking = {}, []
        for name in Sources.members:
            port = getattr(self, name)
            queue = PingPongQueue(MatchedRequest)
            m.submodules[name] = ResetInserter(control.disarm)(queue)
            matched, foreign = self._match(m, name, port.payload, ranges)
            m.d.comb += [
                queue.i.valid.eq(port.valid & ~foreign),
                queue.i.payload.eq(matched),
                port.ready.eq(queue.i.ready),
            ]
            heads[name] = queue.o
            taking.append(port.valid & queue.i.ready)
            if name.endswith("write"):
                self._refuse(m, control, name, taking[-1], foreign)
        return heads, Cat(taking).any()

    def _refuse(self, m: Module, control: ControlPulses, name: str, taken: Value, foreign: Value) -> None:
        """Returns a ``foreign`` request of write port ``name`` in the next cycle."""
        stream, port = name.removesuffix("_write"), getattr(self, name)
        answer = getattr(self, f"{stream}_refused")
        m.d.sync += getattr(self, f"{stream}_refused_valid").eq(taken & foreign & ~control.disarm)
        with m.If(taken):  # and perhaps not refused: the answer, which is wide, does not wait for the match
            m.d.sync += [answer.eq(port.payload), answer.stream.eq(stream == "comm")]

    def _match(self, m: Module, name: str, item: data.View, ranges: Any) -> tuple[data.View, Signal]:
        """What enters the queue of port ``name``, and whether it must not, because the range there is another
        context's. Only write ports track and refuse."""
        matched, foreign = Signal(MatchedRequest, name=f"{name}_matched"), Signal(name=f"{name}_foreign")
        request = matched.request
        m.d.comb += [request.eq(item), request.tagged.eq(0)]
        if name.endswith("write"):
            place = find_range(m, ranges, item.line, item.context)
            attributes = place.attributes
            updates = (item.op >= Op.STORE) & (item.op <= Op.MAX)
            m.d.comb += foreign.eq(place.foreign & (item.op != Op.READ))
            with m.If(place.own & item.tagged & updates):
                m.d.comb += [
                    request.tagged.eq(1),
                    request.op.eq(Mux(item.op == Op.STORE, attributes.op, item.op)),
                    request.dtype.eq(attributes.dtype),
                    matched.epoch.eq(attributes.epoch),
                ]
        return matched, foreign

    def _arbiter(self, m: Module, control: ControlPulses, heads: dict[str, Any], token_space: Value) -> StreamArbiter:
        """The arbiter over the heads; a tracked head is eligible while a place for its token is free."""
        reset = dict(regs.RESET[regs.ARBITER])
        settings = Signal(ArbiterSettings, init={"wait_limit": max(reset.pop("starvation") - 1, 0), **reset})
        changed, new = written(self.config_valid, self.config, regs.ARBITER), Signal(regs.Arbiter, name="new_settings")
        m.d.comb += new.eq(self.config.data)
        with m.If(changed):
            m.d.sync += [
                *(settings[name].eq(new[name]) for name in reset),
                settings.wait_limit.eq(wait_limit_of(new.starvation)),
            ]
        arbiter = StreamArbiter()
        m.submodules.arbiter = ResetInserter(control.disarm)(arbiter)
        m.d.comb += [
            arbiter.settings.eq(settings),
            arbiter.changed.eq(changed),
            arbiter.out_valid.eq(self.dram.valid),
            arbiter.out_ready.eq(self.dram.ready),
            arbiter.occupancy.eq(self.occupancy),
            arbiter.threshold.eq(self.threshold),
            arbiter.now.eq(self.now),
        ]
        for name, head in heads.items():
            eligible = head.valid & (~head.payload.request.tagged | token_space)
            m.d.comb += [arbiter.eligible[name].eq(eligible), head.ready.eq(arbiter.grant[name])]
        return arbiter

    def _count(
        self, m: Module, control: ControlPulses, ranges: Any, epoch: Value, queue: TokenQueue
    ) -> tuple[Value, Value]:
        """Tokens of accepted or performed updates; returns whether another update's token would have a place, and
        whether a count changes in this cycle for another reason than a transfer on ``dram``."""
        depth = self._parameters.token_queue
        tracked = self.dram.valid & self.dram.payload.tagged
        accepted = tracked & self.dram.ready
        if self._parameters.count_on == "accepted":
            request, outstanding = self.dram.payload, Const(0)
            push = accepted
        else:
            # A place in the token queue stays reserved for every update that the memory has not reported yet.
            request = self.update_done
            outstanding = Signal(range(depth + 1))
            epoch = find_range(m, ranges, request.line, request.context).attributes.epoch
            push = self.update_done_valid & request.tagged & (outstanding != 0)
            with m.If(control.disarm):
                m.d.sync += outstanding.eq(0)
            with m.Elif(accepted != push):
                m.d.sync += outstanding.eq(Mux(accepted, outstanding + 1, outstanding - 1))

        aborted = self._aborted(m, control)
        copied = ("context", "row", "col", "wf", "right", "bottom")
        m.d.comb += [
            queue.push.eq(push & ~(aborted >> request.context)[0]),
            *(queue.tile[field].eq(request[field]) for field in copied),
            queue.tile.epoch.eq(epoch),
            self.token.valid.eq(queue.o.valid),
            self.token.payload.eq(queue.o.payload),
            queue.o.ready.eq(self.token.ready),
        ]
        # A place after what `dram` holds, too, without waiting for the sum.
        token_space, place, reserved = Signal(), Signal(name="place"), queue.level + outstanding
        m.d.comb += [
            place.eq(reserved < depth),
            token_space.eq(place & ~(tracked & (reserved == depth - 1))),
        ]
        return token_space, push | (self.token.valid & self.token.ready) | queue.uncorrectable

    def _aborted(self, m: Module, control: ControlPulses) -> Signal:
        """One bit per aborted context: its updates are performed and produce no tokens."""
        aborted = Signal(self._parameters.contexts)
        context_bit = (1 << control.context)[: len(aborted)]
        with m.If(control.disarm):
            m.d.sync += aborted.eq(0)
        with m.Elif(control.abort):
            m.d.sync += aborted.eq(aborted | context_bit)
        with m.Elif(control.arm):
            m.d.sync += aborted.eq(aborted & ~context_bit)
        return aborted

    def _measure(self, m: Module, control: ControlPulses, granted: Value, comm_granted: Value) -> None:
        """Grants while ``measure`` is 1, and whether communication was granted since arm."""
        armed = Signal()
        with m.If(granted & self.measure & (self.served != _SERVED_MAX)):
            m.d.sync += self.served.eq(self.served + 1)
        with m.If(comm_granted & armed):
            m.d.sync += self.comm_seen.eq(1)
        with m.If(control.arm | control.disarm):
            m.d.sync += [armed.eq(control.arm & ~control.disarm), self.served.eq(0), self.comm_seen.eq(0)]
