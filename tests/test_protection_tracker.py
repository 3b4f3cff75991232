"""Wrong bits in the tracker: one is put right, two poison their chunk, and nothing ever completes early."""

from typing import Any

import pytest
from t3hdl.interface import register_map as regs
from tracker_driver import Driver, check
from upsets import flip

pytestmark = pytest.mark.long  # a protected tracker in Amaranth's simulator, bit by bit

WAY = r"bank_0\.table\.way_0\.\w+\.rows\[0\]"
MARKS = r"bank_0\.table\.mark_bits\.\w+\.rows\[0\]"
PROFILE = r"profile\.table_0\.\w+\.rows\[0\]"
DETAIL = r"slots\.details_0\.\w+\.rows\[0\]"
EXPECTED = r"counters\.expected\.\w+\.rows\[0\]"
TOTAL = r"counters\.left\.\w+\.rows\[0\]"
WORDS = (WAY, MARKS, PROFILE, DETAIL, EXPECTED, TOTAL)


def guarded(scenario: Any, **overrides: int) -> None:
    check(scenario, protect=True, **overrides)


async def _half_a_chunk(d: Driver, expected: int = 12) -> None:
    """Slot 0 expects two tiles (or more): (0, 2) is done, (0, 0) has 5 of 6 lines. Slot 1 is context 1."""
    await d.start()
    await d.load(expected=expected)
    await d.load(slot=1, context=1, expected=6)
    d.send(col=2, n=6)
    d.send(col=0, n=5)
    await d.settle()
    assert (len(d.tiles), len(d.chunks), d["corrected"], d["uncorrectable"]) == (1, 0, 0, 0)


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("word", WORDS)
def test_one_wrong_bit_in_a_table_is_put_right(word: str, bit: int) -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d)
        flip(d.bench, word, bit)
        d.send(col=0, n=1)
        await d.settle()
        assert d.done_tiles == [(0, 0, 2, 0), (0, 0, 0, 0)]
        assert [chunk for _, chunk in d.chunks] == [{"slot": 0, "overflowed": 0}]
        assert (d["corrected"], d["uncorrectable"], d.poisoned, d.errors) == (1, 0, [], [])
        await d.control(disarm=1)
        await d.settle()
        assert d["corrected"] == 0

    guarded(scenario)


def test_what_is_written_back_is_the_corrected_count() -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d, expected=24)
        for bit in (0, 5):  # two wrong bits, but an update between them
            flip(d.bench, WAY, bit)
            await d.load(addends=2, expected=24)
            d.send(col=0, n=3)
            await d.settle()
        assert (await d.look())["count"] == 11
        assert (d["corrected"], d["uncorrectable"], d.poisoned) == (1, 0, [])

    guarded(scenario)


@pytest.mark.parametrize("word", WORDS)
def test_two_wrong_bits_in_a_table_poison_the_chunk_that_meets_them(word: str) -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d, expected=24)
        flip(d.bench, word, 1, 4)
        for col, n in ((4, 1), (0, 1), (4, 5), (6, 6)):  # all that the chunk still expects
            d.send(col=col, n=n)
        await d.settle()
        assert set(d.poisoned) == {0}
        assert (d.chunks, d["uncorrectable"]) == ([], 1)
        # Another chunk in the same set is counted all the same, tile by tile where no mark was lost.
        before = len(d.tiles)
        d.send(context=1, col=0, n=2, wf=1)
        d.send(context=1, col=0, n=4, wf=1)
        await d.settle()
        assert d.done_tiles[before:] == ([] if word == MARKS else [(1, 0, 0, 1)])
        assert d.chunks[-1][1]["slot"] == 1
        assert set(d.poisoned) == {0}

    guarded(scenario, tracker_ways=4)


def test_a_lost_entry_is_late_for_ever_and_never_early() -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d)
        flip(d.bench, WAY, 30, 31)
        d.send(context=1, col=0, n=1)  # slot 1 meets it first
        await d.settle()
        assert (d.poisoned, d["entries"]) == ([1], 0)
        d.send(col=0, n=1)
        await d.settle()
        assert (len(d.tiles), d.chunks, d["entries"]) == (1, [], 1)

    guarded(scenario)


def test_lost_marks_become_marks_of_everybody() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=12, descriptor=1)
        await d.load(slot=1, context=1, expected=6, descriptor=2)
        for col in (0, 2, 4):
            d.send(col=col)
        await d.settle()
        assert d["overflowed"] == 1
        flip(d.bench, MARKS, 0, 1)
        d.send(col=0)
        await d.settle()
        assert d.poisoned == [0]
        for _ in range(2):
            d.send(context=1, n=3)
        await d.settle()
        assert ([chunk for _, chunk in d.chunks], d["entries"]) == ([{"slot": 1, "overflowed": 1}], 2)
        await d.control(arm=1, context=1, first=2, descriptors=1)
        await d.maintained()
        await d.load(slot=1, context=1, expected=6, descriptor=2)
        d.send(context=1, col=0, n=6)
        await d.settle()
        assert d.chunks[-1][1] == {"slot": 1, "overflowed": 0}

    guarded(scenario)


@pytest.mark.parametrize("kind", ["arm", "abort"])
def test_a_sweep_frees_what_cannot_be_read(kind: str) -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d)
        flip(d.bench, WAY, 0, 9)
        await d.control(**{kind: 1, "context": 1})
        await d.maintained()
        await d.abort_over()
        assert (d["uncorrectable"], d.poisoned) == (1, [])
        assert (await d.look())["valid"] == 0
        d.send(col=0, n=1)
        await d.settle()
        assert (len(d.tiles), d.poisoned) == (1, [])

    guarded(scenario)


# Registers


@pytest.mark.parametrize(("register", "bit"), [
    ("slots.valid", 0), ("slots.bounds_0", 0), ("slots.bounds_0", 20), ("slots.bounds_0", 58), ("slots.parity", 0),
    ("counters.fresh", 0), ("counters.complete", 0), ("counters.overflow", 0),
])  # fmt: skip
def test_a_damaged_slot_is_poisoned_once_until_it_is_loaded_again(register: str, bit: int) -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d)
        flip(d.bench, register.replace(".", r"\."), bit)
        assert not d["idle"]
        await d.step(10)
        assert (d.poisoned, d["uncorrectable"], d["idle"]) == ([0], 1, 1)
        d.send(col=0, n=1)
        d.send(col=2, n=6)
        d.send(col=4, n=6)
        await d.settle()
        assert (d.chunks, set(d.poisoned)) == ([], {0})
        poisoned = len(d.poisoned)
        await d.load(expected=6)
        d.send(col=6, n=6)
        await d.settle()
        assert ([chunk["slot"] for _, chunk in d.chunks], len(d.poisoned)) == ([0], poisoned)

    guarded(scenario)


def test_every_damaged_slot_is_named() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        for slot in range(4):
            await d.load(slot=slot)
        flip(d.bench, r"slots\.valid", 1, 3)
        flip(d.bench, r"slots\.bounds_0", 5)
        await d.step(10)
        assert d.poisoned == [0, 1, 3]

    guarded(scenario)


def test_damaged_bits_of_a_slot_without_a_chunk_make_no_chunk() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        flip(d.bench, r"slots\.valid", 2)
        await d.step(3)
        d.send(n=6)
        await d.settle()
        assert (d.tiles, d.errors) == ([], ["unmatched"])
        await d.control(disarm=1)
        await d.start()
        assert (d["uncorrectable"], d["idle"]) == (0, 1)

    guarded(scenario)


def test_damaged_bits_of_the_profile_poison_whoever_looks_there() -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d)
        flip(d.bench, r"profile\.written", 9)
        await d.step(3)
        assert (d.poisoned, d["uncorrectable"]) == ([], 1)
        d.send(context=1, col=0, n=6)
        await d.settle()
        assert (d.poisoned, len(d.tiles), d.errors) == ([1], 1, [])

    guarded(scenario)


def test_a_damaged_quota_is_zero() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        flip(d.bench, "ways_0", 0)
        await d.step(2)
        assert (d["uncorrectable"], d.poisoned) == (1, [])
        await d.load(expected=6)
        d.send(n=1)
        d.send(n=5)
        await d.settle()
        assert ([chunk for _, chunk in d.chunks], d.tiles) == ([{"slot": 0, "overflowed": 1}], [])
        await d.write(regs.QUOTA, {"ways": 16}, regs.Quota)
        await d.control(disarm=1)
        await d.start()
        assert d["uncorrectable"] == 0

    guarded(scenario)


def test_a_lost_event_completes_nothing() -> None:
    async def scenario(d: Driver) -> None:
        await d.start()
        await d.load(expected=12)
        for col in (0, 2):
            d.send(col=col, n=6)
        while not d.bench.sent["token.0"]:
            await d.step()
        await d.step(4)  # the first event is in its queue
        flip(d.bench, r"bank_0\.events\.entry_0", 0, 5)
        await d.settle()
        assert (d.done_tiles, d.chunks, d["uncorrectable"]) == ([(0, 0, 2, 0)], [], 1)

    guarded(scenario)


@pytest.mark.parametrize("register", [r"maintenance\.until", r"counters\.tiles", r"bank_1\.queue\.o__payload"])
def test_a_wrong_bit_in_any_other_register_poisons_every_slot(register: str) -> None:
    async def scenario(d: Driver) -> None:
        await _half_a_chunk(d)
        flip(d.bench, register, 3)
        assert not d["idle"]
        await d.step(10)
        assert (d.poisoned, d["uncorrectable"], d["corrected"], d["idle"]) == ([0, 1, 2, 3], 1, 0, 1)
        await d.load(expected=6)
        d.send(col=6, n=6)
        await d.settle()
        assert ([chunk["slot"] for _, chunk in d.chunks], len(d.poisoned)) == ([0], 4)

    guarded(scenario)


def test_protection_changes_nothing_without_faults() -> None:
    outputs: list[list[Any]] = []
    for protect in (False, True):
        seen: list[Any] = []

        async def scenario(d: Driver, seen: list[Any] = seen) -> None:
            rng = d.bench.random
            await d.start()
            for k in range(150):
                if k % 30 == 0:
                    await d.load(slot=k // 30 % 4, context=k // 30 % 2, expected=60)
                if k % 50 == 49:
                    await d.control(**rng.choice(({"abort": 1, "context": k % 2}, {"arm": 1, "context": k % 2})))
                    await d.maintained()
                    await d.abort_over()
                for _ in range(rng.randrange(3)):
                    d.send(
                        context=rng.randrange(2), row=rng.randrange(4), col=rng.randrange(4), n=rng.choice((1, 2, 3))
                    )
                await d.step()
                seen.append(d.bench._sample())

        check(scenario, seed=31, protect=protect)
        outputs.append(seen)
    assert outputs[0] == outputs[1]
