"""The tracker: which tokens are matched, when a tile is done, errors, reset and disarm."""

import numpy as np
import pytest
from amaranth.hdl import Signal
from t3hdl.config import preset
from t3hdl.interface import register_map as regs
from t3hdl.interface.layouts import NEVER
from t3hdl.tracker.tracker import Tracker
from t3sim.hardware.golden.tracker.bank import S

from tests.contract.bench import bench_of
from tests.contract.tracker.scene import EDGES, LINES, MANY_SETS, ONE_SET, STICKY, Scene, chunk, live


@pytest.mark.own_size
@pytest.mark.parametrize("sizes", [{}, ONE_SET, MANY_SETS])
def test_walker_takes_one_cycle_per_row_and_refuses_tokens_until_done(backend, sizes):
    config = preset("small", **sizes)
    bench = bench_of(backend, "tracker", config)
    ports = ["init_done", *(f"token.{b}.ready" for b in range(config.tracker_banks))]
    for _ in ("reset", "disarm"):
        for _ in range(config.sets_per_bank):
            assert [bench[port] for port in ports] == [0] * len(ports)
            bench.step()
        assert [bench[port] for port in ports] == [1] * len(ports)
        bench.settle()
        assert bench["wake_at"] == NEVER
        bench.control(disarm=1)


def test_latency_and_one_event_per_cycle_and_no_entry_for_a_whole_tile(backend):
    scene = live(backend, slot=2)
    start = scene.now
    scene.offer(row=3, col=7, wf=1, n=LINES)
    scene.offer(row=3, col=6, n=LINES)
    scene.settle()
    first = start + Tracker(config=scene.config).latency
    assert scene.tiles == [(first, 2, 3, 7, 1), (first + 1, 2, 3, 6, 0)]
    assert scene.get("entries", "peak_entries", "updates") == [0, 0, 2 * LINES] and scene.errors == []


def test_entries_count_are_freed_and_have_a_peak(backend):
    scene = live(backend)
    start = scene.now
    for col, n in ((0, 2), (1, 1), (0, 3)):
        scene.offer(col=col, n=n)
    seen = []
    for _ in range(8):
        seen.append(scene.get("entries", "peak_entries"))
        scene.step()
    assert seen == [[0, 0]] * 5 + [[2, 0]] + [[2, 2]] * 2, "update at 3, entries a cycle ago, peak another cycle later"
    scene.settle()
    assert scene.tiles == []
    start = scene.now
    scene.count(n=1)
    assert scene.tiles == [(start + 7, 0, 0, 0, 0)] and scene.get("entries", "peak_entries") == [1, 2]


def test_one_token_per_bank_and_cycle_all_of_one_tile(backend):
    scene = live(backend)
    start = scene.now
    for _ in range(3 * LINES):
        for col in range(2):
            scene.offer(col=col)
    scene.settle()
    for bank in range(2):
        assert [cycle for cycle, _ in scene.sent[f"token.{bank}"]] == list(range(start, start + 3 * LINES))
        done = [cycle for cycle, _, _, col, _ in scene.tiles if col == bank]
        assert done == [start + 6 + bank + LINES * k for k in (1, 2, 3)]
    assert scene.get("peak_entries", "entries") == [2, 0] and scene.errors == []


@pytest.mark.parametrize("field", ["context", "epoch", "row", "col", "wf"])
def test_every_key_field_separates_entries(backend, field):
    scene = live(backend)
    scene.load(slot=1, context=1)
    scene.load(slot=2, epoch=1)
    scene.deliver(n=LINES - 1)
    scene.count(n=1, **{field: 2 if field in ("row", "col") else 1})  # same bank, same table row
    assert scene.tiles == [] and scene["entries"] == 2 and scene.errors == []


def test_edge_classes_and_wavefronts_have_their_own_profile(backend):
    scene = live(backend, addends=2)
    tiles = [(bottom, right, wf) for bottom, right in EDGES for wf in range(2)]
    for k, place in enumerate(tiles):
        scene.profile(*place, 1 + k)
    for k, (bottom, right, wf) in enumerate(tiles):
        tile = {"bottom": bottom, "right": right, "wf": wf, "row": 2 * bottom, "col": 2 * right}
        scene.count(n=2 * (1 + k) - 1, **tile)
        assert len(scene.tiles) == k
        scene.count(n=1, **tile)
        assert scene.done_tiles[k:] == [(0, 2 * bottom, 2 * right, wf)]
    assert scene.errors == []


@pytest.mark.parametrize(
    ("lines", "addends", "threshold"), [(1, 1, 1), (1, 2, 2), (6, 2, 12), (255, 1, 255), (2, 200, 400 - 256)]
)
def test_a_tile_is_done_once_and_exactly_at_its_threshold_of_8_bits(backend, lines, addends, threshold):
    scene = Scene(backend)
    for wf in range(2):
        scene.profile(0, 0, wf, lines)
    scene.load(slot=3, addends=addends, expected=2 * threshold)
    for wf in range(2):
        if threshold > 1:
            scene.count(row=7, col=9, wf=wf, n=threshold - 1)
        assert len(scene.tiles) == wf, "not before its last line"
        scene.count(row=7, col=9, wf=wf)
    assert scene.done_tiles == [(3, 7, 9, 0), (3, 7, 9, 1)] and scene.done_chunks == [(3, 0)]
    assert scene.chunks[0][0] == scene.tiles[1][0], "the event that completes both gives both pulses"
    assert scene["entries"] == 0 and scene.errors == []


def test_a_wavefront_beyond_the_profile_has_threshold_zero(backend):
    scene = live(backend)
    scene.count(wf=2, n=5)
    assert scene.tiles == [] and scene.errors == ["over_count"] and scene["entries"] == 0


@pytest.mark.parametrize(
    ("tile", "matched"),
    [
        ({"row": 4, "col": 8}, True), ({"row": 7, "col": 15}, True), ({"row": 3, "col": 8}, False),
        ({"row": 8, "col": 8}, False), ({"row": 4, "col": 7}, False), ({"row": 4, "col": 16}, False),
        ({"row": 4, "col": 8, "context": 8}, False), ({"row": 4, "col": 8, "context": 2}, False),
        ({"row": 4, "col": 8, "epoch": 0}, False), ({"row": 4, "col": 8, "epoch": 2}, False),
    ],
)  # fmt: skip
def test_match_bounds_context_and_epoch(backend, tile, matched):
    scene = live(backend, row0=4, row1=8, col0=8, col1=16, context=9, epoch=1)
    scene.count(**{"n": LINES, "context": 9, "epoch": 1} | tile)
    assert len(scene.tiles) == matched and scene.errors == ([] if matched else ["unmatched"])


def test_lowest_slot_wins_and_neither_a_retired_slot_nor_one_beyond_the_window_matches(backend):
    scene = live(backend, slot=3)
    scene.load(slot=1)
    scene.load(slot=4)  # small has 4 slots
    scene.deliver(n=LINES)
    scene.load(slot=1, valid=0)
    scene.settle()
    scene.count(n=LINES)
    assert scene.done_tiles == [(1, 0, 0, 0), (3, 0, 0, 0)]
    scene.load(slot=3, valid=0)
    assert scene.errors == []
    scene.count(n=LINES)
    assert len(scene.tiles) == 2 and scene.errors == ["unmatched"]


@pytest.mark.parametrize("late", [0, 1])
def test_match_uses_the_slots_of_the_cycle_in_which_m_takes_the_token(backend, late):
    """It transfers at t, M takes it at t + 1; a load at t + 1 acts from t + 2 on."""
    scene = Scene(backend)
    scene.offer(n=LINES)
    scene.step(late)
    scene.load()
    scene.settle()
    assert (len(scene.tiles), scene.errors) == ((0, ["unmatched"]) if late else (1, []))


def test_a_count_above_the_threshold_keeps_the_entry_and_saturates(backend):
    scene = live(backend)
    scene.count(n=4)
    scene.count(n=3)
    assert scene.errors == ["over_count"] and scene.tiles == [] and scene["entries"] == 1
    for n in (253, 2, 1, 6):  # kept in 8 bits without saturation the count would be 4, and then 6
        scene.count(n=n)
        assert scene.look()["count"] == 255
    assert scene.tiles == [] and scene["entries"] == 1


def test_a_count_above_the_threshold_takes_no_entry(backend):
    scene = live(backend)
    scene.count(n=LINES + 1)
    assert scene.errors == ["over_count"] and scene.get("entries", "overflowed") == [0, 0] and scene.tiles == []


@pytest.mark.own_size
def test_index_uses_every_set_once(backend):
    scene = Scene(backend, **MANY_SETS)
    scene.load()
    for row in range(8):
        for col in range(8):
            scene.offer(row=row + 8, col=col + 16)  # one entry in each of the 64 one-way sets
    scene.settle()
    assert scene.get("entries", "peak_entries", "overflowed") == [64, 64, 0]
    scene.count(row=0, col=0)
    assert scene.get("entries", "overflowed") == [64, 1]


def test_disarm_is_reset_but_keeps_the_profile(backend):
    scene = live(backend, expected=LINES)
    scene.offer(n=3)
    scene.offer(row=2, n=LINES + 1)
    scene.offer(row=4095, n=1)
    scene.settle()
    scene.fill_set(row=4)
    scene.count(row=4, col=4)
    assert scene.errors == ["unmatched", "over_count"] and scene["overflowed"] == 1
    for col in range(8):
        scene.offer(col=col)
    scene.step(6)  # tokens in every stage
    for waiting in scene.send.values():
        waiting.clear()
    scene.control(disarm=1)
    names = ("init_done", "entries", "peak_entries", "overflowed", *STICKY, "tile_done_valid", "token.0.ready")
    assert scene.get(*names, "updates", "tiles") == [0] * (len(names) + 2)
    scene.step(scene.config.sets_per_bank)
    assert scene.get("init_done", "token.0.ready") == [1, 1]
    before = len(scene.tiles)
    scene.count(n=3)
    assert scene.errors == ["unmatched"], "no slot is live"
    scene.load()
    scene.count(n=3)
    assert len(scene.tiles) == before and scene["entries"] == 1, "no count of before is left"
    scene.count(n=LINES - 3)
    assert len(scene.tiles) == before + 1


def test_disarm_wins_over_everything_in_its_cycle(backend):
    scene = live(backend)
    scene.deliver(n=LINES)
    scene.step(3)  # the event leaves its queue in the next cycle
    scene.offer(row=1)
    scene.set("load", chunk(row1=9, col1=9))
    scene.set("load_valid", 1)
    scene.control(disarm=1)
    scene.set("load_valid", 0)
    assert scene["init_done"] == 0
    scene.settle()
    assert scene.tiles == [] and scene.errors == [] and scene["entries"] == 0
    scene.count(n=1)
    assert scene.errors == ["unmatched"], "the load is lost"


def test_tables_may_hold_anything_before_reset():
    bench = bench_of("amaranth", "tracker")
    for row in bench.backend.registers:
        if not isinstance(row, Signal):
            bench.backend.context.set(row, bench.random.getrandbits(len(row)))
    bench.until("init_done")
    bench.write(regs.PROFILE, LINES)
    bench.step(load=chunk(expected=8 * LINES))
    tiles = {(row, col) for row in range(2) for col in range(4)}  # two in every row of the table
    for row, col in 2 * sorted(tiles):
        bench.send[f"token.{row ^ col & 1}"].append({"row": row, "col": col, "n": LINES // 2})
    bench.send["token.0"].append({"n": 1, "right": 1})  # no profile was written for it: no lines, one too many
    done = []
    for _ in range(40):
        if bench["tile_done_valid"]:
            done.append((bench.fields("tile_done")["row"], bench.fields("tile_done")["col"]))
        bench.step()
    assert sorted(done) == sorted(tiles)
    assert [bench[name] for name in ("entries", "overflowed", *STICKY)] == [0, 0, 0, 1, 0]


def test_reset_clears_random_state():
    bench = bench_of("golden", "tracker")
    bench.until("init_done")
    fresh, memory = bench.backend.state(), bench.backend.memory
    first = S.profile  # parameters lie in front
    memory[first:] = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, len(memory) - first)
    bench.reset()
    assert bench.until("init_done") == preset("small").sets_per_bank and bench.backend.state() == fresh


EIGHT_BANKS = {"tracker_sets": 64, "tracker_banks": 8, "row_index_bits": 3, "event_queue": 3, "blocks": 64}


@pytest.mark.own_size
@pytest.mark.parametrize("sizes", [{}, ONE_SET, MANY_SETS, EIGHT_BANKS])
def test_updates_count_the_lines_of_every_bank_in_one_cycle(backend, sizes):
    scene = Scene(backend, **sizes)
    scene.load()
    banks = scene.config.tracker_banks
    total = 0
    for chosen in [
        (1 << banks) - 1,
        *(1 << bank for bank in range(banks)),
        *(0b11 << bank for bank in range(banks - 1)),
    ]:
        for bank in range(banks):
            if chosen >> bank & 1:
                scene.offer(row=0, col=bank, wf=0, n=1 << bank)
                total += 1 << bank
        before = scene["updates"]
        scene.settle()
        assert scene["updates"] - before == chosen
    assert scene["updates"] == total
