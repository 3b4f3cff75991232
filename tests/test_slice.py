"""The memory slice: match at entry, arbitration, tokens, measurement; stream rules and idle under random traffic."""

from collections import Counter
from itertools import pairwise

import pytest
from stream_checks import Bench, run
from t3hdl import register_map as regs
from t3hdl.config import NO_LIMIT, preset
from t3hdl.layouts import NEVER, Dtype, Op
from t3hdl.slice import MemorySlice

_PORTS = ("compute_read", "compute_write", "comm_read", "comm_write")
_TILE = {"context": 3, "row": 5, "col": 9, "wf": 1, "right": 1, "bottom": 0}
_STORE = {"line": 1005, "op": Op.STORE, "dtype": Dtype.FP16, "source": 2, "tagged": 1, "tag": 77, **_TILE}
_READ = {"line": 10, "op": Op.READ, "tag": 5}
_TOKEN = {**_TILE, "epoch": 2, "n": 1}
_MCA = {"mca": 1, "fixed": 0, "threshold": 0, "starvation": 20, "burst": 2}
_UPDATES = (Op.STORE, Op.ADD, Op.MIN, Op.MAX)


def _slice(**parameters: object) -> MemorySlice:
    return MemorySlice(config=preset("small", **parameters))


async def _set_range(bench: Bench, index: int = 0, base: int = 1000, limit: int = 2000, **attributes: int) -> None:
    """Range ``index``: by default lines 1000 to 1999 of context 3, epoch 2, ADD on BF16."""
    address = regs.RANGE + index * regs.RANGE_STRIDE
    fields = {"valid": 1, "context": 3, "epoch": 2, "op": Op.ADD, "dtype": Dtype.BF16, **attributes}
    await bench.write(address, base)
    await bench.write(address + 8, limit)
    await bench.write(address + 16, fields, regs.RangeAttributes)


async def _arbiter(bench: Bench, **fields: int) -> None:
    await bench.write(regs.ARBITER, {**_MCA, **fields}, regs.Arbiter)


async def _control(bench: Bench, **fields: int) -> None:
    await bench.write(regs.CONTROL, fields, regs.Control)


async def _through(bench: Bench, port: str, item: dict) -> dict:
    """What ``item`` looks like on ``dram``."""
    bench.send[port].append(item)
    await bench.step(4)
    return bench.got["dram"][-1][1]


def _tags(bench: Bench) -> list[int]:
    return [request["tag"] for _, request in bench.got["dram"]]


# Match at entry


@pytest.mark.parametrize("port", ["compute_write", "comm_write"])
@pytest.mark.parametrize("op", _UPDATES)
def test_tagged_update_in_a_range_is_tracked(port: str, op: Op) -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        for line in (1000, 1005, 1999):
            request = await _through(bench, port, {**_STORE, "line": line, "op": op})
            assert request == {
                **_STORE, "line": line, "stream": int(port == "comm_write"),
                "op": Op.ADD if op == Op.STORE else op, "dtype": Dtype.BF16,
            }  # fmt: skip
            assert bench.got["token"].pop()[1] == _TOKEN

    run(_slice(), scenario)


@pytest.mark.parametrize(
    "fields",
    [{"line": 999}, {"line": 2000}, {"context": 4}, {"tagged": 0}, *({"op": op} for op in (0, 5, 6, 7))],
)
def test_everything_else_passes_unchanged_and_uncounted(fields: dict) -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        item = {**_STORE, **fields}
        assert await _through(bench, "compute_write", item) == {**item, "tagged": 0, "stream": 0}
        assert not bench.got["token"]

    run(_slice(), scenario)


@pytest.mark.parametrize("port", ["compute_read", "comm_read"])
@pytest.mark.parametrize("op", [Op.READ, Op.READ_CLEAR, Op.ADD])
def test_a_read_port_never_tracks(port: str, op: Op) -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        item = {**_STORE, "op": op}
        assert await _through(bench, port, item) == {**item, "tagged": 0, "stream": int(port == "comm_read")}
        assert not bench.got["token"]

    run(_slice(), scenario)


@pytest.mark.parametrize("port", _PORTS)
def test_stream_bit_comes_from_the_port(port: str) -> None:
    async def scenario(bench: Bench) -> None:
        for claimed in (0, 1):
            request = await _through(bench, port, {**_READ, "stream": claimed})
            assert request["stream"] == port.startswith("comm")

    run(_slice(), scenario)


def test_lowest_valid_range_wins_and_its_context_decides() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench, 0, 1004, 1010, op=Op.MAX, dtype=Dtype.INT32, epoch=1)
        await _set_range(bench, 1)
        assert (await _through(bench, "compute_write", _STORE))["op"] == Op.MAX
        assert (await _through(bench, "compute_write", {**_STORE, "line": 1010}))["op"] == Op.ADD
        assert [token["epoch"] for _, token in bench.got["token"]] == [1, 2]
        await _set_range(bench, 0, 1004, 1010, context=4)
        assert (await _through(bench, "compute_write", _STORE))["tagged"] == 0
        await _set_range(bench, 0, 1004, 1010, valid=0)
        assert (await _through(bench, "compute_write", _STORE))["op"] == Op.ADD

    run(_slice(ranges=2), scenario)


def test_the_match_uses_the_registers_of_the_cycle_of_entry() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        bench.accept["dram"] = 0
        bench.send["compute_write"].extend([_STORE] * 3)  # one comes to rest in `out`, two in the queue
        await bench.step(5)
        await _set_range(bench, epoch=3, op=Op.MIN)
        bench.send["compute_write"].append(_STORE)
        bench.accept["dram"] = 1
        await bench.step(8)
        assert [request["op"] for _, request in bench.got["dram"]] == [Op.ADD] * 3 + [Op.MIN]
        assert [token["epoch"] for _, token in bench.got["token"]][-1] == 3

    run(_slice(), scenario)


# Grants, seen from outside (test_arbiter.py has the rules one by one)


def test_latency_and_throughput() -> None:
    part = _slice()

    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        start = bench.now
        bench.send["compute_write"].extend([{**_STORE, "tag": i, "row": i} for i in range(20)])
        await bench.step(30)
        assert [t for t, _ in bench.sent["compute_write"]] == list(range(start, start + 20))
        left = [t for t, _ in bench.got["dram"]]
        assert left == [t + part.latency for t, _ in bench.sent["compute_write"]]
        assert [t for t, _ in bench.got["token"]] == [t + part.token_latency for t in left]

    run(part, scenario)


def test_round_robin_after_reset_with_alternating_kinds() -> None:
    async def scenario(bench: Bench) -> None:
        bench.accept["dram"] = 0
        for index, port in enumerate(_PORTS):
            bench.send[port].extend([{**_READ, "tag": 10 * index + i} for i in range(3)])
        await bench.step(6)
        bench.accept["dram"] = 1
        await bench.step(14)
        # compute write, comm write, compute read, comm read, and again
        assert _tags(bench) == [10, 30, 0, 20, 11, 31, 1, 21, 12, 32, 2, 22]

    run(_slice(), scenario)


def test_mca_holds_communication_at_the_threshold_and_the_slice_is_idle_then() -> None:
    async def scenario(bench: Bench) -> None:
        await _arbiter(bench, starvation=500)
        await bench.step(threshold=10, occupancy=10)
        bench.send["comm_read"].append(_READ)
        await bench.step(50)
        assert (bench["idle"], bench["dram.valid"]) == (1, 0)
        arrived = bench.sent["comm_read"][0][0]
        assert bench["wake_at"] == arrived + 1 + 500
        await bench.step(occupancy=9)
        assert bench["dram.valid"] == 1
        assert bench.idle_checks > 40

    run(_slice(), scenario)


@pytest.mark.parametrize("fixed", [0, 1])
def test_mca_counts_the_output_register_as_occupancy(fixed: int) -> None:
    async def scenario(bench: Bench) -> None:
        await _arbiter(bench, fixed=fixed, threshold=10 if fixed else 0)
        await bench.step(threshold=NO_LIMIT if fixed else 10, occupancy=9)
        bench.send["comm_read"].extend([_READ] * 3)
        await bench.step(9)
        # With a request in `out`, 9 entries are 10: the next one waits until `out` is empty.
        cycles = [t for t, _ in bench.got["dram"]]
        assert [later - earlier for earlier, later in pairwise(cycles)] == [2, 2]

    run(_slice(), scenario)


def test_mca_starving_communication_goes_at_its_deadline_in_bursts() -> None:
    async def scenario(bench: Bench) -> None:
        await _arbiter(bench)
        bench.send["compute_read"].extend([_READ] * 200)
        await bench.step(5)
        bench.send["comm_read"].extend([{**_READ, "tag": 99}] * 6)
        await bench.step(100)
        seen = bench.sent["comm_read"][0][0] + 1  # the head is at the arbiter
        granted = [t - 1 for t, request in bench.got["dram"] if request["tag"] == 99]
        # A burst is 2; in the cycle after it the next head starts to wait.
        starts = [seen + 20, seen + 20 + 22, seen + 20 + 44]
        assert granted == [t + i for t in starts for i in (0, 1)]

    run(_slice(), scenario)


def test_full_dram_queue_blocks_and_the_slice_is_idle_without_a_deadline() -> None:
    async def scenario(bench: Bench) -> None:
        await _arbiter(bench)
        bench.accept["dram"] = 0
        for port in _PORTS:
            bench.send[port].extend([_READ] * 4)
        await bench.step(60)
        assert (bench["idle"], bench["wake_at"], bench["dram.valid"]) == (1, NEVER, 1)
        assert [bench[f"{port}.ready"] for port in _PORTS] == [0] * 4
        assert bench.idle_checks > 50

    run(_slice(), scenario)


def test_an_arbiter_write_wakes_a_waiting_slice() -> None:
    async def scenario(bench: Bench) -> None:
        await _arbiter(bench, fixed=1, threshold=0, starvation=500)
        bench.send["comm_read"].append(_READ)
        await bench.step(20)
        assert (bench["idle"], bench["dram.valid"]) == (1, 0)
        await _arbiter(bench, fixed=1, threshold=1, starvation=500)
        assert (bench["idle"], bench["dram.valid"]) == (0, 0)
        await bench.step()
        assert bench["dram.valid"] == 1

    run(_slice(), scenario)


# Count


def test_a_full_token_queue_holds_tracked_writes_but_never_others() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        await _arbiter(bench)
        await bench.step(threshold=NO_LIMIT)
        bench.accept["token"] = 0
        bench.send["compute_write"].extend([{**_STORE, "row": i, "tag": i} for i in range(8)])
        await bench.step(30)
        assert _tags(bench) == [0, 1, 2, 3], "4 places for tokens"
        assert (bench["idle"], bench["wake_at"]) == (1, NEVER)
        for port in ("compute_read", "comm_read", "comm_write"):
            bench.send[port].extend([{**_READ, "tag": 50}] * 5)
        await bench.step(30)
        assert Counter(_tags(bench)) == {0: 1, 1: 1, 2: 1, 3: 1, 50: 15}, "everything untracked passes"
        bench.accept["token"] = 1
        await bench.step(20)
        assert [token["row"] for _, token in bench.got["token"]] == list(range(8))

    run(_slice(), scenario)


def test_a_tracked_head_without_a_token_place_does_not_keep_the_slice_awake() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        await _arbiter(bench, starvation=10)
        await bench.step(threshold=0)
        bench.accept["token"] = 0
        bench.send["compute_write"].extend([{**_STORE, "row": i} for i in range(6)])
        await bench.step(3)
        bench.send["comm_write"].append(_STORE)  # waits for compute, then for a place
        await bench.step(60)
        assert (bench["idle"], bench["wake_at"]) == (1, NEVER)

    run(_slice(), scenario)


def test_tokens_of_a_tile_merge_behind_the_visible_head() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        bench.accept["token"] = 0
        bench.send["compute_write"].extend([_STORE] * 30)
        await bench.step(40)
        assert len(bench.got["dram"]) == 30, "merged tokens need no further place"
        bench.accept["token"] = 1
        await bench.step(5)
        assert [token["n"] for _, token in bench.got["token"]] == [1, 29]

    run(_slice(), scenario)


async def _report(bench: Bench, request: dict, cycles: int = 1) -> None:
    """The memory reports ``request`` performed, in each of ``cycles`` cycles."""
    for _ in range(cycles):
        await bench.step(update_done_valid=1, update_done=request)
    bench.ctx.set(bench.part.update_done_valid, 0)


def test_performed_counts_when_the_memory_reports() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        bench.send["compute_write"].extend([{**_STORE, "row": i} for i in range(8)])
        await bench.step(30)
        assert len(bench.got["dram"]) == 4, "a place is reserved for every update under way"
        assert (bench["idle"], bench["token.valid"]) == (1, 0)
        requests = [request for _, request in bench.got["dram"]]
        reported = bench.now
        await _report(bench, requests[2])
        await bench.step(10)
        assert bench.got["token"] == [(reported + bench.part.token_latency, {**_TOKEN, "row": 2})]
        assert len(bench.got["dram"]) == 5
        await _report(bench, {**requests[0], "tagged": 0})
        await bench.step(10)
        assert (len(bench.got["token"]), len(bench.got["dram"])) == (1, 5), "an untracked report counts nothing"

    run(_slice(count_on="performed"), scenario)


def test_performed_takes_the_epoch_of_the_range_that_matches_again() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        bench.send["compute_write"].extend([_STORE] * 2)
        await bench.step(6)
        request = bench.got["dram"][0][1]
        await _set_range(bench, epoch=3)
        await _report(bench, request)
        await _set_range(bench, valid=0)
        await _report(bench, request)
        await bench.step(3)
        assert [token["epoch"] for _, token in bench.got["token"]] == [3, 0]

    run(_slice(count_on="performed"), scenario)


def test_performed_ignores_reports_of_what_is_not_outstanding() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        await _report(bench, _STORE, cycles=3)
        assert not bench["token.valid"]
        bench.send["compute_write"].extend([_STORE] * 3)
        await bench.step(8)
        await _control(bench, disarm=1)
        await _report(bench, _STORE, cycles=3)
        assert not bench["token.valid"]
        bench.send["compute_write"].extend([{**_STORE, "row": i} for i in range(6)])
        await bench.step(20)
        assert len(bench.got["dram"]) == 3 + 4, "the places are free again"

    run(_slice(count_on="performed"), scenario)


def test_accepted_ignores_reports() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        await _report(bench, _STORE, cycles=3)
        await bench.step(3)
        assert not bench.got["token"]

    run(_slice(), scenario)


# Measure


def test_served_counts_grants_while_measure() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send["compute_read"].extend([_READ] * 30)
        await bench.step(11, measure=0)
        await bench.step(10, measure=1)
        await bench.step(20, measure=0)
        assert bench["served"] == 10

    run(_slice(), scenario)


def test_served_saturates() -> None:
    part = _slice()

    async def scenario(bench: Bench) -> None:
        bench.ctx.set(part.served, (1 << 24) - 3)  # a register: the count goes on from here
        bench.send["compute_read"].extend([_READ] * 10)
        await bench.step(4, measure=1)
        assert bench["served"] == (1 << 24) - 1
        await bench.step(12)
        assert bench["served"] == (1 << 24) - 1

    run(part, scenario)


@pytest.mark.parametrize("port", _PORTS)
def test_comm_seen_after_a_communication_grant_while_armed(port: str) -> None:
    async def scenario(bench: Bench) -> None:
        await _through(bench, port, _READ)
        assert bench["comm_seen"] == 0
        await _control(bench, arm=1, descriptors=1)
        await _through(bench, port, _READ)
        assert bench["comm_seen"] == port.startswith("comm")
        await _control(bench, disarm=1)
        assert bench["comm_seen"] == 0
        await _through(bench, port, _READ)
        assert bench["comm_seen"] == 0

    run(_slice(), scenario)


def test_arm_starts_the_measurement_over_a_grant_of_the_same_cycle() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send["comm_read"].extend([_READ] * 12)
        await bench.step(6, measure=1)
        assert bench["served"] == 5
        await _control(bench, arm=1, descriptors=1)
        assert (bench["served"], bench["comm_seen"]) == (0, 0)
        await bench.step()
        assert (bench["served"], bench["comm_seen"]) == (1, 1)

    run(_slice(), scenario)


# Disarm


def test_disarm_empties_everything_and_keeps_ranges_and_arbiter() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench)
        await _arbiter(bench)
        bench.accept["token"] = 0
        bench.send["compute_write"].append(_STORE)
        await bench.step(5, threshold=NO_LIMIT, measure=1)
        bench.accept["dram"] = 0
        bench.send["compute_write"].extend([_STORE] * 3)  # `out` and the queue
        bench.send["comm_read"].extend([_READ] * 2)
        await bench.step(6)
        assert (bench["token.valid"], bench["dram.valid"], bench["served"]) == (1, 1, 2)
        assert (bench["compute_write.ready"], bench["comm_read.ready"]) == (0, 0)
        await _control(bench, disarm=1)
        assert [bench[f"{port}.valid"] for port in ("dram", "token")] == [0, 0]
        assert [bench[f"{port}.ready"] for port in _PORTS] == [1] * 4
        assert bench["served"] == 0
        bench.accept["dram"] = bench.accept["token"] = 1
        await bench.step(5)
        dropped = len(bench.got["dram"])
        request = await _through(bench, "compute_write", _STORE)
        assert (request["op"], len(bench.got["dram"])) == (Op.ADD, dropped + 1)
        await bench.step(threshold=0, measure=0)
        bench.send["comm_read"].append(_READ)
        await bench.step(10)
        assert len(bench.got["dram"]) == dropped + 1, "still T3-MCA with the written starvation limit"

    run(_slice(), scenario)


# Random traffic


def _item(bench: Bench, port: str, tag: int) -> dict:
    rng = bench.random
    tile = {**_TILE, "row": rng.randrange(2), "col": rng.randrange(2)}
    op = rng.choice(_UPDATES) if port.endswith("write") else rng.choice([Op.READ, Op.READ_CLEAR])
    line, tagged, context = rng.randrange(900, 2100), int(rng.random() < 0.8), rng.choice([3, 3, 4])
    return {"line": line, "op": op, "tagged": tagged, "tag": tag, **tile, "context": context}


def _tracked(item: dict) -> bool:
    return bool(item["op"] in _UPDATES and item["tagged"] and item["context"] == 3 and 1000 <= item["line"] < 2000)


@pytest.mark.parametrize("count_on", ["accepted", "performed"])
@pytest.mark.parametrize("mca", [0, 1])
def test_random_traffic_is_passed_once_in_order_and_counted(count_on: str, mca: int) -> None:
    async def scenario(bench: Bench) -> None:
        rng = bench.random
        await _set_range(bench)
        await _arbiter(bench, mca=mca, starvation=12)
        offered: dict[str, list[dict]] = {}
        for index, port in enumerate(_PORTS):
            offered[port] = [_item(bench, port, 1000 * index + i) for i in range(150)]
            bench.send[port].extend(offered[port])
        reported, silence = 0, 0
        while silence < 60:
            if bench.now % 16 == 0:
                bench.gap = rng.choice([0.0, 0.0, 0.7, 1.0])
                bench.accept = {"dram": rng.choice([0, 0.4, 1]), "token": rng.choice([0, 0.1, 0.5, 1])}
                await bench.step(threshold=rng.choice([0, 5, NO_LIMIT]), occupancy=rng.choice([0, 4, 5, 60]))
            if bench.now > 1500:
                bench.gap, bench.accept = 0.0, {"dram": 1.0, "token": 1.0}
            waiting = [request for _, request in bench.got["dram"] if request["tagged"]][reported:]
            if waiting and rng.random() < 0.6:
                await _report(bench, waiting[0])
                reported += 1
            moved = sum(len(got) for got in bench.got.values())
            await bench.step()
            silence = 0 if moved < sum(len(got) for got in bench.got.values()) else silence + (bench.now > 1600)

        requests = [request for _, request in bench.got["dram"]]
        for index, port in enumerate(_PORTS):
            seen = [request for request in requests if request["tag"] // 1000 == index]
            assert [request["tag"] for request in seen] == [item["tag"] for item in offered[port]], f"{port}: order"
            assert [request["tagged"] for request in seen] == [_tracked(item) for item in offered[port]]
        counted: Counter = Counter()
        for _, token in bench.got["token"]:
            assert token["epoch"] == 2 and token["context"] == 3
            counted[token["row"], token["col"]] += token["n"]
        everything = [item for items in offered.values() for item in items]
        assert counted == Counter((item["row"], item["col"]) for item in everything if _tracked(item))
        assert len(bench.got["token"]) < sum(counted.values()), "some tokens merged"
        assert bench.idle_checks > 60

    run(_slice(count_on=count_on), scenario, seed=7 + mca)


@pytest.mark.parametrize("starvation", [0, 3, 40])
def test_idle_cycles_may_be_skipped_up_to_wake_at(starvation: int) -> None:
    async def scenario(bench: Bench) -> None:
        rng = bench.random
        await _set_range(bench)
        await _arbiter(bench, starvation=starvation)
        await bench.step(threshold=2)
        for _ in range(150):
            bench.send[rng.choice(_PORTS)].append(_item(bench, rng.choice(_PORTS), 0))
            bench.accept = {"dram": rng.choice([0, 1]), "token": rng.choice([0, 1])}
            await bench.step(rng.randrange(8), occupancy=rng.choice([0, 1, 2]))
            if bench["idle"] and bench["wake_at"] > bench.now:
                bench.now = min(bench["wake_at"], bench.now + rng.randrange(100)) - 1
                await bench.step()
        assert bench.idle_checks > 150

    run(_slice(), scenario, seed=starvation)
