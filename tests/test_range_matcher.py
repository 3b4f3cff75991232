"""The egress matcher: which store rows become packets for a peer, and to which address there."""

import pytest
from stream_checks import Bench, run
from t3hdl.config import preset
from t3hdl.egress.matcher import RangeMatcher
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER, ChunkKind, Op
from upsets import flip

_ROW = {
    "line": 1005, "op": Op.STORE, "context": 3, "source": 2, "tagged": 1, "wf": 1, "row": 5, "col": 9, "tag": 77,
}  # fmt: skip
_REMOTE = {
    "row0": 4, "row1": 8, "col0": 8, "col1": 12, "kind": ChunkKind.REMOTE, "op": Op.ADD, "peer": 6,
    "context": 3, "peer_base": 50_000,
}  # fmt: skip


async def _set_range(bench: Bench, index: int, base: int, limit: int, *, context: int, valid: int = 1) -> None:
    address = regs.RANGE + index * regs.RANGE_STRIDE
    await bench.write(address, base)
    await bench.write(address + 8, limit)
    attributes = {"valid": valid, "context": context, "epoch": 1, "op": Op.ADD, "dtype": 0}
    await bench.write(address + 16, attributes, regs.RangeAttributes)


async def _set_chunk(bench: Bench, index: int, chunk: dict) -> None:
    for word, layout in enumerate(regs.DESCRIPTOR_LAYOUTS[:4]):
        address = regs.DESCRIPTOR + index * regs.DESCRIPTOR_STRIDE + 8 * word
        await bench.write(address, {name: chunk[name] for name in layout.members if name in chunk}, layout)


async def _control(bench: Bench, **fields: int) -> None:
    await bench.write(regs.CONTROL, fields, regs.Control)


async def _route(bench: Bench, **fields: int) -> dict:
    bench.send["store"].append({**_ROW, **fields})
    await bench.step(4)
    return bench.got["route"][-1][1]


async def _remote_setup(bench: Bench) -> None:
    """Range 1 holds lines 1000 to 1999 of context 3, descriptor 2 sends tiles (4..7, 8..11) to GPU 6."""
    await _set_range(bench, 1, 1000, 2000, context=3)
    await _set_chunk(bench, 2, _REMOTE)
    await _control(bench, arm=1, context=3, descriptors=3)


def _matcher(**parameters: object) -> RangeMatcher:
    return RangeMatcher(config=preset("small", ranges=2, contexts=4, **parameters))


_STAYS = {"matched": 0, "remote": 0, "descriptor": 0, "peer": 0, "op": Op.STORE, "line": 1005}


def test_remote_row_goes_to_the_peers_address() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        expected = {"matched": 1, "remote": 1, "descriptor": 2, "peer": 6, "op": Op.ADD, "line": 50_005}
        assert await _route(bench) == expected
        assert await _route(bench, line=1999, row=7, col=11) == {**expected, "line": 50_999}
        assert await _route(bench, line=1000, row=4, col=8, op=Op.MAX) == {**expected, "line": 50_000}

    run(_matcher(), scenario)


@pytest.mark.parametrize("kind", [ChunkKind.DMA, ChunkKind.LOCAL])
def test_local_chunk_matches_and_the_row_stays(kind: ChunkKind) -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        await _set_chunk(bench, 2, {**_REMOTE, "kind": kind})
        assert await _route(bench) == {**_STAYS, "matched": 1, "descriptor": 2}

    run(_matcher(), scenario)


@pytest.mark.parametrize(
    "fields",
    [
        {"line": 999}, {"line": 2000}, {"context": 2}, {"tagged": 0},
        {"row": 3}, {"row": 8}, {"col": 7}, {"col": 12},
    ],
)  # fmt: skip
def test_row_outside_stays(fields: dict) -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        assert await _route(bench, **fields) == {**_STAYS, "line": fields.get("line", 1005)}

    run(_matcher(), scenario)


def test_descriptor_of_kind_none_or_another_context_does_not_match() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        await _set_chunk(bench, 2, {**_REMOTE, "kind": ChunkKind.NONE})
        assert await _route(bench) == _STAYS
        await _set_chunk(bench, 2, {**_REMOTE, "context": 4})
        assert await _route(bench) == _STAYS

    run(_matcher(), scenario)


def test_lowest_descriptor_wins() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        await _set_chunk(bench, 1, {**_REMOTE, "peer": 1})
        assert (await _route(bench))["descriptor"] == 1
        await _set_chunk(bench, 0, {**_REMOTE, "kind": ChunkKind.DMA})
        assert await _route(bench) == {**_STAYS, "matched": 1}

    run(_matcher(), scenario)


def test_lowest_valid_range_wins_and_its_context_decides() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        await _set_range(bench, 0, 1004, 1100, context=3)
        assert (await _route(bench))["line"] == 50_001, "range 0 hits: its base counts"
        await _set_range(bench, 0, 1004, 1100, context=2)
        assert await _route(bench) == _STAYS, "range 0 still hits, and has another context"
        await _set_range(bench, 0, 1004, 1100, context=2, valid=0)
        assert (await _route(bench))["line"] == 50_005, "an invalid range does not hit"

    run(_matcher(), scenario)


def test_only_armed_descriptors_match() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench, 1, 1000, 2000, context=3)
        await _set_chunk(bench, 2, _REMOTE)
        assert await _route(bench) == _STAYS, "not armed"
        await _control(bench, arm=1, context=3, descriptors=2)
        assert await _route(bench) == _STAYS, "armed without descriptor 2"
        await _control(bench, disarm=1)
        await _control(bench, arm=1, context=3, descriptors=3)
        assert (await _route(bench))["remote"] == 1, "disarm keeps ranges and descriptors"
        await _control(bench, disarm=1)
        assert await _route(bench) == _STAYS

    run(_matcher(), scenario)


def test_a_window_is_where_its_context_looks() -> None:
    async def scenario(bench: Bench) -> None:
        await _set_range(bench, 0, 1000, 2000, context=3)
        await _set_range(bench, 1, 3000, 4000, context=1)
        for i in range(8):
            await _set_chunk(bench, i, {**_REMOTE, "context": 1 if i < 3 else 3})
        await _control(bench, arm=1, context=3, first=5, descriptors=3)
        assert (await _route(bench))["descriptor"] == 5
        assert (await _route(bench, context=1, line=3000))["matched"] == 0, "the window of another context"
        await _control(bench, arm=1, context=1, first=1, descriptors=1)
        assert (await _route(bench, context=1, line=3000))["descriptor"] == 1
        await _control(bench, arm=1, context=1, first=3, descriptors=5)
        assert (await _route(bench, context=1, line=3000))["matched"] == 0, "descriptors of another context"
        assert (await _route(bench))["descriptor"] == 5
        await _control(bench, arm=1, context=3, first=0, descriptors=8)
        assert (await _route(bench))["descriptor"] == 3

    run(_matcher(), scenario)


def test_a_context_that_does_not_exist_has_no_window() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        await _set_chunk(bench, 2, {**_REMOTE, "context": 9})
        await _set_range(bench, 1, 1000, 2000, context=9)
        assert await _route(bench, context=9) == _STAYS

    run(_matcher(), scenario)


def test_an_abort_ends_window_and_ranges_of_its_context_only() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        await _set_range(bench, 0, 3000, 4000, context=1)
        await _set_chunk(bench, 3, {**_REMOTE, "context": 1})
        await _control(bench, arm=1, context=1, first=3, descriptors=1)
        await _control(bench, abort=1, context=3)
        assert await _route(bench) == _STAYS
        assert (await _route(bench, context=1, line=3000))["descriptor"] == 3
        await _control(bench, arm=1, context=3, descriptors=3)
        assert await _route(bench) == _STAYS, "no range"
        await _set_range(bench, 1, 1000, 2000, context=3)
        assert (await _route(bench))["descriptor"] == 2
        await _control(bench, abort=1, context=3)
        await _set_range(bench, 1, 1000, 2000, context=3)
        assert await _route(bench) == _STAYS, "no window"

    run(_matcher(), scenario)


@pytest.mark.parametrize(("register", "bit"), [
    ("base_1", 3), ("limit_1", 20), ("attributes_1", 0), ("attributes_1", 1), ("window_3", 0), ("window_3", 7),
    ("chunk_2_0", 0), ("chunk_2_0", 60), ("chunk_2_1", 2), ("chunk_2_3", 38),
])  # fmt: skip
def test_what_a_damaged_register_describes_matches_nothing(register: str, bit: int) -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        assert ((await _route(bench))["remote"], bench["uncorrectable"]) == (1, 0)
        flip(bench, register, bit)
        assert not bench["idle"]
        assert await _route(bench) == _STAYS
        assert (bench["uncorrectable"], bench["corrected"], bench["idle"]) == (1, 0, 1)
        await _remote_setup(bench)
        await _control(bench, disarm=1)
        await _control(bench, arm=1, context=3, descriptors=3)
        assert (await _route(bench))["remote"] == 1
        assert bench["uncorrectable"] == 0

    run(_matcher(protect=True), scenario)


def test_disarm_drops_what_is_under_way() -> None:
    async def scenario(bench: Bench) -> None:
        bench.accept["route"] = 0
        bench.send["store"].extend([_ROW] * 4)
        await bench.step(7)
        assert (bench["route.valid"], bench["store.ready"]) == (1, 0)
        await _control(bench, disarm=1)
        assert (bench["route.valid"], bench["store.ready"]) == (0, 1)

    run(_matcher(), scenario)


def test_a_new_register_acts_from_the_next_cycle() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        bench.send["store"].extend([_ROW] * 6)
        await bench.step(3)
        written = bench.now
        await _set_chunk(bench, 2, {**_REMOTE, "peer": 9})
        await bench.step(5)
        # Words 0 to 3 are written one after the other; `route` shows in cycle t what was matched in t - 2. What is
        # matched while word 0, 1 or 3 is written has no descriptor.
        assert [cycle - 2 - written for cycle, _ in bench.got["route"]] == [-2, -1, 0, 1, 2, 3]
        assert [route["peer"] for _, route in bench.got["route"]] == [6, 6, 0, 0, 9, 0]
        assert (await _route(bench))["peer"] == 9

    run(_matcher(), scenario)


def test_a_waiting_item_loses_a_descriptor_that_is_written() -> None:
    async def scenario(bench: Bench) -> None:
        await _remote_setup(bench)
        await _set_chunk(bench, 1, {**_REMOTE, "row0": 20, "row1": 21})
        for written in (1, 2):
            bench.accept["route"] = 0
            bench.send["store"].extend([_ROW] * 2)
            await bench.step(6)
            assert bench["idle"]
            await _set_chunk(bench, written, _REMOTE if written == 2 else {**_REMOTE, "row0": 20, "row1": 21})
            bench.accept["route"] = 1
            await bench.step(4)
        # The first of each two is in `route` by then and stays as it is, the second one waits before it.
        assert [route["matched"] for _, route in bench.got["route"]] == [1, 1, 1, 0]
        assert bench.got["route"][-1][1] == _STAYS

    run(_matcher(), scenario)


def test_latency_and_full_throughput() -> None:
    part = _matcher()

    async def scenario(bench: Bench) -> None:
        bench.send["store"].extend([{**_ROW, "line": i} for i in range(20)])
        await bench.step(24)
        assert [t for t, _ in bench.sent["store"]] == list(range(20))
        assert [(t - part.latency, route["line"]) for t, route in bench.got["route"]] == [(i, i) for i in range(20)]
        assert bench["wake_at"] == NEVER

    run(part, scenario)


def _expected(item: dict, chunks: list[dict], base: int, limit: int) -> dict:
    route = {"matched": 0, "remote": 0, "descriptor": 0, "peer": 0, "op": item["op"], "line": item["line"]}
    if not (item["tagged"] and item["context"] == 3 and base <= item["line"] < limit):
        return route
    for i, chunk in enumerate(chunks):
        inside = chunk["row0"] <= item["row"] < chunk["row1"] and chunk["col0"] <= item["col"] < chunk["col1"]
        if inside and chunk["kind"] != ChunkKind.NONE and chunk["context"] == 3:
            route.update(matched=1, descriptor=i)
            if chunk["kind"] == ChunkKind.REMOTE:
                line = item["line"] - base + chunk["peer_base"]
                route.update(remote=1, peer=chunk["peer"], op=chunk["op"], line=line)
            break
    return route


def test_random_rows_under_random_back_pressure_keep_order_and_the_idle_promise() -> None:
    async def scenario(bench: Bench) -> None:
        rng = bench.random
        base, limit = (1 << 38) + 1000, (1 << 38) + 3000
        await _set_range(bench, 0, base, limit, context=3)
        chunks = []
        for i in range(8):
            row, col = rng.randrange(6), rng.randrange(6)
            chunks.append({
                "row0": row, "row1": row + rng.randrange(5), "col0": col, "col1": col + rng.randrange(5),
                "kind": rng.choice([0, 1, 1, 1, 2, 3]), "op": rng.randrange(1, 5), "peer": rng.randrange(256),
                "context": rng.choice([3, 3, 3, 2]), "peer_base": rng.randrange(1 << 38),
            })  # fmt: skip
            await _set_chunk(bench, i, chunks[-1])
        await _control(bench, arm=1, context=3, descriptors=8)
        items = [
            {
                **_ROW, "line": rng.randrange(base - 200, limit + 200), "context": rng.choice([3, 3, 2]),
                "tagged": rng.random() < 0.9, "row": rng.randrange(8), "col": rng.randrange(8),
                "op": rng.randrange(1, 5),
            }
            for _ in range(500)
        ]  # fmt: skip
        bench.send["store"].extend(items)
        while len(bench.got["route"]) < len(items):
            if rng.random() < 0.02:
                bench.gap, bench.accept["route"] = rng.choice([0, 0.8]), rng.choice([0.1, 0.5, 1])
            await bench.step()
        await bench.step(5)
        routes = [route for _, route in bench.got["route"]]
        assert routes == [_expected(item, chunks, base, limit) for item in items]
        assert sum(route["remote"] for route in routes) > 20
        assert bench.idle_checks > 50

    run(_matcher(), scenario, seed=3)
