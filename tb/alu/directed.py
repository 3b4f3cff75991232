"""Directed and random lines for an NMC ALU, each checked with its flags against exact arithmetic."""

import random
from collections.abc import Iterable

from t3hdl.config import T3Config
from t3hdl.interface.layouts import Dtype, Op
from t3sim.hardware.abi import Instance

from tb.alu.float_reference import INEXACT, INVALID, OVERFLOW, Format
from tb.alu.line_reference import ALL_BYTES, FORMATS, Request, combine, random_line, random_mask, width_of


def specials(form: Format) -> list[int]:
    """The corners of a format, of both signs."""
    one, inf, last = 1 << form.mantissa_bits, form.infinity, (1 << form.mantissa_bits) - 1
    bias = form.bias << form.mantissa_bits
    magnitudes = [
        0, 1, 2, last >> 1, last - 1, last,                                # zero and subnormals
        one, one + 1, 2 * one - 1, 2 * one, bias - 1, bias, bias + 1,      # from the smallest normal number
        bias + form.mantissa_bits * one, bias + (form.mantissa_bits + 1) * one + 1,
        inf - 2 * one - 1, inf - 2 * one, inf - one, inf - 2, inf - 1,     # up to the largest finite number
        inf, inf + 1, inf + form.quiet - 1, form.nan, form.nan + 1, inf + one - 1,  # infinity, NaNs
    ]  # fmt: skip
    return [sign << (form.bits - 1) | magnitude for sign in (0, 1) for magnitude in magnitudes]


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
    """A line of these lanes, the first in the lowest bits."""
    return sum(value << (width * lane) for lane, value in enumerate(values))


def special_values_in_both_halves(alu: Instance, config: T3Config, dtype: Dtype, op: Op) -> None:
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


def every_operation_with_masks(alu: Instance, config: T3Config) -> None:
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


def each_lane_raises_its_flags(alu: Instance, config: T3Config) -> None:
    """One lane at a time: the largest number twice overflows; with a byte masked off it stays and raises nothing."""
    largest = {Dtype.FP16: 0x7BFF, Dtype.BF16: 0x7F7F, Dtype.FP32: 0x7F7FFFFF}
    for dtype, bits in largest.items():
        for start in range(0, 256, width_of(dtype)):
            value = bits << start
            assert check(alu, config, [(Request(op=Op.ADD, dtype=dtype, new=value), value)]) == OVERFLOW | INEXACT
            masked = Request(op=Op.ADD, dtype=dtype, new=value, mask=ALL_BYTES & ~(1 << start // 8))
            assert check(alu, config, [(masked, value)]) == 0


def integer_corners(alu: Instance, config: T3Config) -> None:
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
    """Random lines, masks, types and operations."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(count):
        dtype, op = rng.choice(list(Dtype)), rng.choice((Op.ADD, Op.ADD, Op.MIN, Op.MAX, *range(8)))
        request = Request(op=op, dtype=dtype, mask=random_mask(rng), new=random_line(rng, dtype))
        yield request, random_line(rng, dtype)
