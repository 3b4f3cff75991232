"""Per-channel front end of the DRAM scheduler: range match, arbitration, counting of updates."""

from typing import Any

from amaranth.hdl import Cat, Const, Fragment, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, wiring

from ..common.broadcast import ControlPulses, control_pulses, written
from ..common.choose import chosen
from ..common.queues import PingPongQueue
from ..common.range_table import RangeTable, find_range
from ..common.state_parity import under_state_parity
from ..config import T3Config
from ..interface import register_map as regs
from ..interface.layouts import LENGTH_BITS, MemoryRequest, Op
from ..interface.signatures import slice_signature
from .arbiter import ArbiterSettings, Sources, StreamArbiter, wait_limit_of
from .pending_accesses import PendingAccesses
from .token_queue import TileKey, TokenQueue

WriteMatch = data.StructLayout({"request": MemoryRequest, "violation": 1, "stale": 1})
"""A write after the match: ``tagged`` means tracked. It is refused if its range is another context's or it is no burst
of one range and block (``violation``), or if it is an update of no live epoch (``stale``)."""

_SERVED_MAX = (1 << 24) - 1
_REFUSALS = tuple((stream, pulse) for stream in ("compute", "comm") for pulse in ("refused", "stale"))
_WRITE_PLACES = 5
"""Bursts of writes that a slice holds at most: two in each stream's queue, one at ``dram``."""


class MemorySlice(wiring.Component):
    """Front end of one memory channel: arbitrates two streams to the DRAM queue and counts tracked updates as tokens.

    A request is a burst of 1 to 8 lines, which moves, is refused and is counted as one; counts are in lines.

    Parameters
    ----------
    config : the hardware configuration (``ranges``, ``contexts``, ``token_queue``, ``count_on``, ``protect``).

    Members
    -------
    compute_read, compute_write, comm_read, comm_write : In(stream(MemoryRequest)) : the two streams' accesses.
    dram : Out(stream(MemoryRequest)) : to the channel's DRAM queue, which takes a burst when it has room for all of it;
        ``tagged`` is 1 if the access is tracked.
    token : Out(stream(Token)) : counted updates, merged per tile while they wait.
    update_done_valid, update_done : In : pulse; the memory has performed all of a ``dram`` request (count_on =
        performed), in the cycle of its transfer at the earliest.
    compute_refused_valid, compute_refused : Out : pulse; a compute write given back: into another context's range, over
        a range's bound, or over the end of its aligned block.
    comm_refused_valid, comm_refused : Out : likewise, of the communication stream.
    compute_stale_valid, compute_stale : Out : pulse; an update of no live epoch in the compute stream, given back.
    comm_stale_valid, comm_stale : Out : likewise, of the communication stream.
    pending : Out : a bit per context; tracked accesses of it are held here or in the memory, and not yet counted.
    occupancy, threshold : In : lines in the DRAM queue, and the monitor's threshold for communication.
    behind : In : communication is behind: round-robin also in T3-MCA mode.
    measure : In : lines that are granted are counted, else the count is kept.
    served : Out : lines granted while ``measure`` was 1 since the last arm, saturating.
    comm_seen : Out : communication was granted since arm.
    now : In : timestamp.
    config_valid, config : In : configuration writes (ranges, ARBITER, CONTROL).
    corrected, uncorrectable : Out(1) : sticky; a token was corrected; a token was lost, a range is damaged (it matches
        nothing then), or a bit of another register was wrong. Cleared by a disarm.
    idle, wake_at : Out : rule 5 of docs/hardware/rules.md; ``wake_at`` is the end of communication's wait.

    Latency: 2 from an input to ``dram``; 1 from ``dram`` (or ``update_done``) to ``token``, and from an input to its
    refusal. Throughput: one burst per cycle. Reset: empty, ready at once. Disarm empties the token queue; accesses
    that were taken, ranges and ARBITER stay.
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

    def elaborate(self, platform: Any) -> Module | Fragment:
        """With ``protect`` a parity watches the registers that have no check bits of their own."""
        return under_state_parity(self._parts, platform, protect=self._parameters.protect)

    def _parts(self, damaged: Value) -> Module:
        """Match at the entry of the four queues, one arbiter, the output register, the token queue behind it."""
        m = Module()
        control = control_pulses(m, self.config_valid, self.config)
        m.submodules.ranges = table = RangeTable(entries=self._parameters.ranges, protect=self._parameters.protect)
        m.d.comb += [table.config_valid.eq(self.config_valid), table.config.eq(self.config)]

        tokens = TokenQueue(depth=self._parameters.token_queue, protect=self._parameters.protect)
        m.submodules.tokens = ResetInserter(control.disarm)(tokens)
        m.submodules.pending = pending = PendingAccesses(
            contexts=self._parameters.contexts, most=_WRITE_PLACES + self._parameters.token_queue
        )
        m.d.comb += self.pending.eq(pending.pending)
        token_space, counting = self._count(m, control, tokens, pending)
        heads, taking = self._enqueue(m, table.ranges, pending)
        arbiter = self._arbiter(m, heads, token_space)

        # The output register, whenever it is free, takes the head whose turn it is, also one that may not go yet: then
        # ``dram.valid`` stays 0, and the wide payload has not waited for the limit.
        transferred = self.dram.valid & self.dram.ready
        next_request, out_lines = Signal(MemoryRequest, name="next_request"), Signal(LENGTH_BITS + 1, name="out_lines")
        compute, comm = (
            chosen(Cat(arbiter.offer[name] for name in names), [heads[name].payload for name in names])
            for names in (("compute_read", "compute_write"), ("comm_read", "comm_write"))
        )
        m.d.comb += [next_request.eq(Mux(arbiter.comm, comm, compute)), arbiter.out_lines.eq(out_lines)]
        # Beside the request, because the sum that the limit is compared with begins with it; the choice arrives late.
        lines_of_comm, lines_of_compute = (data.View(MemoryRequest, head).length + 1 for head in (comm, compute))
        with m.If(arbiter.free):
            m.d.sync += [
                self.dram.valid.eq(arbiter.granted),
                self.dram.payload.eq(next_request),
                self.dram.payload.stream.eq(arbiter.comm),
                out_lines.eq(Mux(arbiter.granted, Mux(arbiter.comm, lines_of_comm, lines_of_compute), 0)),
            ]

        self._measure(m, control, arbiter, data.View(MemoryRequest, compute), data.View(MemoryRequest, comm))

        queues_move = taking | arbiter.granted
        moved = queues_move | transferred | counting | self.config_valid
        rests = self._rest(m, heads, arbiter, queues_move, moved)
        new_uncorrectable = table.damaged | tokens.uncorrectable
        m.d.sync += [
            self.corrected.eq((self.corrected | tokens.corrected) & ~control.disarm),
            # A bit that is wrong in the cycle of a disarm is not what that ends.
            self.uncorrectable.eq(((self.uncorrectable | new_uncorrectable) & ~control.disarm) | damaged),
        ]
        fault = damaged | tokens.uncorrectable
        fault |= (table.damaged & ~self.uncorrectable) | (tokens.corrected & ~self.corrected)
        m.d.comb += [self.idle.eq(rests & ~fault), self.wake_at.eq(arbiter.wake_at)]
        return m

    def _rest(
        self, m: Module, heads: dict[str, Any], arbiter: StreamArbiter, queues_move: Value, moved: Value
    ) -> Value:
        """Whether every register stays as it is until something moves, an input changes or the deadline comes.

        Either nothing would fill the output register, no refusal is to be taken back, the arbiter has settled, and the
        queues have sampled their inputs, as the ranges match them; or the cycle before was one in which nothing moved,
        so that it repeats itself.
        """
        queues_rest, repeats, at_rest = Signal(), Signal(), Signal()
        refusals = Cat(getattr(self, f"{stream}_{pulse}_valid") for stream, pulse in _REFUSALS)
        waits_for_room = self.dram.valid | ~Cat(head.valid for head in heads.values()).any()
        m.d.comb += at_rest.eq(queues_rest & waits_for_room & ~refusals.any() & arbiter.settled)
        m.d.sync += queues_rest.eq(~(queues_move | self.config_valid))
        with m.If(moved | ~at_rest):  # it stays as it is, too
            m.d.sync += repeats.eq(~moved)
        return repeats | at_rest

    def _enqueue(self, m: Module, ranges: Any, pending: PendingAccesses) -> tuple[dict[str, Any], Value]:
        """The four input queues, those for writes behind the match; returns their heads, and whether one takes an
        item."""
        heads, taking = {}, []
        for name in Sources.members:
            port = getattr(self, name)
            m.submodules[name] = queue = PingPongQueue(MemoryRequest)
            taken = port.valid & queue.i.ready
            m.d.comb += port.ready.eq(queue.i.ready)
            if name.endswith("write"):
                matched = self._match(m, name, port.payload, ranges)
                m.d.comb += [
                    queue.i.valid.eq(port.valid & ~matched.violation & ~matched.stale),
                    queue.i.payload.eq(matched.request),
                ]
                self._refuse(m, name, taken, matched)
                enters = getattr(pending, f"{name.removesuffix('_write')}_enters")
                m.d.comb += [
                    enters.valid.eq(taken & matched.request.tagged),
                    enters.context.eq(port.payload.context),
                ]
            else:
                m.d.comb += [
                    queue.i.valid.eq(port.valid),
                    queue.i.payload.eq(port.payload),
                    queue.i.payload.tagged.eq(0),
                ]
            heads[name] = queue.o
            taking.append(taken)
        return heads, Cat(taking).any()

    def _refuse(self, m: Module, name: str, taken: Value, matched: data.View) -> None:
        """Returns a refused request of write port ``name`` in the next cycle."""
        stream, port = name.removesuffix("_write"), getattr(self, name)
        answer = Signal(MemoryRequest, name=f"{stream}_answer")
        for pulse, cause in (("refused", matched.violation), ("stale", matched.stale)):
            m.d.sync += getattr(self, f"{stream}_{pulse}_valid").eq(taken & cause)
            m.d.comb += getattr(self, f"{stream}_{pulse}").eq(answer)
        with m.If(taken):  # and perhaps not refused: the answer, which is wide, does not wait for the match
            m.d.sync += [answer.eq(port.payload), answer.stream.eq(stream == "comm")]

    def _match(self, m: Module, name: str, item: data.View, ranges: Any) -> data.View:
        """What a write of port ``name`` becomes."""
        matched = Signal(WriteMatch, name=f"{name}_matched")
        place = find_range(m, ranges, item, contexts=self._parameters.contexts)
        request, attributes, update = matched.request, place.attributes, Signal(name=f"{name}_update")
        m.d.comb += [
            update.eq(item.tagged & (item.op >= Op.STORE) & (item.op <= Op.MAX)),
            matched.violation.eq((place.foreign | place.improper) & (item.op != Op.READ)),
            matched.stale.eq(update & ~place.foreign & ~place.improper & ~place.live),
            request.eq(item),
            request.tagged.eq(update & place.live),
        ]
        with m.If(request.tagged):
            m.d.comb += [
                request.op.eq(Mux(item.op == Op.STORE, attributes.op, item.op)),
                request.dtype.eq(attributes.dtype),
            ]
        return matched

    def _arbiter(self, m: Module, heads: dict[str, Any], token_space: Value) -> StreamArbiter:
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
        m.submodules.arbiter = arbiter = StreamArbiter()
        m.d.comb += [
            arbiter.settings.eq(settings),
            arbiter.changed.eq(changed),
            arbiter.out_valid.eq(self.dram.valid),
            arbiter.out_ready.eq(self.dram.ready),
            arbiter.comm_read_length.eq(heads["comm_read"].payload.length),
            arbiter.comm_write_length.eq(heads["comm_write"].payload.length),
            arbiter.occupancy.eq(self.occupancy),
            arbiter.threshold.eq(self.threshold),
            arbiter.behind.eq(self.behind),
            arbiter.now.eq(self.now),
        ]
        for name, head in heads.items():
            eligible = head.valid & (~head.payload.tagged | token_space)
            m.d.comb += [arbiter.eligible[name].eq(eligible), head.ready.eq(arbiter.grant[name])]
        return arbiter

    def _count(
        self, m: Module, control: ControlPulses, queue: TokenQueue, pending: PendingAccesses
    ) -> tuple[Value, Value]:
        """Tokens of accepted or performed updates; returns whether another update's token would have a place, and
        whether a count changes in this cycle for another reason than a transfer on ``dram``."""
        depth = self._parameters.token_queue
        tracked = self.dram.valid & self.dram.payload.tagged
        accepted = tracked & self.dram.ready
        if self._parameters.count_on == "accepted":
            request, push, reserved = self.dram.payload, accepted, Const(0)
        else:
            # A place in the token queue stays reserved for every update that the memory has not reported yet.
            request = self.update_done
            outstanding = Signal(range(depth + 1))
            push = self.update_done_valid & request.tagged & ((outstanding != 0) | accepted)
            reserved = Mux(accepted == push, outstanding, Mux(accepted, outstanding + 1, outstanding - 1))
            m.d.sync += outstanding.eq(reserved)

        of_aborted = (self._aborted(m, control) >> request.context)[0]
        m.d.comb += [
            pending.leaves.valid.eq(push),
            pending.leaves.context.eq(request.context),
            queue.push.eq(push & ~of_aborted),
            *(queue.tile[field].eq(request[field]) for field in TileKey.members),
            queue.length.eq(request.length),
            self.token.valid.eq(queue.o.valid),
            self.token.payload.eq(queue.o.payload),
            queue.o.ready.eq(self.token.ready),
        ]
        needs_none = push & (of_aborted | queue.merges)
        none_left, one_left = self._places_left(m, queue, accepted, needs_none, (control.disarm, reserved))
        token_space = ~none_left & ~(tracked & one_left)  # a place after what `dram` holds, too
        return token_space, push | queue.leaves

    def _places_left(
        self, m: Module, queue: TokenQueue, reserved: Value, needs_none: Value, at_disarm: tuple[Value, Value]
    ) -> tuple[Signal, Signal]:
        """Whether no place of the token queue is left, and whether one is, beside those taken or reserved.

        Every head waits for this, so that it is there at once: the places are counted, and looked at a cycle before.

        Parameters
        ----------
        reserved : pulse; one more place is reserved, or taken.
        needs_none : pulse; what a place was reserved for becomes part of an entry, or is not counted.
        at_disarm : pulse; a disarm, which empties the queue; and how many places stay reserved after it.
        """
        depth, (disarm, kept) = self._parameters.token_queue, at_disarm
        places, base = Signal(range(depth + 1), name="places"), Signal(range(depth + 2), name="with_what_comes")
        none_left, one_left = (Signal(name=name) for name in ("none_left", "one_left"))
        m.d.comb += base.eq(places + reserved - queue.leaves)
        m.d.sync += places.eq(Mux(disarm, kept, Mux(needs_none, base - 1, base)))
        for flag, number in ((none_left, depth), (one_left, depth - 1)):
            m.d.sync += flag.eq(Mux(disarm, kept == number, Mux(needs_none, base == number + 1, base == number)))
        return none_left, one_left

    def _aborted(self, m: Module, control: ControlPulses) -> Signal:
        """One bit per aborted context: its updates are performed and produce no tokens."""
        aborted = Signal(self._parameters.contexts)
        context_bit = (1 << control.context)[: len(aborted)]
        with m.If(control.disarm):
            m.d.sync += aborted.eq(control.forced.replicate(len(aborted)))
        with m.Elif(control.abort):
            m.d.sync += aborted.eq(aborted | context_bit)
        with m.Elif(control.arm):
            m.d.sync += aborted.eq(aborted & ~context_bit)
        return aborted

    def _measure(
        self, m: Module, control: ControlPulses, arbiter: StreamArbiter, compute: data.View, comm: data.View
    ) -> None:
        """Lines granted while ``measure`` is 1, and whether communication was granted since arm.

        The choice between the streams comes late, and heads are not there early: a sum of few bits with the head of
        either waits for them, and the bits above are counted on beforehand.
        """
        armed = Signal()
        low, high = self.served[: LENGTH_BITS + 1], self.served[LENGTH_BITS + 1 :]
        with_compute, with_comm, after = (
            Signal(len(low) + 1, name=f"low_{name}") for name in ("compute", "comm", "after")
        )
        following = Signal(len(high) + 1, name="high_following")
        m.d.comb += [
            with_compute.eq(low + compute.length + 1),
            with_comm.eq(low + comm.length + 1),
            after.eq(Mux(arbiter.comm, with_comm, with_compute)),
            following.eq(high + 1),
        ]
        carries, full = after[-1], following[-1]
        with m.If(self.measure & arbiter.granted):
            m.d.sync += self.served.eq(
                Mux(carries & full, _SERVED_MAX, Cat(after[:-1], Mux(carries, following[:-1], high)))
            )
        with m.If((arbiter.grant.comm_read | arbiter.grant.comm_write) & armed):
            m.d.sync += self.comm_seen.eq(1)
        with m.If(control.arm | control.disarm):
            m.d.sync += [armed.eq(control.arm & ~control.disarm), self.served.eq(0), self.comm_seen.eq(0)]
