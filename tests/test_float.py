"""FloatAdder as FP16: sums against NumPy, flags against exact arithmetic, latency and holding measured."""

import random

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from float_reference import NAN, add, is_nan
from t3hdl.float import FP16, FloatAdder, FloatFormat

LANES = 32
SPECIALS = [
    sign | magnitude
    for sign in (0, 0x8000)
    for magnitude in (
        0, 1, 2, 0x1FF, 0x200, 0x3FE, 0x3FF,            # zero and subnormals
        0x400, 0x401, 0x7FF, 0x800, 0x3BFF, 0x3C00, 0x3C01, 0x5BFF, 0x6400, 0x6800,
        0x77FF, 0x7800, 0x7BFE, 0x7BFF,                  # up to the largest finite number
        0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7E01, 0x7FFF,  # infinity, signalling and quiet NaNs
    )
]  # fmt: skip


class Lanes(wiring.Component):
    """Adders side by side, so that one simulated cycle gives many sums."""

    def __init__(self, latency: int, form: FloatFormat) -> None:
        self.latency, self.form = latency, form
        super().__init__({
            "enable": In(1), "a": In(form.bits * LANES), "b": In(form.bits * LANES),
            "sum": Out(form.bits * LANES), "flags": Out(5 * LANES),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        adders = [FloatAdder(self.form, latency=self.latency) for _ in range(LANES)]
        m.submodules += adders
        for lane, adder in enumerate(adders):
            m.d.comb += [
                adder.advance.eq(self.enable.replicate(self.latency)),
                adder.a.eq(self.a.word_select(lane, self.form.bits)),
                adder.b.eq(self.b.word_select(lane, self.form.bits)),
            ]
        m.d.comb += [
            self.sum.eq(Cat(adder.sum for adder in adders)),
            self.flags.eq(Cat(adder.flags.as_value() for adder in adders)),
        ]
        return m


def pack(values, width: int) -> int:
    return sum(value << (width * lane) for lane, value in enumerate(values))


def sums(pairs: list[tuple[int, int]], latency: int, form: FloatFormat = FP16) -> list[tuple[int, int]]:
    """(bits, flags) of every pair from the hardware, one row of lanes per cycle, results taken ``latency`` later."""
    dut = Lanes(latency, form)
    rows = [pairs[start : start + LANES] for start in range(0, len(pairs), LANES)]
    results: list[tuple[int, int]] = []

    async def testbench(ctx):
        ctx.set(dut.enable, 1)
        for cycle in range(len(rows) + latency):
            if cycle < len(rows):
                ctx.set(dut.a, pack((a for a, _ in rows[cycle]), form.bits))
                ctx.set(dut.b, pack((b for _, b in rows[cycle]), form.bits))
            if cycle >= latency:
                total, flags = ctx.get(dut.sum), ctx.get(dut.flags)
                results.extend(
                    (total >> (form.bits * lane) & (1 << form.bits) - 1, flags >> (5 * lane) & 31)
                    for lane in range(len(rows[cycle - latency]))
                )
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return results


def check(pairs, latency):
    got = sums(pairs, latency)
    assert len(got) == len(pairs)
    a, b = (np.array(column, dtype=np.uint16).view(np.float16) for column in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        expected = (a + b).view(np.uint16).tolist()
    for (x, y), (total, flags), numpy_total in zip(pairs, got, expected, strict=True):
        numpy_total = NAN if is_nan(numpy_total) else numpy_total
        where = f"{x:#06x} + {y:#06x}"
        assert total == numpy_total, f"{where}: {total:#06x}, NumPy {numpy_total:#06x}"
        assert (total, flags) == add(x, y), f"{where}: flags {flags:#07b}, exact {add(x, y)[1]:#07b}"


def random_pairs(rng: random.Random, count: int) -> list[tuple[int, int]]:
    """Uniform bits, close magnitudes with opposite signs, small exponents, and half-way cases."""

    def near(a: int) -> int:
        return (a ^ 0x8000) & 0x8000 | min(max((a & 0x7FFF) + rng.randint(-2048, 2048), 0), 0x7FFF)

    def small() -> int:
        return rng.getrandbits(1) << 15 | rng.getrandbits(12)

    def sparse() -> int:
        return rng.getrandbits(1) << 15 | rng.randrange(31) << 10 | rng.choice((0, 1, 0x3FF, 1 << rng.randrange(10)))

    pairs = []
    for _ in range(count // 4):
        a = rng.getrandbits(16)
        pairs += [(a, rng.getrandbits(16)), (a, near(a)), (small(), small()), (sparse(), sparse())]
    return pairs


def test_special_pairs():
    check([(a, b) for a in SPECIALS for b in SPECIALS], latency=4)


@pytest.mark.parametrize("latency", range(1, 10))
def test_random_pairs(latency):
    seed = 1600 + latency
    print(f"seed {seed}")
    check(random_pairs(random.Random(seed), 24000 if latency == 4 else 1600), latency)


def test_another_format():
    """The adder is written for any format: FP32 against NumPy, for finite operands with close exponents."""
    seed = 32
    print(f"seed {seed}")
    rng = random.Random(seed)
    pairs = []
    for _ in range(1500):
        exponent = rng.randrange(255)
        operands = [min(max(exponent + rng.randint(-3, 3) * rng.randint(0, 9), 0), 254) << 23 for _ in range(2)]
        pairs.append(tuple(rng.getrandbits(1) << 31 | bits | rng.getrandbits(23) for bits in operands))
    got = [total for total, _ in sums(pairs, 4, FloatFormat(exponent_bits=8, mantissa_bits=23))]
    a, b = (np.array(column, dtype=np.uint32).view(np.float32) for column in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        assert got == (a + b).view(np.uint32).tolist()


def test_registers_hold_without_advance():
    """A register whose advance bit is 0 keeps its value, so a bubble never disturbs what is behind it."""
    dut = FloatAdder(FP16, latency=3)
    one, two, three = 0x3C00, 0x4000, 0x4200
    seen = []

    async def testbench(ctx):
        ctx.set(dut.a, one)
        ctx.set(dut.b, two)
        for advance in (0b001, 0b010, 0b100, 0b000, 0b011, 0b000):
            ctx.set(dut.advance, advance)
            await ctx.tick()
            ctx.set(dut.a, 0)
            seen.append(ctx.get(dut.sum))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen[2:] == [three] * 4


def test_format():
    assert (FP16.bits, FP16.infinity, FP16.canonical_nan) == (16, 0x7C00, 0x7E00)
    bf16 = FloatFormat(exponent_bits=8, mantissa_bits=7)
    assert (bf16.bits, bf16.infinity, bf16.canonical_nan) == (16, 0x7F80, 0x7FC0)


def test_no_latency_is_refused():
    class Refused(FloatAdder):
        _MustUse__silence = True  # it is never elaborated

    with pytest.raises(ValueError, match="at least 1, not 0"):
        Refused(FP16, latency=0)
