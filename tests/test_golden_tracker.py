"""The golden Tracker against scenarios worked out from docs/hardware.md: match, count, events, disarm."""

import random
from collections import Counter

import pytest
from golden_bench import Bench, pack
from golden_tracker_scene import LINES, STICKY, Scene, fill_set, live
from t3hdl.config import preset
from t3hdl.interface import register_map
from t3hdl.interface.layouts import NEVER, ConfigWrite, SlotLoad, Token
from t3hdl.interface.signatures import tracker_signature
from t3sim.hardware.golden.tracker import tracker


@pytest.mark.parametrize("name", ["small", "paper", "paper-fit"])
def test_walker_and_ready_after_reset(name):
    config = preset(name)
    bench = Bench(tracker, tracker_signature(config), tracker.init_state(config))
    ports = ["init_done", *(f"token.{b}.ready" for b in range(config.tracker_banks))]
    for _ in range(config.sets_per_bank):
        assert [bench.get(port) for port in ports] == [0] * len(ports) and not bench.get("idle")
        bench.tick()
    assert [bench.get(port) for port in ports] == [1] * len(ports)
    assert bench.get("idle") and bench.get("wake_at") == NEVER


def test_latency_and_no_entry_for_a_whole_tile():
    scene = live(slot=2)
    start = scene.bench.now
    scene.send(row=3, col=7, wf=1, n=LINES)
    scene.settle()
    assert scene.tiles == [(start + 7, 2, 3, 7, 1)]
    assert scene.get("entries", "peak_entries") == [0, 0] and scene.errors() == []


def test_entry_counts_then_is_freed():
    scene = live()
    start = scene.bench.now
    scene.send(n=2)
    scene.tick(2)
    assert scene.get("entries", "peak_entries") == [0, 0] and scene.bench.now == start + 3  # update in this cycle
    scene.tick(2)
    assert scene.get("entries", "peak_entries") == [1, 0]
    scene.tick()
    assert scene.get("entries", "peak_entries") == [1, 1] and scene.bench.get("idle")
    scene.send(n=3)
    scene.settle()
    assert scene.tiles == []
    start = scene.bench.now
    scene.send(n=1)
    scene.settle()
    assert scene.tiles == [(start + 7, 0, 0, 0, 0)] and scene.get("entries", "peak_entries") == [0, 1]


def test_back_to_back_tokens_of_one_tile():
    scene = live()
    start = scene.bench.now
    for _ in range(3 * LINES):
        scene.send(n=1)
    scene.settle()
    assert [cycle for cycle, *_ in scene.tiles] == [start + 6 + LINES * k for k in (1, 2, 3)]
    assert scene.get("peak_entries", "entries") == [1, 0]


@pytest.mark.parametrize("field", ["context", "epoch", "row", "col", "wf"])
def test_every_key_field_separates_entries(field):
    scene = live()
    scene.load(slot=1, context=1)
    scene.load(slot=2, epoch=1)
    scene.send(n=LINES - 1)
    other = {"row": 0, "col": 0, field: 2 if field in ("row", "col") else 1}  # same bank, same table row
    scene.send(n=1, **other)
    scene.settle()
    assert scene.tiles == [] and scene.bench.get("entries") == 2


def test_edge_classes_and_wavefronts_have_their_own_profile():
    scene = live(addends=2)
    for bottom in range(2):
        for right in range(2):
            for wf in range(2):
                scene.profile(bottom, right, wf, 1 + bottom * 4 + right * 2 + wf)
    for bottom in range(2):
        for right in range(2):
            for wf in range(2):
                lines = 2 * (1 + bottom * 4 + right * 2 + wf)
                tile = {"bottom": bottom, "right": right, "wf": wf, "row": 2 * bottom, "col": 2 * right}
                scene.send(n=lines - 1, **tile)
                scene.settle()
                assert scene.tiles == []
                scene.send(n=1, **tile)
                scene.settle()
                assert [tile[1:] for tile in scene.tiles] == [(0, 2 * bottom, 2 * right, wf)]
                scene.tiles.clear()
    assert scene.errors() == []


def test_threshold_keeps_the_low_bits():
    scene = live(addends=200)
    scene.profile(0, 0, 0, 2)  # 400 in 8 bits: 144
    scene.send(n=144)
    scene.settle()
    assert len(scene.tiles) == 1


def test_wavefront_beyond_the_profile_has_threshold_zero():
    scene = live()
    scene.profile(0, 0, 2, 5)  # an unknown address of this configuration
    scene.send(wf=2, n=5)
    scene.settle()
    assert scene.tiles == [] and scene.errors() == ["over_count"] and scene.bench.get("entries") == 0


@pytest.mark.parametrize(
    ("tile", "matched"),
    [
        ({"row": 4, "col": 8}, True), ({"row": 7, "col": 15}, True), ({"row": 3, "col": 8}, False),
        ({"row": 8, "col": 8}, False), ({"row": 4, "col": 7}, False), ({"row": 4, "col": 16}, False),
        ({"row": 4, "col": 8, "context": 1}, False), ({"row": 4, "col": 8, "epoch": 1}, False),
    ],
)  # fmt: skip
def test_match_bounds_context_and_epoch(tile, matched):
    scene = Scene()
    scene.load(row0=4, row1=8, col0=8, col1=16, context=0, epoch=0)
    scene.send(n=LINES, **tile)
    scene.settle()
    assert (len(scene.tiles) == 1) == matched and scene.errors() == ([] if matched else ["unmatched"])


def test_lowest_slot_wins_and_a_retired_slot_does_not_match():
    scene = Scene()
    scene.load(slot=3)
    scene.load(slot=1)
    scene.send(n=LINES)
    scene.load(slot=1, valid=0)
    scene.settle()
    scene.send(n=LINES)
    scene.settle()
    assert [tile[1] for tile in scene.tiles] == [1, 3]
    scene.load(slot=3, valid=0)
    scene.send(n=LINES)
    scene.settle()
    assert len(scene.tiles) == 2 and scene.errors() == ["unmatched"]


def test_match_uses_the_slots_of_the_cycle_in_which_m_takes_the_token():
    scene = Scene()
    scene.send(n=LINES)  # transfers at t, M takes it at t+1
    scene.load()  # a load at t+1 acts from t+2
    scene.settle()
    assert scene.errors() == ["unmatched"]
    scene = Scene()
    bank0 = pack(Token, n=LINES)
    scene.tick(**{"token.0": bank0}, load=pack(SlotLoad, row1=1, col1=1, addends=1, valid=1, expected=100))
    scene.settle()
    assert scene.errors() == [] and len(scene.tiles) == 1


def test_a_load_beyond_the_window_is_ignored():
    scene = Scene()
    scene.load(slot=4)  # small has 4 slots
    scene.send(n=LINES)
    scene.settle()
    assert scene.errors() == ["unmatched"]


def test_over_count_keeps_the_entry_and_saturates():
    scene = live()
    scene.send(n=LINES - 1)
    scene.send(n=2)
    scene.settle()
    assert scene.errors() == ["over_count"] and scene.tiles == [] and scene.bench.get("entries") == 1
    scene.send(n=500)  # 8 bits: stays at 255 and never wraps to the threshold
    for _ in range(8):
        scene.send(n=1)
    scene.settle()
    assert scene.tiles == [] and scene.bench.get("entries") == 1


def test_over_count_without_an_entry_takes_none():
    scene = live()
    scene.send(n=LINES + 1)
    scene.settle()
    assert scene.errors() == ["over_count"] and scene.get("entries", "overflowed") == [0, 0] and scene.tiles == []


def test_events_drain_round_robin_and_fill_back_to_ready():
    config = preset("small", event_queue=3)
    scene = Scene(config)
    scene.load()
    sent = Counter()
    for _ in range(31):
        items = {}
        for bank in range(2):
            if scene.bench.get(f"token.{bank}.ready"):
                items[f"token.{bank}"] = pack(Token, row=bank, col=2 * sent[bank], n=LINES)
                sent[bank] += 1
        scene.tick(**items)
    assert 15 <= sent[0] < 30, "two banks share one event per cycle"
    scene.settle()
    cycles = [tile[0] for tile in scene.tiles]
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles))), "one event in every cycle with one"
    assert [tile[2] for tile in scene.tiles] == [0, 1] * sent[0] and sent[0] == sent[1]
    assert [tile[3] for tile in scene.tiles if tile[2] == 0] == [2 * k for k in range(sent[0])], "in order per bank"


def test_a_full_event_queue_stalls_exactly():
    # Both banks make an event per cycle from t+3 on, in E from t+4 and in the queue from t+5; room for 3 in each.
    # Bank 0 is drained at t+5, t+7, ..., bank 1 at t+6, t+8, ...
    config = preset("small", event_queue=3)
    scene = Scene(config)
    scene.load()
    start, ready = scene.bench.now, []
    for k in range(10):
        ready.append(scene.get("token.0.ready", "token.1.ready"))
        scene.tick(**{f"token.{bank}": pack(Token, row=bank, col=2 * k, n=LINES) for bank in range(2)})
    # Events in queue and E from t+4 on: bank 1: 1, 2, 3 (t+6: holds), 2, 3 (t+8: holds), ... Its input queue gains an
    # item in each of these: not ready at t+7 and t+9. Bank 0: 1, 2, 2 (drained at t+5), 3 (t+7: holds): a cycle later.
    assert scene.bench.now == start + 10
    assert [pair[1] for pair in ready] == [1, 1, 1, 1, 1, 1, 1, 0, 1, 0]
    assert [pair[0] for pair in ready] == [1, 1, 1, 1, 1, 1, 1, 1, 0, 1]


def test_disarm_is_reset_but_keeps_the_profile():
    scene = live(expected=LINES)
    scene.send(n=3)
    scene.send(row=2, n=LINES + 1)
    scene.send(row=4095, n=1)
    fill_set(scene, row=4)
    scene.send(row=4, col=4, n=1)
    scene.settle()
    assert scene.errors() == ["unmatched", "over_count"] and scene.get("overflowed") == [1]
    scene.send(n=1)
    scene.bench.write(register_map.CONTROL, 2)
    names = ("init_done", "entries", "peak_entries", "overflowed", *STICKY, "tile_done_valid", "token.0.ready")
    assert scene.get(*names) == [0] * len(names)
    scene.tick(2)
    assert scene.get("init_done", "token.0.ready") == [1, 1]
    scene.send(n=3)
    scene.settle()
    assert scene.errors() == ["unmatched"], "no slot is live"
    scene.load()
    scene.send(n=3)
    scene.settle()
    assert scene.tiles == [] and scene.bench.get("entries") == 1, "the old count is gone"
    scene.send(n=LINES - 3)
    scene.settle()
    assert len(scene.tiles) == 1


def test_disarm_wins_over_everything_in_its_cycle():
    scene = live()
    scene.send(n=LINES)
    scene.tick(3)  # the event is drained in the next cycle
    control = pack(ConfigWrite, address=register_map.CONTROL, data=2)
    scene.tick(config=control, load=pack(SlotLoad, row1=9, col1=9, valid=1), **{"token.1": pack(Token, row=1)})
    assert scene.tiles == [] and scene.get("init_done", "idle") == [0, 0]
    scene.tick(4)
    assert scene.bench.get("idle") and scene.errors() == [] and scene.bench.get("entries") == 0


def test_index_uses_every_set_once():
    config = preset(
        "small", tracker_sets=64, tracker_banks=4, row_index_bits=3, tracker_ways=1, event_queue=16, blocks=64
    )
    scene = Scene(config)
    scene.load()
    for row in range(8):
        for col in range(8):
            scene.send(row=row + 8, col=col + 16, n=1)  # one entry in each of the 64 one-way sets
    scene.settle()
    assert scene.get("entries", "peak_entries", "overflowed") == [64, 64, 0]
    scene.send(row=0, col=0, n=1)
    scene.settle()
    assert scene.get("entries", "overflowed") == [64, 1]


@pytest.mark.parametrize("name", ["small", "paper"])
def test_random_tokens_of_fitting_tiles_are_all_found(name):
    seed = 11
    print(f"seed {seed}")
    rng = random.Random(seed)
    config = preset(name, tracker_ways=16, event_queue=3)
    scene, banks = Scene(config), config.tracker_banks
    scene.load(row1=4, col1=4, addends=2, expected=16 * 2 * 2 * LINES)
    names = [(row, col, wf) for row in range(4) for col in range(4) for wf in range(2)]
    left = {tile: 2 * LINES for tile in names}
    queues = [[tile for tile in names if (tile[0] ^ tile[1]) % banks == bank] for bank in range(banks)]
    while any(queues):
        items = {}
        for bank, queue in enumerate(queues):
            if queue and rng.random() < 0.8 and scene.bench.get(f"token.{bank}.ready"):
                tile = rng.choice(queue)
                n = rng.randint(1, left[tile])
                left[tile] -= n
                if left[tile] == 0:
                    queue.remove(tile)
                items[f"token.{bank}"] = pack(Token, row=tile[0], col=tile[1], wf=tile[2], n=n)
        scene.tick(**items)
    scene.settle()
    assert sorted(tile[2:] for tile in scene.tiles) == names
    assert [chunk[1:] for chunk in scene.chunks] == [(0, 0)] and scene.errors() == []
    assert scene.bench.get("entries") == 0 and 0 < scene.bench.get("peak_entries") <= len(names)


def test_reset_does_not_depend_on_what_was_before():
    used = live()
    fill_set(used)
    used.send(col=4, n=1)
    used.bench.state[-40:] = -1  # tables full of garbage
    used.bench.instance.reset()
    fresh = Bench(tracker, tracker_signature(used.config), tracker.init_state(used.config))
    for _ in range(used.config.sets_per_bank + 1):
        assert (used.bench.instance.outputs == fresh.instance.outputs).all()
        used.bench.tick()
        fresh.tick()
    assert (used.bench.state == fresh.state).all()
