"""Wrong bits in the tracker: one is corrected, two poison their chunk, and nothing ever completes early."""

import pytest
from t3hdl.interface import register_map as regs

from tests.contract.tracker.scene import Scene
from tests.support.single_event_upsets import invert

pytestmark = pytest.mark.long  # a protected tracker in Amaranth's simulator, bit by bit

WAY = r"bank_0\.table\.way_0\.\w+\.rows\[0\]"
MARKS = r"bank_0\.table\.mark_bits\.\w+\.rows\[0\]"
PROFILE = r"profile\.table_0\.\w+\.rows\[0\]"
DETAIL = r"slots\.details_0\.\w+\.rows\[0\]"
EXPECTED = r"counters\.expected\.\w+\.rows\[0\]"
TOTAL = r"counters\.remaining\.\w+\.rows\[0\]"
WORDS = (WAY, MARKS, PROFILE, DETAIL, EXPECTED, TOTAL)


def guarded(**overrides: int) -> Scene:
    return Scene("amaranth", protect=True, **overrides)


def _half_a_chunk(scene: Scene, expected: int = 12) -> None:
    """Slot 0 expects two tiles (or more): (0, 2) is done, (0, 0) has 5 of 6 lines. Slot 1 is context 1."""
    scene.load(expected=expected)
    scene.load(slot=1, context=1, expected=6)
    scene.offer(col=2, n=6)
    scene.count(col=0, n=5)
    assert (len(scene.tiles), len(scene.chunks), scene["corrected"], scene["uncorrectable"]) == (1, 0, 0, 0)


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("word", WORDS)
def test_one_wrong_bit_in_a_table_is_put_right(word: str, bit: int) -> None:
    scene = guarded()
    _half_a_chunk(scene)
    invert(scene.backend, word, bit)
    scene.count(col=0, n=1)
    assert scene.done_tiles == [(0, 0, 2, 0), (0, 0, 0, 0)]
    assert scene.done_chunks == [(0, 0)]
    assert (scene["corrected"], scene["uncorrectable"], scene.poisoned, scene.errors) == (1, 0, [], [])
    scene.control(disarm=1)
    scene.settle()
    assert scene["corrected"] == 0


def test_what_is_written_back_is_the_corrected_count() -> None:
    scene = guarded()
    _half_a_chunk(scene, expected=24)
    for bit in (0, 5):  # two wrong bits, but an update between them
        invert(scene.backend, WAY, bit)
        scene.load(addends=2, expected=24)
        scene.count(col=0, n=3)
    assert scene.look()["count"] == 11
    assert (scene["corrected"], scene["uncorrectable"], scene.poisoned) == (1, 0, [])


@pytest.mark.parametrize("word", WORDS)
def test_two_wrong_bits_in_a_table_poison_the_chunk_that_meets_them(word: str) -> None:
    scene = guarded(tracker_ways=4)
    _half_a_chunk(scene, expected=24)
    invert(scene.backend, word, 1, 4)
    for col, n in ((4, 1), (0, 1), (4, 5), (6, 6)):  # all that the chunk still expects
        scene.offer(col=col, n=n)
    scene.settle()
    assert set(scene.poisoned) == {0}
    assert (scene.chunks, scene["uncorrectable"]) == ([], 1)
    # Another chunk in the same set is counted all the same, tile by tile where no mark was lost. Its tile is of another
    # row and wavefront; were it of another bank or set, it would have an entry although all marks are set.
    before, tile = len(scene.tiles), {"context": 1, "row": 1, "col": 0, "wf": 1}
    assert scene.offer(**tile, n=2) == "token.0"
    scene.count(**tile, n=4)
    assert scene.done_tiles[before:] == ([] if word == MARKS else [(1, 1, 0, 1)])
    assert scene.chunks[-1][1] == 1
    assert set(scene.poisoned) == {0}


def test_a_lost_entry_is_late_for_ever_and_never_early() -> None:
    scene = guarded()
    _half_a_chunk(scene)
    invert(scene.backend, WAY, 30, 31)
    scene.offer(context=1, col=0, n=1)  # slot 1 meets it first
    scene.settle()
    assert (scene.poisoned, scene["entries"]) == ([1], 0)
    scene.count(col=0, n=1)
    assert (len(scene.tiles), scene.chunks, scene["entries"]) == (1, [], 1)


def test_lost_marks_become_marks_of_everybody() -> None:
    scene = guarded()
    scene.load(expected=12, descriptor=1)
    scene.load(slot=1, context=1, expected=6, descriptor=2)
    for col in (0, 2, 4):
        scene.offer(col=col)
    scene.settle()
    assert scene["overflowed"] == 1
    invert(scene.backend, MARKS, 0, 1)
    scene.count(col=0)
    assert scene.poisoned == [0]
    for _ in range(2):
        scene.offer(context=1, n=3)
    scene.settle()
    assert (scene.done_chunks, scene["entries"]) == ([(1, 1)], 2)
    scene.control(arm=1, context=1, first=2, descriptors=1)
    scene.ends("maintenance")
    scene.load(slot=1, context=1, expected=6, descriptor=2)
    scene.count(context=1, col=0, n=6)
    assert scene.done_chunks[-1] == (1, 0)


@pytest.mark.parametrize("kind", ["arm", "abort"])
def test_a_sweep_frees_what_cannot_be_read(kind: str) -> None:
    scene = guarded()
    _half_a_chunk(scene)
    invert(scene.backend, WAY, 0, 9)
    scene.control(**{kind: 1, "context": 1})
    scene.ends("maintenance")
    scene.ends("abort_busy")
    assert (scene["uncorrectable"], scene.poisoned) == (1, [])
    assert scene.look()["valid"] == 0
    scene.count(col=0, n=1)
    assert (len(scene.tiles), scene.poisoned) == (1, [])


# Registers


@pytest.mark.parametrize(("register", "bit"), [
    ("slots.valid", 0), ("slots.bounds_0", 0), ("slots.bounds_0", 20), ("slots.bounds_0", 58), ("slots.parity", 0),
    ("counters.fresh", 0), ("counters.complete", 0), ("counters.overflow", 0),
])  # fmt: skip
def test_a_damaged_slot_is_poisoned_once_until_it_is_loaded_again(register: str, bit: int) -> None:
    scene = guarded()
    _half_a_chunk(scene)
    invert(scene.backend, register.replace(".", r"\."), bit)
    assert not scene["idle"]
    scene.step(10)
    assert (scene.poisoned, scene["uncorrectable"], scene["idle"]) == ([0], 1, 1)
    scene.offer(col=0, n=1)
    scene.offer(col=2, n=6)
    scene.count(col=4, n=6)
    assert (scene.chunks, set(scene.poisoned)) == ([], {0})
    poisoned = len(scene.poisoned)
    scene.load(expected=6)
    scene.count(col=6, n=6)
    assert ([chunk[1] for chunk in scene.chunks], len(scene.poisoned)) == ([0], poisoned)


def test_every_damaged_slot_is_named() -> None:
    scene = guarded()
    for slot in range(4):
        scene.load(slot=slot)
    invert(scene.backend, r"slots\.valid", 1, 3)
    invert(scene.backend, r"slots\.bounds_0", 5)
    scene.step(10)
    assert scene.poisoned == [0, 1, 3]


def test_damaged_bits_of_a_slot_without_a_chunk_make_no_chunk() -> None:
    scene = guarded()
    invert(scene.backend, r"slots\.valid", 2)
    scene.step(3)
    scene.count(n=6)
    assert (scene.tiles, scene.errors) == ([], ["unmatched"])
    scene.control(disarm=1)
    scene.settle()
    assert (scene["uncorrectable"], scene["idle"]) == (0, 1)


def test_damaged_bits_of_the_profile_poison_whoever_looks_there() -> None:
    scene = guarded()
    _half_a_chunk(scene)
    invert(scene.backend, r"profile\.written", 9)
    scene.step(3)
    assert (scene.poisoned, scene["uncorrectable"]) == ([], 1)
    scene.count(context=1, col=0, n=6)
    assert (scene.poisoned, len(scene.tiles), scene.errors) == ([1], 1, [])


def test_a_damaged_quota_is_zero() -> None:
    scene = guarded()
    invert(scene.backend, "ways_0", 0)
    scene.step(2)
    assert (scene["uncorrectable"], scene.poisoned) == (1, [])
    scene.load(expected=6)
    scene.offer(n=1)
    scene.count(n=5)
    assert (scene.done_chunks, scene.tiles) == ([(0, 1)], [])
    scene.write(regs.QUOTA, {"ways": 16}, regs.Quota)
    scene.control(disarm=1)
    scene.settle()
    assert scene["uncorrectable"] == 0


def test_a_lost_event_completes_nothing() -> None:
    scene = guarded()
    scene.load(expected=12)
    for col in (0, 2):
        scene.offer(col=col, n=6)
    while not scene.sent["token.0"]:
        scene.step()
    scene.step(4)  # the first event is in its queue
    invert(scene.backend, r"bank_0\.events\.entry_0", 0, 5)
    scene.settle()
    assert (scene.done_tiles, scene.chunks, scene["uncorrectable"]) == ([(0, 0, 2, 0)], [], 1)


@pytest.mark.parametrize("register", [r"maintenance\.until", r"counters\.tiles", r"bank_1\.queue\.o__payload"])
def test_a_wrong_bit_in_any_other_register_poisons_every_slot(register: str) -> None:
    scene = guarded()
    _half_a_chunk(scene)
    invert(scene.backend, register, 3)
    assert not scene["idle"]
    scene.step(10)
    assert (scene.poisoned, scene["uncorrectable"], scene["corrected"], scene["idle"]) == ([0, 1, 2, 3], 1, 0, 1)
    scene.load(expected=6)
    scene.count(col=6, n=6)
    assert ([chunk[1] for chunk in scene.chunks], len(scene.poisoned)) == ([0], 4)


def test_protection_changes_nothing_without_faults() -> None:
    outputs = []
    for protect in (False, True):
        scene, seen = Scene("amaranth", seed=31, protect=protect), []
        rng = scene.random
        for k in range(150):
            if k % 30 == 0:
                scene.load(slot=k // 30 % 4, context=k // 30 % 2, expected=60)
            if k % 50 == 49:
                scene.control(**rng.choice(({"abort": 1, "context": k % 2}, {"arm": 1, "context": k % 2})))
                scene.ends("maintenance")
                scene.ends("abort_busy")
            for _ in range(rng.randrange(3)):
                scene.offer(context=rng.randrange(2), row=rng.randrange(4), col=rng.randrange(4), n=rng.randint(1, 3))
            scene.step()
            seen.append(scene.outputs())
        outputs.append(seen)
    assert outputs[0] == outputs[1]
