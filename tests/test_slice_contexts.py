"""The memory slice and the jobs it serves: foreign writes are refused, an aborted job is no longer counted; faults."""

from typing import Any

import pytest
from slice_driver import READ, STORE, TOKEN, report, set_range, small_slice, through, write_arbiter, write_control
from stream_checks import Bench, run
from t3hdl.interface.layouts import MemoryRequest, Op
from upsets import flip

FOREIGN = {**STORE, "context": 1}


def _refused(bench: Bench) -> dict[str, dict]:
    """What is given back in this cycle, by stream."""
    found = {}
    for stream in ("compute", "comm"):
        if bench[f"{stream}_refused_valid"]:
            word = MemoryRequest.from_bits(bench[f"{stream}_refused"])
            found[stream] = {name: word[name] for name in MemoryRequest.members}
    return found


def _whole(item: dict, stream: int) -> dict:
    return {**dict.fromkeys(MemoryRequest.members, 0), **item, "stream": stream}


@pytest.mark.parametrize("fields", [{}, {"tagged": 0}, *({"op": op} for op in range(2, 8)), {"stream": 1}])
def test_a_write_into_a_range_of_another_context_is_given_back(fields: dict) -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        item = {**FOREIGN, **fields}
        bench.send["compute_write"].append(item)
        await bench.step()
        assert _refused(bench) == {"compute": _whole(item, 0)}, "in the cycle after it was taken"
        await bench.step()
        assert not _refused(bench)
        await bench.step(6)
        assert (bench.got["dram"], bench.got["token"], bench["idle"]) == ([], [], 1)

    run(small_slice(), scenario)


def test_both_ports_refuse_in_the_same_cycle_and_one_after_the_other() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        for port in ("compute_write", "comm_write"):
            bench.send[port].extend([{**FOREIGN, "tag": 1}, {**FOREIGN, "tag": 2}, {**STORE, "tag": 3}])
        seen = []
        for _ in range(4):
            await bench.step()
            seen.append({stream: (item["tag"], item["stream"]) for stream, item in _refused(bench).items()})
        assert seen == [{"compute": (tag, 0), "comm": (tag, 1)} for tag in (1, 2)] + [{}, {}]
        await bench.step(6)
        assert [request["tag"] for _, request in bench.got["dram"]] == [3, 3]

    run(small_slice(), scenario)


def test_reads_other_lines_and_the_contexts_own_writes_are_not_refused() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        for port, item in (
            ("compute_read", {**FOREIGN, "op": Op.READ_CLEAR}), ("compute_write", {**FOREIGN, "op": Op.READ}),
            ("compute_write", {**FOREIGN, "line": 2000}), ("comm_write", {**STORE, "tagged": 0}),
        ):  # fmt: skip
            assert (await through(bench, port, item))["tagged"] == 0
            assert not _refused(bench)
        assert len(bench.got["dram"]) == 4

    run(small_slice(), scenario)


def test_a_full_queue_refuses_nothing_yet() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.accept["dram"] = 0
        bench.send["compute_write"].extend([*[STORE] * 3, FOREIGN])
        await bench.step(10)
        assert not bench["compute_write.ready"] and not _refused(bench)
        bench.accept["dram"] = 1
        await bench.step(2)
        assert "compute" in _refused(bench)

    run(small_slice(), scenario)


def test_a_disarm_wins_over_a_refusal_of_its_cycle() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.send["compute_write"].append(FOREIGN)
        await write_control(bench, disarm=1)
        assert len(bench.sent["compute_write"]) == 1
        assert not _refused(bench)

    run(small_slice(), scenario)


# Abort


def test_an_abort_ends_the_ranges_of_its_context_only() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench, 0)
        await set_range(bench, 1, 3000, 4000, context=2)
        bench.send["compute_write"].extend([{**FOREIGN, "tag": tag} for tag in range(4)])
        await write_control(bench, abort=1, context=3)
        assert "compute" in _refused(bench), "an item of the abort's cycle still meets the range"
        for _ in range(6):
            await bench.step()
            assert not _refused(bench)
        assert (await through(bench, "compute_write", {**STORE, "line": 3005, "context": 2}))["tagged"] == 1
        assert (await through(bench, "compute_write", STORE))["tagged"] == 0
        assert [token["context"] for _, token in bench.got["token"]] == [2]
        await write_control(bench, arm=1, context=3, descriptors=1)
        assert (await through(bench, "compute_write", STORE))["tagged"] == 0, "an arm does not bring it back"
        await set_range(bench, 0)
        assert (await through(bench, "compute_write", STORE))["tagged"] == 1
        assert len(bench.got["token"]) == 2

    run(small_slice(), scenario)


@pytest.mark.parametrize("count_on", ["accepted", "performed"])
@pytest.mark.parametrize("again", ["arm", "disarm", None])
def test_what_is_under_way_is_performed_and_not_counted(count_on: str, again: str | None) -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.accept["dram"] = 0
        bench.send["compute_write"].extend([{**STORE, "row": row} for row in range(3)])
        await bench.step(5)
        await write_control(bench, abort=1, context=3)
        if again == "arm":
            await write_control(bench, arm=1, context=3, descriptors=1)
        bench.accept["dram"] = 1
        await bench.step(8)
        requests = [request for _, request in bench.got["dram"]]
        assert [request["tagged"] for request in requests] == [1] * 3
        if count_on == "performed":
            for request in requests:
                await report(bench, request)
        await bench.step(4)
        assert [token["row"] for _, token in bench.got["token"]] == ([0, 1, 2] if again == "arm" else [])
        if again == "disarm":
            await write_control(bench, disarm=1)
        await set_range(bench)
        for row in range(6):  # places for tokens were given back
            bench.send["compute_write"].append({**STORE, "row": row})
        await bench.step(12)
        if count_on == "performed":
            for _, request in bench.got["dram"][3:]:
                await report(bench, request)
        await bench.step(4)
        assert len(bench.got["dram"]) >= 3 + 4
        assert bool(bench.got["token"]) == (again is not None)

    run(small_slice(count_on=count_on), scenario)


def test_a_token_that_waits_already_is_delivered_after_an_abort() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.accept["token"] = 0
        bench.send["compute_write"].append(STORE)
        await bench.step(5)
        await write_control(bench, abort=1, context=3)
        bench.accept["token"] = 1
        await bench.step(3)
        assert [token for _, token in bench.got["token"]] == [TOKEN]

    run(small_slice(), scenario)


# Faults


@pytest.mark.parametrize(("register", "bit"), [
    ("base_0", 0), ("base_0", 38), ("limit_0", 12), ("attributes_0", 0), ("attributes_0", 2), ("attributes_0", 11),
])  # fmt: skip
def test_a_damaged_range_matches_nothing(register: str, bit: int) -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        assert (await through(bench, "compute_write", STORE))["tagged"] == 1
        flip(bench, register, bit)
        assert not bench["idle"]
        await bench.step(2)
        assert (bench["uncorrectable"], bench["corrected"], bench["idle"]) == (1, 0, 1)
        assert (await through(bench, "compute_write", STORE))["tagged"] == 0
        assert (await through(bench, "compute_write", FOREIGN))["tagged"] == 0
        await set_range(bench)
        await write_control(bench, disarm=1)
        assert bench["uncorrectable"] == 0
        assert (await through(bench, "compute_write", STORE))["tagged"] == 1
        assert bench["uncorrectable"] == 0

    run(small_slice(protect=True), scenario)


def test_an_abort_keeps_a_sound_range_sound() -> None:
    async def scenario(bench: Bench) -> None:
        for context in (2, 3):
            await set_range(bench, context=context)
            await write_control(bench, abort=1, context=context)
            await bench.step(2)
        assert bench["uncorrectable"] == 0

    run(small_slice(protect=True), scenario)


async def _waiting_tokens(bench: Bench, rows: int) -> None:
    """Tokens of this many rows in the queue."""
    await set_range(bench)
    bench.accept["token"] = 0
    bench.send["compute_write"].extend([{**STORE, "row": row} for row in range(rows)])
    await bench.step(10)


@pytest.mark.parametrize("bits", [(0,), (36,), (47,)])
def test_one_wrong_bit_of_a_token_is_put_right(bits: tuple[int, ...]) -> None:
    async def scenario(bench: Bench) -> None:
        await _waiting_tokens(bench, 3)
        flip(bench, "entry_1", *bits)
        await bench.step(3)
        assert bench["corrected"] == 0, "not read yet"
        bench.accept["token"] = 1
        await bench.step(5)
        assert [token for _, token in bench.got["token"]] == [{**TOKEN, "row": row} for row in range(3)]
        assert (bench["corrected"], bench["uncorrectable"]) == (1, 0)

    run(small_slice(protect=True), scenario)


def test_a_lost_token_is_dropped_and_its_place_is_free_again() -> None:
    async def scenario(bench: Bench) -> None:
        await _waiting_tokens(bench, 8)
        flip(bench, "entry_1", 3, 20)
        bench.accept["token"] = 1
        await bench.step(20)
        assert [token["row"] for _, token in bench.got["token"]] == [0, 2, 3, 4, 5, 6, 7]
        assert (bench["corrected"], bench["uncorrectable"], bench["idle"]) == (0, 1, 1)

    run(small_slice(protect=True), scenario)


def test_a_damaged_token_takes_no_more_updates() -> None:
    async def scenario(bench: Bench) -> None:
        await _waiting_tokens(bench, 2)
        flip(bench, "entry_1", 36)
        bench.send["compute_write"].append({**STORE, "row": 1})
        await bench.step(6)
        bench.accept["token"] = 1
        await bench.step(6)
        assert [(token["row"], token["n"]) for _, token in bench.got["token"]] == [(0, 1), (1, 1), (1, 1)]

    run(small_slice(protect=True), scenario)


def test_protection_changes_nothing_without_faults() -> None:
    outputs: list[list[Any]] = []
    for protect in (False, True):
        seen: list[Any] = []

        async def scenario(bench: Bench, seen: list[Any] = seen) -> None:
            await set_range(bench)
            await write_arbiter(bench, starvation=6)
            for k in range(150):
                port = bench.random.choice(("compute_write", "comm_write", "comm_read"))
                item = bench.random.choice((STORE, FOREIGN, READ, {**STORE, "row": k % 3}))
                bench.send[port].append(item)
                bench.accept = {"dram": 0.6, "token": 0.4}
                await bench.step(bench.random.randrange(3), threshold=5, occupancy=bench.random.randrange(8))
                seen.append(bench._sample())

        run(small_slice(protect=protect), scenario, seed=21)
        outputs.append(seen)
    assert outputs[0] == outputs[1]
