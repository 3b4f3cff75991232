"""T3Core on a small ring job: stores through the slices, each block fires once, in time; in Amaranth's simulator or
compiled. The bench checks stream rules and ``idle`` in every cycle.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import Dtype, Op

from tests.contract.bench import Bench
from tests.contract.core.scene import (
    ADDENDS,
    BASE,
    COLS,
    COLUMNS,
    CONFIG,
    CONTEXT,
    EPOCH,
    PEER,
    PEER_BASE,
    TILE_LINES,
    TINY,
    Block,
    access,
    accesses,
    arm,
    block_of,
    chunk_of,
    control,
    core,
    drain,
    drams,
    fire_one_block,
    lines_of,
    request,
    send,
    tiles_of,
)

both = pytest.mark.parametrize("simulator", ["amaranth", pytest.param("rtl", marks=pytest.mark.slow)])


class Arrivals:
    """When each tile's accesses left for memory, from what the bench saw at ``dram``."""

    def __init__(self, bench: Bench) -> None:
        self.tiles: dict[tuple[int, int, int], list[int]] = {}
        for stream in drams(bench):
            for cycle, item in bench.got[stream]:
                if item["tagged"]:
                    self.tiles.setdefault((item["row"], item["col"], item["wf"]), []).append(cycle)

    def of_block(self, block: Block) -> list[int]:
        return [t for (row, col, _), times in self.tiles.items() if block_of(row, col) == block for t in times]

    def of_chunk(self, chunk: int) -> list[int]:
        return [t for (_, col, _), times in self.tiles.items() if chunk_of(col) == chunk for t in times]


def check_commands(bench: Bench) -> Counter:
    """Every DMA block exactly once, with the right fields, after all its counts; returns how many by chunk."""
    arrivals = Arrivals(bench)
    expected = {block_of(row, col) for chunk in (1, 3) for row, col, _ in tiles_of(chunk)}
    kinds: Counter = Counter()
    fired = []
    for cycle, command in bench.got["command"]:
        block = block_of(command["row"], command["col"])
        fired.append(block)
        by_chunk = command["by_chunk"]
        awaited = arrivals.of_chunk(block[0]) if by_chunk else arrivals.of_block(block)
        assert cycle > max(awaited), f"{block} fired in cycle {cycle}, before its last update"
        height = 2 if block[1] == 0 else 1
        last_col = command["col"] == COLUMNS[block[0]][1] - 1
        assert {**command, "by_chunk": 0} == {
            "descriptor": block[0], "context": CONTEXT, "epoch": EPOCH, "peer": PEER, "op": Op.ADD,
            "dtype": Dtype.FP16, "by_chunk": 0, "row": 2 * block[1], "col": COLUMNS[block[0]][0] + block[2],
            "rows": height, "cols": 1, "pitch": COLS, "base": BASE, "peer_base": PEER_BASE,
            "tile_rows": 4, "wavefront_rows": 2, "tile_lines": TILE_LINES,
            "last_rows": 2 if block[1] else 4, "last_lines": 1 if last_col else TILE_LINES,
            "bottom": int(block[1] == 1), "right": int(last_col and command["col"] == COLS - 1),
            "reserved": 0, "reserved2": 0, "reserved3": 0,
        }  # fmt: skip
        kinds["chunk" if by_chunk else "tile"] += 1
    assert sorted(fired) == sorted(expected)
    return kinds


def check_end(bench: Bench) -> int:
    """Everything is counted, nothing went wrong, and the bus says what the ports say; returns chunks overflowed."""
    bench.step(5)
    status = regs.Status.from_bits(request(bench, 0, regs.STATUS) & (1 << regs.Status.size) - 1)
    assert {name: status[name] for name, _ in regs.Status} == {
        "init_done": 1, "armed": 1, "live": 4, "chunks_done": 3, "unmatched": 0, "over_count": 0, "over_total": 0,
        "locked_write": 0, "maintenance": 0, "abort_busy": 0, "quiesced": 0, "quiet": 0,
    }  # fmt: skip
    assert bench["done_mask"] == 0b1110
    assert bench["entries"] == 0
    assert request(bench, 0, regs.PEAK_ENTRIES) > 0
    assert request(bench, 0, regs.UPDATES) == sum(len(accesses(chunk, Op.ADD)) for chunk in (1, 2, 3)) * ADDENDS
    assert request(bench, 0, regs.TRIGGERS) == len(bench.got["command"])
    assert request(bench, 0, regs.ERRORS) == 0
    assert request(bench, 0, regs.THRESHOLD) == bench["threshold"] | bench["chosen"] << 7
    assert bench.idle_checks > 80 or bench.backend.state() is None, "compiled registers cannot be seen"
    return request(bench, 0, regs.OVERFLOWED)


VARIATIONS = {
    "free": {"gap": 0.0, "dram": 1.0, "command": 1.0, "arbiter": {}},
    "pressed": {"gap": 0.3, "dram": 0.4, "command": 0.1, "arbiter": {}},
    "mca": {
        "gap": 0.1,
        "dram": 0.7,
        "command": 0.5,
        "arbiter": {"mca": 1, "fixed": 1, "threshold": 2, "starvation": 20, "quantum": 3},
    },
}


@pytest.mark.long
@both
@pytest.mark.parametrize("name", VARIATIONS)
@pytest.mark.parametrize("together", [True, False], ids=["together", "incoming first"])
def test_every_block_fires_once(simulator, name, together) -> None:
    """Local and incoming stores side by side in a roomy tracker, or all incoming ones first, which overflow it."""
    config = replace(CONFIG, tracker_sets=32, row_index_bits=2) if together else CONFIG
    variation = VARIATIONS[name]
    shuffle = random.Random(f"{name} {together}")
    bench = core(simulator, config, seed=41)
    bench.gap = variation["gap"]
    bench.accept |= dict.fromkeys(drams(bench), variation["dram"])
    bench.accept["command"] = variation["command"]
    arm(bench, **variation["arbiter"])
    levels = {f"occupancy.{number}": number for number in range(CONFIG.slices)}
    bench.step(**levels)
    reads = [access(line, (0, 0, 0), Op.READ, tagged=0) for line in range(0x900, 0x920)]
    for chunk in (1, 2, 3):
        local, incoming = accesses(chunk, Op.STORE), accesses(chunk, Op.ADD)
        if not together:
            shuffle.shuffle(incoming)
        send(bench, "comm_write", incoming)
        if not together:
            drain(bench)
        send(bench, "compute_read", reads)
        send(bench, "compute_write", local)
    drain(bench)
    bench.accept = dict.fromkeys(bench.accept, 1.0)
    bench.step(100)
    kinds = check_commands(bench)
    overflowed = check_end(bench)
    if together:
        assert overflowed == 0 and kinds == {"tile": 6}
    else:
        assert overflowed >= 2 and kinds["chunk"] >= 1
    assert sum(len(bench.got[stream]) for stream in drams(bench)) == sum(
        len(sent) for port, sent in bench.sent.items() if port.startswith("com")
    )


@pytest.mark.parametrize("simulator", ["amaranth", "rtl"])
def test_a_tiny_core_fires_a_block_in_time(simulator) -> None:
    fire_one_block(core(simulator, TINY))


@pytest.mark.parametrize("simulator", ["amaranth", pytest.param("rtl", marks=pytest.mark.long)])
def test_latency_and_second_run(simulator) -> None:
    """After a forced disarm a core can be armed again."""
    bench = core(simulator)
    fire_one_block(bench)
    # Tokens are still on their way when the unit is disarmed: none of them may reach the next run.
    send(bench, "comm_write", accesses(1, Op.ADD))
    bench.step(12)
    control(bench, disarm=1, forced=1)
    assert bench["armed"] == 0 and bench["init_done"] == 0
    for queue in bench.send.values():
        queue.clear()
    fire_one_block(bench, EPOCH + 1)
    assert request(bench, 0, regs.ERRORS) == 0


@pytest.mark.long
@both
def test_egress(simulator) -> None:
    """Rows of the remote chunk leave as updates for the peer, at the peer's addresses; others stay."""
    bench = core(simulator)
    arm(bench)
    items = [access(lines_of(0, col, 0)[0], (0, col, 0), Op.STORE) for col in range(COLS)]
    bench.send["store.0"].extend(items)
    drain(bench)
    routes = [route for _, route in bench.got["route.0"]]
    for col, (item, route) in enumerate(zip(items, routes, strict=True)):
        remote = chunk_of(col) == 0
        assert route == {
            "line": item["line"] - BASE + PEER_BASE if remote else item["line"],
            "matched": 1,
            "remote": int(remote),
            "descriptor": chunk_of(col),
            "op": Op.ADD if remote else Op.STORE,
            "peer": PEER if remote else 0,
        }


@pytest.mark.long
@both
def test_monitor_measures_the_first_stage(simulator) -> None:
    """Reads until the first communication access decide the threshold; the slices count them."""
    bench = core(simulator)
    arm(bench, mca=1)
    assert (bench["threshold"], bench["chosen"]) == (127, 0)
    bench.send["compute_read.3"].extend(access(line, (0, 0, 0), Op.READ, tagged=0) for line in range(0x4000, 0x4200))
    bench.step(300)
    send(bench, "comm_write", accesses(1, Op.ADD)[:1])
    bench.step(100)  # it waits for the starvation limit, then the monitor reads all slices
    # One slice of four reads most of the time, two data-bus cycles for each cycle: between 25 and 50 % in all.
    assert (bench["threshold"], bench["chosen"]) == (30, 1)
