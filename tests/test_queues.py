"""Queues: order, latency, throughput, back-pressure, and the tail merge that leaves the visible head alone."""

import gc
import random
from collections import deque
from functools import partial

import pytest
from stream_checks import run
from t3hdl.blocks.queues import Fifo, InputQueue, TokenQueue
from t3hdl.layouts import Token

_QUEUES = [(InputQueue, 2), (partial(Fifo, depth=2), 2), (partial(Fifo, depth=5), 5), (partial(Fifo, depth=8), 8)]


@pytest.mark.parametrize(("make", "capacity"), _QUEUES)
def test_queue_passes_everything_in_order_under_random_back_pressure(make, capacity: int) -> None:
    queue = make(12)

    async def scenario(bench) -> None:
        items = [bench.random.randrange(1 << 12) for _ in range(400)]
        bench.send["i"].extend(items)
        while len(bench.got["o"]) < len(items):
            if bench.now % 40 == 0:
                bench.gap, bench.accept["o"] = bench.random.choice([0.0, 0.6]), bench.random.choice([0.2, 0.7, 1.0])
            held = len(bench.sent["i"]) - len(bench.got["o"])
            assert bench["i.ready"] == (held < capacity)
            assert bench["o.valid"] == (held > 0)
            if hasattr(queue, "level"):
                assert bench["level"] == held
            await bench.step()
            assert bench.now < 4000
        assert [item for _, item in bench.got["o"]] == items

    run(queue, scenario, seed=10 + capacity)


@pytest.mark.parametrize("make", [make for make, _ in _QUEUES])
def test_queue_latency_and_full_throughput(make) -> None:
    queue = make(12)

    async def scenario(bench) -> None:
        bench.send["i"].extend(range(50))
        await bench.step(60)
        entered, left = [t for t, _ in bench.sent["i"]], [t for t, _ in bench.got["o"]]
        assert entered == list(range(50))
        assert left == [t + queue.latency for t in entered]

    run(queue, scenario)


def test_full_queue_pops_and_pushes_in_the_same_cycle_only_after_the_pop() -> None:
    async def scenario(bench) -> None:
        bench.accept["o"] = 0
        bench.send["i"].extend([1, 2, 3])
        await bench.step(4)
        assert len(bench.sent["i"]) == 2, "a full queue is not ready, whatever its output does"
        bench.accept["o"] = 1
        await bench.step(4)
        assert [t for t, _ in bench.got["o"]] == [4, 5, 6]
        assert bench.sent["i"][2][0] == 5

    run(InputQueue(8), scenario)


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize("make", [lambda: Fifo(8, depth=1), lambda: TokenQueue(depth=1)])
def test_depth_below_two_is_refused(make) -> None:
    with pytest.raises(ValueError, match="depth of a queue must be at least 2, not 1"):
        make()
    gc.collect()  # the refused object dies here, where its warning is expected


_KEY = {"context": 3, "epoch": 1, "row": 7, "col": 9, "wf": 2, "right": 0, "bottom": 1}


async def _push(bench, *, accept: float = 0, **fields: int) -> None:
    bench.accept["o"] = accept
    await bench.step(push=1, item={**_KEY, "n": 1, **fields})


async def _drain(bench) -> list[int]:
    start = len(bench.got["o"])
    bench.accept["o"] = 1
    await bench.step(10, push=0)
    return [token["n"] for _, token in bench.got["o"][start:]]


def test_token_queue_never_merges_into_the_visible_head() -> None:
    async def scenario(bench) -> None:
        for _ in range(6):
            await _push(bench)
        assert bench["level"] == 2
        assert await _drain(bench) == [1, 5]

    run(TokenQueue(depth=4), scenario, pulses=("push",))


def test_token_queue_push_comes_after_the_pop_of_the_same_cycle() -> None:
    async def scenario(bench) -> None:
        await _push(bench)
        await _push(bench, accept=1)  # the only entry leaves: nothing to merge into
        assert (bench["level"], len(bench.got["o"])) == (1, 1)
        await _push(bench)
        assert bench["level"] == 2
        await _push(bench, accept=1)  # the head leaves, the entry behind it was not visible: merge
        assert bench["level"] == 1
        assert await _drain(bench) == [2]

    run(TokenQueue(depth=4), scenario, pulses=("push",))


@pytest.mark.parametrize("field", _KEY)
def test_token_queue_merges_equal_keys_only(field: str) -> None:
    async def scenario(bench) -> None:
        await _push(bench)
        await _push(bench)
        await _push(bench, **{field: _KEY[field] ^ 1})
        assert bench["level"] == 3
        await _push(bench)  # equals an older entry, but not the last one
        assert bench["level"] == 4
        assert await _drain(bench) == [1, 1, 1, 1]

    run(TokenQueue(depth=4), scenario, pulses=("push",))


def test_token_queue_stops_merging_at_1023() -> None:
    async def scenario(bench) -> None:
        await _push(bench)
        await _push(bench, n=1021)
        await _push(bench)
        await _push(bench)
        assert bench["level"] == 2
        await _push(bench)
        assert bench["level"] == 3
        assert await _drain(bench) == [1, 1023, 1]

    run(TokenQueue(depth=4), scenario, pulses=("push",))


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_token_queue_follows_its_rule_under_random_traffic(depth: int) -> None:
    async def scenario(bench) -> None:
        model: deque = deque()
        rng = random.Random(depth)
        merges = 0
        for _ in range(1500):
            assert bench["level"] == len(model) and bench["o.valid"] == bool(model)
            push = rng.random() < 0.6 and len(model) < depth
            token = {**_KEY, "n": 1, "row": rng.randrange(2)}
            bench.accept["o"] = 0.4
            popped = len(bench.got["o"])
            head = model[0] if model else None
            await bench.step(push=push, item=token)
            if len(bench.got["o"]) > popped:
                assert bench.got["o"][-1][1] == model.popleft()
            if push and model and model[-1] is not head and model[-1]["row"] == token["row"]:
                model[-1]["n"] += 1
                merges += 1
            elif push:
                model.append(token)
        assert merges > 50 or depth == 2

    run(TokenQueue(depth=depth), scenario, seed=depth, pulses=("push",))


def test_token_queue_latency() -> None:
    queue = TokenQueue(depth=2)

    async def scenario(bench) -> None:
        await _push(bench, accept=1)
        await bench.step(3, push=0)
        assert [t for t, _ in bench.got["o"]] == [queue.latency]

    run(queue, scenario, pulses=("push",))


def test_token_key_is_everything_but_the_count() -> None:
    assert set(_KEY) | {"n"} == set(Token.members)
