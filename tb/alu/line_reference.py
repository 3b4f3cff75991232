"""What an operation does to a 32-byte line: lanes, byte masks and flags, one lane at a time."""

import random
from dataclasses import dataclass

from t3hdl.interface.layouts import Dtype, Op

from tb.alu.float_reference import BF16, FP16, FP32, add, maximum, minimum

ALL_BYTES = (1 << 32) - 1
FORMATS = {Dtype.FP16: FP16, Dtype.BF16: BF16, Dtype.FP32: FP32}
NAMES = {Dtype.FP16: "fp16", Dtype.BF16: "bf16", Dtype.FP32: "fp32", Dtype.INT32: "int32"}
ARITHMETIC = {Op.ADD: add, Op.MIN: minimum, Op.MAX: maximum}


@dataclass(frozen=True, kw_only=True)
class Request:
    """An operation on one line; ``new`` are its data."""

    line: int = 0
    op: int
    new: int = 0
    mask: int = ALL_BYTES
    dtype: int = Dtype.FP16
    tag: int = 0


def width_of(dtype: int) -> int:
    """Bits of a lane."""
    return FORMATS[dtype].bits if dtype in FORMATS else 32


def byte_mask(mask: int) -> int:
    """A byte mask as a bit mask."""
    return sum(0xFF << (8 * byte) for byte in range(32) if mask >> byte & 1)


def updates(request: Request, dtypes: tuple[str, ...]) -> bool:
    """Whether the request computes a new line on hardware with these data types."""
    return request.op == Op.STORE or (request.op in ARITHMETIC and NAMES[Dtype(request.dtype)] in dtypes)


def _lane(op: int, dtype: int, x: int, y: int) -> tuple[int, int]:
    """One lane's result and flags."""
    if dtype in FORMATS:
        return ARITHMETIC[Op(op)](FORMATS[dtype], x, y)
    if op == Op.ADD:
        return (x + y) % (1 << 32), 0
    return (min if op == Op.MIN else max)((x, y), key=lambda bits: bits - (bits >> 31 << 32)), 0


def combine(request: Request, old: int, dtypes: tuple[str, ...]) -> tuple[int, int]:
    """(line, flags) of the ALU on hardware with these data types; READ and READ_CLEAR give the old line."""
    if not updates(request, dtypes):
        return old, 0
    if request.op == Op.STORE:
        keep = ~byte_mask(request.mask)
        return old & keep | request.new & ~keep, 0
    result, flags, width = old, 0, width_of(request.dtype)
    for start in range(0, 256, width):
        ones = (1 << width) - 1
        if ~request.mask >> (start // 8) & (1 << width // 8) - 1:
            continue
        lane, raised = _lane(request.op, request.dtype, old >> start & ones, request.new >> start & ones)
        result, flags = result & ~(ones << start) | lane << start, flags | raised
    return result, flags


def after(request: Request, old: int, dtypes: tuple[str, ...]) -> int:
    """The memory's line after the request."""
    return old & ~byte_mask(request.mask) if request.op == Op.READ_CLEAR else combine(request, old, dtypes)[0]


def random_mask(rng: random.Random) -> int:
    """All bytes, none, whole lanes, any bytes, most bytes."""
    lanes = sum(0xF << (4 * lane) for lane in range(8) if rng.getrandbits(1))
    some = rng.getrandbits(32)
    return rng.choice((ALL_BYTES, ALL_BYTES, 0, lanes, some, some | rng.getrandbits(32) | rng.getrandbits(32)))


def random_line(rng: random.Random, dtype: int) -> int:
    """Uniform bits, or floating numbers with few exponents and many equal, opposite and special lanes."""
    form = FORMATS.get(dtype)
    if form is None or rng.getrandbits(1):
        return rng.getrandbits(256)
    line, base = 0, rng.randrange(form.infinity >> form.mantissa_bits)
    for start in range(0, 256, form.bits):
        exponent = rng.choice((base, base, max(base - rng.randrange(form.mantissa_bits + 4), 0), 0, form.infinity))
        mantissa = rng.choice((0, 1, form.quiet, rng.getrandbits(form.mantissa_bits)))
        field = form.infinity if exponent == form.infinity else exponent << form.mantissa_bits
        line |= (rng.getrandbits(1) << (form.bits - 1) | field | mantissa) << start
    return line
