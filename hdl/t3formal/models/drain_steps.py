"""The way of a token from a slice's token queue into its tracker bank, in steps that proofs bound one by one."""

from dataclasses import dataclass

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out
from t3hdl.config import T3Config

QUEUE = 2
"""Places of an input queue: rule 2 of docs/hardware/rules.md."""
OPENS = 3
"""Cycles from the end of a sweep until frames begin at every stage: a pipeline moves, a bank is ready, a root is."""
RESERVE_MOVES = 2
"""Moves of a bank that ``drain_cycles`` has beyond what is proven: through M, where a token is dropped, and R."""


@dataclass(frozen=True)
class Stage:
    """An input queue, and what passes tokens to it.

    ``before`` : places there. ``frame`` : cycles in each of which the head of the input queue leaves, or none is there.
    """

    name: str
    before: int
    frame: int

    @property
    def cycles(self) -> int:
        """For the last token of all places."""
        return (self.before + QUEUE) * self.frame


def bank_frame(config: T3Config) -> int:
    """Cycles in each of which a bank takes a token: ``tracker-bank.keeps-moving``."""
    return config.drain_turns


def node_frame(inputs: int, outputs_frame: int) -> int:
    """Cycles in each of which each input of a node passes one on: ``token-network.root-keeps-moving`` and ``leaf``."""
    return inputs * outputs_frame


def sweep_cycles(config: T3Config) -> int:
    """Cycles for which a sweep holds the banks at most: ``tracker.sweeps-end``."""
    return config.sets_per_bank + 2 * config.drain_turns + 3


def stages(config: T3Config) -> tuple[Stage, Stage, Stage]:
    """From the token queue on."""
    bank = bank_frame(config)
    root = node_frame(config.nodes, bank)
    leaf = node_frame(config.node_inputs, root)
    return Stage("leaf", config.token_queue, leaf), Stage("root", QUEUE, root), Stage("bank", QUEUE, bank)


def needed_cycles(config: T3Config) -> int:
    """Cycles from an abort until the last token of the context is in M, by the steps together."""
    return sweep_cycles(config) + OPENS + sum(stage.cycles for stage in stages(config))


class DrainWay(Component):
    """A token that was in one of the stages when its context was aborted, and those before it.

    Tokens behind it change nothing: every place is first in, first out, and ready whenever it has room.

    Members
    -------
    begin : In(2) : the stage in which it is in the first cycle.
    before, queued : In : how many there are in the two parts of a stage that it enters, itself among those before.
    swept : In(1) : the sweep of the abort is over in this cycle.
    leaves : In(1) : the head of its stage's input queue leaves, if one is there.
    stage : Out(2) : where it is; 3: it has entered M.
    sweeping : Out(1) : the banks are being swept, or wait for it.
    ends : Out(1) : a frame of this stage ends.
    rested : Out(1) : in this frame the head left, or none was there.
    age : Out(20) : cycles since the abort.

    ``need`` : frames until it leaves its stage at the latest, one less when the head has left in this one; ``seen`` :
    it has, in an earlier cycle of this frame.
    """

    def __init__(self, config: T3Config) -> None:
        self.stages = stages(config)
        super().__init__({
            "begin": In(2), "before": In(7), "queued": In(2), "swept": In(1), "leaves": In(1), "stage": Out(2),
            "sweeping": Out(1, init=1), "ends": Out(1), "rested": Out(1), "age": Out(20),
        })  # fmt: skip
        self.left, self.queue = Signal(7, name="left"), Signal(2, name="in_queue")
        self.opens, self.phase, self.seen = Signal(2, name="opens"), Signal(14, name="phase"), Signal(name="seen")
        self.need, self.first = Signal(8, name="need"), Signal(init=1, name="first_cycle")

    def elaborate(self, platform: object) -> Module:
        """In the first cycle it enters the stage where it is."""
        m = Module()
        last = Array([*(stage.frame - 1 for stage in self.stages), 0])[self.stage]
        most = Array([*(stage.before for stage in self.stages), 0])
        leaves, open_, enters, to = Signal(), Signal(), Signal(), Signal(2)
        m.d.comb += [
            leaves.eq(self.leaves & (self.queue != 0) & ~self.first & (self.stage != 3)),
            open_.eq(~self.sweeping & (self.opens == OPENS)),
            self.ends.eq(open_ & (self.phase == last)),
            self.rested.eq(self.seen | leaves | (self.queue == 0)),
            self.need.eq(self.left + self.queue + (self.queue == 0)),
            enters.eq(self.first | (leaves & (self.left + self.queue == 1))),
            to.eq(Mux(self.first, Mux(self.begin == 3, 0, self.begin), self.stage + 1)),
        ]
        fills = (self.left != 0) & (self.queue != QUEUE)
        m.d.sync += [
            self.age.eq(self.age + 1), self.first.eq(0), self.sweeping.eq(self.sweeping & ~self.swept),
            self.left.eq(self.left - fills), self.queue.eq(self.queue + fills - leaves),
            self.phase.eq(Mux(open_ & ~self.ends, self.phase + 1, 0)), self.seen.eq(open_ & ~self.ends & self.rested),
        ]  # fmt: skip
        with m.If(~self.sweeping & (self.opens != OPENS)):
            m.d.sync += self.opens.eq(self.opens + 1)
        with m.If(enters):
            m.d.sync += [self.stage.eq(to), self.phase.eq(0), self.seen.eq(0)]
            m.d.sync += self.left.eq(Mux(self.before == 0, 1, Mux(self.before > most[to], most[to], self.before)))
            m.d.sync += self.queue.eq(Mux(self.queued > QUEUE, QUEUE, self.queued))
        return m
