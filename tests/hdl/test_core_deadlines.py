"""The unit wakes at the earliest deadline of its parts, by all of its bits."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from t3hdl.core import _earliest
from t3hdl.interface.layouts import NEVER, TIME_BITS


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_the_earliest_of_some_times(count):
    rng = random.Random(20261124)
    module = Module()
    times = [Signal(TIME_BITS, name=f"time_{i}") for i in range(count)]
    found = Signal(TIME_BITS)
    module.d.comb += found.eq(_earliest(module, list(times)))
    cases = [[NEVER] * count]
    cases += [[rng.getrandbits(rng.randrange(1, TIME_BITS + 1)) for _ in times] for _ in range(200)]
    for bit in range(TIME_BITS):  # the later ones differ in this bit alone
        cases += [[0 if i == first else 1 << bit for i in range(count)] for first in range(count)]

    async def bench(context):
        for values in cases:
            for signal, value in zip(times, values, strict=True):
                context.set(signal, value)
            assert context.get(found) == min(values), values

    simulator = Simulator(module)
    simulator.add_testbench(bench)
    simulator.run()
