"""Bursts of mixed lengths through the whole core: a tile is complete when all its lines are counted, and fires once."""

import random

import pytest
from t3hdl.core import T3Core
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Op

from tests.contract.core.scene import (
    BASE,
    COLS,
    CONTEXT,
    PEER_BASE,
    TINY,
    access,
    arm,
    bursts,
    chunk_of,
    core,
    drain,
    drams,
    lines_of,
    request,
    send,
)
from tests.contract.core.test_core import check_commands

both = pytest.mark.parametrize("simulator", ["amaranth", pytest.param("rtl", marks=pytest.mark.slow)])


@pytest.mark.parametrize("simulator", ["amaranth", pytest.param("rtl", marks=pytest.mark.long)])
def test_a_block_fires_with_the_last_line_of_its_last_burst(simulator) -> None:
    """The corner block has two tiles of 3 and 2 lines; one of their bursts comes late."""
    bench = core(simulator, TINY)
    arm(bench)
    whole = [access(lines_of(2, 2, wf)[0], (2, 2, wf), Op.ADD, length=len(lines_of(2, 2, wf)) - 1) for wf in (0, 1)]
    assert [item["length"] for item in whole] == [2, 1]
    one_and_two = [whole[0] | {"length": 0}, whole[0] | {"line": whole[0]["line"] + 1, "length": 1}]
    send(bench, "comm_write", whole)
    send(bench, "compute_write", [whole[1], one_and_two[0]])
    drain(bench)
    assert not bench.got["command"] and bench["idle"]
    send(bench, "compute_write", one_and_two[1:])
    bench.step(40)
    last = max(cycle for stream in drams(bench) for cycle, _ in bench.got[stream])
    (cycle, command) = bench.got["command"].pop()
    assert cycle == last + T3Core(config=TINY).latency
    assert (command["row"], command["col"], command["by_chunk"]) == (2, 2, 0)
    assert request(bench, 0, regs.UPDATES) == 2 * (3 + 2)


@pytest.mark.long
@both
@pytest.mark.parametrize("lines", [1, 2, 3, 4])
def test_every_block_fires_once_with_bursts_of_two_lengths(simulator, lines) -> None:
    """Local stores in bursts of ``lines`` lines at most, incoming updates in whole rows of tiles, in any order; bursts
    that leave their block are refused and change nothing."""
    bench = core(simulator, seed=lines)
    shuffle = random.Random(lines)
    bench.gap = 0.2
    bench.accept |= dict.fromkeys(drams(bench), 0.6)
    arm(bench, mca=1, fixed=1, threshold=6, starvation=20, quantum=5)
    refused = 0
    for chunk in (1, 2, 3):
        local, incoming = bursts(chunk, Op.STORE, lines), bursts(chunk, Op.ADD)
        leaving = [item | {"line": item["line"] | 7, "length": 7} for item in incoming[::3]]
        refused += len(leaving)
        incoming += leaving
        shuffle.shuffle(incoming)
        send(bench, "comm_write", incoming)
        send(bench, "compute_write", local)
    drain(bench)
    bench.accept = dict.fromkeys(bench.accept, 1.0)
    bench.step(200)
    check_commands(bench)
    assert request(bench, 0, regs.VIOLATIONS) == refused
    updates = 2 * sum(item["length"] + 1 for chunk in (1, 2, 3) for item in bursts(chunk, Op.ADD))
    assert (request(bench, 0, regs.UPDATES), bench["entries"], bench["done_mask"]) == (updates, 0, 0b1110)


@pytest.mark.long
@both
def test_a_burst_leaves_through_the_egress_with_one_route(simulator) -> None:
    """The first line's address at the peer; a burst over a range's end or over its block's has no route."""
    bench = core(simulator)
    arm(bench)
    rows = [lines_of(0, col, 0) for col in range(COLS)]
    items = [access(row[0], (0, col, 0), Op.STORE, length=len(row) - 1) for col, row in enumerate(rows)]
    leaving = [item | {"length": 8 - item["line"] % 8} for item in items if item["line"] % 8]
    bench.send["store.0"].extend(items + leaving)
    drain(bench)
    routes = [route for _, route in bench.got["route.0"]]
    for col, (item, route) in enumerate(zip(items, routes, strict=False)):
        remote = chunk_of(col) == 0
        assert (route["matched"], route["remote"]) == (1, int(remote))
        assert route["line"] == (item["line"] - BASE + PEER_BASE if remote else item["line"])
    assert [route["matched"] for route in routes[len(items) :]] == [0] * len(leaving)


def test_scene_has_bursts_of_every_line_once() -> None:
    """What the scenarios above send: the lines of a chunk, each once, whatever the length."""
    for lines in (1, 2, 3, 4, 8):
        sent = [item["line"] + more for item in bursts(1, Op.ADD, lines) for more in range(item["length"] + 1)]
        assert sent == [item["line"] for item in bursts(1, Op.ADD, 1)]
        assert all(item["context"] == CONTEXT for item in bursts(1, Op.ADD, lines))
