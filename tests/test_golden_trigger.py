"""The golden Trigger against scenarios worked out from docs/hardware.md."""

import random
from collections import Counter
from typing import Any

import pytest
from golden_bench import Bench, pack, unpack
from t3hdl import register_map
from t3hdl.config import T3Config, preset
from t3hdl.layouts import NEVER, ChunkDone, ChunkKind, DmaCommand, Dtype, Op, SlotLoad, TileDone
from t3hdl.signatures import trigger_signature
from t3sim.golden import trigger

ARM, DISARM = 1, 2
BLOCKS = 4
"""Blocks per chunk of the preset "small"."""
CHUNK = {
    "kind": ChunkKind.DMA, "row0": 8, "row1": 11, "col0": 16, "col1": 19, "op": Op.ADD, "peer": 200,
    "expected": 54321, "addends": 2, "context": 9, "epoch": 2, "dtype": Dtype.BF16,
    "base": 0x1234567890, "pitch": 0xABCD, "peer_base": 0x7FFFFFFFFF, "row_shift": 1, "col_shift": 1,
    "row_blocks_log": 1,
    "tiles_inner": 4, "tiles_bottom": 2, "tiles_right": 2, "tiles_corner": 1, "last_block_row": 1, "last_block_col": 1,
}  # fmt: skip
"""3 x 3 tiles in blocks of 2 x 2: 2 x 2 blocks, one tile in the last one."""
LOAD_AFTER_ARM = 11 + BLOCKS


class Scene:
    """A trigger after reset; records load pulses and transferred commands as (cycle, fields)."""

    def __init__(self, config: T3Config | None = None, ready: int = 1) -> None:
        self.config = config or preset("small")
        self.bench = Bench(trigger, trigger_signature(self.config), trigger.init_state(self.config))
        self.loads: list[tuple[int, dict[str, int]]] = []
        self.commands: list[tuple[int, dict[str, int]]] = []
        self.ready = ready

    def tick(self, cycles: int = 1, **ports: int) -> None:
        for _ in range(cycles):
            load, command = self.bench.item("load"), self.bench.item("command")
            if load is not None:
                self.loads.append((self.bench.now, unpack(SlotLoad, load)))
            if command is not None and self.ready:
                self.commands.append((self.bench.now, unpack(DmaCommand, command)))
            self.bench.tick(command_ready=self.ready, **ports)
            ports = {}

    def describe(self, number: int, **changes: int) -> None:
        values = CHUNK | changes
        for word, layout in enumerate(register_map.DESCRIPTOR_LAYOUTS):
            fields = {name: values[name] for name, _ in layout}
            address = register_map.DESCRIPTOR + number * register_map.DESCRIPTOR_STRIDE + 8 * word
            self.bench.write(address, pack(layout, **fields))

    def control(self, bits: int, descriptors: int = 0) -> None:
        self.bench.write(register_map.CONTROL, bits | descriptors << 2)

    def arm(self, descriptors: int) -> int:
        """Arm; returns the cycle of the pulse."""
        self.control(ARM, descriptors)
        return self.bench.now - 1

    def until(self, cycle: int) -> None:
        self.tick(cycle - self.bench.now)

    def settle(self) -> None:
        for _ in range(3000):
            if self.bench.get("idle") and (self.bench.item("command") is None or not self.ready):
                return
            self.tick()
        raise AssertionError("never idle")

    def tile(self, row: int, col: int, slot: int = 0, wf: int = 0) -> None:
        self.tick(tile_done=pack(TileDone, slot=slot, row=row, col=col, wf=wf))

    def chunk(self, slot: int = 0, overflowed: int = 0) -> None:
        self.tick(chunk_done=pack(ChunkDone, slot=slot, overflowed=overflowed))

    def places(self, *names: str) -> list[tuple[int, ...]]:
        return [tuple(command[name] for name in names) for _, command in self.commands]

    def get(self, *ports: str) -> list[int]:
        return [self.bench.get(port) for port in ports]


def live(*changes: dict[str, int], ready: int = 1, config: T3Config | None = None) -> Scene:
    """A scene with one chunk live per entry of ``changes``."""
    scene = Scene(config, ready)
    for number, change in enumerate(changes):
        scene.describe(number, **change)
    scene.arm(len(changes))
    scene.settle()
    assert scene.bench.get("live") == len(changes)
    return scene


def test_reset():
    scene = Scene()
    names = ("command.valid", "load_valid", "armed", "live", "chunks_done", "done_mask")
    assert scene.get(*names) == [0] * len(names)
    assert scene.get("init_done", "idle", "wake_at") == [1, 1, NEVER]


def test_loader_timing_and_load_pulse():
    scene = Scene()
    scene.describe(0)
    scene.describe(1, kind=ChunkKind.LOCAL, row0=1)
    start = scene.arm(2)
    assert scene.get("armed", "live", "idle") == [1, 0, 0]
    scene.until(start + LOAD_AFTER_ARM)
    assert scene.get("load_valid", "live") == [1, 0]
    scene.tick()
    assert scene.get("load_valid", "live") == [0, 1]
    scene.settle()
    # WAIT again in the cycle of the pulse: the next one 10 + blocks cycles later
    assert [cycle - start for cycle, _ in scene.loads] == [LOAD_AFTER_ARM, LOAD_AFTER_ARM + 10 + BLOCKS]
    copied = ("row0", "row1", "col0", "col1", "addends", "expected", "context", "epoch")
    first, second = (load for _, load in scene.loads)
    assert first == {name: CHUNK[name] for name in copied} | {"slot": 0, "valid": 1, "reserved": 0, "descriptor": 0}
    assert second == first | {"row0": 1, "slot": 1, "descriptor": 1}
    assert scene.get("armed", "live", "idle") == [1, 2, 1]


@pytest.mark.parametrize("kind", [ChunkKind.REMOTE, ChunkKind.NONE])
def test_remote_and_none_are_skipped(kind):
    scene = Scene()
    for number, kinds in enumerate((kind, kind, ChunkKind.DMA)):
        scene.describe(number, kind=kinds)
    start = scene.arm(3)
    lives = {}
    for _ in range(40):
        lives.setdefault(scene.bench.get("live"), scene.bench.now - start)
        scene.tick()
    load = 9 + 9 + LOAD_AFTER_ARM
    assert lives == {0: 1, 1: 10, 2: 19, 3: load + 1}
    assert [(cycle - start, fields["slot"], fields["descriptor"]) for cycle, fields in scene.loads] == [(load, 0, 2)]


def test_only_armed_descriptors_are_loaded():
    scene = Scene()
    for number in range(4):
        scene.describe(number)
    scene.tick(50)
    assert scene.loads == [], "not armed"
    scene.arm(2)
    scene.tick(100)
    assert len(scene.loads) == 2


def test_latency_and_fields_of_a_command():
    scene = live({})
    start = scene.bench.now
    scene.tile(10, 18)  # the corner block has one tile
    scene.settle()
    [(cycle, command)] = scene.commands
    assert cycle == start + 6
    same = ("context", "epoch", "peer", "op", "dtype", "pitch", "base", "peer_base")
    expected = {name: CHUNK[name] for name in same} | {"descriptor": 0, "by_chunk": 0, "row": 10, "col": 18}
    expected |= {"rows": 1, "cols": 1, "reserved": 0, "reserved2": 0, "reserved3": 0}
    assert command == expected


@pytest.mark.parametrize(
    ("tiles", "block"),
    [
        ([(8, 16), (9, 16), (8, 17), (9, 17)], (8, 16, 2, 2)),  # inner
        ([(10, 16), (10, 17)], (10, 16, 1, 2)),  # last block row
        ([(8, 18), (9, 18)], (8, 18, 2, 1)),  # last block column
        ([(10, 18)], (10, 18, 1, 1)),  # both
    ],
)
def test_block_shapes_and_their_tile_counts(tiles, block):
    scene = live({})
    for row, col in tiles[:-1]:
        scene.tile(row, col)
    scene.settle()
    assert scene.commands == [] and scene.bench.get("idle")
    scene.tile(*tiles[-1])
    scene.settle()
    assert scene.places("row", "col", "rows", "cols") == [block]


def test_back_to_back_tiles_of_one_block():
    scene = live({"tiles_inner": 5})
    for _ in range(4):
        scene.tile(8, 16)
    start = scene.bench.now
    scene.tile(9, 17)
    scene.settle()
    assert [cycle for cycle, _ in scene.commands] == [start + 6]


def test_a_block_fires_once():
    scene = live({"tiles_corner": 2})
    for _ in range(5):
        scene.tile(10, 18)
    scene.settle()
    assert len(scene.commands) == 1
    scene.chunk(overflowed=1)
    scene.settle()
    assert scene.places("row", "col", "by_chunk") == [(10, 18, 0), (8, 16, 1), (10, 16, 1), (8, 18, 1)]


def test_a_block_that_expects_no_tiles_fires_by_chunk_only():
    scene = live({"tiles_corner": 0})
    scene.tile(10, 18)
    scene.settle()
    assert scene.commands == []


def test_wavefronts_and_tiles_of_a_block_count_alike():
    scene = live({"row_shift": 2, "col_shift": 2, "row_blocks_log": 0, "last_block_row": 0, "last_block_col": 0,
                  "tiles_corner": 18})  # fmt: skip
    for row in range(8, 11):
        for col in range(16, 19):
            for wf in range(2):
                assert scene.commands == []
                scene.tile(row, col, wf=wf)
    scene.settle()
    assert scene.places("row", "col", "rows", "cols") == [(8, 16, 3, 3)]
    scene.chunk()
    scene.settle()
    assert scene.get("chunks_done", "done_mask") == [1, 1]


def test_one_command_in_three_cycles_oldest_first():
    scene = live({"tiles_inner": 1, "tiles_bottom": 1, "tiles_right": 1})
    start = scene.bench.now
    for row, col in ((10, 18), (8, 16), (8, 18), (10, 16)):
        scene.tile(row, col)
    scene.settle()
    assert [cycle - start for cycle, _ in scene.commands] == [6, 9, 12, 15]
    assert scene.places("row", "col") == [(10, 18), (8, 16), (8, 18), (10, 16)]


def test_a_stalled_command_is_stable_and_the_next_follows_at_once():
    scene = live({"tiles_inner": 1, "tiles_bottom": 1}, ready=0)
    for row in (8, 10):
        scene.tile(row, 16)
    scene.tick(10)
    assert scene.bench.get("idle"), "one in the register, one behind it"
    shown = scene.bench.item("command")
    scene.tick(5)
    assert scene.bench.item("command") == shown
    scene.ready, start = 1, scene.bench.now
    scene.settle()
    assert [(cycle - start, command["row"]) for cycle, command in scene.commands] == [(0, 8), (1, 10)]


def test_local_counts_and_never_pushes():
    scene = live({"kind": ChunkKind.LOCAL})
    for row in range(8, 11):
        for col in range(16, 19):
            scene.tile(row, col)
    scene.chunk(overflowed=1)
    scene.settle()
    assert scene.commands == [] and scene.get("chunks_done", "done_mask") == [1, 1]


def test_flush_timing_and_order():
    scene = live({})
    scene.tile(10, 18)
    scene.settle()
    scene.commands.clear()
    start = scene.bench.now
    scene.chunk(overflowed=1)
    assert scene.get("chunks_done", "done_mask", "idle") == [1, 1, 0]
    scene.settle()
    # pending t+1, walker enters block 0 at t+2 (as a tile would at t+2): valid at t+8
    assert [cycle - start for cycle, _ in scene.commands] == [8, 11, 14]
    assert scene.places("row", "col", "rows", "cols", "by_chunk") == [
        (8, 16, 2, 2, 1), (10, 16, 1, 2, 1), (8, 18, 2, 1, 1),
    ]  # fmt: skip


def test_no_flush_without_overflow():
    scene = live({})
    scene.chunk()
    scene.settle()
    assert scene.commands == [] and scene.bench.get("chunks_done") == 1


def test_flush_leaves_out_blocks_beyond_the_chunk():
    scene = live({"row1": 10, "last_block_row": 0, "row_blocks_log": 1})  # numbers 0 and 2 of 4
    scene.chunk(overflowed=1)
    scene.settle()
    assert scene.places("row", "col", "rows") == [(8, 16, 2), (8, 18, 2)]


def test_chunk_done_counts_once_per_slot():
    scene = live({}, {})
    for slot in (1, 1, 0, 3):
        scene.chunk(slot)
    assert scene.get("chunks_done", "done_mask") == [2, 3]


def test_pulses_of_an_unused_slot_are_ignored():
    scene = live({"tiles_inner": 2})
    scene.tile(8, 16, slot=1)
    scene.chunk(slot=2, overflowed=1)
    scene.tile(8, 16, slot=63)
    assert scene.bench.get("idle") and scene.bench.get("chunks_done") == 0
    scene.tile(8, 16)
    scene.settle()
    assert scene.commands == []


def test_a_local_slot_is_free_two_cycles_after_its_chunk():
    scene = Scene()
    for number in range(5):  # small has 4 slots
        scene.describe(number, kind=ChunkKind.LOCAL)
    scene.arm(5)
    scene.settle()
    assert scene.bench.get("live") == 4
    start = scene.bench.now
    scene.chunk(slot=2)
    scene.settle()
    # done t+1, free and WAIT t+2, READ t+3..t+9, START, CLEAR, LOAD, pulse
    cycle, load = scene.loads[-1]
    assert (cycle - start, load["slot"], load["descriptor"]) == (12 + BLOCKS, 2, 4)
    scene.chunk(slot=2)
    scene.settle()
    assert scene.get("live", "chunks_done", "done_mask") == [5, 2, 0b10100]


def test_a_skip_waits_for_a_free_slot_and_the_lowest_is_taken():
    scene = Scene()
    for number in range(4):
        scene.describe(number, kind=ChunkKind.LOCAL)
    scene.describe(4, kind=ChunkKind.REMOTE)
    scene.describe(5)
    scene.arm(6)
    scene.settle()
    assert scene.bench.get("live") == 4
    for slot in (3, 1):
        scene.chunk(slot)
    scene.settle()
    assert scene.bench.get("live") == 6 and scene.loads[-1][1]["slot"] == 1


def test_a_dma_slot_is_kept_until_its_commands_are_issued():
    scene = Scene(ready=0)
    for number in range(5):
        scene.describe(number, tiles_inner=1, tiles_bottom=1, tiles_right=1)
    scene.arm(5)
    scene.settle()
    for row, col in ((8, 16), (10, 16), (8, 18), (10, 18)):
        scene.tile(row, col)
    scene.chunk()
    scene.settle()
    assert scene.bench.get("live") == 4 and scene.bench.get("idle")
    scene.ready, start = 1, scene.bench.now
    scene.settle()
    # One transfers at t, the second (waiting in BUILD) is written at t, valid t+1; the others 3 cycles apart: BUILD of
    # the last at t+6; all issued t+7; free and WAIT t+8; pulse 10 + blocks later.
    assert [cycle - start for cycle, _ in scene.commands] == [0, 1, 4, 7]
    assert scene.loads[-1][0] - start == 8 + 10 + BLOCKS and scene.loads[-1][1]["slot"] == 0
    scene.tile(8, 16)
    scene.settle()
    assert scene.places("descriptor", "row")[-1] == (4, 8), "counts and fired bits were cleared"


def test_all_blocks_issued_before_the_chunk_is_done_keeps_the_slot():
    scene = live({"tiles_inner": 1, "tiles_bottom": 1, "tiles_right": 1}, {}, {}, {})
    for row, col in ((8, 16), (10, 16), (8, 18), (10, 18)):
        scene.tile(row, col)
    scene.settle()
    assert len(scene.commands) == 4
    scene.chunk()
    assert scene.bench.get("chunks_done") == 1, "still used when the chunk was done"


def second_load(scene: Scene, pulses: dict[int, dict[str, int]]) -> int:
    """Arm two descriptors, give the pulses at these cycles after the arm, return the cycle of the second load pulse."""
    start = scene.arm(2)
    for cycle, pulse in pulses.items():
        scene.until(start + cycle)
        scene.tick(**pulse)
    scene.settle()
    return scene.loads[1][0] - start


START_CYCLE = LOAD_AFTER_ARM + 8
"""Cycle after the arm in which the loader is in START for the second descriptor."""
UNDISTURBED = START_CYCLE + BLOCKS + 2


@pytest.mark.parametrize(
    ("cycles", "slot", "lost"),
    [
        (range(START_CYCLE + 1, START_CYCLE + 4), 0, 3),  # while CLEAR walks
        (range(START_CYCLE + 1, START_CYCLE + 4), 1, 0),  # the slot that is being cleared is not used: ignored
        (range(START_CYCLE - 3, START_CYCLE + 1), 0, 0),  # before the walk
        (range(START_CYCLE + 4, START_CYCLE + 7), 0, 3),  # with the last block
    ],
)
def test_a_tile_takes_the_cycle_of_the_walker(cycles, slot, lost):
    scene = Scene()
    scene.describe(0, tiles_inner=100)
    scene.describe(1)
    tile = {"tile_done": pack(TileDone, slot=slot, row=8, col=16)}
    assert second_load(scene, dict.fromkeys(cycles, tile)) == UNDISTURBED + lost


def test_flush_goes_before_a_clear_that_has_not_started():
    scene = Scene()
    scene.describe(0)
    scene.describe(1)
    done = {"chunk_done": pack(ChunkDone, slot=0, overflowed=1)}
    load = second_load(scene, {START_CYCLE - 1: done})  # pending in START
    assert load == UNDISTURBED + BLOCKS + 1
    assert scene.commands[0][0] == scene.loads[0][0] - LOAD_AFTER_ARM + START_CYCLE - 1 + 8


def test_a_running_clear_finishes_first():
    scene = Scene()
    scene.describe(0)
    scene.describe(1)
    done = {"chunk_done": pack(ChunkDone, slot=0, overflowed=1)}
    load = second_load(scene, {START_CYCLE: done})  # pending when CLEAR walks
    assert load == UNDISTURBED
    # walker idle at START + 5, enters block 0 one cycle later, command valid six later
    assert scene.commands[0][0] == scene.loads[0][0] - LOAD_AFTER_ARM + START_CYCLE + BLOCKS + 1 + 1 + 6


def test_lowest_pending_slot_is_flushed_first():
    scene = Scene()
    for number in range(3):
        scene.describe(number)
    start = scene.arm(3)
    scene.until(start + LOAD_AFTER_ARM + 2 * (10 + BLOCKS) - BLOCKS)  # CLEAR of the third walks
    scene.chunk(slot=1, overflowed=1)
    scene.chunk(slot=0, overflowed=1)
    scene.settle()
    assert [descriptor for (descriptor,) in scene.places("descriptor")] == [0] * 4 + [1] * 4
    assert scene.get("done_mask", "live") == [3, 3]


def test_disarm_clears_all_but_the_descriptors():
    scene = live({"tiles_inner": 2, "tiles_bottom": 1}, {}, ready=0)
    scene.tile(8, 16)
    scene.tile(10, 16)
    scene.chunk(slot=1, overflowed=1)
    scene.tick(9)
    assert scene.bench.item("command") is not None
    scene.control(DISARM)
    names = ("command.valid", "load_valid", "armed", "live", "chunks_done", "done_mask")
    assert scene.get(*names) == [0] * len(names) and scene.get("init_done", "idle") == [1, 1]
    scene.ready = 1
    scene.tick(40)
    assert scene.commands == []
    scene.loads.clear()
    start = scene.arm(1)
    scene.settle()
    assert scene.loads[0][0] - start == LOAD_AFTER_ARM and scene.loads[0][1]["expected"] == CHUNK["expected"]
    scene.tile(8, 16)
    scene.settle()
    assert scene.commands == [], "the tile before the disarm does not count"
    scene.tile(8, 16)
    scene.settle()
    assert scene.places("row", "col") == [(8, 16)]


def test_disarm_wins_in_its_cycle():
    scene = Scene()
    scene.describe(0)
    start = scene.arm(1)
    scene.until(start + LOAD_AFTER_ARM - 1)  # LOAD
    scene.control(DISARM)
    assert scene.get("load_valid", "live", "idle") == [0, 0, 1]


def test_reset_does_not_depend_on_what_was_before():
    used = live({}, {}, ready=0)
    used.tile(10, 18)
    used.chunk(overflowed=1)
    used.bench.state[-20:] = -1  # tables
    used.bench.instance.reset()
    used.loads.clear()
    fresh = Scene()
    for scene in (used, fresh):
        scene.ready = 1
        scene.describe(0)
        scene.bench.now = 0
        scene.arm(1)
        scene.settle()
        scene.tile(10, 18)
        scene.tile(10, 16)
        scene.tile(10, 16)
        scene.settle()
    assert used.loads == fresh.loads and used.commands == fresh.commands and len(fresh.commands) == 2


def test_all_64_slots_and_descriptors():
    config = preset("small", descriptors=64, chunk_window=64, blocks=1)
    whole = {"row_shift": 15, "col_shift": 15, "last_block_row": 0, "last_block_col": 0, "tiles_corner": 1}
    scene = live(*[whole | {"row_blocks_log": 0, "peer": number} for number in range(64)], config=config)
    assert [(load["slot"], load["descriptor"]) for _, load in scene.loads] == [(n, n) for n in range(64)]
    scene.tile(9, 17, slot=63)
    scene.chunk(slot=63)
    scene.settle()
    assert scene.places("descriptor", "peer", "rows", "cols") == [(63, 63, 3, 3)]
    assert scene.get("chunks_done", "done_mask", "live") == [1, 1 << 63, 64]
    scene.chunk(slot=0, overflowed=1)
    scene.settle()
    assert scene.places("descriptor", "by_chunk")[1:] == [(0, 1)] and scene.bench.get("done_mask") == 1 << 63 | 1


def random_chunk(rng: random.Random, blocks: int) -> dict[str, Any]:
    """A chunk of random shape with at most ``blocks`` blocks, its blocks named by the rule of the register map."""
    while True:
        rows, cols, row_shift, col_shift = rng.randint(1, 8), rng.randint(1, 12), rng.randint(0, 3), rng.randint(0, 3)
        block_rows, block_cols = -(-rows // (1 << row_shift)), -(-cols // (1 << col_shift))
        log = (block_rows - 1).bit_length()
        if block_cols << log <= blocks:
            break
    last_rows, last_cols = rows - ((block_rows - 1) << row_shift), cols - ((block_cols - 1) << col_shift)
    row0, col0 = rng.randrange(100), rng.randrange(100)
    return CHUNK | {
        "row0": row0, "row1": row0 + rows, "col0": col0, "col1": col0 + cols, "row_shift": row_shift,
        "col_shift": col_shift, "row_blocks_log": log,
        "last_block_row": block_rows - 1, "last_block_col": block_cols - 1,
        "tiles_inner": 1 << row_shift + col_shift, "tiles_bottom": last_rows << col_shift,
        "tiles_right": last_cols << row_shift, "tiles_corner": last_rows * last_cols,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_random_chunks_are_sent_exactly_once(seed):
    print(f"seed {seed}")
    rng = random.Random(seed)
    config = preset("small", blocks=16)
    chunks = [random_chunk(rng, config.blocks) for _ in range(6)]
    scene = Scene(config)
    for number, chunk in enumerate(chunks):
        scene.describe(number, **chunk)
    scene.arm(len(chunks))
    left: dict[int, list[tuple[int, int]]] = {}  # tiles to do per live slot
    started, lost = 0, {}
    while scene.bench.get("chunks_done") < len(chunks) or not scene.bench.get("idle"):
        scene.ready = int(rng.random() < 0.7)
        if len(scene.loads) > started:
            load, started = scene.loads[started][1], started + 1
            tiles = [(r, c) for r in range(load["row0"], load["row1"]) for c in range(load["col0"], load["col1"])]
            rng.shuffle(tiles)
            lost[load["slot"]] = rng.choice((0, 0, len(tiles) // 3))
            left[load["slot"]] = tiles[lost[load["slot"]] :]
        slot = rng.choice([*left, None])
        if slot is None or rng.random() < 0.2:
            scene.tick()
        elif left[slot]:
            scene.tile(*left[slot].pop(), slot=slot)
        else:
            del left[slot]
            scene.chunk(slot, overflowed=int(lost[slot] > 0))
        assert scene.bench.now < 20000
    scene.ready = 1
    scene.settle()
    assert scene.get("done_mask", "live") == [(1 << len(chunks)) - 1, len(chunks)]
    sent = Counter(
        (command["descriptor"], row, col)
        for _, command in scene.commands
        for row in range(command["row"], command["row"] + command["rows"])
        for col in range(command["col"], command["col"] + command["cols"])
    )
    assert sent == Counter(
        (number, row, col)
        for number, chunk in enumerate(chunks)
        for row in range(chunk["row0"], chunk["row1"])
        for col in range(chunk["col0"], chunk["col1"])
    )
