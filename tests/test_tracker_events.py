"""Compiled and golden tracker agree while chunks overflow side by side, and every case of the event queues comes up."""

import random
from collections import Counter
from typing import Any

import pytest
from amaranth.hdl import Fragment, Value
from amaranth.sim import Simulator
from lockstep import Lockstep
from stimulus_tracker import TrackerOverflows
from t3hdl.config import T3Config
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.bank import ToldEvent
from t3hdl.tracker.event_queue import Event
from t3hdl.tracker.tracker import Tracker
from t3sim.hardware.golden.backend import golden_hardware
from t3sim.hardware.rtl.backend import compiled_part
from test_parts_agree import CONFIGS
from tracker_driver import Driver, check
from upsets import find

SEED = 20261121
CYCLES = 1600

Inputs = list[dict[str, int]]


def compare(config: T3Config, title: str) -> tuple[Inputs, Counter[str]]:
    """Both backends under overflows: the inputs of every cycle, and how often pulses and waiting tokens came up."""
    rtl, golden = compiled_part(config, "tracker"), golden_hardware(config)
    bench = Lockstep({"rtl": rtl.part_type, "golden": golden.tracker}, title=title)
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
    tracker, hit = Tracker(config=config), Counter[str]()
    fragment = Fragment.get(tracker, None)
    queues = [
        (
            [find(fragment, rf"bank_{b}\.{name}") for name in (r"events\.level", "told", r"events\.leaves")],
            [find(fragment, rf"bank_{b}\.events\.entry_{k}") for k in range(config.event_queue)],
        )
        for b in range(config.tracker_banks)
    ]
    targets = {".".join(map(str, path)): Value.cast(value) for path, _, value in tracker.signature.flatten(tracker)}

    async def testbench(ctx: Any) -> None:
        for cycle in inputs:
            for port, value in cycle.items():
                ctx.set(targets[port], value)
            for signals, entries in queues:
                level, told, leaves = (
                    ctx.get(signals[0]),
                    ToldEvent.from_bits(int(ctx.get(signals[1]))),
                    ctx.get(signals[2]),
                )
                hit["full"] += level + told.valid == config.event_queue
                if not told.valid or told.event.kind != EventKind.OVERFLOW:
                    continue
                held = [Event.from_bits(ctx.get(entry) & (1 << Event.size) - 1) for entry in entries[:level]]
                fits = [k for k, entry in enumerate(held) if _fits(entry, told.event)]
                places = [k for k in fits if k or not leaves]
                if places:
                    hit["into the head"] += places[0] == 0
                    hit["into the middle"] += 0 < places[0] < level - 1
                    hit["into the last"] += 0 < places[0] == level - 1
                    hit["while the head leaves"] += leaves
                    hit["past a tile"] += any(entry.kind == EventKind.TILE for entry in held[places[0] + 1 :])
                hit["the one that would take it leaves"] += bool(fits) and not places
            await ctx.tick()

    simulator = Simulator(fragment)
    simulator.add_clock(1e-9)
    simulator.add_testbench(testbench)
    simulator.run()
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


async def _overflowed(d: Driver, tokens: int, expected: int) -> None:
    """A chunk that has overflowed in both banks (2 lines), then this many tokens for each of them."""
    await d.start()
    await d.load(expected=expected)
    for col in (0, 1, 2, 3):
        d.send(col=col)
    await d.settle()
    for col in range(2 * tokens):
        d.send(col=4 + col)
    await d.settle()
    assert (d["entries"], d["overflowed"], d.tiles) == (2, 1, [])


def test_a_chunk_that_has_overflowed_is_counted_at_the_rate_of_the_banks() -> None:
    async def scenario(d: Driver) -> None:
        await _overflowed(d, 200, 2 + 2 * 200)
        times = [[t for t, _ in d.bench.sent[f"token.{bank}"]][2:] for bank in (0, 1)]
        assert times == [list(range(times[0][0], times[0][0] + 200))] * 2
        assert [chunk for _, chunk in d.chunks] == [{"slot": 0, "overflowed": 1}]
        assert d.chunks[0][0] == times[0][-1] + 8, "the banks' last events are taken in two cycles"
        assert d.errors == []

    check(scenario, tracker_ways=1, event_queue=3)


@pytest.mark.parametrize(("expected", "done"), [(3, True), (4, False), (5, True), (6, True)])
def test_a_sum_reaches_what_the_chunk_expects_or_passes_it(expected: int, done: bool) -> None:
    """The events are 1, then 2 (bank 1 waited for its turn), then 1: after the 2 lines of before 3, 5 and 6."""

    async def scenario(d: Driver) -> None:
        await _overflowed(d, 2, expected)
        assert len(d.chunks) == done
        assert d.errors == ([] if expected == 6 else ["over_total"])

    check(scenario, tracker_ways=1)
