"""NmcAlu: every operation on every data type in lanes, byte masks, flags; latency, bubbles, types that are left out."""

import random
from collections import deque

import pytest
from amaranth.sim import Simulator
from line_reference import ALL_BYTES, NAMES, Request, combine, random_line, random_mask
from t3hdl.alu import NmcAlu
from t3hdl.config import preset
from t3hdl.layouts import Dtype, Op

ALL_DTYPES = tuple(NAMES.values())


def lines(requests: list[tuple[Request, int] | None], config) -> list[tuple[int, int]]:
    """(line, flags) of each (request, old line), one per cycle; None is a cycle without."""
    dut = NmcAlu(config=config)
    assert dut.latency == config.nmc_latency
    found: list[tuple[int, int]] = []
    due = deque([False] * dut.latency)

    async def testbench(ctx):
        for item in [*requests, *[None] * dut.latency]:
            ctx.set(dut.valid, item is not None)
            if item is not None:
                request, old = item
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


@pytest.mark.parametrize("latency", [2, 3, 4, 8])
def test_random_operations_with_bubbles(latency):
    """Right lines and flags, ``latency`` cycles later, whatever the operation, and nothing in between."""
    seed = 500 + latency
    print(f"seed {seed}")
    rng = random.Random(seed)
    config = preset("small", nmc_latency=latency)
    check([random_request(rng) if rng.random() < 0.7 else None for _ in range(100)], config)


def test_every_operation_with_masks():
    """Each of the eight operations on each data type with bytes, halves and words masked off."""
    rng = random.Random(24)
    masks = (ALL_BYTES, 0, 0xAAAAAAAA, 0x33333333, 0xEDB7C31F)
    requests = [
        (Request(op=op, dtype=dtype, mask=mask, new=random_line(rng, dtype)), random_line(rng, dtype))
        for op in range(8)
        for dtype in Dtype
        for mask in masks
    ]
    check(requests, preset("small"))


def test_each_lane_raises_its_flags():
    """One lane at a time: the largest number twice overflows; masked off, it raises nothing and stays."""
    config = preset("small")
    largest, overflow_inexact = {Dtype.FP16: 0x7BFF, Dtype.BF16: 0x7F7F, Dtype.FP32: 0x7F7FFFFF}, 0b00101
    for dtype, bits in largest.items():
        width = 32 if dtype == Dtype.FP32 else 16
        operands = [bits << start for start in range(0, 256, width)]
        enabled = [(Request(op=Op.ADD, dtype=dtype, new=value), value) for value in operands]
        assert [flags for _, flags in lines(enabled, config)] == [overflow_inexact] * len(operands)
        byte = [1 << (start // 8 + width // 8 - 1) for start in range(0, 256, width)]
        masked = [
            (Request(op=Op.ADD, dtype=dtype, new=value, mask=ALL_BYTES & ~off), value)
            for value, off in zip(operands, byte, strict=True)
        ]
        assert lines(masked, config) == [(value, 0) for value in operands]


@pytest.mark.parametrize(
    "dtypes", [("fp16",), ("bf16",), ("fp32",), ("int32",), ("fp16", "bf16"), ("bf16", "fp32"), ("fp16", "int32")]
)
def test_data_types_that_are_left_out(dtypes):
    """Their arithmetic gives the old line; what is built works, and STORE needs no data type."""
    seed = 700 + sum(map(len, dtypes))
    print(f"seed {seed}")
    rng = random.Random(seed)
    check([random_request(rng) for _ in range(60)], preset("small", dtypes=dtypes))


def test_integer_corners():
    """INT32 wraps, compares as signed numbers, and raises nothing."""
    corners = [0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0x12345678, 0xFEDCBA98]
    old = sum(value << (32 * lane) for lane, value in enumerate(corners))
    requests = []
    for op in (Op.ADD, Op.MIN, Op.MAX):
        for turn in range(8):
            turned = sum(corners[(lane + turn) % 8] << (32 * lane) for lane in range(8))
            requests.append((Request(op=op, dtype=Dtype.INT32, new=turned), old))
    assert check(requests, preset("small")) == 0
