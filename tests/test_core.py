"""T3Core on a small ring chunk set: programmed over the bus, stores through the slices, each block fires once, in time.

GPU 0 of a ring of four: chunk 0 is mapped to GPU 3, chunks 1 and 3 are sent on by DMA, chunk 2 stays. Every tile of
chunks 1 to 3 gets a local store and an incoming update. The bench checks stream rules and ``idle`` in every cycle.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest
from stream_checks import Bench, run
from t3hdl.config import preset
from t3hdl.core import T3Core
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import ChunkKind, Dtype, Op, channel_of

CONFIG = preset("small")
TINY = replace(CONFIG, slices=1, node_inputs=1, ranges=1, tracker_banks=1, descriptors=4)
"""As much as the jobs below need: Amaranth's simulator takes few seconds for it."""
ROWS, COLS, WAVEFRONTS = 3, 7, 2
BASE, CONTEXT, EPOCH = 0x12340, 1, 2
TILE_LINES = 4
PROFILE = {  # (bottom, right, wf): lines; the corner tile has one wavefront
    (0, 0, 0): 4, (0, 0, 1): 4, (1, 0, 0): 3, (1, 0, 1): 2, (0, 1, 0): 2, (0, 1, 1): 1, (1, 1, 0): 2, (1, 1, 1): 0,
}  # fmt: skip
COLUMNS = ((0, 2), (2, 4), (4, 6), (6, 7))
KINDS = (ChunkKind.REMOTE, ChunkKind.DMA, ChunkKind.LOCAL, ChunkKind.DMA)
ADDENDS = 2
PEER = 3
PEER_BASE = 0x7_0000
Block = tuple[int, int, int]
"""Chunk, block row, block column: two tile rows high, one tile column wide."""


def lines_of(row: int, col: int, wf: int) -> range:
    """The lines of a wavefront tile."""
    first = BASE + ((row * COLS + col) * WAVEFRONTS + wf) * TILE_LINES
    return range(first, first + PROFILE[int(row == ROWS - 1), int(col == COLS - 1), wf])


def chunk_of(col: int) -> int:
    return next(chunk for chunk, (low, high) in enumerate(COLUMNS) if low <= col < high)


def tiles_of(chunk: int) -> list[tuple[int, int, int]]:
    return [(row, col, wf) for row in range(ROWS) for col in range(*COLUMNS[chunk]) for wf in range(WAVEFRONTS)]


def block_of(row: int, col: int) -> Block:
    chunk = chunk_of(col)
    return chunk, row >> 1, col - COLUMNS[chunk][0]


def access(line: int, tile: tuple[int, int, int], op: Op, **fields: int) -> dict[str, int]:
    """A tagged access of a tile."""
    row, col, wf = tile
    values = {
        "line": line, "op": op, "dtype": Dtype.FP16, "stream": 0, "context": CONTEXT, "source": 0, "tagged": 1,
        "wf": wf, "right": int(col == COLS - 1), "bottom": int(row == ROWS - 1), "row": row, "col": col, "tag": line,
    }  # fmt: skip
    return values | fields


def accesses(chunk: int, op: Op) -> list[dict[str, int]]:
    return [access(line, tile, op) for tile in tiles_of(chunk) for line in lines_of(*tile)]


def programme() -> list[tuple[int, int]]:
    """Range, profile and descriptors as register writes."""
    attributes = {"valid": 1, "context": CONTEXT, "epoch": EPOCH, "op": Op.ADD, "dtype": Dtype.FP16}
    writes = [
        (regs.RANGE, BASE),
        (regs.RANGE + 8, BASE + ROWS * COLS * WAVEFRONTS * TILE_LINES),
        (regs.RANGE + 16, regs.RangeAttributes.const(attributes).as_bits()),
    ]
    writes += [
        (regs.PROFILE + 8 * (bottom * 32 + right * 16 + wf), lines) for (bottom, right, wf), lines in PROFILE.items()
    ]
    for chunk, ((col0, col1), kind) in enumerate(zip(COLUMNS, KINDS, strict=True)):
        words = (
            {"row0": 0, "row1": ROWS, "col0": col0, "col1": col1, "kind": kind, "op": Op.ADD, "peer": PEER},
            {"expected": ADDENDS * len(accesses(chunk, Op.ADD)), "addends": ADDENDS, "context": CONTEXT,
             "epoch": EPOCH, "dtype": Dtype.FP16},
            {"base": BASE, "pitch": COLS},
            {"peer_base": PEER_BASE, "row_shift": 1, "col_shift": 0, "row_blocks_log": 1},
            # the last chunk is one column wide, and its corner tile has a single wavefront
            {"tiles_inner": 4, "tiles_bottom": 2, "tiles_right": 4, "tiles_corner": 1 if chunk == 3 else 2},
            {"last_block_row": 1, "last_block_col": col1 - col0 - 1},
        )  # fmt: skip
        for word, (layout, values) in enumerate(zip(regs.DESCRIPTOR_LAYOUTS, words, strict=True)):
            address = regs.DESCRIPTOR + chunk * regs.DESCRIPTOR_STRIDE + 8 * word
            writes.append((address, layout.const(values).as_bits()))
    return writes


async def request(bench: Bench, write: int, address: int, data: int = 0) -> int:
    """One bus request that must be good; returns the data."""
    while not bench["bus_ready"]:
        await bench.step()
    await bench.step(bus_valid=1, bus_write=write, bus_address=address, bus_data=data)
    assert (bench["response_valid"], bench["response_error"]) == (1, 0), hex(address)
    answer = bench["response_data"]
    await bench.step(bus_valid=0)
    return answer


async def arm(bench: Bench, **arbiter: int) -> None:
    """Programs everything, arms, and waits until all chunks are live."""
    while not bench["init_done"]:
        await bench.step()
    for address, data in programme():
        await request(bench, 1, address, data)
    settings = {"mca": 0, "fixed": 0, "threshold": 127, "starvation": 64, "burst": 8} | arbiter
    await request(bench, 1, regs.ARBITER, regs.Arbiter.const(settings).as_bits())
    control = {"arm": 1, "descriptors": len(KINDS), "context": CONTEXT}
    await request(bench, 1, regs.CONTROL, regs.Control.const(control).as_bits())
    await bench.step(80)
    assert (bench["armed"], bench["live"]) == (1, len(KINDS))


def drams(bench: Bench) -> list[str]:
    """The streams to memory, one per slice."""
    return [name for name in bench.got if name.startswith("dram.")]


def send(bench: Bench, port: str, items: list[dict[str, int]]) -> None:
    """Each access to the slice of its channel."""
    for item in items:
        bench.send[f"{port}.{channel_of(item['line'], len(drams(bench)))}"].append(item)


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
        assert {**command, "by_chunk": 0} == {
            "descriptor": block[0], "context": CONTEXT, "epoch": EPOCH, "peer": PEER, "op": Op.ADD,
            "dtype": Dtype.FP16, "by_chunk": 0, "row": 2 * block[1], "col": COLUMNS[block[0]][0] + block[2],
            "rows": height, "cols": 1, "pitch": COLS, "base": BASE, "peer_base": PEER_BASE,
            "reserved": 0, "reserved2": 0, "reserved3": 0,
        }  # fmt: skip
        kinds["chunk" if by_chunk else "tile"] += 1
    assert sorted(fired) == sorted(expected)
    return kinds


async def check_end(bench: Bench) -> int:
    """Everything is counted, nothing went wrong, and the bus says what the ports say; returns chunks overflowed."""
    await bench.step(5)
    status = regs.Status.from_bits(await request(bench, 0, regs.STATUS) & (1 << regs.Status.size) - 1)
    assert {name: status[name] for name, _ in regs.Status} == {
        "init_done": 1, "armed": 1, "live": 4, "chunks_done": 3, "unmatched": 0, "over_count": 0, "over_total": 0,
        "locked_write": 0, "maintenance": 0, "abort_busy": 0, "quiesced": 0, "quiet": 0,
    }  # fmt: skip
    assert bench["done_mask"] == 0b1110
    assert bench["entries"] == 0
    assert await request(bench, 0, regs.PEAK_ENTRIES) > 0
    assert await request(bench, 0, regs.UPDATES) == sum(len(accesses(chunk, Op.ADD)) for chunk in (1, 2, 3)) * ADDENDS
    assert await request(bench, 0, regs.TRIGGERS) == len(bench.got["command"])
    assert await request(bench, 0, regs.ERRORS) == 0
    assert await request(bench, 0, regs.THRESHOLD) == bench["threshold"] | bench["chosen"] << 7
    assert bench.idle_checks > 80
    return await request(bench, 0, regs.OVERFLOWED)


async def drain(bench: Bench) -> None:
    while any(bench.send.values()):
        await bench.step()
    await bench.step(150)


VARIATIONS = {
    "free": {"gap": 0.0, "dram": 1.0, "command": 1.0, "arbiter": {}},
    "pressed": {"gap": 0.3, "dram": 0.4, "command": 0.1, "arbiter": {}},
    "mca": {"gap": 0.1, "dram": 0.7, "command": 0.5,
            "arbiter": {"mca": 1, "fixed": 1, "threshold": 2, "starvation": 20, "burst": 3}},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", VARIATIONS)
@pytest.mark.parametrize("together", [True, False], ids=["together", "incoming first"])
def test_every_block_fires_once(name, together) -> None:
    """Local and incoming stores side by side in a roomy tracker, or all incoming ones first, which overflow it."""
    config = replace(CONFIG, tracker_sets=32, row_index_bits=2) if together else CONFIG
    variation = VARIATIONS[name]
    shuffle = random.Random(f"{name} {together}")

    async def scenario(bench: Bench) -> None:
        bench.gap = variation["gap"]
        bench.accept |= dict.fromkeys(drams(bench), variation["dram"])
        bench.accept["command"] = variation["command"]
        await arm(bench, **variation["arbiter"])
        levels = {f"occupancy.{number}": number for number in range(CONFIG.slices)}
        await bench.step(**levels)
        reads = [access(line, (0, 0, 0), Op.READ, tagged=0) for line in range(0x900, 0x920)]
        for chunk in (1, 2, 3):
            local, incoming = accesses(chunk, Op.STORE), accesses(chunk, Op.ADD)
            if not together:
                shuffle.shuffle(incoming)
            send(bench, "comm_write", incoming)
            if not together:
                await drain(bench)
            send(bench, "compute_read", reads)
            send(bench, "compute_write", local)
        await drain(bench)
        bench.accept = dict.fromkeys(bench.accept, 1.0)
        await bench.step(100)
        kinds = check_commands(bench)
        overflowed = await check_end(bench)
        if together:
            assert overflowed == 0 and kinds == {"tile": 6}
        else:
            assert overflowed >= 2 and kinds["chunk"] >= 1
        assert sum(len(bench.got[stream]) for stream in drams(bench)) == sum(
            len(sent) for port, sent in bench.sent.items() if port.startswith("com")
        )

    run(T3Core(config=config), scenario, seed=41)


async def fire_one_block(bench: Bench) -> None:
    """The corner block fires ``latency`` cycles after the last transfer, and not before."""
    await arm(bench)
    items = [access(line, tile, Op.ADD) for tile in ((2, 2, 0), (2, 2, 1)) for line in lines_of(*tile)]
    send(bench, "comm_write", items)
    send(bench, "compute_write", items[:-1])
    await drain(bench)
    assert not bench.got["command"] and bench["idle"]
    send(bench, "compute_write", items[-1:])
    await bench.step(40)
    last = max(cycle for stream in drams(bench) for cycle, _ in bench.got[stream])
    (cycle, command) = bench.got["command"].pop()
    assert cycle == last + bench.part.latency
    assert (command["row"], command["col"], command["by_chunk"]) == (2, 2, 0)


def test_a_tiny_core_fires_a_block_in_time() -> None:
    run(T3Core(config=TINY), fire_one_block)


@pytest.mark.long
def test_latency_and_second_run() -> None:
    """After disarm a core can be armed again."""

    async def scenario(bench: Bench) -> None:
        await fire_one_block(bench)
        # Tokens are still on their way when the unit is disarmed: none of them may reach the next run.
        send(bench, "comm_write", accesses(1, Op.ADD))
        await bench.step(12)
        await request(bench, 1, regs.CONTROL, regs.Control.const({"disarm": 1}).as_bits())
        assert bench["armed"] == 0 and bench["init_done"] == 0
        for queue in bench.send.values():
            queue.clear()
        await fire_one_block(bench)
        assert await request(bench, 0, regs.ERRORS) == 0

    run(T3Core(config=CONFIG), scenario)


@pytest.mark.long
def test_egress() -> None:
    """Rows of the remote chunk leave as updates for the peer, at the peer's addresses; others stay."""

    async def scenario(bench: Bench) -> None:
        await arm(bench)
        items = [access(lines_of(0, col, 0)[0], (0, col, 0), Op.STORE) for col in range(COLS)]
        bench.send["store.0"].extend(items)
        await drain(bench)
        routes = [route for _, route in bench.got["route.0"]]
        for col, (item, route) in enumerate(zip(items, routes, strict=True)):
            remote = chunk_of(col) == 0
            assert route == {
                "line": item["line"] - BASE + PEER_BASE if remote else item["line"], "matched": 1,
                "remote": int(remote), "descriptor": chunk_of(col), "op": Op.ADD if remote else Op.STORE,
                "peer": PEER if remote else 0,
            }  # fmt: skip

    run(T3Core(config=CONFIG), scenario)


@pytest.mark.long
def test_monitor_measures_the_first_stage() -> None:
    """Reads until the first communication access decide the threshold; the slices count them."""

    async def scenario(bench: Bench) -> None:
        await arm(bench, mca=1)
        assert (bench["threshold"], bench["chosen"]) == (127, 0)
        bench.send["compute_read.3"].extend(
            access(line, (0, 0, 0), Op.READ, tagged=0) for line in range(0x4000, 0x4200)
        )
        await bench.step(300)
        send(bench, "comm_write", accesses(1, Op.ADD)[:1])
        await bench.step(100)  # it waits for the starvation limit, then the monitor reads all slices
        # One slice of four reads most of the time, two data-bus cycles for each cycle: between 25 and 50 % in all.
        assert (bench["threshold"], bench["chosen"]) == (30, 1)

    run(T3Core(config=CONFIG), scenario)
