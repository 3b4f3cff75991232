"""NmcAlu, simulated: latency, bubbles, data types that are left out. See test_alu_rtl.py for its arithmetic."""

import random
from collections import deque

import pytest
from amaranth.sim import Simulator
from t3hdl.config import preset
from t3hdl.interface.layouts import Dtype, Op
from t3hdl.nmc.alu import NmcAlu

from tb.alu.line_reference import Request, combine, random_line, random_mask


def lines(requests: list[tuple[Request, int] | None], config) -> list[tuple[int, int]]:
    """(line, flags) of each (request, old line), as soon as the ALU takes it; None is a cycle without.

    What the ports say in cycles without a request changes all the time.
    """
    dut = NmcAlu(config=config)
    beats = 16 // config.nmc_lanes
    assert dut.latency == config.nmc_latency + beats - 1
    spaced = [each for item in requests for each in ([item] if item is None else [item, *[None] * (beats - 1)])]
    garbage = random.Random(1)
    found: list[tuple[int, int]] = []
    due = deque([False] * dut.latency)

    async def testbench(ctx):
        for item in [*spaced, *[None] * dut.latency]:
            ctx.set(dut.valid, item is not None)
            request, old = item or random_request(garbage)
            for name, value in (("op", request.op), ("dtype", request.dtype), ("mask", request.mask)):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.old, old)
            ctx.set(dut.data, request.new)
            assert ctx.get(dut.result_valid) == due.popleft()
            if ctx.get(dut.result_valid):
                found.append((ctx.get(dut.result), ctx.get(dut.flags)))
            due.append(item is not None)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return found


def check(requests: list[tuple[Request, int] | None], config) -> int:
    """Every line and its flags against the reference; returns the flags that were seen."""
    offered = [item for item in requests if item is not None]
    seen = 0
    for (request, old), found in zip(offered, lines(requests, config), strict=True):
        assert found == combine(request, old, config.dtypes), (request, f"{old:#x}")
        seen |= found[1]
    return seen


def random_request(rng: random.Random) -> tuple[Request, int]:
    dtype = rng.choice(list(Dtype))
    op = rng.choice((Op.ADD, Op.ADD, Op.MIN, Op.MAX, *range(8)))
    return Request(op=op, dtype=dtype, mask=random_mask(rng), new=random_line(rng, dtype)), random_line(rng, dtype)


@pytest.mark.parametrize(("lanes", "latency"), [
    *(pytest.param(16, latency, marks=pytest.mark.long) for latency in (2, 3, 8)),
    (16, 4), (8, 3), (4, 2), (2, 6),
])  # fmt: skip
def test_random_operations_with_bubbles(lanes, latency):
    """Right lines and flags, ``latency`` cycles later, whatever the operation, and nothing in between."""
    seed = 500 + 10 * (16 - lanes) + latency
    print(f"seed {seed}")
    rng = random.Random(seed)
    config = preset("small", nmc_lanes=lanes, nmc_latency=latency)
    check([random_request(rng) if rng.random() < 0.7 else None for _ in range(60)], config)


@pytest.mark.long
@pytest.mark.parametrize(
    "dtypes", [("fp16",), ("bf16",), ("fp32",), ("int32",), ("fp16", "bf16"), ("bf16", "fp32", "int32")]
)
def test_data_types_that_are_left_out(dtypes):
    """Their arithmetic gives the old line; what is built works, and STORE needs no data type."""
    seed = 700 + sum(map(len, dtypes))
    print(f"seed {seed}")
    rng = random.Random(seed)
    for lanes in (16, 2):
        check([random_request(rng) for _ in range(40)], preset("small", dtypes=dtypes, nmc_lanes=lanes))
