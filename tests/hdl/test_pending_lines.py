"""Lines without an entry: sums of a bank by slot, whose turn it is to be counted, and what wrong bits do to them."""

import random
from collections import Counter
from typing import Any

import pytest
from t3hdl.config import T3Config, preset
from t3hdl.tracker.event_turns import EventTurns
from t3hdl.tracker.pending_lines import PendingLines

from tests.contract.backends import AmaranthBackend
from tests.contract.bench import Bench
from tests.support.single_event_upsets import invert

WINDOW = 5
ALL = (1 << WINDOW) - 1


def config_of(**overrides: Any) -> T3Config:
    return preset("small", chunk_window=WINDOW, tile_marks=64, **overrides)


class Sums(Bench):
    """The sums of a bank, every slot of which has a chunk."""

    def __init__(self, **overrides: Any) -> None:
        super().__init__(AmaranthBackend(PendingLines(config=config_of(**overrides))), moore=False)
        self.begin()

    def begin(self) -> None:
        self.reset()
        self.set("live", ALL)

    def cycle(self, **inputs: int) -> dict[str, int]:
        """One cycle; what the outputs are in it."""
        zeros = dict.fromkeys(("add", "slot", "lines", "ends", "done", "complete", "collect", "collected"), 0)
        for name, value in (zeros | {"live": ALL} | inputs).items():
            self.set(name, value)
        names = ("pending", "total", "damaged", "excess", "corrected", "uncorrectable")
        seen = {name: self[name] for name in names}
        self.step()
        return seen

    def add(self, slot: int, lines: int = 1, **inputs: int) -> dict[str, int]:
        return self.cycle(add=1, slot=slot, lines=lines, **inputs)

    def collect(self, slot: int, **inputs: int) -> dict[str, int]:
        return self.cycle(collect=1, collected=slot, **inputs)


def test_sums_follow_their_rule_under_random_traffic() -> None:
    """What is added, collected, dropped because its slot has no chunk, or because that ends; and what is too much."""
    rng, bench, hit = random.Random(5), Sums(), Counter[str]()
    print("seed 5")
    sums: dict[int, int] = {}
    for _ in range(3000):
        live, complete, ends, done = (rng.getrandbits(WINDOW) & rng.getrandbits(WINDOW) for _ in range(4))
        live |= sum(1 << slot for slot in sums)  # as the tracker has it
        done &= ends
        add, slot, lines = int(rng.random() < 0.7), rng.randrange(WINDOW), rng.choice((1, 8, 1023))
        collect, collected = int(rng.random() < 0.3), rng.randrange(WINDOW)
        ends &= -(rng.random() < 0.1)
        done &= ends
        seen = bench.cycle(
            live=live, complete=complete, ends=ends, done=done,
            add=add, slot=slot, lines=lines, collect=collect, collected=collected,
        )  # fmt: skip
        assert seen["pending"] == sum(1 << each for each in sums)
        assert seen["total"] == sums.get(collected, 0)
        there = set(sums) | ({slot} if add and live >> slot & 1 else set())
        late = add and not live >> slot & 1 and complete >> slot & 1
        assert seen["excess"] == bool(late or any(done >> each & 1 for each in there))
        hit["late"] += bool(late)
        hit["too many at the end"] += bool(seen["excess"] and not late)
        if collect:
            hit["collected while it grows"] += bool(add and slot == collected and sums.pop(collected, 0))
            sums.pop(collected, None)
        if add and live >> slot & 1:
            sums[slot] = sums.get(slot, 0) + lines
        hit["dropped"] += any(ends >> each & 1 for each in sums)
        sums = {each: lines for each, lines in sums.items() if not ends >> each & 1}
    assert min(hit.values()) > 10 and len(hit) == 4, hit


def test_a_sum_holds_what_can_come_until_it_is_collected() -> None:
    """The most lines in every cycle for as long as a slot waits (``event-turns.in-time``)."""
    config, bench = config_of(), Sums()
    cycles = (config.chunk_window + 1) * config.drain_turns
    for _ in range(cycles):
        bench.add(4, 1023)
    assert bench.collect(4)["total"] == 1023 * cycles
    assert config.pending_bits == (1023 * (cycles + 1)).bit_length()


BITS = (0, 5, 13, 14, 15, 20)
"""Bits of a protected sum: lines, ``damaged``, check bits."""


@pytest.fixture(scope="module")
def guarded() -> Sums:
    return Sums(protect=True)


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("copy", ["added_to", "taken"])
def test_a_wrong_bit_of_a_sum_is_corrected(guarded: Sums, bit: int, copy: str) -> None:
    guarded.begin()
    guarded.add(2, 7)
    invert(guarded.backend, rf"{copy}\.\w+\.rows\[2\]", bit)
    seen = [guarded.add(2, 1)] if copy == "added_to" else []
    seen.append(guarded.collect(2))
    assert seen[0]["corrected"] and not any(each["damaged"] or each["uncorrectable"] for each in seen)
    assert seen[-1]["total"] == 6 + len(seen)


@pytest.mark.parametrize("bit", BITS[1:])
@pytest.mark.parametrize("copy", ["added_to", "taken"])
def test_a_sum_with_two_wrong_bits_is_damaged_until_it_is_collected(guarded: Sums, bit: int, copy: str) -> None:
    guarded.begin()
    guarded.add(2, 7)
    invert(guarded.backend, rf"{copy}\.\w+\.rows\[2\]", 0, bit)
    seen = [guarded.add(2, 1) for _ in range(2)] if copy == "added_to" else []
    seen.append(guarded.collect(2))
    assert any(each["uncorrectable"] for each in seen) and seen[-1]["damaged"]
    guarded.add(2, 3)
    seen = [guarded.collect(2)]
    assert (seen[0]["total"], seen[0]["damaged"]) == (3, 0), "the next sum is sound"


class Turns(Bench):
    """Whose turn it is, cycle by cycle."""

    def __init__(self, banks: int = 2) -> None:
        sizes = {"tracker_banks": banks, "tracker_sets": 16, "row_index_bits": 2, "blocks": 64}
        super().__init__(AmaranthBackend(EventTurns(config=config_of(**sizes))), moore=False)

    def cycle(self, **inputs: int) -> tuple[int, int | None]:
        """The bank mask that is taken, and the slot that is collected."""
        for name, value in ({"events": 0, "pending": 0, "ends": 0} | inputs).items():
            self.set(name, value)
        seen = self["taken"], self["slot"] if self["collect"] else None
        self.step()
        return seen


def test_banks_and_collection_take_turns() -> None:
    turns = Turns()
    turns.cycle(pending=0b100)
    seen = [turns.cycle(events=0b11, pending=0b100) for _ in range(6)]
    assert seen == [(1, None), (2, None), (0, 2), (1, None), (2, None), (0, 2)]


def test_slots_take_turns_and_the_collected_one_is_not_chosen_again_at_once() -> None:
    turns = Turns()
    seen = [turns.cycle(pending=0b10110)[1] for _ in range(8)]
    assert seen == [None, 1, 2, 4, 1, 2, 4, 1]
    seen = [turns.cycle(pending=0b00100)[1] for _ in range(5)]
    assert seen == [2, None, 2, None, 2]


def test_a_slot_that_ends_is_not_chosen_or_chosen_no_more() -> None:
    turns = Turns()
    assert turns.cycle(pending=0b110, ends=0b010) == (0, None)
    assert turns.cycle(pending=0b100, events=1) == (1, None), "it is slot 2 that was chosen; it is bank 0's turn"
    turns.reset()
    turns.cycle(pending=0b010)
    turns.cycle(pending=0b110, ends=0b010, events=1)
    assert turns.cycle(pending=0b100) == (0, None)
    assert turns.cycle(pending=0b100) == (0, 2)
