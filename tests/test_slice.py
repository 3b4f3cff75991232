"""The memory slice: match at entry, tokens, measurement, disarm, and Verilog that a linter accepts."""

from collections import Counter
from pathlib import Path

import pytest
from amaranth.back import verilog
from slice_driver import (
    PORTS,
    READ,
    STORE,
    TOKEN,
    UPDATES,
    report,
    set_range,
    small_slice,
    tags,
    through,
    write_arbiter,
    write_control,
)
from stream_checks import Bench, run
from t3hdl.config import NO_LIMIT, preset
from t3hdl.interface.layouts import NEVER, Dtype, Op
from t3hdl.slice.slice import MemorySlice
from t3sim.hardware.rtl.toolchain import find_toolchain

# Match at entry


@pytest.mark.parametrize("port", ["compute_write", "comm_write"])
@pytest.mark.parametrize("op", UPDATES)
def test_tagged_update_in_a_range_is_tracked(port: str, op: Op) -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        for line in (1000, 1005, 1999):
            request = await through(bench, port, {**STORE, "line": line, "op": op})
            assert request == {
                **STORE, "line": line, "stream": int(port == "comm_write"),
                "op": Op.ADD if op == Op.STORE else op, "dtype": Dtype.BF16,
            }  # fmt: skip
            assert bench.got["token"].pop()[1] == TOKEN

    run(small_slice(), scenario)


@pytest.mark.parametrize(
    "fields",
    [{"line": 999}, {"line": 2000}, {"tagged": 0}, {"context": 4, "op": Op.READ}, *({"op": op} for op in (0, 5, 6, 7))],
)
def test_everything_else_passes_unchanged_and_uncounted(fields: dict) -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        item = {**STORE, **fields}
        assert await through(bench, "compute_write", item) == {**item, "tagged": 0, "stream": 0}
        assert not bench.got["token"]

    run(small_slice(), scenario)


@pytest.mark.parametrize("port", ["compute_read", "comm_read"])
@pytest.mark.parametrize("op", [Op.READ, Op.READ_CLEAR, Op.ADD])
def test_a_read_port_never_tracks(port: str, op: Op) -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        item = {**STORE, "op": op}
        assert await through(bench, port, item) == {**item, "tagged": 0, "stream": int(port == "comm_read")}
        assert not bench.got["token"]

    run(small_slice(), scenario)


@pytest.mark.parametrize("port", PORTS)
def test_stream_bit_comes_from_the_port(port: str) -> None:
    async def scenario(bench: Bench) -> None:
        for claimed in (0, 1):
            request = await through(bench, port, {**READ, "stream": claimed})
            assert request["stream"] == port.startswith("comm")

    run(small_slice(), scenario)


def test_lowest_valid_range_wins_and_its_context_decides() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench, 0, 1004, 1010, op=Op.MAX, dtype=Dtype.INT32, epoch=1)
        await set_range(bench, 1)
        assert (await through(bench, "compute_write", STORE))["op"] == Op.MAX
        assert (await through(bench, "compute_write", {**STORE, "line": 1010}))["op"] == Op.ADD
        assert [token["epoch"] for _, token in bench.got["token"]] == [1, 2]
        await set_range(bench, 0, 1004, 1010, context=4)
        passed = len(bench.got["dram"])
        bench.send["compute_write"].append(STORE)
        await bench.step(5)
        assert len(bench.got["dram"]) == passed, "range 0 hits, and is another context's"
        await set_range(bench, 0, 1004, 1010, valid=0)
        assert (await through(bench, "compute_write", STORE))["op"] == Op.ADD

    run(small_slice(ranges=2), scenario)


def test_the_match_uses_the_registers_of_the_cycle_of_entry() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.accept["dram"] = 0
        bench.send["compute_write"].extend([STORE] * 3)  # one comes to rest in `out`, two in the queue
        await bench.step(5)
        await set_range(bench, epoch=3, op=Op.MIN)
        bench.send["compute_write"].append(STORE)
        bench.accept["dram"] = 1
        await bench.step(8)
        assert [request["op"] for _, request in bench.got["dram"]] == [Op.ADD] * 3 + [Op.MIN]
        assert [token["epoch"] for _, token in bench.got["token"]][-1] == 3

    run(small_slice(), scenario)


# Count


def test_a_full_token_queue_holds_tracked_writes_but_never_others() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        await write_arbiter(bench)
        await bench.step(threshold=NO_LIMIT)
        bench.accept["token"] = 0
        bench.send["compute_write"].extend([{**STORE, "row": i, "tag": i} for i in range(8)])
        await bench.step(30)
        assert tags(bench) == [0, 1, 2, 3], "4 places for tokens"
        assert (bench["idle"], bench["wake_at"]) == (1, NEVER)
        for port in ("compute_read", "comm_read", "comm_write"):
            bench.send[port].extend([{**READ, "tag": 50}] * 5)
        await bench.step(30)
        assert Counter(tags(bench)) == {0: 1, 1: 1, 2: 1, 3: 1, 50: 15}, "everything untracked passes"
        bench.accept["token"] = 1
        await bench.step(20)
        assert [token["row"] for _, token in bench.got["token"]] == list(range(8))

    run(small_slice(token_queue=4), scenario)


def test_a_tracked_head_without_a_token_place_does_not_keep_the_slice_awake() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        await write_arbiter(bench, starvation=10)
        await bench.step(threshold=0)
        bench.accept["token"] = 0
        bench.send["compute_write"].extend([{**STORE, "row": i} for i in range(6)])
        await bench.step(3)
        bench.send["comm_write"].append(STORE)  # waits for compute, then for a place
        await bench.step(60)
        assert (bench["idle"], bench["wake_at"]) == (1, NEVER)

    run(small_slice(), scenario)


def test_tokens_of_a_tile_merge_behind_the_visible_head() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.accept["token"] = 0
        bench.send["compute_write"].extend([STORE] * 30)
        await bench.step(40)
        assert len(bench.got["dram"]) == 30, "merged tokens need no further place"
        bench.accept["token"] = 1
        await bench.step(5)
        assert [token["n"] for _, token in bench.got["token"]] == [1, 29]

    run(small_slice(), scenario)


@pytest.mark.parametrize("tiles", [2, 3])
def test_tiles_in_turns_merge_behind_the_visible_head(tiles: int) -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.accept["token"] = 0
        bench.send["compute_write"].extend([{**STORE, "row": k % tiles} for k in range(60)])
        await bench.step(70)
        assert len(bench.got["dram"]) == 60
        bench.accept["token"] = 1
        await bench.step(6)
        each = 60 // tiles
        expected = [(0, 1), *((row, each) for row in range(1, tiles)), (0, each - 1)]
        assert [(token["row"], token["n"]) for _, token in bench.got["token"]] == expected

    run(small_slice(), scenario)


def test_performed_counts_when_the_memory_reports() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.send["compute_write"].extend([{**STORE, "row": i} for i in range(8)])
        await bench.step(30)
        assert len(bench.got["dram"]) == 4, "a place is reserved for every update under way"
        assert (bench["idle"], bench["token.valid"]) == (1, 0)
        requests = [request for _, request in bench.got["dram"]]
        reported = bench.now
        await report(bench, requests[2])
        await bench.step(10)
        assert bench.got["token"] == [(reported + bench.part.token_latency, {**TOKEN, "row": 2})]
        assert len(bench.got["dram"]) == 5
        await report(bench, {**requests[0], "tagged": 0})
        await bench.step(10)
        assert (len(bench.got["token"]), len(bench.got["dram"])) == (1, 5), "an untracked report counts nothing"

    run(small_slice(count_on="performed", token_queue=4), scenario)


def test_performed_takes_the_epoch_of_the_range_that_matches_again() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        bench.send["compute_write"].extend([STORE] * 2)
        await bench.step(6)
        request = bench.got["dram"][0][1]
        await set_range(bench, epoch=3)
        await report(bench, request)
        await set_range(bench, valid=0)
        await report(bench, request)
        await bench.step(3)
        assert [token["epoch"] for _, token in bench.got["token"]] == [3, 0]

    run(small_slice(count_on="performed"), scenario)


def test_performed_ignores_reports_of_what_is_not_outstanding() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        await report(bench, STORE, cycles=3)
        assert not bench["token.valid"]
        bench.send["compute_write"].extend([STORE] * 3)
        await bench.step(8)
        await write_control(bench, disarm=1)
        await report(bench, STORE, cycles=3)
        assert not bench["token.valid"]
        bench.send["compute_write"].extend([{**STORE, "row": i} for i in range(6)])
        await bench.step(20)
        assert len(bench.got["dram"]) == 3 + 4, "the places are free again"

    run(small_slice(count_on="performed", token_queue=4), scenario)


def test_accepted_ignores_reports() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        await report(bench, STORE, cycles=3)
        await bench.step(3)
        assert not bench.got["token"]

    run(small_slice(), scenario)


# Measure


def test_served_counts_grants_while_measure() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send["compute_read"].extend([READ] * 30)
        await bench.step(11, measure=0)
        await bench.step(10, measure=1)
        await bench.step(20, measure=0)
        assert bench["served"] == 10

    run(small_slice(), scenario)


def test_served_saturates() -> None:
    part = small_slice()

    async def scenario(bench: Bench) -> None:
        bench.ctx.set(part.served, (1 << 24) - 3)  # a register: the count goes on from here
        bench.send["compute_read"].extend([READ] * 10)
        await bench.step(4, measure=1)
        assert bench["served"] == (1 << 24) - 1
        await bench.step(12)
        assert bench["served"] == (1 << 24) - 1

    run(part, scenario)


@pytest.mark.parametrize("port", PORTS)
def test_comm_seen_after_a_communication_grant_while_armed(port: str) -> None:
    async def scenario(bench: Bench) -> None:
        await through(bench, port, READ)
        assert bench["comm_seen"] == 0
        await write_control(bench, arm=1, descriptors=1)
        await through(bench, port, READ)
        assert bench["comm_seen"] == port.startswith("comm")
        await write_control(bench, disarm=1)
        assert bench["comm_seen"] == 0
        await through(bench, port, READ)
        assert bench["comm_seen"] == 0

    run(small_slice(), scenario)


def test_arm_starts_the_measurement_over_a_grant_of_the_same_cycle() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send["comm_read"].extend([READ] * 12)
        await bench.step(6, measure=1)
        assert bench["served"] == 5
        await write_control(bench, arm=1, descriptors=1)
        assert (bench["served"], bench["comm_seen"]) == (0, 0)
        await bench.step()
        assert (bench["served"], bench["comm_seen"]) == (1, 1)

    run(small_slice(), scenario)


# Disarm


def test_disarm_empties_everything_and_keeps_ranges_and_arbiter() -> None:
    async def scenario(bench: Bench) -> None:
        await set_range(bench)
        await write_arbiter(bench)
        bench.accept["token"] = 0
        bench.send["compute_write"].append(STORE)
        await bench.step(5, threshold=NO_LIMIT, measure=1)
        bench.accept["dram"] = 0
        bench.send["compute_write"].extend([STORE] * 3)  # `out` and the queue
        bench.send["comm_read"].extend([READ] * 2)
        await bench.step(6)
        assert (bench["token.valid"], bench["dram.valid"], bench["served"]) == (1, 1, 2)
        assert (bench["compute_write.ready"], bench["comm_read.ready"]) == (0, 0)
        await write_control(bench, disarm=1)
        assert [bench[f"{port}.valid"] for port in ("dram", "token")] == [0, 0]
        assert [bench[f"{port}.ready"] for port in PORTS] == [1] * 4
        assert bench["served"] == 0
        bench.accept["dram"] = bench.accept["token"] = 1
        await bench.step(5)
        dropped = len(bench.got["dram"])
        request = await through(bench, "compute_write", STORE)
        assert (request["op"], len(bench.got["dram"])) == (Op.ADD, dropped + 1)
        await bench.step(threshold=0, measure=0)
        bench.send["comm_read"].append(READ)
        await bench.step(10)
        assert len(bench.got["dram"]) == dropped + 1, "still T3-MCA with the written starvation limit"

    run(small_slice(), scenario)


# Waived: how Yosys writes any design. Names of debug nets and unused bits, initial values beside assignments, constants
# without leading zeros, `!` of a vector, submodules in the file of the top. Everything else of -Wall is an error.
_WAIVED = ("UNUSEDSIGNAL", "PROCASSINIT", "WIDTHEXPAND", "WIDTHTRUNC", "DECLFILENAME")


@pytest.mark.parametrize("count_on", ["accepted", "performed"])
def test_paper_verilog_passes_verilators_lint(count_on: str, tmp_path: Path) -> None:
    text = verilog.convert(MemorySlice(config=preset("paper", count_on=count_on)), name="memory_slice")
    (tmp_path / "memory_slice.v").write_text(text)
    flags = ["--lint-only", "-Wall", *(f"-Wno-{name}" for name in _WAIVED)]
    find_toolchain().verilate([*flags, "memory_slice.v"], tmp_path)
