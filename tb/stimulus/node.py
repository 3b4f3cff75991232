"""Random inputs for a TokenNode."""

import random

from t3hdl.config import T3Config
from t3hdl.interface.layouts import Token
from t3hdl.interface.words import pack

from tb.lockstep import Lockstep
from tb.stimulus.base import TILES, Stimulus

NAME = range(Token["n"].offset)
"""Bits of a token that name its tile."""


class Node(Stimulus):
    """Tokens of few tiles, with counts around the limit of a merge; tiles that differ in a single bit of any name."""

    def __init__(self, bench: Lockstep, config: T3Config, rng: random.Random) -> None:
        super().__init__(bench, config, rng)
        self.name = 0

    def token(self) -> int:
        rng = self.rng
        if self.chance(0.01):
            self.name = rng.choice((0, rng.getrandbits(len(NAME))))
        word = pack(
            Token,
            context=int(self.chance(0.1)),
            epoch=int(self.chance(0.1)),
            row=rng.randrange(TILES),
            col=rng.randrange(2),
            wf=int(self.chance(0.1)),
            bottom=self.chance(0.1),
            n=rng.choice((1, 2, 3, 255, 256, rng.getrandbits(9), 511, 511, 512, 1023)),
        )
        return self.jittered(word ^ self.name, NAME)

    def drive_part(self) -> None:
        for port in self.bench.inputs:
            if port.endswith(".valid"):
                self.offer(port.removesuffix(".valid"), self.token)
            elif port.endswith(".ready"):
                self.accept(port.removesuffix(".ready"))
