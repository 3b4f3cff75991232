"""NmcUnit: op-and-store on lines, in any spacing, against a memory that is updated one by one."""

import random
from collections import deque
from dataclasses import dataclass

import pytest
from amaranth.sim import Simulator
from line_reference import ALL_BYTES, Request, after, byte_mask, combine, random_line, random_mask, updates
from t3hdl.config import preset
from t3hdl.interface.layouts import Dtype, NmcRequest, Op
from t3hdl.nmc.nmc import NmcUnit


def simulate(dut, *testbenches):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    simulator.run()


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
        new, raised = combine(request, old, config.dtypes)
        writes = updates(request, config.dtypes) or request.op == Op.READ_CLEAR
        assert (line, tag) == (request.line, request.tag)
        assert (word, flags) == (new, raised)  # READ and READ_CLEAR: the old line
        assert mask == (request.mask if writes else 0)
        assert written == after(request, old, config.dtypes)
        reference[request.line] = after(request, old, config.dtypes)
    assert {k: v for k, v in memory.items() if v} == {k: v for k, v in reference.items() if v}
    return trace


@pytest.mark.parametrize(("lanes", "latency"), [(16, 2), (16, 3), (16, 8), (8, 2), (4, 3), (2, 6)])
def test_latency_and_throughput(lanes, latency):
    """Distinct lines: written one every beats cycles; the first one latency + 1 cycles after its transfer."""
    config = preset("small", nmc_lanes=lanes, nmc_latency=latency)
    beats = 16 // lanes
    rng = random.Random(7)
    requests = [(5, Request(line=line, op=Op.STORE, new=rng.getrandbits(256), tag=line)) for line in range(20)]
    trace = check_unit(config, requests, cycles=40 + 20 * beats)
    assert trace.latency == 2 + latency + beats - 1
    # the third one needs the place of the first, which is issued a cycle after its transfer
    assert trace.transfers == [5, 6, *(7 + beats * i for i in range(18))]
    assert [cycle for cycle, *_ in trace.writes] == [5 + 1 + 2 + latency + beats - 1 + beats * i for i in range(20)]


@pytest.mark.parametrize("lanes", [16, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("gap", range(7))
def test_same_line(lanes, gap):
    """Two updates of one line, ``gap`` cycles apart (0: back to back): none is lost, the second waits just enough."""
    config = preset("paper", nmc_lanes=lanes)
    beats = 16 // lanes
    one, two = 0x3C00, 0x4000
    requests = [
        (0, Request(line=9, op=Op.ADD, new=one, tag=1)),
        (gap + 1, Request(line=9, op=Op.ADD, new=two, tag=2)),
        (gap + 2, Request(line=10, op=Op.ADD, new=two, tag=3)),
    ]
    memory = {9: one, 10: one}
    trace = check_unit(config, requests, cycles=60, memory=memory)
    first = 1 + 2 + config.nmc_latency + beats - 1
    wait = max(gap + 1 + first, first + first)
    assert [cycle for cycle, *_ in trace.done] == [first, wait, wait + beats]
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


@pytest.mark.parametrize(("lines", "lanes"), [
    (3, 16), (12, 8),
    *(pytest.param(*case, marks=pytest.mark.long) for case in ((1, 16), (12, 16), (1000, 16), (3, 2), (1000, 2))),
])  # fmt: skip
def test_random_traffic(lines, lanes):
    """Random operations, spacings and lines: few lines give conflicts at every distance."""
    seed = 900 + lines + 16 - lanes
    print(f"seed {seed}")
    rng = random.Random(seed)
    requests, cycle = [], 0
    for tag in range(120):
        cycle += rng.choice((0, 0, 0, 1, 2, 9))
        op, dtype = rng.choice((Op.ADD, Op.ADD, *Op)), rng.choice(list(Dtype))
        request = Request(
            line=rng.randrange(lines),
            op=op,
            dtype=dtype,
            new=random_line(rng, dtype),
            mask=random_mask(rng),
            tag=tag << 16 | tag,
        )
        requests.append((cycle, request))
    config = preset("small", nmc_lanes=lanes)
    check_unit(config, requests, cycles=(900 if lines < 12 else 500) + 120 * (16 // lanes - 1))
