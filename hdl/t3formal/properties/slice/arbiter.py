"""Invariant 6: how the two streams of a memory slice take turns, and how long each waits."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data
from t3hdl.config import NO_LIMIT, T3Config, preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import BURST_LINES, LENGTH_BITS, NEVER, TIME_BITS, MemoryRequest
from t3hdl.slice.arbiter import ArbiterSettings, Sources
from t3hdl.slice.slice import MemorySlice

from ...models.queue_places import places
from ...prover.harness import Harness
from ...prover.proof import Proof

_WAIT_BITS = 20
"""Width of counters of cycles: more than the largest bound needs."""
_MOST_ALONE = 255
"""Lines to which a slice counts in the absence of compute."""


@dataclass(frozen=True)
class _View:
    """What an observer sees: who could go and who goes; ``settings`` are as last written, ``wait_limit`` follows.
    ``mca``: T3-MCA is on, and communication is not behind."""

    harness: Harness
    settings: data.View
    mca: Value
    wait_limit: Value
    restart: Value
    offers: data.View
    grant: data.View
    free: Value

    def candidate(self, stream: str) -> Value:
        """The stream has an eligible head."""
        return self.offers[f"{stream}_read"] | self.offers[f"{stream}_write"]

    def granted(self, stream: str) -> Value:
        """A head of the stream goes."""
        return self.grant[f"{stream}_read"] | self.grant[f"{stream}_write"]

    def lines(self, stream: str) -> Signal:
        """Lines of the stream's head that goes, or 0."""
        heads = {name: places(self.harness.inside, name)[0][1] for name in (f"{stream}_read", f"{stream}_write")}
        lines = Signal(LENGTH_BITS + 1, name=f"{stream}_lines_now")
        for name, head in heads.items():
            with self.harness.m.If(self.grant[name]):
                self.harness.m.d.comb += lines.eq(data.View(MemoryRequest, head).length + 1)
        return lines

    def count(self, name: str, step: Any, start_again: Any, width: int = _WAIT_BITS) -> Signal:
        """A counter that is 0 in the cycle after ``start_again`` or a write of the settings."""
        counter = Signal(width, name=name)
        self.harness.m.d.sync += counter.eq(Mux(start_again | self.restart, 0, counter + step))
        return counter


def _observe(config: T3Config) -> _View:
    part = MemorySlice(config=config)
    harness = Harness(part)
    m, write = harness.m, part.config
    settings = Signal(regs.Arbiter, init=regs.RESET[regs.ARBITER])
    set_now = part.config_valid & (write.address == regs.ARBITER)
    with m.If(set_now):
        m.d.sync += settings.eq(write.data)
    used = data.View(ArbiterSettings, harness.inside["settings"])
    wait_limit = Mux(settings.starvation == 0, 0, settings.starvation - 1)  # the first cycle is not waited for
    same = Cat(used[name] == settings[name] for name in ("mca", "fixed", "threshold", "quantum", "quiet")).all()
    harness.claim("the settings are those last written", same & (used.wait_limit == wait_limit))
    offers, grant = (data.View(Sources, harness.inside[name]) for name in ("eligible", "arbiter.grant"))
    return _View(
        harness=harness, settings=settings, mca=settings.mca & ~part.behind, wait_limit=used.wait_limit,
        restart=set_now, offers=offers, grant=grant, free=~part.dram.valid | part.dram.ready,
    )  # fmt: skip


def _since(view: _View) -> Value:
    """When the wait of communication began, by the slice's deadline."""
    return (view.harness.inside["arbiter.deadline"] - view.wait_limit)[:TIME_BITS]


@dataclass(frozen=True)
class _Rule:
    """The rule by which communication goes, told anew: a stopwatch (``running``, ``waited_enough``, ``last``), an
    allowance of lines that may follow when it has run out, and a count of the lines that communication sent since
    compute last did (``alone``). ``lines``: of its head that goes; ``due``: it goes before compute; ``level``: lines in
    the DRAM queue, of which there may be ``limit``."""

    lines: Signal
    running: Signal
    waited_enough: Signal
    last: Signal
    allowance: Signal
    alone: Signal
    absent: Value
    limit: Value
    level: Value
    below: Value
    due: Value


def _rule(view: _View) -> _Rule:
    settings, part, m, mca = view.settings, view.harness.dut, view.harness.m, view.mca
    comm, goes, lines = view.candidate("comm"), view.granted("comm"), view.lines("comm")
    running, waited_enough, last, allowance, left = Signal(), Signal(), Signal(TIME_BITS), Signal(8), Signal(8)
    m.d.comb += left.eq(Mux(allowance != 0, allowance, Mux(waited_enough, settings.quantum, 0)))
    with m.If(view.restart | ~mca | goes):
        m.d.sync += [running.eq(0), waited_enough.eq(0)]
    with m.Elif(running):
        m.d.sync += waited_enough.eq(waited_enough | (part.now >= last))
    with m.Elif(comm):
        m.d.sync += [running.eq(1), waited_enough.eq(settings.starvation <= 1)]
        m.d.sync += last.eq(part.now + Mux(settings.starvation == 0, 0, settings.starvation - 1))
    with m.If(~mca | ~comm):
        m.d.sync += allowance.eq(0)
    with m.Elif(goes):
        m.d.sync += allowance.eq(Mux(left > lines, left - lines, 0))
    alone = Signal(16)  # more than the slice counts to
    with m.If(~mca | view.granted("compute")):
        m.d.sync += alone.eq(0)
    with m.Elif(goes & (alone < 1 << 15)):
        m.d.sync += alone.eq(alone + lines)
    absent = (settings.quiet != 0) & (alone >= settings.quiet)
    limit = Mux(settings.fixed, settings.threshold, part.threshold)
    level = part.occupancy + Mux(part.dram.valid, part.dram.payload.length + 1, 0)
    return _Rule(
        lines=lines, running=running, waited_enough=waited_enough, last=last, allowance=allowance, alone=alone,
        absent=absent, limit=limit, level=level, below=absent | (limit == NO_LIMIT) | (level < limit),
        due=waited_enough | (allowance != 0),
    )  # fmt: skip


def _limits(config: T3Config) -> Harness:
    view = _observe(config)
    rule = _rule(view)
    harness, mca, below, due = view.harness, view.mca, rule.below, rule.due
    compute, comm, goes = view.candidate("compute"), view.candidate("comm"), view.granted("comm")
    harness.claim(
        "communication passes compute or its limit only after the starvation limit, and by the quantum that follows, "
        "and its limit also while compute is absent",
        ~(mca & goes) | due | (below & ~compute),
    )
    over = mca & goes & ~due & ~rule.absent & (rule.limit != NO_LIMIT)
    most, after = rule.limit + BURST_LINES - 1, rule.level + rule.lines
    harness.claim("it goes beyond its threshold by all lines but one of a burst at most", ~over | (after <= most))
    harness.cover("it goes beyond its threshold by so many", over & (after == most))
    harness.claim("it does go then", ~(mca & view.free & comm & due) | goes)
    harness.claim("it goes below its limit when compute has nothing", ~(view.free & comm & ~compute & below) | goes)
    harness.claim("compute goes else", ~(mca & view.free & compute & ~(comm & due)) | view.granted("compute"))
    harness.claim("round-robin leaves no turn out", mca | ~view.free | ~(comm | compute) | view.grant.as_value().any())
    harness.claim(
        "only an eligible head goes, and when there is room",
        ~view.grant.as_value().any() | (view.free & ((view.grant.as_value() & ~view.offers.as_value()) == 0)),
    )
    harness.claim("one head at a time", (view.grant.as_value() & (view.grant.as_value() - 1)) == 0)
    _claim_state(harness, rule)
    _cover_limits(view, rule)
    return harness


def _claim_state(harness: Harness, rule: _Rule) -> None:
    """That the slice's registers are the rule's state, which makes the claims inductive."""
    inside = harness.inside
    harness.claim("the stopwatch is the slice's", rule.running == inside["arbiter.waiting"])
    harness.claim("the time is the slice's", ~rule.running | (rule.last == inside["arbiter.deadline"]))
    harness.claim("its end is the slice's", rule.waited_enough == inside["arbiter.overdue"])
    harness.claim("only a wait ends", ~rule.waited_enough | rule.running)
    harness.claim("the allowance is the slice's", rule.allowance == inside["arbiter.left"])
    counted = Mux(rule.alone > _MOST_ALONE, _MOST_ALONE, rule.alone)
    harness.claim("the count is the slice's", inside["arbiter.alone"] == counted)
    dram = harness.dut.dram
    lines = Mux(dram.valid, dram.payload.length + 1, 0)
    harness.claim("the lines at the exit are the slice's", inside["out_lines"] == lines)


def _cover_limits(view: _View, rule: _Rule) -> None:
    harness, settings, part, mca = view.harness, view.settings, view.harness.dut, view.mca
    compute, comm, goes = view.candidate("compute"), view.candidate("comm"), view.granted("comm")
    passes = mca & goes & compute
    harness.cover("communication passes compute without a wait to speak of", passes & (settings.starvation == 0))
    again = passes & harness.past(goes)
    harness.cover("it passes compute for the second time in a quantum", again & (rule.allowance == 1))
    ends_inside = (rule.allowance != 0) & (rule.allowance < rule.lines)
    harness.cover("a quantum ends inside of its second burst", again & ends_inside)
    held = mca & view.free & comm & ~compute & ~goes
    harness.cover("a threshold of 1 holds communication back", held & (rule.limit == 1))
    harness.cover("the largest threshold holds nothing back", goes & mca & (part.occupancy == 127) & ~rule.due)
    unlimited = mca & goes & ~rule.due & rule.absent & (rule.limit == 1) & (rule.level > 1)
    harness.cover("it passes its threshold in the absence of compute", unlimited)
    back = harness.past(rule.absent) & ~rule.absent & held & (settings.quiet == 2)
    harness.cover("the threshold holds again when compute comes back", back)


def _memory_accepts(view: _View) -> tuple[Value, Signal]:
    """R, any number of cycles within which the memory accepts, and for how many it has not done so."""
    harness, dram = view.harness, view.harness.dut.dram
    within = harness.chosen("memory_accepts_within", 8)
    stalled = Signal(_WAIT_BITS)
    harness.m.d.sync += stalled.eq(Mux(dram.valid & ~dram.ready, stalled + 1, 0))
    harness.assume("the memory accepts within R cycles", stalled < within)
    return within, stalled


def _comm_waits(config: T3Config) -> Harness:
    """R is chosen; stopwatches count how long communication, and each of its heads, has been eligible in vain."""
    view = _observe(config)
    harness, settings, now = view.harness, view.settings, view.harness.dut.now
    inside, mca, (within, stalled) = harness.inside, view.mca, _memory_accepts(view)
    harness.assume("now counts every cycle", harness.first | (now == harness.past(now) + 1))
    longest = Mux(settings.starvation == 0, 1, settings.starvation)
    bound = longest + within - 1  # cycles before the one in which it goes
    goes = view.granted("comm")
    waited = view.count("comm_waited", 1, goes | ~view.candidate("comm") | ~mca)
    harness.claim("communication goes at most S + R cycles after it could", waited <= bound)
    harness.cover("it waits that long", mca & goes & (waited == bound) & (within == 3) & (settings.starvation == 2))
    for kind, other in (("read", "write"), ("write", "read")):
        mine, others = view.grant[f"comm_{kind}"], view.grant[f"comm_{other}"]
        over = mine | ~view.offers[f"comm_{kind}"] | ~mca
        own = view.count(f"comm_{kind}_waited", 1, over)
        passed = view.count(f"comm_{other}_first", others, over, width=2)
        harness.claim(f"a {kind} goes at most twice that after it could", own <= 2 * bound + 1)
        harness.claim(f"a {kind} lets one {other} pass at most", passed <= 1)
        harness.claim(
            f"a {kind} waits for a {other} and then for itself", own <= waited + Mux(passed != 0, bound + 1, 0)
        )
        last = inside["arbiter.comm_last_kind"] == (other == "write")
        harness.claim(f"a {kind} that let one {other} pass is next", (passed == 0) | last)
        harness.cover(f"a {kind} lets one {other} pass", mine & (passed == 1))
    # What makes it inductive.
    running, since = inside["arbiter.waiting"], _since(view)
    harness.claim("the stopwatch began at least as early", (waited == 0) | (running & (now - since >= waited)))
    harness.claim("it did not begin in the future", ~running | (since < now))
    over = inside["arbiter.overdue"]
    harness.claim("a wait of S cycles is over", ~running | over | ((now - since)[:TIME_BITS] <= view.wait_limit))
    harness.claim("only the memory holds it back then", (waited < longest) | (stalled >= waited - longest))
    return harness


def _compute_waits(config: T3Config) -> Harness:
    """R is chosen; what passes compute while it could go is counted. S must be at least R."""
    view = _observe(config)
    harness, settings, now = view.harness, view.settings, view.harness.dut.now
    inside, mca, (within, stalled) = harness.inside, view.mca, _memory_accepts(view)
    harness.assume("now counts every cycle", harness.first | (now == harness.past(now) + 1))
    longest = (1 << len(settings.starvation)) - 1
    harness.assume("now is far from its end", now <= NEVER - longest)  # else a deadline would be of the past
    quantum = Signal(8, init=regs.RESET[regs.ARBITER]["quantum"])  # the largest one that was ever set
    with harness.m.If(settings.quantum > quantum):
        harness.m.d.sync += quantum.eq(settings.quantum)
    at_most = Mux(settings.mca & (quantum != 0), quantum, 1) + BURST_LINES - 1
    patient = ~settings.mca | (settings.starvation >= within)
    goes, comm_goes = view.granted("compute"), view.granted("comm")
    passed = view.count("comm_passed", view.lines("comm"), goes | ~view.candidate("compute") | ~patient)
    harness.claim("compute lets the lines of one quantum pass at most, rounded up to whole bursts", passed <= at_most)
    harness.cover("two lines pass compute", mca & goes & (passed == 2) & (within == 2))
    most = mca & goes & (quantum == 9) & (passed == at_most)
    harness.cover("as many lines pass compute as there may be", most)
    reverse = view.count("compute_passed", goes, comm_goes | ~view.candidate("comm") | mca, width=2)
    harness.claim("communication lets one burst of compute pass at most in round-robin", reverse <= 1)
    harness.cover("one burst of compute passes communication", ~mca & comm_goes & (reverse == 1))
    for kind, other in (("read", "write"), ("write", "read")):
        over = view.grant[f"compute_{kind}"] | ~view.offers[f"compute_{kind}"]
        first = view.count(f"compute_{other}_first", view.grant[f"compute_{other}"], over, width=2)
        harness.claim(f"a {kind} lets one {other} of its stream pass at most", first <= 1)
        last = inside["arbiter.compute_last_kind"] == (other == "write")
        harness.claim(f"a {kind} that let one {other} pass is next", (first == 0) | last)
    # What makes it inductive.
    left, running, over = inside["arbiter.left"], inside["arbiter.waiting"], inside["arbiter.overdue"]
    deadline, wait_limit = inside["arbiter.deadline"], view.wait_limit  # the wait began at deadline - patience
    begun = passed != 0
    harness.claim("a quantum is no longer than it was set", left <= Mux(quantum == 0, 0, quantum - 1))
    one = Mux(left != 0, passed + left <= quantum, passed <= at_most)
    harness.claim("what has passed and what may pass are one quantum", ~begun | ~mca | one)
    harness.claim("only the memory has held compute back since", ~begun | view.harness.dut.dram.valid)
    short = now + wait_limit <= deadline + stalled
    harness.claim("that is too short for the limit", ~(begun & mca & running) | short)
    harness.claim("the stopwatch did not begin in the future", ~running | (deadline < now + wait_limit))
    harness.claim("what is over took S cycles", ~over | (running & (now > deadline)))
    of_comm = inside["arbiter.last_stream"]
    harness.claim("after a burst of communication it is compute's turn", ~begun | of_comm)
    harness.claim("after a burst of compute it is communication's turn", (reverse == 0) | ~of_comm)
    return harness


_SIZES = {
    "1 range": preset("small", ranges=1, token_queue=2),
    "2 ranges, performed": preset("small", count_on="performed"),
}

PROOFS = (
    Proof(
        name="slice.keeps-to-limit",
        invariants=(6,),
        says="Communication passes compute, or its threshold, only when it has waited for the starvation limit, and by "
        "the quantum of lines that follows, rounded up to whole bursts; else compute goes first. The burst that goes "
        "when it may fills the memory's queue to 7 lines above the threshold at most. The threshold does not hold "
        "while compute is absent: after communication has sent `quiet` lines since compute's last one. No turn is left "
        "out.",
        harness=_limits,
        sizes=_SIZES,
        method="induction",
        depth=1,
        cover_depth=10,
    ),
    Proof(
        name="slice.serves-communication",
        invariants=(6,),
        says="If the memory accepts within R cycles, eligible communication goes at most S + R cycles later (S: the "
        "starvation limit, at least 1), and each of its two heads at most 2 x (S + R) later; any S and R.",
        harness=_comm_waits,
        sizes=_SIZES,
        method="induction",
        depth=1,
        cover_depth=14,
    ),
    Proof(
        name="slice.serves-compute",
        invariants=(6,),
        says="In round-robin mode, and while communication is behind, each stream lets one burst of the other pass at "
        "most. In T3-MCA mode compute lets "
        "quantum + 7 lines pass at most (quantum: at least 1), if the starvation limit is R cycles or longer; with a "
        "shorter one communication may pass whenever the memory accepts.",
        harness=_compute_waits,
        sizes=_SIZES,
        method="induction",
        depth=1,
        cover_depth=14,
    ),
)
