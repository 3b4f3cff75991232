"""NmcAlu and NmcUnit: op-and-store on lines, in any spacing, against a memory that is updated one by one."""

import random
from collections import deque
from dataclasses import dataclass, replace

import pytest
from amaranth.sim import Simulator
from float_reference import add
from t3hdl.config import preset
from t3hdl.layouts import Dtype, NmcRequest, Op
from t3hdl.nmc import NmcAlu, NmcUnit

ALL_BYTES = (1 << 32) - 1


def simulate(dut, *testbenches):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    simulator.run()


@dataclass(frozen=True, kw_only=True)
class Request:
    line: int
    op: int
    new: int = 0
    mask: int = ALL_BYTES
    dtype: int = Dtype.FP16
    tag: int = 0


def combine(request: Request, old: int) -> tuple[int, int]:
    """(line after the ALU, flags), lane by lane."""
    result, flags = old, 0
    for lane in range(16):
        if request.mask >> (2 * lane) & 3 != 3:
            continue
        x, y = (word >> (16 * lane) & 0xFFFF for word in (old, request.new))
        if request.op == Op.STORE:
            x = y
        elif request.op == Op.ADD and request.dtype == Dtype.FP16:
            x, raised = add(x, y)
            flags |= raised
        result = result & ~(0xFFFF << (16 * lane)) | x << (16 * lane)
    return result, flags


def after(request: Request, old: int) -> int:
    """The memory's line after the request."""
    if request.op == Op.READ_CLEAR:
        return combine(replace(request, op=Op.STORE, new=0), old)[0]
    return combine(request, old)[0]


def byte_mask(mask: int) -> int:
    return sum(0xFF << (8 * byte) for byte in range(32) if mask >> byte & 1)


def random_mask(rng: random.Random) -> int:
    return rng.choice(
        (
            ALL_BYTES,
            ALL_BYTES,
            0,
            rng.getrandbits(32),
            rng.getrandbits(32) | rng.getrandbits(32),
        )
    )


@pytest.mark.parametrize("latency", [2, 3, 4, 8])
def test_alu(latency):
    """Random operations with bubbles: right result and flags, ``latency`` cycles later, nothing in between."""
    seed = 500 + latency
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut = NmcAlu(config=preset("small", nmc_latency=latency))
    assert dut.latency == latency
    expected = deque([None] * latency)

    async def testbench(ctx):
        for _ in range(300):
            valid = rng.random() < 0.7
            request = Request(
                line=0,
                op=rng.choice((Op.ADD, Op.ADD, *range(8))),
                new=rng.getrandbits(256),
                mask=random_mask(rng),
                dtype=rng.choice((Dtype.FP16, Dtype.FP16, *Dtype)),
            )
            old = rng.getrandbits(256)
            for name in ("op", "dtype", "mask", "new"):
                ctx.set(getattr(dut, name), getattr(request, name))
            ctx.set(dut.old, old)
            ctx.set(dut.valid, valid)
            expected.append(combine(request, old) if valid else None)
            due = expected.popleft()
            assert ctx.get(dut.result_valid) == (due is not None)
            if due is not None:
                assert (ctx.get(dut.result), ctx.get(dut.flags.as_value())) == due
            await ctx.tick()

    simulate(dut, testbench)


@dataclass
class Trace:
    """What came out: (cycle, line, data, mask) of writes and (cycle, tag, data, flags) of done pulses."""

    writes: list
    done: list
    transfers: list
    latency: int


def run_unit(config, requests: list[tuple[int, Request]], memory: dict[int, int], cycles: int) -> Trace:
    """Offers each request from its earliest cycle on, serves the memory port, and checks the promise of ``idle``."""
    dut = NmcUnit(config=config)
    trace = Trace([], [], [], dut.latency)
    waiting = deque(requests)

    async def testbench(ctx):
        read_now = None
        for cycle in range(cycles):
            ctx.set(
                dut.read_data,
                memory.get(read_now, 0) if read_now is not None else 0xDEAD << 200,
            )
            offered = bool(waiting) and waiting[0][0] <= cycle
            ctx.set(dut.request.valid, offered)
            if offered:
                item = waiting[0][1]
                ctx.set(dut.request.payload, NmcRequest.const({
                    "line": item.line, "op": item.op, "dtype": item.dtype, "mask": item.mask, "tag": item.tag,
                    "data": item.new,
                }))  # fmt: skip
                if ctx.get(dut.request.ready):
                    trace.transfers.append(cycle)
                    waiting.popleft()
            busy = len(trace.transfers) - (offered and trace.transfers[-1:] == [cycle]) > len(trace.done)
            assert ctx.get(dut.idle) == (not busy)
            read_now = ctx.get(dut.read_line) if ctx.get(dut.read_valid) else None
            assert ctx.get(dut.write_valid) == ctx.get(dut.done_valid)
            if ctx.get(dut.write_valid):
                line, word, mask = (ctx.get(getattr(dut, f"write_{name}")) for name in ("line", "data", "mask"))
                trace.writes.append((cycle, line, word, mask))
                keep = ~byte_mask(mask)
                memory[line] = memory.get(line, 0) & keep | word & ~keep
                trace.done.append(
                    (
                        cycle,
                        *(ctx.get(getattr(dut, f"done_{name}")) for name in ("tag", "data", "flags")),
                    )
                )
            await ctx.tick()

    simulate(dut, testbench)
    return trace


def check_unit(config, requests, cycles, memory=None):
    """Runs the unit and applies the same requests, one by one, to a copy of the memory."""
    memory = dict(memory or {})
    reference = dict(memory)
    trace = run_unit(config, requests, memory, cycles)
    assert len(trace.done) == len(requests), "a request was lost, or the run is too short"
    for (_, request), (_, line, written, mask), (_, tag, word, flags) in zip(
        requests, trace.writes, trace.done, strict=True
    ):
        old = reference.get(request.line, 0)
        new, raised = combine(request, old)
        cleared = request.op == Op.READ_CLEAR
        supported = request.op == Op.STORE or (request.op == Op.ADD and request.dtype == Dtype.FP16)
        assert (line, tag) == (request.line, request.tag)
        assert (word, flags) == (new, raised)  # READ and READ_CLEAR: the old line
        assert mask == (request.mask if supported or cleared else 0)
        assert written == after(request, old)
        reference[request.line] = after(request, old)
    assert {k: v for k, v in memory.items() if v} == {k: v for k, v in reference.items() if v}
    return trace


@pytest.mark.parametrize("latency", [2, 3, 4, 8])
def test_latency_and_throughput(latency):
    """Distinct lines: accepted and written one per cycle, latency + 1 cycles after the transfer."""
    config = preset("small", nmc_latency=latency)
    rng = random.Random(7)
    requests = [(5, Request(line=line, op=Op.STORE, new=rng.getrandbits(256), tag=line)) for line in range(40)]
    trace = check_unit(config, requests, cycles=80)
    assert trace.latency == 2 + latency
    assert trace.transfers == list(range(5, 45))
    assert [cycle for cycle, *_ in trace.writes] == [5 + 1 + 2 + latency + i for i in range(40)]


@pytest.mark.parametrize("gap", range(7))
def test_same_line(gap):
    """Two updates of one line, ``gap`` cycles apart (0: back to back): none is lost, the second waits just enough."""
    config = preset("paper")
    one, two = 0x3C00, 0x4000
    requests = [
        (0, Request(line=9, op=Op.ADD, new=one, tag=1)),
        (gap + 1, Request(line=9, op=Op.ADD, new=two, tag=2)),
        (gap + 2, Request(line=10, op=Op.ADD, new=two, tag=3)),
    ]
    memory = {9: one, 10: one}
    trace = check_unit(config, requests, cycles=60, memory=memory)
    first = 1 + 2 + config.nmc_latency
    wait = max(gap + 1 + first, first + 1 + 2 + config.nmc_latency)
    assert [cycle for cycle, *_ in trace.done] == [first, wait, wait + 1]
    assert [word for _, _, word, _ in trace.done] == [0x4000, 0x4400, 0x4200]


def test_operations_and_masks():
    """Each operation, supported or not, with full and partial masks, on a line that is not zero."""
    rng = random.Random(23)
    old = rng.getrandbits(256)
    masks = (ALL_BYTES, 0, 0xFFFF0000, 0xAAAAAAAA, 0x00000003, 0x6, rng.getrandbits(32))
    requests = [
        (
            0,
            Request(
                line=number,
                op=op,
                dtype=dtype,
                mask=mask,
                new=rng.getrandbits(256),
                tag=number,
            ),
        )
        for number, (op, dtype, mask) in enumerate(
            (op, dtype, mask) for op in range(8) for dtype in Dtype for mask in masks
        )
    ]
    check_unit(
        preset("small"),
        requests,
        cycles=300,
        memory=dict.fromkeys(range(len(requests)), old),
    )


@pytest.mark.parametrize("lines", [1, 3, 12, 1000])
def test_random_traffic(lines):
    """Random operations, spacings and lines: few lines give conflicts at every distance."""
    seed = 900 + lines
    print(f"seed {seed}")
    rng = random.Random(seed)
    requests, cycle = [], 0
    for tag in range(350):
        cycle += rng.choice((0, 0, 0, 1, 2, 9))
        op = rng.choice((Op.ADD, Op.ADD, Op.STORE, Op.READ, Op.READ_CLEAR))
        request = Request(
            line=rng.randrange(lines),
            op=op,
            new=rng.getrandbits(256),
            mask=random_mask(rng),
            tag=tag << 16 | tag,
        )
        requests.append((cycle, request))
    check_unit(preset("small"), requests, cycles=3000 if lines < 12 else 1300)
