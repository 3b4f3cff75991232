"""FloatUnit: results against NumPy and ml_dtypes, flags against exact arithmetic, latency and holding measured."""

import random

import ml_dtypes
import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from t3hdl.nmc import float as hardware
from t3hdl.nmc.float import FloatFormat, FloatUnit

from tb.alu.directed import specials
from tb.alu.float_reference import BF16, FP16, FP32, INEXACT, INVALID, OVERFLOW, Format, add, maximum, minimum

LANES = 32
FORMATS = {"fp16": FP16, "bf16": BF16, "fp32": FP32}
HARDWARE = {FP16: hardware.FP16, BF16: hardware.BF16, FP32: hardware.FP32}
NUMPY = {FP16: np.float16, BF16: ml_dtypes.bfloat16, FP32: np.float32}
REFERENCE = {"add": add, "min": minimum, "max": maximum}


class Lanes(wiring.Component):
    """Units side by side, so that one simulated cycle gives many results."""

    def __init__(self, latency: int, formats: list[FloatFormat]) -> None:
        self.latency, self.formats = latency, formats
        self.bits = max(form.bits for form in formats)
        super().__init__({
            "enable": In(1), "form": In(2), "compare": In(1), "larger": In(1),
            "a": In(self.bits * LANES), "b": In(self.bits * LANES),
            "result": Out(self.bits * LANES), "flags": Out(5 * LANES),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        units = [FloatUnit(*self.formats, latency=self.latency) for _ in range(LANES)]
        m.submodules += units
        for lane, unit in enumerate(units):
            m.d.comb += [
                unit.advance.eq(self.enable.replicate(self.latency)),
                *(getattr(unit, name).eq(getattr(self, name)) for name in ("form", "compare", "larger")),
                unit.a.eq(self.a.word_select(lane, self.bits)),
                unit.b.eq(self.b.word_select(lane, self.bits)),
            ]
        m.d.comb += [
            self.result.eq(Cat(unit.result for unit in units)),
            self.flags.eq(Cat(unit.flags.as_value() for unit in units)),
        ]
        return m


def pack(values, width: int) -> int:
    return sum(value << (width * lane) for lane, value in enumerate(values))


Case = tuple[str, int, int, int]
"""Operation, number of the format, operands."""


def results(formats: list[FloatFormat], cases: list[Case], latency: int) -> list[tuple[int, int]]:
    """(bits, flags) of every case from the hardware, one row of lanes per cycle, taken ``latency`` cycles later."""
    dut = Lanes(latency, formats)
    rows: list[list[Case]] = []
    for case in cases:  # a row has one operation and one format
        if not rows or len(rows[-1]) == LANES or rows[-1][0][:2] != case[:2]:
            rows.append([])
        rows[-1].append(case)
    found: list[tuple[int, int]] = []

    async def testbench(ctx):
        ctx.set(dut.enable, 1)
        for cycle in range(len(rows) + latency):
            if cycle < len(rows):
                op, form, _, _ = rows[cycle][0]
                ctx.set(dut.form, form)
                ctx.set(dut.compare, op != "add")
                ctx.set(dut.larger, op == "max")
                ctx.set(dut.a, pack((a for _, _, a, _ in rows[cycle]), dut.bits))
                ctx.set(dut.b, pack((b for _, _, _, b in rows[cycle]), dut.bits))
            if cycle >= latency:
                words, flags = ctx.get(dut.result), ctx.get(dut.flags)
                found.extend(
                    (words >> (dut.bits * lane) & (1 << dut.bits) - 1, flags >> (5 * lane) & 31)
                    for lane in range(len(rows[cycle - latency]))
                )
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return found


def check(forms: list[Format], cases: list[Case], latency: int) -> int:
    """Every case against the exact result; returns the flags that were seen."""
    got = results([HARDWARE[form] for form in forms], cases, latency)
    assert len(got) == len(cases)
    seen = 0
    for (op, number, a, b), found in zip(cases, got, strict=True):
        expected = REFERENCE[op](forms[number], a, b)
        where = f"{op} {a:#x} {b:#x} ({forms[number]})"
        assert found == expected, f"{where}: {found[0]:#x} {found[1]:#07b}, exact {expected[0]:#x} {expected[1]:#07b}"
        seen |= found[1]
    return seen


def random_pairs(form: Format, rng: random.Random, count: int) -> list[tuple[int, int]]:
    """Uniform bits, close magnitudes with opposite signs, small exponents, and half-way cases."""
    top, ones = form.bits - 1, (1 << form.mantissa_bits) - 1

    def number(exponent: int) -> int:
        exponent = min(max(exponent, 0), (form.infinity >> form.mantissa_bits) - 1)
        mantissa = rng.choice((rng.getrandbits(form.mantissa_bits), 0, 1, ones, 1 << rng.randrange(form.mantissa_bits)))
        return rng.getrandbits(1) << top | exponent << form.mantissa_bits | mantissa

    def near(a: int) -> int:
        moved = form.magnitude(a) + rng.randint(-2, 2) * rng.getrandbits(rng.randrange(form.mantissa_bits + 2))
        return (a >> top ^ 1) << top | min(max(moved, 0), (1 << top) - 1)

    pairs = []
    for _ in range(count // 4):
        a, exponent = rng.getrandbits(form.bits), rng.randrange(form.infinity >> form.mantissa_bits)
        pairs += [
            (a, rng.getrandbits(form.bits)),
            (a, near(a)),
            (number(rng.randrange(3)), number(rng.randrange(3))),
            (number(exponent), number(exponent + rng.randint(-form.mantissa_bits - 3, form.mantissa_bits + 3))),
        ]
    return pairs


@pytest.mark.parametrize("name", FORMATS)
def test_reference_agrees_with_numpy(name):
    """The exact reference that judges the hardware, itself against the libraries' sums."""
    form = FORMATS[name]
    seed = 1500 + form.bits
    print(f"seed {seed}")
    pairs = [(a, b) for a in specials(form) for b in specials(form)]
    pairs += random_pairs(form, random.Random(seed), 2000)
    word = f"uint{form.bits}"
    a, b = (np.array(column, dtype=word).view(NUMPY[form]) for column in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        totals = (a + b).view(word).tolist()
    for (x, y), total in zip(pairs, totals, strict=True):
        assert add(form, x, y)[0] == (form.nan if form.is_nan(total) else total), f"{x:#x} + {y:#x}"


@pytest.mark.parametrize("name", FORMATS)
def test_sums_of_special_values(name):
    """A third of the pairs in a unit of one format; every flag that a sum can raise is seen."""
    form = FORMATS[name]
    numbers = list(enumerate(specials(form)))
    cases = [("add", 0, a, b) for i, a in numbers for j, b in numbers if (i + j) % 3 == 0]
    assert check([form], cases, latency=4) == INVALID | OVERFLOW | INEXACT


@pytest.mark.parametrize(("op", "flags"), [("min", INVALID), ("max", INVALID), ("add", INVALID | OVERFLOW | INEXACT)])
def test_special_values_on_shared_hardware(op, flags):
    """A twelfth of the pairs of each of three formats, which one unit computes in turn."""
    forms = list(FORMATS.values())
    cases = [
        (op, number, a, b)
        for number, form in enumerate(forms)
        for i, a in enumerate(specials(form))
        for j, b in enumerate(specials(form))
        if (i + 5 * j) % 12 == 0
    ]
    assert check(forms, cases, latency=3) == flags


@pytest.mark.parametrize("latency", [1, 2, 5, *(pytest.param(n, marks=pytest.mark.long) for n in (3, 4, 8, 10))])
def test_random_pairs(latency):
    """Each latency, with one to three formats; operation and format change from cycle to cycle."""
    seed = 1600 + latency
    print(f"seed {seed}")
    rng = random.Random(seed)
    forms = ([FP16], [FP16, BF16, FP32], [FP32], [BF16, FP16], [BF16])[latency % 5]
    cases = []
    for _ in range(12):
        number = rng.randrange(len(forms))
        op = rng.choice(("add", "add", *REFERENCE))
        cases += [(op, number, a, b) for a, b in random_pairs(forms[number], rng, LANES)]
    check(forms, cases, latency)


def test_registers_hold_without_advance():
    """A register whose advance bit is 0 keeps its value, so a bubble never disturbs what is behind it."""
    dut = FloatUnit(hardware.FP16, latency=3)
    one, two, three = 0x3C00, 0x4000, 0x4200
    seen = []

    async def testbench(ctx):
        ctx.set(dut.a, one)
        ctx.set(dut.b, two)
        for advance in (0b001, 0b010, 0b100, 0b000, 0b011, 0b000):
            ctx.set(dut.advance, advance)
            await ctx.tick()
            ctx.set(dut.a, 0)
            seen.append(ctx.get(dut.result))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen[2:] == [three] * 4


def test_formats():
    described = [(form.bits, form.infinity, form.canonical_nan) for form in HARDWARE.values()]
    assert described == [(16, 0x7C00, 0x7E00), (16, 0x7F80, 0x7FC0), (32, 0x7F800000, 0x7FC00000)]


class Refused(FloatUnit):
    """Never elaborated."""

    _MustUse__silence = True


@pytest.mark.parametrize(
    ("formats", "latency", "message"),
    [
        ([FP16], 0, "latency of a float unit must be at least 1, not 0"),
        ([], 4, "must have 1 to 4 formats, not 0"),
        ([FP16] * 5, 4, "must have 1 to 4 formats, not 5"),
    ],
)
def test_refused(formats, latency, message):
    with pytest.raises(ValueError, match=message):
        Refused(*(HARDWARE[form] for form in formats), latency=latency)
