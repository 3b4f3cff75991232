"""The memory slice under traffic: grants, latency, back-pressure, starvation, and the idle promise."""

from collections import Counter
from itertools import pairwise

import pytest
from slice_driver import PORTS, READ, STORE, TILE, UPDATES, report, set_range, small_slice, tags, write_arbiter
from stream_checks import Bench, run
from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import NEVER, MemoryRequest, Op

# test_arbiter.py has the rules of the grant one by one; here they are seen from outside.


def test_latency_and_throughput() -> None:
    part = small_slice()

    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        start = bench.now
        bench.send["compute_write"].extend([{**STORE, "tag": i, "row": i} for i in range(20)])
        await bench.step(30)
        assert [t for t, _ in bench.sent["compute_write"]] == list(range(start, start + 20))
        left = [t for t, _ in bench.got["dram"]]
        assert left == [t + part.latency for t, _ in bench.sent["compute_write"]]
        assert [t for t, _ in bench.got["token"]] == [t + part.token_latency for t in left]

    run(part, scenario)


def test_round_robin_after_reset_with_alternating_kinds() -> None:
    async def scenario(bench: Bench) -> None:
        bench.accept["dram"] = 0
        for index, port in enumerate(PORTS):
            bench.send[port].extend([{**READ, "tag": 10 * index + i} for i in range(3)])
        await bench.step(6)
        bench.accept["dram"] = 1
        await bench.step(14)
        # compute write, comm write, compute read, comm read, and again
        assert tags(bench) == [10, 30, 0, 20, 11, 31, 1, 21, 12, 32, 2, 22]

    run(small_slice(), scenario)


def test_mca_holds_communication_at_the_threshold_and_the_slice_is_idle_then() -> None:
    async def scenario(bench: Bench) -> None:
        await write_arbiter(bench, starvation=500)
        await bench.step(threshold=10, occupancy=10)
        bench.send["comm_read"].append(READ)
        await bench.step(50)
        assert (bench["idle"], bench["dram.valid"]) == (1, 0)
        arrived = bench.sent["comm_read"][0][0]
        assert bench["wake_at"] == arrived + 1 + 499  # it may go in the cycle after that
        await bench.step(occupancy=9)
        assert bench["dram.valid"] == 1
        assert bench.idle_checks > 40

    run(small_slice(), scenario)


@pytest.mark.parametrize("fixed", [0, 1])
def test_mca_counts_the_output_register_as_occupancy(fixed: int) -> None:
    async def scenario(bench: Bench) -> None:
        await write_arbiter(bench, fixed=fixed, threshold=10 if fixed else 0)
        await bench.step(threshold=NO_LIMIT if fixed else 10, occupancy=9)
        bench.send["comm_read"].extend([READ] * 3)
        await bench.step(9)
        # With a request in `out`, 9 entries are 10: the next one waits until `out` is empty.
        cycles = [t for t, _ in bench.got["dram"]]
        assert [later - earlier for earlier, later in pairwise(cycles)] == [2, 2]

    run(small_slice(), scenario)


def test_mca_starving_communication_goes_at_its_deadline_in_bursts() -> None:
    async def scenario(bench: Bench) -> None:
        await write_arbiter(bench)
        bench.send["compute_read"].extend([READ] * 200)
        await bench.step(5)
        bench.send["comm_read"].extend([{**READ, "tag": 99}] * 6)
        await bench.step(100)
        seen = bench.sent["comm_read"][0][0] + 1  # the head is at the arbiter
        granted = [t - 1 for t, request in bench.got["dram"] if request["tag"] == 99]
        # A burst is 2; in the cycle after it the next head starts to wait.
        starts = [seen + 20, seen + 20 + 22, seen + 20 + 44]
        assert granted == [t + i for t in starts for i in (0, 1)]

    run(small_slice(), scenario)


def test_full_dram_queue_blocks_and_the_slice_is_idle_without_a_deadline() -> None:
    async def scenario(bench: Bench) -> None:
        await write_arbiter(bench)
        bench.accept["dram"] = 0
        for port in PORTS:
            bench.send[port].extend([READ] * 4)
        await bench.step(60)
        assert (bench["idle"], bench["wake_at"], bench["dram.valid"]) == (1, NEVER, 1)
        assert [bench[f"{port}.ready"] for port in PORTS] == [0] * 4
        assert bench.idle_checks > 50

    run(small_slice(), scenario)


def test_an_arbiter_write_wakes_a_waiting_slice() -> None:
    async def scenario(bench: Bench) -> None:
        await write_arbiter(bench, fixed=1, threshold=0, starvation=500)
        bench.send["comm_read"].append(READ)
        await bench.step(20)
        assert (bench["idle"], bench["dram.valid"]) == (1, 0)
        await write_arbiter(bench, fixed=1, threshold=1, starvation=500)
        assert (bench["idle"], bench["dram.valid"]) == (0, 0)
        await bench.step()
        assert bench["dram.valid"] == 1

    run(small_slice(), scenario)


# Random traffic


def _item(bench: Bench, port: str, tag: int) -> dict:
    rng = bench.random
    tile = {**TILE, "row": rng.randrange(2), "col": rng.randrange(2)}
    op = rng.choice(UPDATES) if port.endswith("write") else rng.choice([Op.READ, Op.READ_CLEAR])
    line, tagged, context = rng.randrange(900, 2100), int(rng.random() < 0.8), rng.choice([3, 3, 4])
    return {"line": line, "op": op, "tagged": tagged, "tag": tag, **tile, "context": context}


def _tracked(item: dict) -> bool:
    return bool(item["op"] in UPDATES and item["tagged"] and item["context"] == 3 and 1000 <= item["line"] < 2000)


def _foreign(item: dict) -> bool:
    return bool(item["op"] in UPDATES and item["context"] != 3 and 1000 <= item["line"] < 2000)


@pytest.mark.parametrize("count_on", ["accepted", "performed"])
@pytest.mark.parametrize("mca", [pytest.param(0, marks=pytest.mark.long), 1])
def test_random_traffic_is_passed_once_in_order_and_counted(count_on: str, mca: int) -> None:
    async def scenario(bench: Bench) -> None:
        rng = bench.random
        await set_range(bench)
        await write_arbiter(bench, mca=mca, starvation=12)
        offered: dict[str, list[dict]] = {}
        for index, port in enumerate(PORTS):
            offered[port] = [_item(bench, port, 1000 * index + i) for i in range(150)]
            bench.send[port].extend(offered[port])
        refused: dict[str, list[int]] = {"compute_write": [], "comm_write": []}

        def watch() -> None:
            for port, given_back in refused.items():
                stream = port.removesuffix("_write")
                if bench[f"{stream}_refused_valid"]:
                    given_back.append(MemoryRequest.from_bits(bench[f"{stream}_refused"]).tag)

        reported, silence = 0, 0
        while silence < 60:
            if bench.now % 16 == 0:
                bench.gap = rng.choice([0.0, 0.0, 0.7, 1.0])
                bench.accept = {"dram": rng.choice([0, 0.4, 1]), "token": rng.choice([0, 0.1, 0.5, 1])}
                await bench.step(threshold=rng.choice([0, 5, NO_LIMIT]), occupancy=rng.choice([0, 4, 5, 60]))
                watch()
            if bench.now > 1500:
                bench.gap, bench.accept = 0.0, {"dram": 1.0, "token": 1.0}
            waiting = [request for _, request in bench.got["dram"] if request["tagged"]][reported:]
            if waiting and rng.random() < 0.6:
                await report(bench, waiting[0])
                watch()
                reported += 1
            moved = sum(len(got) for got in bench.got.values())
            await bench.step()
            watch()
            silence = 0 if moved < sum(len(got) for got in bench.got.values()) else silence + (bench.now > 1600)

        requests = [request for _, request in bench.got["dram"]]
        for index, port in enumerate(PORTS):
            seen = [request for request in requests if request["tag"] // 1000 == index]
            passed = [item for item in offered[port] if not _foreign(item)]
            assert [request["tag"] for request in seen] == [item["tag"] for item in passed], f"{port}: order"
            assert [request["tagged"] for request in seen] == [_tracked(item) for item in passed]
            if port.endswith("write"):
                assert refused[port] == [item["tag"] for item in offered[port] if _foreign(item)], f"{port}: refused"
        counted: Counter = Counter()
        for _, token in bench.got["token"]:
            assert token["epoch"] == 2 and token["context"] == 3
            counted[token["row"], token["col"]] += token["n"]
        everything = [item for items in offered.values() for item in items]
        assert counted == Counter((item["row"], item["col"]) for item in everything if _tracked(item))
        assert len(bench.got["token"]) < sum(counted.values()), "some tokens merged"
        assert bench.idle_checks > 60

    run(small_slice(count_on=count_on), scenario, seed=7 + mca)


@pytest.mark.parametrize("starvation", [0, 3, 40])
def test_idle_cycles_may_be_skipped_up_to_wake_at(starvation: int) -> None:
    async def scenario(bench: Bench) -> None:
        rng = bench.random
        await set_range(bench)
        await write_arbiter(bench, starvation=starvation)
        await bench.step(threshold=2)
        for _ in range(150):
            bench.send[rng.choice(PORTS)].append(_item(bench, rng.choice(PORTS), 0))
            bench.accept = {"dram": rng.choice([0, 1]), "token": rng.choice([0, 1])}
            await bench.step(rng.randrange(8), occupancy=rng.choice([0, 1, 2]))
            if bench["idle"] and bench["wake_at"] > bench.now:
                bench.now = min(bench["wake_at"], bench.now + rng.randrange(100)) - 1
                await bench.step()
        assert bench.idle_checks > 150

    run(small_slice(), scenario, seed=starvation)
