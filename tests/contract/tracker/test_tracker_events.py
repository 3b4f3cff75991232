"""The tracker's events: banks take turns, full queues stall, lines of a chunk are added up until they are collected."""

import random
from collections import Counter

import pytest
from t3hdl.config import T3Config
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.bank import EventStage
from t3hdl.tracker.tracker import Tracker
from t3sim.hardware.golden.backend import golden_hardware
from t3sim.hardware.rtl.backend import compiled_part

from tb.lockstep import Lockstep
from tb.stimulus.tracker_chunks import TrackerOverflows
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


def cases(config: T3Config, inputs: Inputs) -> Counter[str]:
    """How often each case of events and pending lines comes up in the RTL with these inputs."""
    part, hit = AmaranthBackend(Tracker(config=config)), Counter[str]()
    banks = [
        [find(part.fragment, rf"bank_{b}\.{name}") for name in (r"events\.level", "event_stage", r"overflow\.pending")]
        for b in range(config.tracker_banks)
    ]
    collect, slot = (find(part.fragment, rf"turns\.{name}") for name in ("collect", "slot"))
    get, before = part.context.get, {}
    for cycle in inputs:
        for port, value in cycle.items() - before.items():
            part.set(port, value)
        before = cycle
        collects, chosen = get(collect), get(slot)
        pending = [get(signals[2]) for signals in banks]
        for (level, stage, _), of_bank in zip(banks, pending, strict=True):
            event_stage = EventStage.from_bits(int(get(stage)))
            hit["full of tiles"] += get(level) == config.event_queue
            if event_stage.valid and event_stage.kind == EventKind.OVERFLOW:
                mine = of_bank >> event_stage.event.slot & 1
                hit["a sum begins"] += not mine
                hit["a sum grows"] += mine
                hit["a sum grows while it is collected"] += collects and mine and chosen == event_stage.event.slot
                hit["while another slot is collected"] += collects and chosen != event_stage.event.slot
        hit["collected from several banks"] += collects and sum(of_bank >> chosen & 1 for of_bank in pending) > 1
        hit["more slots than a queue would hold"] += max(map(int.bit_count, pending)) > config.event_queue
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
    # As large as `paper` it initialises its tables for a good part of these cycles.
    assert seen["tile"] > 20 and seen["chunk with overflow"] > (1 if size == "paper" else 5)
    wanted = {"a sum begins", "a sum grows", "a sum grows while it is collected", "while another slot is collected"}
    wanted |= {"collected from several banks", "more slots than a queue would hold"}
    assert wanted <= hit.keys(), "a case never came up"


def overflowed(backend: str, expected: int, **overrides: int) -> Scene:
    """Slot 0 has overflowed in both banks, one line each; the next turn is bank 0's."""
    scene = Scene(backend, **overrides)
    scene.crowd(0, 1)
    scene.load(expected=expected)
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
    # In E from start + 4 on. The slot is chosen at start + 6, + 8, ..., and takes what came until the cycle before:
    # at start + 54 the last lines, which were in E at start + 53.
    assert scene.chunks == [(start + 54 + 2, 0, 1)] and scene.errors == [] and scene.tiles == []


@pytest.mark.parametrize(("expected", "done"), [(6, 8), (5, None), (4, None), (3, None)])
def test_all_that_is_pending_is_one_event(backend, expected, done):
    """Both banks have a line in E at 4 and at 5. The slot is chosen at 6, which collects all four; two came before."""
    scene = overflowed(backend, expected)
    start = scene.now
    both(scene, 2)
    assert scene.chunks == ([(start + done, 0, 1)] if done else [])
    assert scene.errors == ([] if done else ["over_total"])


def crowded(backend: str, slots: int = 4, **fields: int) -> Scene:
    """A set of bank 0 is full, and marked for chunks of as many slots: a tile row each, with a line too few."""
    scene = Scene(backend)
    scene.crowd(0)
    for slot in range(slots):
        scene.load(slot=slot, row0=2 * slot, row1=2 * slot + 1, descriptor=slot, **{"expected": 2} | fields)
    for slot in range(slots):
        scene.count(row=2 * slot, col=4)
    return scene


def test_slots_are_collected_in_turn(backend):
    """Each is chosen while the one before is collected."""
    scene = crowded(backend)
    start = scene.now
    for slot in (2, 0, 3, 1):
        scene.offer(row=2 * slot, col=4)
    scene.settle()
    # In E at 4 to 7, pending from a cycle later on, chosen from two cycles later on.
    assert scene.chunks == [(start + 8 + k, slot, 1) for k, slot in enumerate((2, 0, 3, 1))]


def test_tiles_and_lines_take_turns(backend):
    """Two banks with a tile in every cycle, and lines of a slot: each has a third of the cycles."""
    scene = live(backend, row1=1, expected=500)
    scene.load(slot=1, row0=4, row1=5, expected=8, descriptor=1)
    scene.fill_set(bank=1)
    scene.count(row=4, col=1)  # bank 1's set is full and marked for slot 1
    start = scene.now
    for k in range(6):
        scene.offer(col=40 + 2 * k, n=LINES)  # bank 0: a whole tile
    for k in range(6):
        scene.offer(**({"row": 4, "col": 3} if k == 0 else {"col": 41 + 2 * k, "n": LINES}))
    scene.settle()
    # Bank 0's tiles are in its queue from 5 on, bank 1's from 6 on; the line is pending from 5 on, chosen from 6 on.
    # Turns from 5 on, bank 1 having the first one (bank 0 was the last before): 0, 1, slot, 0, 1, 0, 1, ...
    pulses = [cycle - start - 2 for cycle, *_ in scene.tiles]
    assert pulses == [cycle for cycle in range(5, 17) if cycle != 7]
    assert [col & 1 for *_, col, _ in scene.tiles] == [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    scene.count(row=4, col=3, n=6)
    assert scene.done_chunks == [(1, 1)] and scene.errors == []


@pytest.mark.parametrize(
    ("lines", "after", "error"),
    [
        (1, 0, False),  # in time: the first line, alone
        (2, 0, True),  # more at once than is left
        (1, 1, True),  # both at once: more than is left
        (1, 2, True),  # in E while the first one is collected, so pending when the chunk is told to be done
        (1, 3, True),  # in E in the cycle before the pulse
        (1, 4, True),  # in E in the cycle of the pulse
        (1, 5, True),  # later: dropped, but the chunk is complete
        (1, 7, True),  # matched in the cycle of the pulse
        (1, 8, False),  # matched after it: no live chunk
    ],
)
def test_lines_beyond_the_total_are_an_error_whenever_they_come(backend, lines, after, error):
    """The chunk lacks one line, which transfers at 0 and completes it with the pulse at 8. Another one comes."""
    scene = crowded(backend, 1)
    scene.deliver(col=4, n=lines)
    if after:
        scene.step(after - 1)
        scene.deliver(col=4)
    scene.settle()
    assert scene.done_chunks == ([] if lines > 1 or after == 1 else [(0, 1)])
    assert scene.errors == (["over_total"] if error else ["unmatched"] if after else [])
    assert scene["idle"] == 1, "nothing is left pending"


@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("command", ["abort", "arm"])
def test_lines_of_a_chunk_that_is_gone_are_dropped(backend, command, after):
    """A line transfers at 0; its context is aborted or armed anew in some cycle after it. Then its slot is loaded."""
    scene = crowded(backend, 1, expected=10)
    scene.deliver(col=4)
    scene.step(after - 1)
    scene.control(**{command: 1, "descriptors": 1})
    scene.until("maintenance")
    scene.ends("maintenance")
    scene.load(expected=2, descriptor=3)
    scene.settle()
    assert scene.errors == [] and scene.chunks == []
    scene.ends("abort_busy")
    scene.load(slot=1, context=1)
    scene.fill_set(row=2, context=1)
    scene.count(row=2, col=4, n=2)
    assert scene.done_chunks == [(0, 1)] and scene.errors == [], "nothing of the old chunk was counted for the new one"


@pytest.mark.parametrize(
    ("after", "ended", "error"),
    [
        (2, 5, False),  # in E at 6, where the chunk is gone and not yet complete: dropped
        (3, 5, True),  # in E at 7, where it is complete
        (2, 6, False),  # in E at 6, where it ends: dropped
        (2, 7, True),  # in E at 6, where it is live: pending when the chunk is told to be done
    ],
)
@pytest.mark.parametrize("command", ["abort", "arm"])
def test_a_chunk_that_is_gone_is_complete_a_cycle_after_its_last_lines_are_counted(
    backend, command, after, ended, error
):
    """The tile that completes the chunk transfers at 0 and is counted at 6; a line too many transfers ``after`` it, and
    its context is aborted or armed anew at ``ended``, after both were matched."""
    scene = crowded(backend, 1, expected=1 + LINES)
    scene.deliver(col=41, n=LINES)
    scene.step(after - 1)
    scene.deliver(col=4)
    scene.step(ended - after - 1)
    scene.control(**{command: 1, "descriptors": 1})
    scene.until("maintenance")
    scene.ends("maintenance")
    scene.settle()
    assert scene.done_chunks == [(0, 1)] and scene.errors == (["over_total"] if error else [])


@pytest.mark.parametrize("cycle", [4, 5, 6, 7])
def test_a_load_drops_what_is_pending_for_its_slot(backend, cycle):
    """A line transfers at 0: in E at 4, pending from 5 on, collected at 6, counted at 7. What is collected in the cycle
    of the load is counted after it, for the new chunk."""
    scene = crowded(backend, 1, expected=100)
    scene.deliver(col=4)
    scene.step(cycle - 1)
    scene.load(expected=3, descriptor=0)
    scene.settle()
    scene.count(col=4, n=2)
    assert scene.done_chunks == ([(0, 1)] if cycle == 6 else [])
    scene.count(col=4)
    assert scene.done_chunks == [(0, 1)] and scene.errors == (["unmatched"] if cycle == 6 else [])


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
