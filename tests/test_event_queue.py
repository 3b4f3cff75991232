"""The event queue of a tracker bank: which waiting event takes an OVERFLOW's lines; damage is never hidden."""

import random
from collections import Counter, deque
from typing import Any

import pytest
from stream_checks import Bench, run
from t3hdl.config import preset
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.event_queue import Event, EventQueue
from upsets import flip

LIMIT = 65536


class Driver:
    """Pushes and pops; ``got`` has kind, slot and lines of what left."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.got: list[tuple[int, int, int]] = []

    async def step(self, event: dict[str, int] | None = None, *, pop: bool = False) -> None:
        if pop:
            head = Event.from_bits(self.bench["head"])
            self.got.append((head.kind, head.slot, head.lines))
        await self.bench.step(push=bool(event), event=event or {}, pop=pop)

    async def spill(self, slot: int, lines: int = 1, *, pop: bool = False, times: int = 1) -> None:
        for _ in range(times):
            await self.step({"kind": EventKind.OVERFLOW, "slot": slot, "lines": lines}, pop=pop)

    async def tile(self, slot: int, lines: int = 1, *, pop: bool = False) -> None:
        await self.step({"kind": EventKind.TILE, "slot": slot, "lines": lines, "row": 7}, pop=pop)

    async def drain(self) -> list[tuple[int, int, int]]:
        """What is left."""
        before = len(self.got)
        while self.bench["level"]:
            await self.step(pop=bool(self.bench["valid"]))
        return self.got[before:]


def _run(scenario: Any, *, depth: int = 4, seed: int = 0, protect: bool = False) -> None:
    async def with_driver(bench: Bench) -> None:
        await scenario(Driver(bench))

    config = preset("small", event_queue=depth, tracker_banks=1, blocks=64, protect=protect)
    run(EventQueue(config=config), with_driver, seed=seed, pulses=("push", "pop"))


def test_the_waiting_head_takes_lines_too() -> None:
    async def scenario(d: Driver) -> None:
        await d.spill(3, 5)
        await d.spill(3, 7, times=2)
        assert (d.bench["level"], Event.from_bits(d.bench["head"]).lines) == (1, 19)
        assert await d.drain() == [(1, 3, 19)]

    _run(scenario)


def test_what_leaves_in_the_cycle_takes_nothing() -> None:
    async def scenario(d: Driver) -> None:
        await d.spill(3, 5)
        await d.spill(3, 7, pop=True)
        assert (d.bench["level"], d.got) == (1, [(1, 3, 5)])
        await d.spill(4, 1)
        await d.spill(4, 2, pop=True)  # into what becomes the head
        assert await d.drain() == [(1, 4, 3)]

    _run(scenario)


def test_lines_are_added_across_tiles_and_other_chunks() -> None:
    async def scenario(d: Driver) -> None:
        await d.spill(1)
        await d.spill(2)
        await d.tile(2, 6)
        await d.spill(2, 10)
        await d.spill(1, 20)
        assert await d.drain() == [(1, 1, 21), (1, 2, 11), (0, 2, 6)]

    _run(scenario)


def test_tiles_are_never_added_up() -> None:
    async def scenario(d: Driver) -> None:
        await d.tile(1, 6)
        await d.spill(1, 2)
        await d.tile(1, 6)
        assert await d.drain() == [(0, 1, 6), (1, 1, 2), (0, 1, 6)]

    _run(scenario)


@pytest.mark.parametrize(("last", "left"), [(63, [65535]), (64, [65472, 64])])
def test_a_sum_that_its_field_cannot_hold_is_not_made(last: int, left: list[int]) -> None:
    async def scenario(d: Driver) -> None:
        await d.spill(1, 1023, times=64)
        await d.spill(1, last)
        assert [lines for *_, lines in await d.drain()] == left

    _run(scenario)


def test_the_oldest_that_has_room_takes_the_lines() -> None:
    async def scenario(d: Driver) -> None:
        await d.spill(1, 1023, times=64)  # room for 63
        await d.spill(1, 64)
        await d.spill(1, 63)
        await d.spill(1, 1)
        assert await d.drain() == [(1, 1, 65535), (1, 1, 65)]

    _run(scenario)


def test_latency() -> None:
    queue = EventQueue(config=preset("small"))

    async def scenario(bench: Bench) -> None:
        before = bench.now
        await Driver(bench).spill(1)
        assert bench["valid"] and bench.now - before == queue.latency

    run(queue, scenario, pulses=("push", "pop"))


@pytest.mark.parametrize(("depth", "protect"), [(3, False), (3, True), (4, False), (4, True), (16, False)])
def test_follows_its_rule_under_random_traffic(depth: int, protect: bool) -> None:
    rng, hit = random.Random(depth), Counter[str]()

    async def scenario(d: Driver) -> None:
        model: deque[dict[str, int]] = deque()
        phases = [(1, 0.01, True), (1, 0.2, False), (depth, 0.2, False), (depth, 0.01, True), (depth, 0.6, False)]
        for slots, pops, heavy in [phase for phase in phases for _ in range(200)]:
            held = [(entry["kind"], entry["slot"], entry["lines"]) for entry in model]
            head = Event.from_bits(d.bench["head"])
            assert d.bench["level"] == len(held) and d.bench["valid"] == bool(held)
            assert not held or (head.kind, head.slot, head.lines) == held[0]
            lines = 1023 if heavy else rng.randint(1, 1023)
            event = {"kind": int(slots == 1 or rng.random() < 0.95), "slot": rng.randrange(slots), "lines": lines}
            push, pop = len(held) < depth and rng.random() < 0.9, bool(held) and rng.random() < pops
            await d.step(event if push else None, pop=pop)
            if pop:
                model.popleft()
            if push:
                _push(model, event, hit, leaves=pop)

    _run(scenario, depth=depth, seed=depth, protect=protect)
    wanted = {"into the head", "appended beside a full one", "into the last", "while the head leaves"}
    wanted |= {"into the middle", "past a tile"} if depth > 3 else set()
    assert wanted <= (+hit).keys(), "a case of the rule never came up"


def _push(model: deque[dict[str, int]], event: dict[str, int], hit: Counter[str], *, leaves: bool) -> None:
    """The rule in its plainest form, after what left; counts the cases."""
    same = [entry for entry in model if event["kind"] and entry["kind"] and entry["slot"] == event["slot"]]
    entry = next((entry for entry in same if entry["lines"] + event["lines"] < LIMIT), None)
    if entry is None:
        hit["appended beside a full one"] += bool(same)
        model.append(dict(event))
        return
    place = next(k for k, other in enumerate(model) if other is entry)
    hit["into the head"] += place == 0 and not leaves
    hit["into the middle"] += 0 < place < len(model) - 1
    hit["into the last"] += 0 < place == len(model) - 1
    hit["while the head leaves"] += leaves
    hit["past a tile"] += any(not other["kind"] for other in list(model)[place:])
    entry["lines"] += event["lines"]


# Wrong bits: 0 is the kind, 1 to 6 the slot, 7 to 22 the lines, 23 to 50 the tile, the rest check bits.


@pytest.mark.parametrize("bit", [0, 1, 7, 22, 50, 51, 57])
@pytest.mark.parametrize("times", [1, 2, 8])
def test_added_lines_do_not_hide_two_wrong_bits(bit: int, times: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.tile(0)
        await d.spill(1, 9)
        flip(d.bench, "entry_1", bit, 10)
        await d.spill(1, times=times)
        await d.step(pop=True)
        assert (d.bench["uncorrectable"], d.bench["valid"]) == (1, 0)
        assert sum(lines for *_, lines in await d.drain()) in (0, times)  # of an entry of their own, if at all

    _run(scenario, protect=True)


@pytest.mark.parametrize("bit", [0, 1, 7, 22, 50, 51, 57])
def test_an_entry_with_a_wrong_bit_takes_no_more_lines(bit: int) -> None:
    async def scenario(d: Driver) -> None:
        await d.spill(1, 9)
        flip(d.bench, "entry_0", bit)
        await d.spill(1, times=2)
        assert (d.bench["corrected"], d.bench["valid"]) == (1, 1)
        assert await d.drain() == [(1, 1, 9), (1, 1, 2)]

    _run(scenario, protect=True)
