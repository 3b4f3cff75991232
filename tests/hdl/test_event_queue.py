"""The event queue of a tracker bank: which waiting event takes an OVERFLOW's lines; damage is never hidden."""

import random
from collections import Counter, deque

import pytest
from t3hdl.config import preset
from t3hdl.interface.layouts import EventKind
from t3hdl.tracker.event_queue import EventQueue

from tests.contract.backends import AmaranthBackend
from tests.contract.bench import Bench
from tests.support.single_event_upsets import invert

LIMIT = 65536


class Scene(Bench):
    """Pushes and pops; ``left`` has kind, slot and lines of what left."""

    def __init__(self, *, depth: int = 4, protect: bool = False) -> None:
        config = preset("small", event_queue=depth, tracker_banks=1, blocks=64, protect=protect)
        super().__init__(AmaranthBackend(EventQueue(config=config)))
        self.left: list[tuple[int, ...]] = []

    def push(self, event: dict[str, int] | None = None, *, pop: bool = False) -> None:
        """A cycle with this event, or none."""
        if pop:
            self.left.append(self.head())
        self.step(push=int(event is not None), event=event or {}, pop=int(pop))

    def head(self) -> tuple[int, ...]:
        head = self.fields("head")
        return head["kind"], head["slot"], head["lines"]

    def spill(self, slot: int, lines: int = 1, *, pop: bool = False, times: int = 1) -> None:
        for _ in range(times):
            self.push({"kind": EventKind.OVERFLOW, "slot": slot, "lines": lines}, pop=pop)

    def tile(self, slot: int, lines: int = 1) -> None:
        self.push({"kind": EventKind.TILE, "slot": slot, "lines": lines, "row": 7})

    def drain(self) -> list[tuple[int, ...]]:
        """What is left."""
        before = len(self.left)
        while self["level"]:
            self.push(pop=bool(self["valid"]))
        return self.left[before:]


def test_the_waiting_head_takes_lines_too():
    queue = Scene()
    queue.spill(3, 5)
    queue.spill(3, 7, times=2)
    assert queue["level"] == 1 and queue.head() == (1, 3, 19)
    assert queue.drain() == [(1, 3, 19)]


def test_what_leaves_in_the_cycle_takes_nothing():
    queue = Scene()
    queue.spill(3, 5)
    queue.spill(3, 7, pop=True)
    assert queue["level"] == 1 and queue.left == [(1, 3, 5)]
    queue.spill(4, 1)
    queue.spill(4, 2, pop=True)  # into what becomes the head
    assert queue.drain() == [(1, 4, 3)]


def test_lines_are_added_across_tiles_and_other_chunks_and_tiles_never():
    queue = Scene()
    for slot in (1, 2):
        queue.spill(slot)
    for _ in range(2):
        queue.tile(2, 6)
    queue.spill(2, 10)
    queue.spill(1, 20)
    assert queue.drain() == [(1, 1, 21), (1, 2, 11), (0, 2, 6), (0, 2, 6)]


def test_lines_are_not_added_to_a_tile():
    queue = Scene()
    queue.tile(1, 6)
    queue.spill(1, 2)
    queue.tile(1, 6)
    assert queue.drain() == [(0, 1, 6), (1, 1, 2), (0, 1, 6)]


@pytest.mark.parametrize(("last", "left"), [(63, [65535]), (64, [65472, 64])])
def test_a_sum_that_its_field_cannot_hold_is_not_made(last, left):
    queue = Scene()
    queue.spill(1, 1023, times=64)
    queue.spill(1, last)
    assert [lines for *_, lines in queue.drain()] == left


def test_the_oldest_that_has_room_takes_the_lines():
    queue = Scene()
    queue.spill(1, 1023, times=64)  # room for 63
    for lines in (64, 63, 1):
        queue.spill(1, lines)
    assert queue.drain() == [(1, 1, 65535), (1, 1, 65)]


def test_latency():
    queue = Scene()
    queue.spill(1)
    assert queue["valid"] and queue.now == EventQueue(config=preset("small")).latency


@pytest.mark.parametrize(("depth", "protect"), [(3, False), (3, True), (4, False), (4, True), (16, False)])
def test_follows_its_rule_under_random_traffic(depth, protect):
    rng, hit = random.Random(depth), Counter[str]()
    print(f"seed {depth}")
    queue, model = Scene(depth=depth, protect=protect), deque[dict[str, int]]()
    phases = [(1, 0.01, True), (1, 0.2, False), (depth, 0.2, False), (depth, 0.01, True), (depth, 0.6, False)]
    for slots, pops, heavy in [phase for phase in phases for _ in range(200)]:
        held = [(entry["kind"], entry["slot"], entry["lines"]) for entry in model]
        assert queue["level"] == len(held) and queue["valid"] == bool(held)
        assert not held or queue.head() == held[0]
        lines = 1023 if heavy else rng.randint(1, 1023)
        event = {"kind": int(slots == 1 or rng.random() < 0.95), "slot": rng.randrange(slots), "lines": lines}
        push, pop = len(held) < depth and rng.random() < 0.9, bool(held) and rng.random() < pops
        queue.push(event if push else None, pop=pop)
        if pop:
            model.popleft()
        if push:
            _push(model, event, hit, leaves=pop)
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


@pytest.fixture(scope="module")
def guarded():
    return Scene(protect=True)


@pytest.mark.parametrize("bit", [0, 1, 7, 22, 50, 51, 57])
@pytest.mark.parametrize("times", [1, 2, 8])
def test_added_lines_do_not_hide_two_wrong_bits(guarded, bit, times):
    guarded.reset()
    guarded.tile(0)
    guarded.spill(1, 9)
    invert(guarded.backend, "entry_1", bit, 10)
    guarded.spill(1, times=times)
    guarded.push(pop=True)
    assert (guarded["uncorrectable"], guarded["valid"]) == (1, 0)
    assert sum(lines for *_, lines in guarded.drain()) in (0, times)  # of an entry of their own, if at all


@pytest.mark.parametrize("bit", [0, 1, 7, 22, 50, 51, 57])
def test_an_entry_with_a_wrong_bit_takes_no_more_lines(guarded, bit):
    guarded.reset()
    guarded.spill(1, 9)
    invert(guarded.backend, "entry_0", bit)
    guarded.spill(1, times=2)
    assert (guarded["corrected"], guarded["valid"]) == (1, 1)
    assert guarded.drain() == [(1, 1, 9), (1, 1, 2)]
