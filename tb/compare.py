"""Drives several implementations of one part with the part's random stimulus and compares them in every cycle."""

import random

from t3hdl.config import T3Config
from t3sim.hardware.abi import PartType

from tb.lockstep import Lockstep
from tb.stimulus.base import Stimulus
from tb.stimulus.parts import STIMULI

SEED = 20240427


def compare(
    parts: dict[str, PartType],
    name: str,
    config: T3Config,
    cycles: int,
    title: str,
    stimulus: type[Stimulus] | None = None,
) -> Lockstep:
    """Drive these types of the part ``name``, from a reset in the middle for this many cycles: with this stimulus, or
    the part's own."""
    bench, rng = Lockstep(parts, title=title), random.Random(f"{SEED} {title}")
    for leg in (cycles // 10, cycles):
        bench.reset()
        neighbour = (stimulus or STIMULI[name])(bench, config, rng)
        for _ in range(leg):
            neighbour.drive()
            bench.step()
    return bench
