"""The event queue of a tracker bank: first in, first out; damage is never hidden."""

import random
from collections import deque

import pytest
from t3hdl.config import preset
from t3hdl.tracker.event_queue import EventQueue

from tests.contract.backends import AmaranthBackend
from tests.contract.bench import Bench
from tests.support.single_event_upsets import invert

Event = dict[str, int]


class Scene(Bench):
    """Pushes and pops; ``left`` has what left."""

    def __init__(self, *, depth: int = 4, protect: bool = False) -> None:
        config = preset("small", event_queue=depth, tracker_banks=1, blocks=64, protect=protect)
        super().__init__(AmaranthBackend(EventQueue(config=config)))
        self.left: list[Event] = []

    def push(self, event: Event | None = None, *, pop: bool = False) -> None:
        """A cycle with this event, or none."""
        if pop:
            self.left.append(self.fields("head"))
        self.step(push=int(event is not None), event=event or {}, pop=int(pop))

    def drain(self) -> list[Event]:
        """What is left."""
        before = len(self.left)
        while self["level"]:
            self.push(pop=bool(self["valid"]))
        return self.left[before:]


def tile(number: int) -> Event:
    return {"slot": number % 64, "lines": number, "row": number % 4096, "col": 1, "wf": number % 16}


def test_latency():
    queue = Scene()
    queue.push(tile(1))
    assert queue["valid"] and queue.now == EventQueue(config=preset("small")).latency


@pytest.mark.parametrize(("depth", "protect"), [(3, False), (3, True), (4, True), (16, False)])
def test_first_in_first_out_under_random_traffic(depth, protect):
    rng, queue, model = random.Random(depth), Scene(depth=depth, protect=protect), deque[Event]()
    print(f"seed {depth}")
    full = together = 0
    for pops in [chance for chance in (0.1, 0.5, 0.9) for _ in range(200)]:
        assert queue["level"] == len(model) and queue["valid"] == bool(model)
        assert not model or queue.fields("head") == model[0]
        push, pop = len(model) < depth and rng.random() < 0.6, bool(model) and rng.random() < pops
        event = tile(rng.randrange(1, 1 << 16))
        full, together = full + (len(model) == depth), together + (push and pop and len(model) == depth - 1)
        queue.push(event if push else None, pop=pop)
        if pop:
            model.popleft()
        if push:
            model.append(event)
    assert full > 20 and together > 5


# Wrong bits: 0 to 5 the slot, 6 to 21 the lines, 22 to 49 the tile, the rest check bits.


@pytest.fixture(scope="module")
def guarded():
    return Scene(protect=True)


@pytest.mark.parametrize("bit", [0, 6, 21, 22, 49, 50, 56])
@pytest.mark.parametrize("place", [0, 1])
def test_a_wrong_bit_is_corrected(guarded, bit, place):
    guarded.reset()
    for number in (5, 9):
        guarded.push(tile(number))
    invert(guarded.backend, f"entry_{place}", bit)
    assert guarded.drain() == [tile(5), tile(9)]


@pytest.mark.parametrize("bit", [0, 6, 21, 22, 49, 50, 56])
def test_an_entry_with_two_wrong_bits_is_dropped_with_a_report(guarded, bit):
    guarded.reset()
    for number in (5, 9):
        guarded.push(tile(number))
    invert(guarded.backend, "entry_1", bit, 10)
    assert (guarded["uncorrectable"], guarded["valid"]) == (0, 1)
    guarded.push(pop=True)
    assert (guarded["uncorrectable"], guarded["valid"]) == (1, 0)
    guarded.push(tile(7))
    assert guarded.drain() == [tile(7)]
