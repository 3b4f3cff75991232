"""The compiled NmcAlu: special values in every lane, and many random lines, against exact arithmetic."""

import random
from collections.abc import Iterable

import pytest
from float_reference import INEXACT, INVALID, OVERFLOW
from line_reference import ALL_BYTES, FORMATS, Request, combine, random_line, random_mask, width_of
from system_cases import missing_compiler
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import Dtype, Op
from t3hdl.interface.signatures import alu_signature, word_map
from t3sim.hardware.abi import Instance
from t3sim.hardware.rtl.backend import compiled_part
from test_float import specials

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler())


@pytest.fixture(scope="module", params=[16, 2, pytest.param(8, marks=pytest.mark.slow)], ids="{} lanes".format)
def config(request):
    return preset("small", nmc_lanes=request.param)


@pytest.fixture(scope="module")
def alu(config):
    part = compiled_part(config, "alu", word_map(alu_signature(config)))
    yield Instance(part.part_type)
    part.free()


def check(alu: Instance, config: T3Config, cases: Iterable[tuple[Request, int]]) -> int:
    """Lines as fast as the ALU takes them, each with its flags against the reference. Returns the flags seen."""
    cases = list(cases)
    beats = 16 // config.nmc_lanes
    latency = config.nmc_latency + beats - 1
    seen = 0
    for cycle in range((len(cases) - 1) * beats + latency):
        number, beat = divmod(cycle, beats)
        alu.set("valid", beat == 0 and number < len(cases))
        if beat == 0 and number < len(cases):
            request, old = cases[number]
            for port in ("op", "dtype", "mask"):
                alu.set(port, getattr(request, port))
            alu.set("old", old)
            alu.set("data", request.new)
        alu.step()
        number, beat = divmod(cycle + 1 - latency, beats)
        assert alu.get("result_valid") == (beat == 0 and number >= 0)
        if alu.get("result_valid"):
            request, old = cases[number]
            found = alu.get("result"), alu.get("flags")
            assert found == combine(request, old, config.dtypes), (request, f"{old:#x}")
            seen |= found[1]
    return seen


def line_of(values: list[int], width: int) -> int:
    return sum(value << (width * lane) for lane, value in enumerate(values))


@pytest.mark.parametrize("op", [Op.ADD, Op.MIN, Op.MAX], ids=lambda op: op.name.lower())
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name.lower())
def test_special_values_in_both_halves(alu, config, dtype, op):
    """All pairs of special values, each of them once in an even lane and once in an odd one."""
    width = width_of(dtype)
    pairs = [(a, b) for a in specials(FORMATS[dtype]) for b in specials(FORMATS[dtype])]
    lanes = 256 // width
    turned = [pairs[-1], *pairs[:-1]]
    rows = [order[start : start + lanes] for order in (pairs, turned) for start in range(0, len(pairs), lanes)]
    cases = [
        (Request(op=op, dtype=dtype, new=line_of([b for _, b in row], width)), line_of([a for a, _ in row], width))
        for row in rows
    ]
    assert check(alu, config, cases) == (INVALID | OVERFLOW | INEXACT if op == Op.ADD else INVALID)


def test_every_operation_with_masks(alu, config):
    """Each of the eight operations on each data type with bytes, halves and words masked off."""
    rng = random.Random(24)
    masks = (ALL_BYTES, 0, 0xFFFF0000, 0xAAAAAAAA, 0x33333333, 0xEDB7C31F, 0x00000001)
    requests = [
        (Request(op=op, dtype=dtype, mask=mask, new=random_line(rng, dtype)), random_line(rng, dtype))
        for op in range(8)
        for dtype in Dtype
        for mask in masks
    ]
    check(alu, config, requests)


def test_each_lane_raises_its_flags(alu, config):
    """One lane at a time: the largest number twice overflows; with a byte masked off it stays and raises nothing."""
    largest = {Dtype.FP16: 0x7BFF, Dtype.BF16: 0x7F7F, Dtype.FP32: 0x7F7FFFFF}
    for dtype, bits in largest.items():
        for start in range(0, 256, width_of(dtype)):
            value = bits << start
            assert check(alu, config, [(Request(op=Op.ADD, dtype=dtype, new=value), value)]) == OVERFLOW | INEXACT
            masked = Request(op=Op.ADD, dtype=dtype, new=value, mask=ALL_BYTES & ~(1 << start // 8))
            assert check(alu, config, [(masked, value)]) == 0


def test_integer_corners(alu, config):
    """INT32 wraps, compares as signed numbers, and raises nothing."""
    corners = [0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0x12345678, 0xFEDCBA98]
    old = sum(value << (32 * lane) for lane, value in enumerate(corners))
    requests = []
    for op in (Op.ADD, Op.MIN, Op.MAX):
        for turn in range(8):
            turned = sum(corners[(lane + turn) % 8] << (32 * lane) for lane in range(8))
            requests.append((Request(op=op, dtype=Dtype.INT32, new=turned), old))
    assert check(alu, config, requests) == 0


def random_cases(seed: int, count: int) -> Iterable[tuple[Request, int]]:
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(count):
        dtype, op = rng.choice(list(Dtype)), rng.choice((Op.ADD, Op.ADD, Op.MIN, Op.MAX, *range(8)))
        request = Request(op=op, dtype=dtype, mask=random_mask(rng), new=random_line(rng, dtype))
        yield request, random_line(rng, dtype)


def test_random_lines(alu, config):
    check(alu, config, random_cases(31, 4000))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(32, 40))
def test_many_random_lines(alu, config, seed):
    check(alu, config, random_cases(seed, 40000))
