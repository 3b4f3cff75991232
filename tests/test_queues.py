"""Queues: order, latency, throughput, back-pressure."""

import pytest
from stream_checks import run
from t3hdl.common.queues import AlternatingQueue, InputQueue

CAPACITY = 2

both = pytest.mark.parametrize("kind", [InputQueue, AlternatingQueue])


@both
def test_queue_passes_everything_in_order_under_random_back_pressure(kind) -> None:
    queue = kind(12)

    async def scenario(bench) -> None:
        items = [bench.random.randrange(1 << 12) for _ in range(400)]
        bench.send["i"].extend(items)
        while len(bench.got["o"]) < len(items):
            if bench.now % 40 == 0:
                bench.gap, bench.accept["o"] = bench.random.choice([0.0, 0.6]), bench.random.choice([0.2, 0.7, 1.0])
            held = len(bench.sent["i"]) - len(bench.got["o"])
            assert bench["i.ready"] == (held < CAPACITY)
            assert bench["o.valid"] == (held > 0)
            await bench.step()
            assert bench.now < 4000
        assert [item for _, item in bench.got["o"]] == items

    run(queue, scenario, seed=12)


@both
def test_queue_latency_and_full_throughput(kind) -> None:
    queue = kind(12)

    async def scenario(bench) -> None:
        bench.send["i"].extend(range(50))
        await bench.step(60)
        entered, left = [t for t, _ in bench.sent["i"]], [t for t, _ in bench.got["o"]]
        assert entered == list(range(50))
        assert left == [t + queue.latency for t in entered]

    run(queue, scenario)


@both
def test_full_queue_pops_and_pushes_in_the_same_cycle_only_after_the_pop(kind) -> None:
    async def scenario(bench) -> None:
        bench.accept["o"] = 0
        bench.send["i"].extend([1, 2, 3])
        await bench.step(4)
        assert len(bench.sent["i"]) == 2, "a full queue is not ready, whatever its output does"
        bench.accept["o"] = 1
        await bench.step(4)
        assert [t for t, _ in bench.got["o"]] == [4, 5, 6]
        assert bench.sent["i"][2][0] == 5

    run(kind(8), scenario)
