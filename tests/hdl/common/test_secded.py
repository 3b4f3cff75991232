"""SECDED: every single-bit error is corrected, every double-bit error is detected, for every width in use."""

import random
from itertools import combinations
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from t3hdl.common.secded import check_bits, decode, encode


class _Channel:
    """Encoder and decoder with errors between them."""

    def __init__(self, width: int) -> None:
        self.word, self.errors = Signal(width), Signal(width + check_bits(width))
        self.m = Module()
        self.stored = Signal(len(self.errors))
        self.m.d.comb += self.stored.eq(encode(self.word))
        damaged = Signal(len(self.errors))
        self.m.d.comb += damaged.eq(self.stored ^ self.errors)
        decoded = decode(self.m, damaged, width)
        self.read, self.corrected, self.uncorrectable = Signal(width), decoded.corrected, decoded.uncorrectable
        self.m.d.comb += self.read.eq(decoded.word)

    def run(self, scenario: Any) -> None:
        simulator = Simulator(self.m)
        simulator.add_testbench(scenario)
        simulator.run()


@pytest.mark.parametrize(("width", "bits"), [(1, 3), (4, 4), (8, 5), (11, 5), (12, 6), (26, 6), (32, 7), (64, 8)])
def test_check_bits(width: int, bits: int) -> None:
    assert check_bits(width) == bits


@pytest.mark.parametrize("width", [1, 2, 4, 5, 11, 12, 33, 64, 65, 100])
def test_single_errors_are_corrected_and_double_errors_found(width: int) -> None:
    channel = _Channel(width)
    print("seed 5")
    rng = random.Random(5)

    async def scenario(ctx: Any) -> None:
        total = width + check_bits(width)
        for word in (0, (1 << width) - 1, rng.getrandbits(width)):
            ctx.set(channel.word, word)
            ctx.set(channel.errors, 0)
            state = ctx.get(channel.read), ctx.get(channel.corrected), ctx.get(channel.uncorrectable)
            assert state == (word, 0, 0)
            for bit in range(total):
                ctx.set(channel.errors, 1 << bit)
                state = ctx.get(channel.read), ctx.get(channel.corrected), ctx.get(channel.uncorrectable)
                assert state == (word, 1, 0), f"bit {bit}"
        for first, second in combinations(range(total), 2):
            ctx.set(channel.errors, 1 << first | 1 << second)
            state = ctx.get(channel.corrected), ctx.get(channel.uncorrectable)
            assert state == (0, 1), f"bits {first} and {second}"

    channel.run(scenario)


def test_zero_is_stored_as_zero() -> None:
    channel = _Channel(20)

    async def scenario(ctx: Any) -> None:
        ctx.set(channel.word, 0)
        assert ctx.get(channel.stored) == 0

    channel.run(scenario)
