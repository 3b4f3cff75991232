"""The golden NmcUnit and its FP16 addition: against NumPy, and cycle by cycle against docs/hardware.md."""

import random

import numpy as np
import pytest
from golden_bench import Bench, pack
from numba import njit
from t3hdl.config import preset
from t3hdl.layouts import NEVER, Dtype, NmcRequest, Op
from t3hdl.signatures import nmc_signature
from t3sim.golden import nmc
from t3sim.golden.fp16 import fp16_add

ALL = (1 << 32) - 1
INVALID, OVERFLOW, INEXACT = 16, 4, 1


def line_of(*lanes: int) -> int:
    """A line whose first lanes have these values."""
    return sum(value << 16 * i for i, value in enumerate(lanes))


class Memory:
    """A unit beside a synchronous-read memory: ``read_data`` one cycle after ``read_line``."""

    def __init__(self, latency: int = 3) -> None:
        config = preset("small", nmc_latency=latency)
        self.bench = Bench(nmc, nmc_signature(config), nmc.init_state(config))
        self.lines: dict[int, int] = {}
        self.reads: list[tuple[int, int]] = []
        self.done: list[tuple[int, int, int, int]] = []

    def tick(self, **request: int) -> None:
        """One cycle; ``request`` has the fields of an NmcRequest that is offered."""
        bench, data = self.bench, 0
        if bench.get("read_valid"):
            self.reads.append((bench.now, bench.get("read_line")))
            data = self.lines.get(bench.get("read_line"), 0)
        assert bench.get("write_valid") == bench.get("done_valid")
        if bench.get("done_valid"):
            self.done.append((bench.now, *(bench.get(f"done_{name}") for name in ("tag", "data", "flags"))))
            mask = sum(0xFF << 8 * i for i in range(32) if bench.get("write_mask") >> i & 1)
            line = bench.get("write_line")
            self.lines[line] = self.lines.get(line, 0) & ~mask | bench.get("write_data") & mask
        item = {"request": pack(NmcRequest, **request)} if request else {}
        bench.tick(**item)
        bench.tick(0, read_data=data)

    def run(self, op: int, new: int, mask: int = ALL, line: int = 5, dtype: int = Dtype.FP16) -> tuple[int, int]:
        """One request to the end: done data and flags."""
        count = len(self.done)
        self.tick(line=line, op=op, data=new, mask=mask, dtype=dtype, tag=77)
        while len(self.done) == count:
            self.tick()
        assert self.done[-1][1] == 77 and self.bench.get("idle")
        return self.done[-1][2:]


@njit
def sums_with(a, bits, flags):
    for b in range(len(bits)):
        bits[b], flags[b] = fp16_add(a, b)


def is_signaling(bits):
    return (bits & 0x7FFF > 0x7C00) & (bits & 0x200 == 0)


def test_fp16_add_is_numpys():
    seed = 3
    print(f"seed {seed}")
    special = [0, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7FFF, 0x3C00, 0x3BFF, 0x0C00, 0x1000]
    chosen = special + [a | 0x8000 for a in special] + list(np.random.default_rng(seed).integers(0, 65536, 200))
    every = np.arange(65536)
    b = every.astype(np.uint16).view(np.float16)
    bits, flags = np.zeros(65536, np.int64), np.zeros(65536, np.int64)
    for choice in chosen:
        a = np.uint16(choice).view(np.float16)
        sums_with(int(choice), bits, flags)
        with np.errstate(all="ignore"):
            reference, exact = a + b, a.astype(np.float64) + b.astype(np.float64)
        nan, finite = np.isnan(reference), np.isfinite(exact)
        assert np.array_equal(np.where(nan, 0x7E00, reference.view(np.uint16)), bits), hex(choice)
        fresh_nan = nan & ~(np.isnan(a) | np.isnan(b))
        raised = INVALID * (fresh_nan | is_signaling(int(choice)) | is_signaling(every))
        raised += OVERFLOW * (finite & np.isinf(reference))
        raised += INEXACT * (finite & (exact != reference.astype(np.float64)))
        assert np.array_equal(raised, flags), hex(choice)


@pytest.mark.parametrize("latency", range(2, 9))
def test_timing_of_one_request(latency):
    memory = Memory(latency)
    memory.lines[5] = line_of(0x3C00)
    assert memory.bench.get("idle") and memory.bench.get("wake_at") == NEVER and memory.bench.get("request.ready")
    memory.tick(line=5, op=Op.ADD, data=line_of(0x3C00), mask=ALL, tag=9)  # cycle 0; head and issue at 1
    for _ in range(latency + 4):
        assert not memory.bench.get("idle") or memory.done
        memory.tick()
    assert memory.reads == [(2, 5)]
    assert memory.done == [(1 + 2 + latency, 9, line_of(0x4000), 0)]
    assert memory.lines[5] == line_of(0x4000) and memory.bench.get("idle")


@pytest.mark.parametrize("latency", [2, 5, 8])
def test_one_request_per_cycle_on_distinct_lines(latency):
    memory = Memory(latency)
    for line in range(30):
        assert memory.bench.get("request.ready")
        memory.tick(line=line, op=Op.STORE, data=line_of(line + 1), mask=ALL, tag=line)
    for _ in range(latency + 3):
        memory.tick()
    assert memory.reads == [(line + 2, line) for line in range(30)]
    assert [done[:2] for done in memory.done] == [(line + 3 + latency, line) for line in range(30)]
    assert [memory.lines[line] for line in range(30)] == [line_of(line + 1) for line in range(30)]


@pytest.mark.parametrize("latency", [2, 3, 8])
def test_same_line_waits_until_the_write(latency):
    memory = Memory(latency)
    for tag in range(3):
        memory.tick(line=5, op=Op.ADD, data=line_of(0x3C00), mask=ALL, tag=tag)
    # issue at 1, write at 3 + latency; the second is issued one cycle later, and so on
    period = 3 + latency
    assert not memory.bench.get("request.ready"), "one in flight, two queued"
    for _ in range(3 * period):
        memory.tick()
    assert memory.reads == [(2 + k * period, 5) for k in range(3)]
    assert [done[:2] for done in memory.done] == [(3 + latency + k * period, k) for k in range(3)]
    assert memory.lines[5] == line_of(0x4200)  # three times 1.0


def test_another_line_behind_a_blocked_head_waits_too():
    memory = Memory(2)
    for line in (5, 5, 6):
        memory.tick(line=line, op=Op.ADD, data=0, mask=ALL)
    for _ in range(12):
        memory.tick()
    assert memory.reads == [(2, 5), (7, 5), (8, 6)]


def test_lanes_flags_and_masks_of_add():
    memory = Memory()
    memory.lines[5] = line_of(0x7BFF, 0x3C00, 0x7C00, 0x3C00, 0x0001)
    new = line_of(0x7BFF, 0x0001, 0xFC00, 0x3C00, 0x8001)
    assert memory.run(Op.ADD, new, mask=0b11_11_11_11_11) == (
        line_of(0x7C00, 0x3C00, 0x7E00, 0x4000, 0x0000),
        INVALID | OVERFLOW | INEXACT,
    )
    memory.lines[5] = line_of(0x7BFF, 0x3C00, 0x7C00, 0x3C00)
    kept = memory.run(Op.ADD, new, mask=0b11_01_11_10)  # lanes 0 and 2 have a byte masked off
    assert kept == (line_of(0x7BFF, 0x3C00, 0x7C00, 0x4000), INEXACT)
    assert memory.lines[5] == kept[0]


def test_last_lane_uses_the_top_of_the_words():
    memory = Memory()
    memory.lines[5] = 0xC000 << 240 | 0xBC00 << 48
    assert memory.run(Op.ADD, 0xC000 << 240 | 0xBC00 << 48) == (0xC400 << 240 | 0xC000 << 48, 0)


def test_store_ignores_the_dtype_and_keeps_nans():
    for dtype in Dtype:
        memory = Memory()
        memory.lines[5] = line_of(1, 2, 3)
        assert memory.run(Op.STORE, line_of(0x7D01, 9, 8), mask=0b01_11_11, dtype=dtype) == (line_of(0x7D01, 9, 3), 0)
        assert memory.lines[5] == line_of(0x7D01, 9, 3)


def test_read_and_read_clear_return_the_old_line():
    memory = Memory()
    old = line_of(*range(1, 17))
    memory.lines[5] = old
    assert memory.run(Op.READ, 0) == (old, 0) and memory.lines[5] == old
    assert memory.run(Op.READ_CLEAR, 0, mask=0b01_11) == (old, 0)
    assert memory.lines[5] == line_of(0, *range(2, 17)), "a half-masked lane stays"
    assert memory.run(Op.READ_CLEAR, ALL)[0] == line_of(0, *range(2, 17)) and memory.lines[5] == 0


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(Op.MIN, 0), (Op.MAX, 0), (6, 0), (7, 0), (Op.ADD, Dtype.BF16), (Op.ADD, Dtype.FP32), (Op.ADD, Dtype.INT32)],
)
def test_what_the_release_lacks_acts_like_read(op, dtype):
    memory = Memory()
    memory.lines[5] = line_of(0x3C00, 7)
    assert memory.run(op, line_of(0x3C00, 0x7D00), dtype=dtype) == (line_of(0x3C00, 7), 0)
    assert memory.lines[5] == line_of(0x3C00, 7)


def test_write_mask_is_zero_for_read_and_the_mask_for_updates():
    for op, expected in ((Op.READ, 0), (Op.STORE, 0b0110), (Op.ADD, 0b0110), (Op.READ_CLEAR, 0b0110), (Op.MIN, 0)):
        memory = Memory(2)
        memory.tick(line=1, op=op, mask=0b0110)
        while not memory.bench.get("write_valid"):
            memory.tick()
        assert memory.bench.get("write_mask") == expected and memory.bench.get("write_line") == 1


def test_line_addresses_are_compared_whole():
    memory = Memory(8)
    for line in (5, 5 | 1 << 38, 5 | 1 << 20):
        memory.tick(line=line, op=Op.ADD, mask=ALL)
    for _ in range(12):
        memory.tick()
    assert [line for _, line in memory.reads] == [5, 5 | 1 << 38, 5 | 1 << 20]
    assert [cycle for cycle, _ in memory.reads] == [2, 3, 4]


@pytest.mark.parametrize("latency", [2, 4, 8])
def test_random_requests_act_as_if_one_after_the_other(latency):
    seed = 100 + latency
    print(f"seed {seed}")
    rng = random.Random(seed)
    memory, expected, order = Memory(latency), {}, []
    for _ in range(600):
        request = {}
        if rng.random() < 0.8:
            op = rng.choice((Op.ADD, Op.ADD, Op.STORE, Op.READ, Op.READ_CLEAR))
            data = line_of(*(rng.randrange(0x3800, 0x4000) for _ in range(16)))
            request = {"line": rng.randrange(4), "op": op, "data": data, "mask": ALL, "tag": rng.getrandbits(32)}
            if memory.bench.get("request.ready"):
                old = expected.get(request["line"], 0)
                new = apply(op, old, data)
                expected[request["line"]] = new
                order.append((request["tag"], new if op in (Op.ADD, Op.STORE) else old))
        memory.tick(**request)
    while not memory.bench.get("idle"):
        memory.tick()
    assert [(tag, data) for _, tag, data, _ in memory.done] == order
    assert memory.lines == expected


def apply(op: int, old: int, new: int) -> int:
    """The new line after ``op``, by NumPy."""
    if op == Op.READ_CLEAR:
        return 0
    if op != Op.ADD:
        return new if op == Op.STORE else old
    a, b = (np.frombuffer(value.to_bytes(32, "little"), np.float16) for value in (old, new))
    with np.errstate(over="ignore"):
        return int.from_bytes((a + b).tobytes(), "little")
