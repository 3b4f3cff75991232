"""Wrong bits in the registers of the memory slice, in Amaranth's simulator: golden models have no faults."""

import pytest

from tests.contract.slice.scene import READ, STORE, TOKEN, Scene
from tests.support.single_event_upsets import invert

FOREIGN = STORE | {"context": 0}


def protected() -> Scene:
    scene = Scene("amaranth", protect=True)
    scene.set_range()
    return scene


@pytest.mark.parametrize(("register", "bit"), [
    ("base_0", 0), ("base_0", 38), ("limit_0", 12), ("attributes_0", 0), ("attributes_0", 2), ("attributes_0", 11),
])  # fmt: skip
def test_a_damaged_range_matches_nothing(register, bit):
    scene = protected()
    assert scene.tracks("compute_write", STORE)
    invert(scene.backend, register, bit)
    assert not scene["idle"]
    scene.step(2)
    assert (scene["uncorrectable"], scene["corrected"], scene["idle"]) == (1, 0, 1)
    assert scene.is_stale("compute_write", STORE)
    assert scene.is_stale("compute_write", FOREIGN)
    scene.set_range()
    scene.control(disarm=1)
    assert scene["uncorrectable"] == 0
    assert scene.tracks("compute_write", STORE)
    assert scene["uncorrectable"] == 0


def test_a_disarm_does_not_end_the_flag_of_a_damaged_range():
    scene = protected()
    invert(scene.backend, "base_0", 7)
    scene.step()
    scene.control(disarm=1)
    scene.step()
    assert scene["uncorrectable"] == 1


def test_an_abort_keeps_a_sound_range_sound():
    scene = protected()
    for context in (0, 1):  # their attributes have an even and an odd number of ones
        scene.set_attributes(context=context)
        scene.control(abort=1, context=context)
        scene.step(2)
    assert scene["uncorrectable"] == 0


def waiting_tokens(rows: int) -> Scene:
    """Tokens of this many rows in the queue."""
    scene = protected()
    scene.accept["token"] = 0
    scene.offer("compute_write", *[STORE | {"row": row} for row in range(rows)])
    scene.step(10)
    return scene


@pytest.mark.parametrize("bit", [0, 36, 47])
def test_one_wrong_bit_of_a_token_is_put_right(bit):
    scene = waiting_tokens(3)
    invert(scene.backend, "entry_1", bit)
    scene.step(3)
    assert scene["corrected"] == 0, "not read yet"
    scene.accept["token"] = 1
    scene.step(5)
    assert [token for _, token in scene.got["token"]] == [TOKEN | {"row": row} for row in range(3)]
    assert (scene["corrected"], scene["uncorrectable"]) == (1, 0)


def test_a_lost_token_is_dropped_and_its_place_is_free_again():
    scene = waiting_tokens(8)
    invert(scene.backend, "entry_1", 3, 20)
    scene.accept["token"] = 1
    scene.step(20)
    assert scene.tokens("row") == [(row,) for row in (0, 2, 3, 4, 5, 6, 7)]
    assert (scene["corrected"], scene["uncorrectable"], scene["idle"]) == (0, 1, 1)


def test_a_damaged_token_takes_no_more_updates():
    scene = waiting_tokens(2)
    invert(scene.backend, "entry_1", 36)
    scene.offer("compute_write", STORE | {"row": 1})
    scene.step(6)
    scene.accept["token"] = 1
    scene.step(6)
    assert scene.tokens("row", "n") == [(0, 1), (1, 1), (1, 1)]


def test_protection_changes_nothing_without_faults():
    outputs: list[list[dict[str, int]]] = []
    for protect in (False, True):
        scene, seen = Scene("amaranth", seed=21, protect=protect), []
        scene.set_range()
        scene.set_arbiter(starvation=6)
        scene.accept = {"dram": 0.6, "token": 0.4}
        for k in range(150):
            port = scene.random.choice(("compute_write", "comm_write", "comm_read"))
            scene.offer(port, scene.random.choice((STORE, FOREIGN, READ, STORE | {"row": k % 3})))
            scene.step(scene.random.randrange(3), threshold=5, occupancy=scene.random.randrange(8))
            seen.append({name: scene[name] for name in scene.backend.signals})
        outputs.append(seen)
    assert outputs[0] == outputs[1]
