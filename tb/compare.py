"""Drives several implementations of one part with the part's random stimulus and compares them in every cycle."""

import random

from t3hdl.config import T3Config
from t3sim.hardware.abi import PartType

from tb.lockstep import Lockstep
from tb.stimulus.parts import STIMULI

SEED = 20240427


def compare(parts: dict[str, PartType], name: str, config: T3Config, cycles: int, title: str) -> Lockstep:
    """Drive these types of the part ``name`` with its stimulus, from a reset in the middle for this many cycles."""
    bench, rng = Lockstep(parts, title=title), random.Random(f"{SEED} {title}")
    for leg in (cycles // 10, cycles):
        bench.reset()
        stimulus = STIMULI[name](bench, config, rng)
        for _ in range(leg):
            stimulus.drive()
            bench.step()
    return bench
