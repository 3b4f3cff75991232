"""Queues: order, latency, throughput, back-pressure."""

import pytest
from t3hdl.common.queues import InputQueue, PingPongQueue

from tests.contract.bench import bench_around

CAPACITY = 2

both = pytest.mark.parametrize("kind", [InputQueue, PingPongQueue])


@both
def test_queue_passes_everything_in_order_under_random_back_pressure(kind) -> None:
    bench = bench_around(kind(12), seed=12)
    items = [bench.random.randrange(1 << 12) for _ in range(400)]
    bench.send["i"].extend(items)
    while len(bench.got["o"]) < len(items):
        if bench.now % 40 == 0:
            bench.gap, bench.accept["o"] = bench.random.choice([0.0, 0.6]), bench.random.choice([0.2, 0.7, 1.0])
        held = len(bench.sent["i"]) - len(bench.got["o"])
        assert bench["i.ready"] == (held < CAPACITY)
        assert bench["o.valid"] == (held > 0)
        bench.step()
        assert bench.now < 4000
    assert [item for _, item in bench.got["o"]] == items


@both
def test_queue_latency_and_full_throughput(kind) -> None:
    queue = kind(12)
    bench = bench_around(queue)
    bench.send["i"].extend(range(50))
    bench.step(60)
    entered, left = [t for t, _ in bench.sent["i"]], [t for t, _ in bench.got["o"]]
    assert entered == list(range(50))
    assert left == [t + queue.latency for t in entered]


@both
def test_full_queue_pops_and_pushes_in_the_same_cycle_only_after_the_pop(kind) -> None:
    bench = bench_around(kind(8))
    bench.accept["o"] = 0
    bench.send["i"].extend([1, 2, 3])
    bench.step(4)
    assert len(bench.sent["i"]) == 2, "a full queue is not ready, whatever its output does"
    bench.accept["o"] = 1
    bench.step(4)
    assert [t for t, _ in bench.got["o"]] == [4, 5, 6]
    assert bench.sent["i"][2][0] == 5
