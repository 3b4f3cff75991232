"""From all slices to the tracker's banks: nodes that add tokens of one tile while they wait."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Fragment, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..common.choose import RoundRobin, chosen, lowest_bit
from ..common.linked import Parts, connect, from_inside
from ..common.queues import InputQueue
from ..common.state_parity import under_state_parity
from ..config import T3Config
from ..interface.connections import links, links_from, links_to
from ..interface.layouts import COUNT_BITS, NEVER, Token, tracker_bank
from ..interface.parts import TABLE
from ..interface.signatures import node_signature


class _NodeOutput(wiring.Component):
    """One output of a node: ``o`` is `front`, whose payload is stable; `back` behind it still takes tokens of its tile.

    ``requests`` says which heads go to this output, ``pop`` which head is taken; ``settled``: nothing will be taken
    while ``o`` does not transfer.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__({
            "head": In(Token).array(inputs), "requests": In(inputs), "pop": Out(inputs),
            "o": Out(stream.Signature(Token)), "settled": Out(1),
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Move, grant, merge (docs/hardware/token_network.md). A grant looks at no token: only a merge compares."""
        m = Module()
        front, back, back_valid = self.o, Signal(Token, name="back"), Signal(name="back_valid")
        sums = [Signal(COUNT_BITS, name=f"sum_{i}") for i in range(len(self.head))]
        m.d.comb += [total.eq(head.n + back.n) for total, head in zip(sums, self.head, strict=True)]
        # Two counts without their top bit have a sum that fits; whether others have is not known before the sum is.
        same = Cat(
            (head.as_value()[:-COUNT_BITS] == back.as_value()[:-COUNT_BITS]) & ~head.n[-1] & ~back.n[-1]
            for head in self.head
        )
        mergeable, merged = Signal.like(self.requests), Signal.like(self.requests)
        m.submodules.turn = turn = RoundRobin(requesters=len(self.head))

        moving, room, granted = Signal(name="moving"), Signal(name="room"), Signal(Token)
        m.d.comb += [
            moving.eq(front.valid & front.ready),
            room.eq(~back_valid | moving),
            mergeable.eq(self.requests & same),
            merged.eq(lowest_bit(mergeable)),
            turn.requests.eq(self.requests),
            turn.take.eq(room),
            self.pop.eq(Mux(room, turn.grant, merged)),
            granted.eq(chosen(turn.grant, self.head)),
            self.settled.eq(~Mux(back_valid, mergeable, self.requests).any()),
        ]

        with m.If(moving):
            m.d.sync += [front.valid.eq(back_valid), front.payload.eq(back), back_valid.eq(0)]
        with m.If(~room & mergeable.any()):
            m.d.sync += back.n.eq(chosen(merged, sums))
        with m.If(room & self.requests.any()):
            with m.If(front.valid & (back_valid | ~moving)):
                m.d.sync += [back_valid.eq(1), back.eq(granted)]
            with m.Else():
                m.d.sync += [front.valid.eq(1), front.payload.eq(granted)]
        return m


class TokenNode(wiring.Component):
    """Merges token streams, and deals them to the tracker's banks if it has more than one output.

    Tokens of one tile are added only while they wait for a stalled output: a token never waits in order to merge.

    Parameters
    ----------
    inputs : token streams in, at least 1.
    outputs : token streams out, a power of two.
    skip : low bits of a bank's number that the nodes before have decided by; the bits above choose the output.
    protect : a parity watches every register.

    Members
    -------
    token_in : In(stream(Token)).array(inputs) : counted updates of slices, or of first-level nodes.
    token_out : Out(stream(Token)).array(outputs) : towards the tracker.
    corrected, uncorrectable : Out(1) : the first is always 0, the second sticky: a bit was wrong. Cleared by reset.
    idle : Out(1) : without a transfer, nothing changes.
    wake_at : Out : always NEVER.

    Latency: 2 cycles. Throughput: one token per input, and one per output, and cycle. Reset: empty, ready.

    Raises
    ------
    ValueError
        if ``inputs`` or ``outputs`` is illegal.
    """

    def __init__(self, *, inputs: int, outputs: int, skip: int = 0, protect: bool = False) -> None:
        if inputs < 1:
            raise ValueError(f"inputs must be at least 1, not {inputs}")
        if outputs < 1 or outputs & (outputs - 1):
            raise ValueError(f"outputs must be a power of two, not {outputs}")
        super().__init__(node_signature(inputs, outputs))
        self._inputs, self._outputs, self._skip, self._protect = inputs, outputs, skip, protect

    @property
    def latency(self) -> int:
        """Cycles from a transfer at an input to valid at an output, both empty."""
        return 2

    def _goes_to(self, token: Any, output: int) -> Value:
        bank = tracker_bank(token.row, token.col, token.wf, self._outputs << self._skip)
        return (bank >> self._skip) == output

    def elaborate(self, platform: Any) -> Module | Fragment:
        """Queues, then one output stage per bank; each head asks exactly one stage."""
        return under_state_parity(self._stages, platform, protect=self._protect)

    def _stages(self, damaged: Value) -> Module:
        m = Module()
        queues = [InputQueue(Token) for _ in range(self._inputs)]
        outputs = [_NodeOutput(self._inputs) for _ in range(self._outputs)]
        for i, queue in enumerate(queues):
            m.submodules[f"queue_{i}"] = queue
            wiring.connect(m, wiring.flipped(self.token_in[i]), queue.i)
            m.d.comb += queue.o.ready.eq(Cat(output.pop[i] for output in outputs).any())
        for number, output in enumerate(outputs):
            m.submodules[f"output_{number}"] = output
            wiring.connect(m, output.o, wiring.flipped(self.token_out[number]))
            for i, queue in enumerate(queues):
                m.d.comb += [
                    output.head[i].eq(queue.o.payload),
                    output.requests[i].eq(queue.o.valid & self._goes_to(queue.o.payload, number)),
                ]
        settled = Cat(output.settled for output in outputs).all()
        m.d.comb += [self.idle.eq(settled & ~damaged), self.wake_at.eq(NEVER)]
        m.d.sync += self.uncorrectable.eq(self.uncorrectable | damaged)
        return m


class TokenNetwork(wiring.Component):
    """All token nodes of a GPU: leaves, which take the tokens of slices, and roots, each of which feeds its banks.

    Output o of a leaf leads to root o, which has the banks whose number is o modulo the number of roots. So a token
    waits only for those of few banks.

    Parameters
    ----------
    config : gives slices, radix and outputs of the first level, and banks.

    Members
    -------
    token_in : In(stream(Token)).array(slices)
    token_out : Out(stream(Token)).array(tracker_banks)
    corrected, uncorrectable : Out(nodes + roots) : those of every node, leaves first.
    idle : Out(1) : without a transfer at the boundary, nothing changes.
    wake_at : Out : always NEVER.

    Latency: 4 cycles. Throughput: one token per output of a leaf, and one per bank, and cycle. Reset: empty, ready.
    """

    def __init__(self, *, config: T3Config) -> None:
        faults = {name: Out(config.nodes + config.roots) for name in ("corrected", "uncorrectable")}
        super().__init__({**node_signature(config.slices, config.tracker_banks).members, **faults})
        self._config = config

    @property
    def latency(self) -> int:
        """Cycles from a transfer at a slice's input to valid at a bank, all empty."""
        return 4

    def elaborate(self, platform: Any) -> Module:
        """Wires only; a token between two nodes keeps the network from being idle."""
        m = Module()
        config = self._config
        leaves, roots = (
            [TABLE[name].make(config) for _ in range(TABLE[name].count(config))] for name in ("leaf", "root")
        )
        still = [root.idle for root in roots]
        found, own = [link for link in links(config) if link.kind == "stream"], from_inside(self)
        parts: Parts = {
            "leaf": leaves,
            "root": roots,
            "slice": [SimpleNamespace(token=stream) for stream in own.token_in],
            "tracker": [SimpleNamespace(token=own.token_out)],
        }
        for k, leaf in enumerate(leaves):
            m.submodules[f"node_{k}"] = leaf
            connect(m, [*links_to(found, "leaf", k), *links_from(found, "leaf", k)], parts)
            passes = [out.valid & root.token_in[k].ready for out, root in zip(leaf.token_out, roots, strict=True)]
            still += [leaf.idle, ~Cat(passes).any()]
        for number, root in enumerate(roots):
            m.submodules[f"root_{number}"] = root
            connect(m, links_from(found, "root", number), parts)
        m.d.comb += [
            self.idle.eq(Cat(*still).all()),
            self.wake_at.eq(NEVER),
            *(
                getattr(self, fault).eq(Cat(getattr(node, fault) for node in (*leaves, *roots)))
                for fault in ("corrected", "uncorrectable")
            ),
        ]
        return m
