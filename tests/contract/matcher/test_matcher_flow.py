"""The range matcher, cycle by cycle: latency, back-pressure, writes while items are under way."""

import pytest
from t3hdl.config import preset
from t3hdl.egress.matcher import RangeMatcher
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import EPOCH_BITS, ChunkKind

from tests.contract.matcher.scene import BASE, EPOCH, JOB, LEAVES, OTHER, PEER_BASE, ROW, STAYS, Matcher


def lines(count):
    return [ROW | {"line": BASE + number} for number in range(count)]


def test_latency_and_full_throughput(backend):
    matcher = Matcher(backend).set_up()
    start = matcher.bench.now
    matcher.send(*lines(20))
    matcher.bench.step(24)
    assert [cycle - start for cycle, _ in matcher.bench.sent["store"]] == list(range(20))
    latency = RangeMatcher(config=preset("small")).latency
    assert [(cycle - start - latency, route["line"] - PEER_BASE) for cycle, route in matcher.bench.got["route"]] == [
        (number, number) for number in range(20)
    ]


def test_four_items_wait(backend):
    """One in `route`, one in `found`, two in the queue."""
    matcher = Matcher(backend).set_up()
    bench = matcher.bench
    bench.accept["route"] = 0
    start = bench.now
    matcher.send(*lines(6))
    bench.step(8)
    assert [cycle - start for cycle, _ in bench.sent["store"]] == [0, 1, 2, 3]
    assert (bench["store.ready"], bench["idle"]) == (0, 1)
    bench.accept["route"] = 1
    bench.step(6)
    assert [(cycle - start, route["line"]) for cycle, route in bench.got["route"]] == [
        (8 + number, PEER_BASE + number) for number in range(6)
    ]
    assert bench.item("route") is None


@pytest.mark.parametrize("items", range(1, 6))
@pytest.mark.parametrize("accept", [0, 1])
@pytest.mark.parametrize("forced", [0, 1])
def test_a_disarm_loses_no_row_and_what_is_matched_later_stays(backend, items, accept, forced):
    matcher = Matcher(backend).set_up()
    bench = matcher.bench
    bench.accept["route"] = accept
    matcher.send(*[ROW] * items)
    bench.step(items - 1)
    bench.control(disarm=1, forced=forced)
    taken = len(bench.sent["store"])
    assert taken == (items if accept else min(items, 4)), "two wait in the queue, one in `found`, one in `route`"
    bench.send["store"].clear()
    bench.accept["route"] = 1
    bench.step(6)
    matched = items - 1 if accept else min(items - 1, 2)
    assert matcher.routes == [LEAVES] * matched + [STAYS] * (taken - matched)
    matcher.arm()
    assert matcher.route() == (STAYS if forced else LEAVES), "a forced disarm ends the ranges"
    matcher.set_range(1)
    assert matcher.route() == LEAVES


@pytest.mark.parametrize("bit", range(EPOCH_BITS))
def test_a_row_of_another_epoch_stays(backend, bit):
    matcher = Matcher(backend).set_up()
    assert matcher.route(epoch=EPOCH ^ 1 << bit) == STAYS
    assert matcher.route() == LEAVES


def test_a_written_descriptor_acts_from_the_next_cycle(backend):
    matcher = Matcher(backend).set_up()
    bench = matcher.bench
    matcher.send(*[ROW] * 6)
    bench.step(3)
    written = bench.now
    matcher.set_chunk(2, peer=9)
    bench.step(5)
    # Words 0 to 3 are written one after the other; `route` shows in cycle t what was matched in t - 2. What is
    # matched while word 0, 1 or 3 is written has no descriptor.
    assert [(cycle - 2 - written, route["peer"]) for cycle, route in bench.got["route"]] == [
        (-2, 102), (-1, 102), (0, 0), (1, 0), (2, 9), (3, 0),
    ]  # fmt: skip
    assert matcher.route()["peer"] == 9


@pytest.mark.parametrize(
    "write",
    [
        lambda matcher: matcher.bench.write(regs.RANGE + regs.RANGE_STRIDE + 8, BASE),
        lambda matcher: matcher.bench.write(regs.RANGE + regs.RANGE_STRIDE + 16, 0),
        lambda matcher: matcher.arm(1),
        lambda matcher: matcher.abort(),
    ],
    ids=["limit", "valid", "arm", "abort"],
)
@pytest.mark.parametrize("cycles", [1, 2])
def test_ranges_and_windows_act_on_what_is_matched_later(backend, write, cycles):
    """An item is matched in the cycle after its transfer."""
    matcher = Matcher(backend).set_up()
    matcher.send(ROW, ROW)
    matcher.bench.step(cycles)
    write(matcher)
    matcher.bench.step(4)
    assert matcher.routes == [LEAVES, STAYS if cycles == 1 else LEAVES]
    assert matcher.route() == STAYS


def test_an_item_takes_the_descriptors_contents_one_cycle_after_its_match(backend):
    matcher = Matcher(backend).set_up()
    matcher.send(ROW)
    matcher.bench.step(2)
    matcher.bench.write(matcher.word(2, 3), 0)
    matcher.bench.step()
    assert matcher.routes == [LEAVES], "the write comes in the cycle in which it goes on to `route`"
    assert matcher.route()["line"] == 5


@pytest.mark.parametrize("word", range(6))
def test_a_descriptor_that_is_being_written_does_not_match(backend, word):
    matcher = Matcher(backend).set_up()
    matcher.set_chunk(4, ChunkKind.DMA)
    matcher.send(ROW)
    matcher.bench.step()
    matcher.bench.write(matcher.word(2, word), 0)
    matcher.bench.step(2)
    assert matcher.routes == [STAYS | {"matched": 1, "descriptor": 4} if word in (0, 1, 3) else LEAVES]


@pytest.mark.parametrize("word", range(6))
def test_an_item_that_waits_while_its_descriptor_is_written_is_unmatched(backend, word):
    """The item before it is in `route` by then and stays as it is; a write to another descriptor changes neither."""
    matcher = Matcher(backend).set_up()
    bench = matcher.bench
    matcher.set_chunk(4, ChunkKind.DMA)
    bench.accept["route"] = 0
    for written, second in ((4, LEAVES), (2, STAYS if word in (0, 1, 3) else LEAVES)):
        matcher.send(ROW, ROW)
        bench.step(6)
        bench.write(matcher.word(written, word), 0)
        bench.accept["route"] = 1
        bench.step(2)
        assert matcher.routes[-2:] == [LEAVES, second]
        bench.accept["route"] = 0


def expected_route(item, chunks, base, limit):
    route = {"matched": 0, "remote": 0, "descriptor": 0, "peer": 0, "op": item["op"], "line": item["line"]}
    if not (item["tagged"] and item["context"] == JOB and base <= item["line"] < limit):
        return route
    for number, chunk in enumerate(chunks):
        inside = chunk["row0"] <= item["row"] < chunk["row1"] and chunk["col0"] <= item["col"] < chunk["col1"]
        if inside and chunk["kind"] != ChunkKind.NONE and chunk["context"] == JOB:
            route |= {"matched": 1, "descriptor": number}
            if chunk["kind"] == ChunkKind.REMOTE:
                line = item["line"] - base + chunk["peer_base"]
                route |= {"remote": 1, "peer": chunk["peer"], "op": chunk["op"], "line": line}
            break
    return route


def test_random_rows_under_random_back_pressure_keep_their_order(backend):
    matcher = Matcher(backend, seed=3)
    bench, rng = matcher.bench, matcher.bench.random
    base, limit = (1 << 38) + 1000, (1 << 38) + 3000
    matcher.set_range(0, base, limit)
    chunks = []
    for number in range(8):
        row, col = rng.randrange(6), rng.randrange(6)
        chunks.append({
            "row0": row, "row1": row + rng.randrange(5), "col0": col, "col1": col + rng.randrange(5),
            "kind": rng.choice([0, 1, 1, 1, 2, 3]), "op": rng.randrange(1, 5), "peer": rng.randrange(256),
            "context": rng.choice([JOB, JOB, JOB, OTHER]), "peer_base": rng.randrange(1 << 38),
        })  # fmt: skip
        matcher.set_chunk(number, **chunks[-1])
    matcher.arm()
    items = [
        {
            **ROW,
            "line": rng.randrange(base - 200, limit + 200),
            "context": rng.choice([JOB, JOB, OTHER]),
            "tagged": int(rng.random() < 0.9),
            "row": rng.randrange(8),
            "col": rng.randrange(8),
            "op": rng.randrange(1, 5),
        }
        for _ in range(400)
    ]
    matcher.send(*items)
    while len(matcher.routes) < len(items):
        if rng.random() < 0.02:
            bench.gap, bench.accept["route"] = rng.choice([0, 0.8]), rng.choice([0.1, 0.5, 1])
        bench.step()
        assert bench.now < 8000
    bench.step(5)
    assert matcher.routes == [expected_route(item, chunks, base, limit) for item in items]
    assert sum(route["remote"] for route in matcher.routes) > 20
    assert backend == "rtl" or bench.idle_checks > 50
