"""The golden NmcUnit, cycle by cycle against docs/hardware.md."""

import random

import numpy as np
import pytest
from golden_bench import Bench, pack
from t3hdl.config import DTYPES, preset
from t3hdl.interface.layouts import NEVER, Dtype, NmcRequest, Op
from t3hdl.interface.signatures import nmc_signature
from t3sim.hardware.golden import nmc

ALL = (1 << 32) - 1
INVALID, OVERFLOW, INEXACT = 16, 4, 1


def line_of(*lanes: int) -> int:
    """A line whose first lanes have these values."""
    return sum(value << 16 * i for i, value in enumerate(lanes))


class Memory:
    """A unit beside a synchronous-read memory: ``read_data`` one cycle after ``read_line``."""

    def __init__(self, latency: int = 3, dtypes: tuple[str, ...] = DTYPES, lanes: int = 16) -> None:
        config = preset("small", nmc_lanes=lanes, nmc_latency=latency, dtypes=dtypes)
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


@pytest.mark.parametrize(("lanes", "beats"), [(8, 2), (4, 4), (2, 8)])
@pytest.mark.parametrize("latency", [2, 5, 8])
def test_fewer_lanes_take_a_line_every_beats_cycles(lanes, beats, latency):
    memory = Memory(latency, lanes=lanes)
    for line in range(5):
        while not memory.bench.get("request.ready"):
            memory.tick()
        memory.tick(line=line, op=Op.ADD, data=line_of(*range(0x3C00, 0x3C10)), mask=ALL, tag=line)
    while not memory.bench.get("idle"):
        memory.tick()
    assert memory.reads == [(2 + beats * line, line) for line in range(5)]
    cycles = [3 + latency + beats - 1 + beats * line for line in range(5)]
    assert [done[:2] for done in memory.done] == [(cycle, line) for line, cycle in enumerate(cycles)]
    assert set(memory.lines.values()) == {line_of(*range(0x3C00, 0x3C10))}, "0 + x"
    memory.tick(line=5, op=Op.STORE, mask=ALL)  # nothing is left of the pause: issued at once
    first = memory.bench.now
    memory.tick()
    assert memory.bench.get("read_valid") and memory.bench.now == first + 1


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


def test_lanes_flags_and_masks_of_wide_dtypes():
    memory = Memory()
    one, huge = 0x3F800000, 0x7F7FFFFF
    old, new = one | huge << 32 | one << 224, one | huge << 32 | one << 224
    total = 0x40000000 | 0x7F800000 << 32 | 0x40000000 << 224
    memory.lines[5] = old
    assert memory.run(Op.ADD, new, dtype=Dtype.FP32) == (total, OVERFLOW | INEXACT)
    memory.lines[5] = old
    mask = 0b1110 << 28 | 0b0111 << 4 | 0b1111  # whole, three bytes, three bytes
    assert memory.run(Op.ADD, new, mask=mask, dtype=Dtype.FP32) == (0x40000000 | huge << 32 | one << 224, 0)
    memory.lines[5] = 0xFFFFFFFF << 224 | 0x7FFFFFFF
    assert memory.run(Op.ADD, 1 << 224 | 1, dtype=Dtype.INT32) == (0x80000000, 0)
    memory.lines[5] = 0x3F80 << 240 | 0x3F80
    assert memory.run(Op.ADD, 0x3F80 << 240 | 0x3F80, dtype=Dtype.BF16) == (0x4000 << 240 | 0x4000, 0)


def test_minimum_and_maximum_of_every_dtype():
    # old and new lanes of (dtype, bits): one above two as unsigned patterns, below it as numbers
    for dtype, bits, two in ((0, 16, 0x4000), (1, 16, 0x4000), (2, 32, 0x40000000), (3, 32, 2)):
        minus = two | 1 << (bits - 1)
        for op, best in ((Op.MIN, minus), (Op.MAX, two)):
            memory = Memory()
            memory.lines[5] = minus << 256 - bits | two
            line = best << 256 - bits | best
            assert memory.run(op, two << 256 - bits | minus, dtype=dtype) == (line, 0)
            assert memory.lines[5] == line
    memory = Memory()
    memory.lines[5] = line_of(0x7D01, 0x7E01, 0x8000)
    assert memory.run(Op.MAX, line_of(0x3C00, 0x7E02, 0x0000)) == (line_of(0x3C00, 0x7E00, 0x0000), INVALID)


def test_store_acts_on_bytes_ignores_the_dtype_and_keeps_nans():
    for dtype in Dtype:
        memory = Memory()
        memory.lines[5] = line_of(1, 2, 0x0103)
        mask = 0b10_11_11 | 1 << 31
        new = line_of(0x7D01, 9, 0x0808) | 0xABCD << 240
        expected = line_of(0x7D01, 9, 0x0803) | 0xAB00 << 240
        assert memory.run(Op.STORE, new, mask=mask, dtype=dtype) == (expected, 0)
        assert memory.lines[5] == expected


def test_read_and_read_clear_return_the_old_line():
    for dtype in Dtype:
        memory = Memory()
        old = line_of(*range(0x101, 0x111))
        memory.lines[5] = old
        assert memory.run(Op.READ, 0, dtype=dtype) == (old, 0) and memory.lines[5] == old
        assert memory.run(Op.READ_CLEAR, 0, mask=0b01_11, dtype=dtype) == (old, 0)
        cleared = line_of(0, 0x100, *range(0x103, 0x111))
        assert memory.lines[5] == cleared, "bytes, not lanes"
        assert memory.run(Op.READ_CLEAR, ALL, dtype=dtype)[0] == cleared and memory.lines[5] == 0


def test_write_data_is_the_whole_line_that_the_memory_shall_have():
    for op, expected in ((Op.READ_CLEAR, 0x5500), (Op.STORE, 0x5577), (Op.ADD, 0x5566)):
        memory = Memory(2)
        memory.lines[1] = 0x5566
        memory.tick(line=1, op=op, mask=0b01, data=0x8877)
        while not memory.bench.get("write_valid"):
            memory.tick()
        assert (memory.bench.get("write_data"), memory.bench.get("write_mask")) == (expected, 1)


@pytest.mark.parametrize("built", [("fp16",), ("bf16", "int32"), ("fp32",)])
def test_what_is_not_built_acts_like_read(built):
    lacking = [dtype for dtype in Dtype if dtype.name.lower() not in built]
    requests = [(op, dtype) for op in (Op.ADD, Op.MIN, Op.MAX) for dtype in lacking]
    for op, dtype in [*requests, *((op, dtype) for op in (6, 7) for dtype in Dtype)]:
        memory = Memory(dtypes=built)
        memory.lines[5] = line_of(0x3C00, 7)
        memory.tick(line=5, op=op, data=line_of(0x3C00, 0x7D00), mask=ALL, dtype=dtype)
        while not memory.bench.get("write_valid"):
            memory.tick()
        assert memory.bench.get("write_mask") == 0 and memory.bench.get("done_flags") == 0
        assert memory.bench.get("write_data") == memory.bench.get("done_data") == line_of(0x3C00, 7)
    for dtype in set(Dtype) - set(lacking):
        memory = Memory(dtypes=built)
        assert memory.run(Op.MAX, 1, dtype=dtype) == (1, 0)
        assert memory.run(Op.STORE, 3, dtype=lacking[0]) == (3, 0)


def test_write_mask_is_zero_for_read_and_the_mask_for_updates():
    masked = (Op.STORE, Op.ADD, Op.MIN, Op.MAX, Op.READ_CLEAR)
    for op, expected in ((Op.READ, 0), *((op, 0b0110) for op in masked)):
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
