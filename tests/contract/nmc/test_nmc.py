"""NmcUnit: when each request is taken, read and written, and that requests to one line wait for each other."""

import numpy as np
import pytest
from t3hdl.config import T3Config, preset
from t3hdl.interface.layouts import NEVER, Dtype, Op
from t3hdl.nmc.nmc import NmcUnit

from tb.alu.line_reference import Request, random_line, random_mask
from tests.contract.nmc.scene import SMALL, Memory, tagged

ONE, TWO, THREE, FOUR = 0x3C00, 0x4000, 0x4200, 0x4400
"""Numbers in FP16."""
SIZES = [
    (16, 2), (16, 8), (8, 2), (4, 3), (2, 6),
    *(pytest.param(*size, marks=pytest.mark.long) for size in (
        (16, 4), (16, 5), (16, 6), (16, 7), (8, 5), (8, 8), (4, 2), (4, 8), (2, 2), (2, 8),
    )),
]  # fmt: skip
"""Lanes and latencies of the ALU."""


def sized(lanes: int, latency: int) -> T3Config:
    return preset("small", nmc_lanes=lanes, nmc_latency=latency)


def check_distinct_lines(memory: Memory) -> None:
    """Read and written one every beats cycles; the first one latency + 1 cycles after its transfer."""
    bench, beats = memory.bench, memory.beats
    memory.clear()
    first = bench.now
    memory.send(*tagged(Request(line=line, op=Op.STORE, new=bench.random.getrandbits(256)) for line in range(20)))
    memory.finish()
    # the third one needs the place of the first, which is issued a cycle after its transfer
    assert memory.taken() == [first, first + 1, *(first + 2 + beats * i for i in range(18))]
    assert [cycle for cycle, _ in memory.reads] == [first + 2 + beats * i for i in range(20)]
    assert [cycle for cycle, *_ in memory.writes] == [first + 1 + memory.latency + beats * i for i in range(20)]


def check_same_line(memory: Memory, gap: int) -> None:
    """Two updates of one line, ``gap`` cycles apart (0: back to back): the second waits just enough, and what is
    behind it with it."""
    memory.lines = {9: ONE, 10: ONE}
    memory.clear()
    start = memory.bench.now
    one, two, three = tagged(Request(line=line, op=Op.ADD, new=new) for line, new in ((9, ONE), (9, TWO), (10, TWO)))
    memory.send(one)
    memory.cycle(gap + 1)
    memory.send(two)
    memory.cycle()
    memory.send(three)
    memory.finish()
    first = 1 + memory.latency
    wait = max(gap + 1 + first, first + first)
    assert [cycle - start for cycle, *_ in memory.done] == [first, wait, wait + memory.beats]
    assert [word for _, _, word, _ in memory.done] == [TWO, FOUR, THREE]


def check_three_on_one_line(memory: Memory) -> None:
    memory.lines.clear()
    memory.clear()
    start = memory.bench.now
    memory.send(*tagged([Request(line=5, op=Op.ADD, new=ONE)] * 3))
    memory.cycle(3)
    assert not memory.bench["request.ready"], "one in flight, two queued"
    memory.finish()
    assert memory.reads == [(start + 2 + k * (memory.latency + 1), 5) for k in range(3)]
    assert memory.lines == {5: THREE}


def random_traffic(memory: Memory, lines: int, count: int = 120) -> None:
    """Random operations, spacings and lines: few lines give conflicts at every distance."""
    rng = memory.bench.random
    memory.clear()
    for tag in range(count):
        memory.cycle(rng.choice((0, 0, 0, 1, 2, 9)))
        dtype = rng.choice(list(Dtype))
        memory.send(Request(
            line=rng.randrange(lines), op=rng.choice((Op.ADD, Op.ADD, *Op)), dtype=dtype, new=random_line(rng, dtype),
            mask=random_mask(rng), tag=tag << 16 | tag,
        ))  # fmt: skip
    memory.finish()


def test_after_reset(backend):
    """Reset in any state: nothing is left of the requests."""
    memory = Memory(backend)
    bench = memory.bench
    for cycles in (0, 2, 4, 7):
        memory.send(*tagged([Request(line=5, op=Op.ADD, new=ONE)] * 4))
        memory.cycle(cycles)
        bench.reset()
        assert (bench["idle"], bench["wake_at"], bench["request.ready"]) == (1, NEVER, 1)
        assert (bench["read_valid"], bench["write_valid"], bench["done_valid"]) == (0, 0, 0)
        memory.lines.clear()
        check_distinct_lines(memory)
        memory.clear()


def test_reset_clears_random_state():
    bench = Memory("golden").bench
    bench.reset()
    fresh, state = bench.backend.state(), bench.backend.memory
    state[3:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(state) - 3)  # the first words are sizes
    bench.reset()
    assert bench.backend.state() == fresh


def test_latency_and_throughput(backend):
    memory = Memory(backend)
    assert NmcUnit(config=memory.config).latency == memory.latency
    check_distinct_lines(memory)
    check_three_on_one_line(memory)


@pytest.mark.parametrize("gap", range(7))
def test_same_line(backend, gap):
    check_same_line(Memory(backend), gap)


@pytest.mark.own_size
@pytest.mark.parametrize(("lanes", "latency"), SIZES)
def test_timing_of_other_sizes(backend, lanes, latency):
    memory = Memory(backend, sized(lanes, latency))
    assert NmcUnit(config=memory.config).latency == memory.latency
    check_distinct_lines(memory)
    check_three_on_one_line(memory)
    for gap in (0, 1, memory.beats, memory.latency - 1, memory.latency, memory.latency + 1):
        check_same_line(memory, gap)
    random_traffic(memory, lines=3, count=30)


def test_line_addresses_are_compared_whole(backend):
    """Lines that differ in one bit do not wait for each other."""
    memory = Memory(backend)
    line, requests = 5, []
    for bit in range(39):
        line ^= 1 << bit
        requests.append(Request(line=line, op=Op.ADD))
    memory.send(*tagged(requests))
    memory.finish()
    assert [cycle for cycle, _ in memory.reads] == list(range(2, 41))


@pytest.mark.parametrize("lines", [3, *(pytest.param(lines, marks=pytest.mark.long) for lines in (1, 12, 1000))])
def test_random_traffic(backend, lines):
    random_traffic(Memory(backend, SMALL, seed=900 + lines), lines)


@pytest.mark.long
@pytest.mark.own_size
@pytest.mark.parametrize(("lines", "lanes", "latency"), [(12, 8, 3), (3, 2, 3), (1000, 2, 3), (4, 16, 2), (4, 16, 8)])
def test_random_traffic_of_other_sizes(backend, lines, lanes, latency):
    random_traffic(Memory(backend, sized(lanes, latency), seed=900 + lines + 16 - lanes), lines)
