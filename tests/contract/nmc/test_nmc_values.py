"""NmcUnit: what is returned and written for each operation, data type and mask."""

import pytest
from t3hdl.config import preset
from t3hdl.interface.layouts import Dtype, Op

from tb.alu.line_reference import ALL_BYTES, Request
from tests.contract.nmc.scene import Memory, perform, tagged

INVALID, OVERFLOW, INEXACT = 16, 4, 1
FP16, BF16, FP32, INT32 = Dtype.FP16, Dtype.BF16, Dtype.FP32, Dtype.INT32


def line_of(*lanes: int) -> int:
    """A line whose first lanes have these values."""
    return sum(value << 16 * i for i, value in enumerate(lanes))


def test_operations_and_masks(backend):
    """Each operation, supported or not, with full and partial masks, on a line that is not zero."""
    memory = Memory(backend, seed=23)
    rng = memory.bench.random
    masks = (ALL_BYTES, 0, 0xFFFF0000, 0xAAAAAAAA, 0x00000003, 0x6, rng.getrandbits(32))
    cases = [(op, dtype, mask) for op in range(8) for dtype in Dtype for mask in masks]
    memory.lines = dict.fromkeys(range(len(cases)), rng.getrandbits(256))
    memory.clear()
    memory.send(
        *tagged(
            Request(line=line, op=op, dtype=dtype, mask=mask, new=rng.getrandbits(256))
            for line, (op, dtype, mask) in enumerate(cases)
        )
    )
    memory.finish()


ADDENDS = line_of(0x7BFF, 0x0001, 0xFC00, 0x3C00, 0x8001)
ONE, HUGE = 0x3F800000, 0x7F7FFFFF
WIDE = ONE | HUGE << 32 | ONE << 224


@pytest.mark.parametrize(("dtype", "mask", "old", "new", "result", "flags"), [
    (
        FP16, 0b11_11_11_11_11, line_of(0x7BFF, 0x3C00, 0x7C00, 0x3C00, 0x0001), ADDENDS,
        line_of(0x7C00, 0x3C00, 0x7E00, 0x4000, 0x0000), INVALID | OVERFLOW | INEXACT,
    ),
    (  # lanes 0 and 2 have a byte masked off
        FP16, 0b11_01_11_10, line_of(0x7BFF, 0x3C00, 0x7C00, 0x3C00), ADDENDS,
        line_of(0x7BFF, 0x3C00, 0x7C00, 0x4000), INEXACT,
    ),
    (FP16, ALL_BYTES, 0xC000 << 240 | 0xBC00 << 48, 0xC000 << 240 | 0xBC00 << 48, 0xC400 << 240 | 0xC000 << 48, 0),
    (FP32, ALL_BYTES, WIDE, WIDE, 0x40000000 | 0x7F800000 << 32 | 0x40000000 << 224, OVERFLOW | INEXACT),
    (FP32, 0b1110 << 28 | 0b0111 << 4 | 0b1111, WIDE, WIDE, 0x40000000 | HUGE << 32 | ONE << 224, 0),
    (INT32, ALL_BYTES, 0xFFFFFFFF << 224 | 0x7FFFFFFF, 1 << 224 | 1, 0x80000000, 0),
    (BF16, ALL_BYTES, 0x3F80 << 240 | 0x3F80, 0x3F80 << 240 | 0x3F80, 0x4000 << 240 | 0x4000, 0),
])  # fmt: skip
def test_lanes_flags_and_masks_of_add(backend, dtype, mask, old, new, result, flags):
    memory = Memory(backend)
    assert perform(memory, Request(op=Op.ADD, dtype=dtype, mask=mask, new=new), old) == (result, flags)
    assert memory.lines == {0: result}


@pytest.mark.parametrize(
    ("dtype", "bits", "two"), [(FP16, 16, 0x4000), (BF16, 16, 0x4000), (FP32, 32, 0x40000000), (INT32, 32, 2)]
)
def test_minimum_and_maximum_of_every_dtype(backend, dtype, bits, two):
    """One number is above the other as an unsigned pattern, and below it as a number."""
    memory = Memory(backend)
    minus = two | 1 << (bits - 1)
    for op, best in ((Op.MIN, minus), (Op.MAX, two)):
        request = Request(op=op, dtype=dtype, new=two << 256 - bits | minus)
        assert perform(memory, request, minus << 256 - bits | two) == (best << 256 - bits | best, 0)


def test_a_maximum_of_nans_and_zeros(backend):
    request = Request(op=Op.MAX, new=line_of(0x3C00, 0x7E02, 0x0000))
    assert perform(Memory(backend), request, line_of(0x7D01, 0x7E01, 0x8000)) == (line_of(0x3C00, 0x7E00, 0), INVALID)


@pytest.mark.parametrize("dtype", Dtype)
def test_store_read_and_read_clear_act_on_bytes_whatever_the_dtype(backend, dtype):
    memory = Memory(backend)
    stored = line_of(0x7D01, 9, 0x0803) | 0xAB00 << 240
    request = Request(
        op=Op.STORE, dtype=dtype, mask=0b10_11_11 | 1 << 31, new=line_of(0x7D01, 9, 0x0808) | 0xABCD << 240
    )
    assert perform(memory, request, line_of(1, 2, 0x0103)) == (stored, 0)
    old = line_of(*range(0x101, 0x111))
    assert perform(memory, Request(op=Op.READ, dtype=dtype, new=7), old) == (old, 0)
    assert (memory.lines, memory.writes[0][3]) == ({0: old}, 0)
    assert perform(memory, Request(op=Op.READ_CLEAR, dtype=dtype, mask=0b01_11, new=7), old) == (old, 0)
    assert memory.lines == {0: line_of(0, 0x100, *range(0x103, 0x111))}
    assert perform(memory, Request(op=Op.READ_CLEAR, dtype=dtype), old) == (old, 0)
    assert memory.lines == {0: 0}


@pytest.mark.own_size
@pytest.mark.parametrize("built", [("fp16",), ("bf16", "int32"), ("fp32",)])
def test_what_is_not_built_acts_like_read(backend, built):
    memory = Memory(backend, preset("small", dtypes=built))
    lacking = [dtype for dtype in Dtype if dtype.name.lower() not in built]
    old, new = line_of(0x3C00, 7), line_of(0x3C00, 0x7D00)
    cases = [(op, dtype) for op in (Op.ADD, Op.MIN, Op.MAX) for dtype in lacking]
    cases += [(op, dtype) for op in (6, 7) for dtype in Dtype]
    memory.lines = dict.fromkeys(range(len(cases)), old)
    memory.clear()
    memory.send(*tagged(Request(line=i, op=op, dtype=dtype, new=new) for i, (op, dtype) in enumerate(cases)))
    memory.finish()
    assert {(data, mask) for _, _, data, mask in memory.writes} == {(old, 0)}
    assert {(data, flags) for _, _, data, flags in memory.done} == {(old, 0)}
    for dtype in set(Dtype) - set(lacking):
        assert perform(memory, Request(op=Op.MAX, dtype=dtype, new=1), 0) == (1, 0)
    assert perform(memory, Request(op=Op.STORE, dtype=lacking[0], new=3), 0) == (3, 0)
