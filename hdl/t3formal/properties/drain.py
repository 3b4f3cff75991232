"""The steps that are proven of banks, roots and leaves add up to ``drain_cycles``, with the numbers of every preset."""

from amaranth.hdl import Signal
from t3hdl.config import PRESETS, T3Config, preset

from ..models.drain_steps import OPENS, QUEUE, RESERVE_MOVES, DrainWay, needed_cycles, sweep_cycles
from ..prover.harness import Harness
from ..prover.proof import Proof

_SHORT = 200
"""``drain_cycles`` up to which a search finds the longest way."""
_ARRIVED = 3


def _in_time(config: T3Config) -> Harness:
    """What the parts owe is assumed; how late the token may be in each place is claimed."""
    way, limit = DrainWay(config), sweep_cycles(config)
    harness = Harness(way)
    harness.assume("a sweep ends within its limit", ~way.sweeping | (way.age <= limit))
    for number, stage in enumerate(way.stages):
        rests = ~((way.stage == number) & way.ends) | way.rested
        harness.assume(f"a {stage.name}'s head leaves in every frame, or there is none", rests)
    due, latest = limit + OPENS + 1, Signal.like(way.age, name="latest")
    begins = []
    for stage in way.stages:
        begins.append(due)
        due += stage.cycles
    here = (way.stage != _ARRIVED) & ~way.first
    for number, stage in enumerate(way.stages):
        places = stage.before + QUEUE
        with harness.m.If(way.stage == number):
            harness.m.d.comb += latest.eq(begins[number] + (places - way.need - way.seen) * stage.frame + way.phase)
        inside = (way.left <= stage.before) & (way.queue <= QUEUE) & (way.left + way.queue != 0)
        inside &= (way.need + way.seen <= places) & (way.phase < stage.frame)
        harness.claim(f"the token has a place in the {stage.name}", ~here | (way.stage != number) | inside)
    opened = ~way.sweeping & (way.opens == OPENS)
    harness.claim("it is not later than its frames are", ~(here & opened) | (way.age <= latest))
    harness.claim("frames begin in time", opened | (way.age <= limit + 1 + way.opens))
    harness.claim("no frame before that", opened | ((way.phase == 0) & ~way.seen))
    harness.claim("the sweep is first", ~way.sweeping | (way.opens == 0))
    harness.claim("the abort is at first", ~way.first | (way.sweeping & (way.age == 0) & (way.stage == 0)))
    left = config.drain_cycles - RESERVE_MOVES * config.drain_turns
    harness.claim("in drain_cycles all tokens are dropped, with two moves to spare", ~here | (way.age < left))
    harness.cover("a token of a root is dropped", (way.stage == _ARRIVED) & (way.age == 12))
    if config.drain_cycles < _SHORT:
        harness.cover("one takes as long as it may", here & (way.age == needed_cycles(config)))
    return harness


_SHORTEST = preset(
    "small", slices=2, node_inputs=2, tracker_banks=1, leaf_outputs=1, tracker_sets=1, row_index_bits=0, token_queue=2
)
PROOFS = (
    Proof(
        name="drain.adds-up",
        invariants=(3,),
        says="After an abort the last token of the context, wherever it was, has come to its bank within drain_cycles "
        "less two moves of a bank, if every part takes as long as its lemma allows.",
        harness=_in_time,
        sizes={"shortest": _SHORTEST, **PRESETS},
        method="induction",
        depth=1,
        cover_depth=_SHORT,
    ),
)
