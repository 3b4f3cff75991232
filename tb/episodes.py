"""Random traffic for a part with a golden model: episodes, each from reset."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from t3sim.hardware.abi import LoadedHardware

from tb.model import Model
from tb.stimulus.parts import STIMULI
from tb.words import Words

EPISODE = 4000
"""Cycles from one reset to the next."""


class Episode(NamedTuple):
    """The cycles of one episode from cycle ``start`` of the run on: what goes in, what must come out."""

    start: int
    inputs: Words
    expected: Words


def episodes(hardware: LoadedHardware, part: str, seed: int, cycles: int) -> Iterator[Episode]:
    """The traffic of a run of ``part``, a name in ``hardware``; each episode is made when it is asked for."""
    model = Model(hardware.parts[part])
    for start in range(0, cycles, EPISODE):
        model.reset()
        stimulus = STIMULI[part](model, hardware.config, random.Random(f"{part} {seed} {start}"))
        yield Episode(start, *model.run(stimulus, min(EPISODE, cycles - start)))
