"""The tracker's events: banks take turns, full queues stall, lines of a chunk are added up while they wait."""

import random
from collections import Counter
from typing import Any

import pytest
from t3hdl.config import T3Config
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.bank import EventStage
from t3hdl.tracker.event_queue import Event
from t3hdl.tracker.tracker import Tracker
from t3sim.hardware.golden.backend import golden_hardware
from t3sim.hardware.rtl.backend import compiled_part

from tb.lockstep import Lockstep
from tb.stimulus.tracker import TrackerOverflows
from tests.contract.backends import AmaranthBackend
from tests.contract.test_parts_agree import CONFIGS
from tests.contract.tracker.scene import LINES, SHORT_QUEUES, Scene, live
from tests.support.single_event_upsets import find

SEED = 20261121
CYCLES = 1600

Inputs = list[dict[str, int]]


def compare(config: T3Config, title: str) -> tuple[Inputs, Counter[str]]:
    """Both backends under overflows: the inputs of every cycle, and how often pulses and waiting tokens came up."""
    rtl, golden = compiled_part(config, "tracker"), golden_hardware(config)
    bench = Lockstep({"rtl": rtl.part_type, "golden": golden.parts["tracker"]}, title=title)
    stimulus = TrackerOverflows(bench, config, random.Random(SEED))
    inputs, seen = [], Counter[str]()
    for _ in range(CYCLES):
        stimulus.drive()
        inputs.append({port: bench.driven(port) for port in bench.inputs})
        bench.step()
        seen["tile"] += bench.get("tile_done_valid")
        seen["chunk with overflow"] += bench.get("chunk_done_valid") and bench.get("chunk_done") >> 6 & 1
    assert not bench.get("over_total")
    rtl.free()
    golden.close()
    return inputs, +seen


def _fits(held: Any, event: Any) -> bool:
    """Whether the lines of an OVERFLOW may be added to an event that waits."""
    return held.kind == EventKind.OVERFLOW and held.slot == event.slot and held.lines + event.lines < 1 << 16


def cases(config: T3Config, inputs: Inputs) -> Counter[str]:
    """How often each case of the event queues comes up in the RTL with these inputs."""
    part, hit = AmaranthBackend(Tracker(config=config)), Counter[str]()
    queues = [
        (
            [
                find(part.fragment, rf"bank_{b}\.{name}")
                for name in (r"events\.level", "event_stage", r"events\.leaves")
            ],
            [find(part.fragment, rf"bank_{b}\.events\.entry_{k}") for k in range(config.event_queue)],
        )
        for b in range(config.tracker_banks)
    ]
    get, before = part.context.get, {}
    for cycle in inputs:
        for port, value in cycle.items() - before.items():
            part.set(port, value)
        before = cycle
        for signals, entries in queues:
            level, event_stage, leaves = get(signals[0]), EventStage.from_bits(int(get(signals[1]))), get(signals[2])
            hit["full"] += level + event_stage.valid == config.event_queue
            if not event_stage.valid or event_stage.event.kind != EventKind.OVERFLOW:
                continue
            held = [Event.from_bits(get(entry) & (1 << Event.size) - 1) for entry in entries[:level]]
            fits = [k for k, entry in enumerate(held) if _fits(entry, event_stage.event)]
            places = [k for k in fits if k or not leaves]
            if places:
                hit["into the head"] += places[0] == 0
                hit["into the middle"] += 0 < places[0] < level - 1
                hit["into the last"] += 0 < places[0] == level - 1
                hit["while the head leaves"] += leaves
                hit["past a tile"] += any(entry.kind == EventKind.TILE for entry in held[places[0] + 1 :])
            hit["the one that would take it leaves"] += bool(fits) and not places
        part.clock()
    return +hit


@pytest.mark.parametrize(
    "size",
    [
        "small",
        pytest.param("protected", marks=pytest.mark.long),
        *(pytest.param(size, marks=pytest.mark.slow) for size in ("wide", "paper")),
    ],
)
def test_chunks_overflow_side_by_side(size: str) -> None:
    config = CONFIGS[size]
    inputs, seen = compare(config, f"overflows of {size}, seed {SEED}")
    hit = cases(config, inputs)
    print(f"seed {SEED}: {dict(seen)} {dict(hit)}")
    assert seen["tile"] > 20 and seen["chunk with overflow"] > 5
    wanted = {"full", "into the head", "into the last", "while the head leaves", "past a tile"}
    wanted |= {"the one that would take it leaves"}
    # Merges come while there is room, so they have a middle in queues of 4 and more.
    wanted |= {"into the middle"} if config.event_queue > 3 else set()
    assert wanted <= hit.keys(), "a case of the event queues never came up"


def overflowed(backend: str, expected: int, **overrides: int) -> Scene:
    """Slot 0 has overflowed in both banks, one line each; the next turn is bank 0's."""
    scene = Scene(backend, **overrides)
    scene.load(expected=expected)
    for bank in range(2):
        scene.fill_set(bank=bank)
    for col in (8, 9):
        scene.count(col=col)
    assert scene.get("entries", "overflowed") == [2 * scene.config.tracker_ways, 1]
    return scene


def both(scene: Scene, tokens: int) -> list[list[int]]:
    """Tokens of new tiles for both banks; the cycles in which they transfer."""
    before = [len(scene.sent[f"token.{bank}"]) for bank in range(2)]
    for col in range(2 * tokens):
        scene.offer(col=10 + col)
    scene.settle()
    return [[cycle for cycle, _ in scene.sent[f"token.{bank}"][before[bank] :]] for bank in range(2)]


@pytest.mark.own_size
def test_an_overflowed_chunk_is_counted_at_the_rate_of_the_banks(backend):
    scene = overflowed(backend, 2 + 2 * 50, **SHORT_QUEUES)
    start = scene.now
    assert both(scene, 50) == [list(range(start, start + 50))] * 2
    # The last events are in E at start + 49 + 4, and are drained in the next two cycles.
    assert scene.chunks == [(start + 49 + 8, 0, 1)] and scene.errors == [] and scene.tiles == []


@pytest.mark.parametrize(("expected", "done"), [(3, 7), (4, None), (5, 8), (6, 9)])
def test_which_events_become_one(backend, expected, done):
    """Pushed by both banks at 4 and 5. Drained: at 5 bank 0 (1 line; what it pushes now is a new event), at 6 bank 1
    (2 lines), at 7 bank 0 (1 line); after the 2 lines of before these sums are 3, 5 and 6.
    """
    scene = overflowed(backend, expected)
    start = scene.now
    both(scene, 2)
    assert scene.chunks == ([(start + done, 0, 1)] if done else [])
    assert scene.errors == ([] if expected == 6 else ["over_total"])


def test_lines_go_past_a_tile_and_another_chunk(backend):
    scene = live(backend, row1=1, expected=100)
    scene.load(slot=1, row0=4, row1=5, expected=8, descriptor=1)
    scene.fill_set()
    scene.count(col=4)  # marks bank 0's row for chunk 0
    scene.fill_set(bank=1)
    scene.count(row=4, col=1)  # marks bank 1's row for chunk 1: 1 line
    # Bank 1 gets chunk 1's lines around a tile, while bank 0 has the first turn of each two.
    start, bank1 = scene.now, [(4, 3, 1), (0, 1, LINES - 1), (4, 3, 2), (4, 5, 3)]
    for k, (row, col, n) in enumerate(bank1):
        scene.offer(col=6 + 2 * k)
        scene.offer(row=row, col=col, n=n)
    scene.settle()
    # Pushed at + 4 to + 7. Bank 1 is drained at + 6 (1 line), + 8 (the tile), + 10 (2 + 3 lines): 7 of 8.
    assert scene.tiles == [(start + 10, 0, 0, 1, 0)]
    assert scene.chunks == [] and scene.errors == []
    scene.count(row=4, col=3)
    assert scene.done_chunks == [(1, 1)]


@pytest.mark.own_size
def test_a_full_event_queue_stalls_exactly_and_banks_take_turns(backend):
    """Both banks make an event per cycle from 3 on, in E from 4 and in the queue from 5 on; room for 3 in each.

    Bank 0 is drained at 5, 7, ..., bank 1 at 6, 8, ... In queue and E are from 4 on, bank 1: 1, 2, 3 (at 6: holds), 2,
    3 (8: holds), ... Its input queue gains an item in each of these: not ready at 7 and 9. Bank 0: 1, 2, 2 (drained at
    5), 3 (7: holds): a cycle later.
    """
    scene = Scene(backend, **SHORT_QUEUES)
    scene.load()
    for k in range(16):
        for bank in range(2):
            scene.offer(row=bank, col=2 * k, n=LINES)
    start, ready = scene.now, []
    for _ in range(10):
        ready.append(scene.get("token.0.ready", "token.1.ready"))
        scene.step()
    assert [pair[0] for pair in ready] == [1, 1, 1, 1, 1, 1, 1, 1, 0, 1]
    assert [pair[1] for pair in ready] == [1, 1, 1, 1, 1, 1, 1, 0, 1, 0]
    scene.settle()
    assert scene.tiles == [(start + 7 + k, 0, k % 2, k // 2 * 2, 0) for k in range(32)], "an event in every cycle"


@pytest.mark.own_size
def test_back_to_back_tokens_of_one_entry_while_the_event_queue_is_full(backend):
    scene = Scene(backend, **SHORT_QUEUES)
    scene.profile(0, 0, 0, 2)
    scene.load(expected=4 * 60)
    tiles = [(0, k // 8 * 2, k % 8 * 2 + bank, 0) for k in range(60) for bank in range(2)]
    for k, (_, row, col, _) in enumerate(tiles):  # two tiles per two cycles against one event per cycle, then four
        for n in (2,) if k // 2 % 2 else (1, 1):
            scene.offer(row=row, col=col, n=n)
    stalled = 0
    while any(scene.send.values()):
        stalled += not all(scene.get("token.0.ready", "token.1.ready"))
        scene.step()
    scene.settle()
    assert stalled > 10, "the event queues were full"
    assert sorted(scene.done_tiles) == sorted(tiles)
    assert scene.done_chunks == [(0, 0)] and scene.errors == [] and scene["entries"] == 0
