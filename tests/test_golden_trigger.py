"""The golden Trigger against scenarios worked out from docs/hardware.md: loading, blocks, commands."""

import random
from collections import Counter
from typing import Any

import pytest
from golden_trigger_scene import BLOCKS, CHUNK, LOAD_AFTER_ARM, Scene, live
from t3hdl.config import preset
from t3hdl.interface.layouts import NEVER, ChunkKind


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
    assert cycle == start + 7
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
    assert [cycle for cycle, _ in scene.commands] == [start + 7]


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
    assert [cycle - start for cycle, _ in scene.commands] == [7, 10, 13, 16]
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
    # pending t+1, walker enters block 0 at t+2 (as a tile would at t+2): valid at t+9
    assert [cycle - start for cycle, _ in scene.commands] == [9, 12, 15]
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


def test_all_64_slots_and_descriptors():
    config = preset("small", descriptors=64, chunk_window=64, blocks=1, event_queue=3)
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
