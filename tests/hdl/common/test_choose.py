"""Sums and comparisons with few carries, against Python's."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from t3hdl.common.choose import sum_below, sum_equals, sum_exceeds, sum_of


def results_of(inputs, output, rows):
    """What ``output`` is for each row of values of ``inputs``."""
    m = Module()
    result = Signal(output.shape())
    m.d.comb += result.eq(output)
    results = []

    async def testbench(ctx):
        for row in rows:
            for signal, value in zip(inputs, row, strict=True):
                ctx.set(signal, value)
            await ctx.delay(1e-9)
            results.append(ctx.get(result))

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    return results


@pytest.mark.parametrize("widths", [(3, 3, 3), (4, 2, 3), (2, 3, 5), (1, 1, 1)])
def test_comparisons_of_a_sum_with_a_limit(widths):
    inputs = a, b, limit = [Signal(width) for width in widths]
    rows = [(x, y, z) for x in range(1 << widths[0]) for y in range(1 << widths[1]) for z in range(1 << widths[2])]
    assert results_of(inputs, sum_below(a, b, limit), rows) == [x + y < z for x, y, z in rows]
    assert results_of(inputs, sum_exceeds(a, b, limit), rows) == [x + y > z for x, y, z in rows]
    assert results_of(inputs, sum_equals(a, b, limit), rows) == [x + y == z for x, y, z in rows]


@pytest.mark.parametrize("widths", [(5,), (4, 4), (9, 3, 5), (3, 3, 3, 3), (48, 10, 10, 10, 10, 1)])
def test_a_sum_of_many_is_whole(widths):
    seed = 20261127
    rng = random.Random(seed)
    inputs = [Signal(width) for width in widths]
    most = tuple((1 << width) - 1 for width in widths)
    rows = [most, *(tuple(rng.choice((0, top, rng.randint(0, top))) for top in most) for _ in range(500))]
    assert results_of(inputs, sum_of(inputs), rows) == [sum(row) for row in rows], f"seed {seed}"
