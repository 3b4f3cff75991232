"""Tokens of the memory slice: what is counted, when, what waits for a place, what becomes one token."""

from collections import Counter

import pytest
from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import NEVER, Op

from tests.contract.slice.scene import PERFORMED, READ, STORE, TOKEN, Scene


def counted(backend: str, *items: dict, **overrides) -> Scene:
    """A slice with a range whose updates ``items`` passed, one per cycle from now on, while no token could leave."""
    scene = Scene(backend, **overrides)
    scene.set_range()
    scene.accept["token"] = 0
    scene.offer("comm_write", *items)
    scene.step(len(items) + 3)
    assert len(scene.got["dram"]) == len(items)
    return scene


def drain(scene: Scene, *names: str) -> list[tuple]:
    """These fields of all tokens."""
    scene.accept["token"] = 1
    scene.step(2 * scene.config.token_queue + 4)
    return scene.tokens(*names)


# Accepted


def test_accepted_makes_a_token_when_dram_takes_the_update(backend):
    scene = Scene(backend)
    scene.set_range()
    scene.accept |= {"dram": 0, "token": 0}
    scene.offer("compute_write", STORE)
    scene.step(6)
    assert scene.item("dram") and scene.item("token") is None
    scene.accept["dram"] = 1
    scene.step()
    assert scene.item("token") == TOKEN
    scene.step(3)  # the bench sees that it stays
    scene.accept["token"] = 1
    scene.step()
    assert scene.item("token") is None


def test_accepted_ignores_reports(backend):
    scene = Scene(backend)
    scene.set_range()
    scene.report(STORE | {"op": Op.ADD}, times=3)
    scene.offer("compute_write", STORE)
    scene.step(2)
    scene.accept["dram"] = 0
    scene.report(STORE | {"op": Op.ADD}, times=3)
    scene.step(3)
    assert not scene.got["token"] and scene.item("token") is None


# Merging


@pytest.mark.parametrize("updates", [1, 2, 3, 40])
def test_tokens_of_a_tile_merge_behind_the_visible_head(backend, updates):
    scene = counted(backend, *[STORE] * updates)
    assert drain(scene, "n") == [(1,), (updates - 1,)][: 1 + (updates > 1)]


@pytest.mark.parametrize(
    ("attributes", "change"),
    [({}, {name: STORE[name] ^ 1}) for name in ("row", "col", "wf", "right", "bottom")]
    + [({"epoch": 1}, {"line": 3000, "epoch": 1}), ({"context": 0}, {"line": 3000, "context": 0})],
)
def test_tokens_of_different_names_do_not_merge(backend, attributes, change):
    scene = Scene(backend)
    scene.set_range(0)
    scene.set_range(1, 3000, 3001, **attributes)
    scene.accept["token"] = 0
    scene.offer("comm_write", STORE, STORE, STORE | change, STORE | change, STORE)
    scene.step(8)
    assert drain(scene, "n") == [(1,), (2,), (2,)]


@pytest.mark.parametrize("tiles", [2, 3])
def test_tiles_in_turns_take_an_entry_each(backend, tiles):
    scene = counted(backend, *[STORE | {"row": k % tiles} for k in range(60)])
    each = 60 // tiles
    assert drain(scene, "row", "n") == [(0, 1), *((row, each) for row in range(1, tiles)), (0, each - 1)]


@pytest.mark.parametrize(
    ("rows", "tokens"),
    [
        ((0, 1, 2, 3, 2), [(0, 1), (1, 1), (2, 2), (3, 1)]),  # into the middle
        ((1, 2, 2), [(1, 1), (2, 2)]),  # into what becomes the head
        ((1, 1), [(1, 1), (1, 1)]),  # the only entry leaves: there is none to merge into
    ],
)
def test_an_update_that_counts_while_the_head_leaves(backend, rows, tokens):
    scene = Scene(backend)
    scene.set_range()
    scene.accept["token"] = 0
    scene.offer("comm_write", *[STORE | {"row": row} for row in rows])
    scene.step(len(rows) + 1)  # the last is in `out`
    assert len(scene.got["dram"]) == len(rows) - 1
    scene.accept["token"] = 1
    scene.step()
    scene.accept["token"] = 0
    scene.step(2)
    assert len(scene.got["token"]) == 1
    assert drain(scene, "row", "n") == tokens


@pytest.mark.parametrize(("last", "full", "rest"), [(1, 1016, 3), (8, 1023, 9)])
def test_a_token_takes_bursts_below_1016_and_a_second_one_of_its_name_follows(backend, last, full, rest):
    """As long as a burst of any length fits: the last one that goes in makes it 1023 lines at most."""
    bursts = [(0, 1), *[(1, 1)] * 1015, (1, last), (2, 1), *[(1, rest // 3)] * 3]
    scene = counted(backend, *[STORE | {"line": 1000, "row": row, "length": lines - 1} for row, lines in bursts])
    assert drain(scene, "row", "n") == [(0, 1), (1, full), (2, 1), (1, rest)]


# Places for tokens


def check_places(scene: Scene) -> None:
    """As many updates pass as there are places, one per cycle; everything else passes; then one per token taken."""
    places = scene.config.token_queue
    scene.set_range()
    scene.set_arbiter()
    scene.step(threshold=NO_LIMIT)
    scene.accept["token"] = 0
    scene.offer("compute_write", *[STORE | {"row": i, "tag": i} for i in range(places + 4)])
    start = scene.now + 2
    scene.step(30)
    assert [(t, request["tag"]) for t, request in scene.got["dram"]] == [(start + i, i) for i in range(places)]
    assert (scene["idle"], scene["wake_at"]) == (1, NEVER)
    for port in ("compute_read", "comm_read"):
        scene.offer(port, *[READ | {"tag": 50}] * 5)
    scene.offer("comm_write", *[STORE | {"tag": 50, "tagged": 0}] * 5)
    scene.step(30)
    assert Counter(scene.passed()[places:]) == {50: 15}, "everything untracked passes"
    scene.accept["token"] = 1
    taken = scene.now
    scene.step()
    scene.accept["token"] = 0
    scene.step(10)
    assert [(t, request["tag"]) for t, request in scene.got["dram"][places + 15 :]] == [(taken + 2, places)]
    assert drain(scene, "row") == [(row,) for row in range(places + 4)]


def test_a_full_token_queue_holds_tracked_writes_but_never_others(backend):
    check_places(Scene(backend))


@pytest.mark.own_size
def test_the_smallest_token_queue_holds_tracked_writes_but_never_others(backend):
    check_places(Scene(backend, token_queue=2))


# Performed: 3 places


@pytest.mark.own_size
def test_performed_counts_when_the_memory_reports(backend):
    scene = Scene(backend, **PERFORMED)
    scene.set_range()
    scene.accept["token"] = 0
    scene.offer("comm_write", *[STORE | {"row": i, "tag": i} for i in range(8)])
    scene.step(30)
    assert scene.passed() == [0, 1, 2], "a place is reserved for every update under way"
    assert (scene["idle"], scene["token.valid"]) == (1, 0)
    requests = [request for _, request in scene.got["dram"]]
    scene.report(requests[2])
    assert scene.item("token") == TOKEN | {"row": 2}
    scene.step(10)
    assert len(scene.got["dram"]) == 3, "two under way and a token"
    scene.accept["token"] = 1
    scene.step(10)
    assert scene.passed() == [0, 1, 2, 3]
    scene.report(requests[0] | {"tagged": 0})
    scene.step(10)
    assert (scene.tokens("row"), len(scene.got["dram"])) == ([(2,)], 4), "an untracked report counts nothing"
    scene.report(requests[0])
    scene.step(10)
    assert (scene.tokens("row"), len(scene.got["dram"])) == ([(2,), (0,)], 5)


@pytest.mark.own_size
def test_performed_counts_a_report_and_a_transfer_of_one_cycle(backend):
    scene = Scene(backend, **PERFORMED)
    scene.set_range()
    scene.offer("comm_write", *[STORE | {"row": row} for row in range(2)])
    scene.step(3)  # the first has left, the second is in `out`
    assert len(scene.got["dram"]) == 1
    scene.report(STORE)
    scene.report(STORE)
    scene.report(STORE)
    scene.step(2)
    assert scene.tokens("n") == [(1,), (1,)], "no third one is under way"


@pytest.mark.own_size
def test_performed_counts_for_the_epoch_of_the_update(backend):
    scene = Scene(backend, **PERFORMED)
    for epoch in (2, 3, 0x80):
        scene.set_range(epoch=epoch)
        scene.offer("compute_write", STORE | {"epoch": epoch})
        scene.step(4)
    for epoch in (3, 2, 0x80):  # whatever the range is now
        scene.report(STORE | {"epoch": epoch})
    scene.step(3)
    assert scene.tokens("epoch") == [(3,), (2,), (0x80,)]


@pytest.mark.own_size
def test_performed_takes_a_report_in_the_cycle_of_the_transfer(backend):
    scene = Scene(backend, **PERFORMED)
    scene.set_range()
    scene.offer("compute_write", *[STORE | {"row": row} for row in range(4)])
    while len(scene.got["dram"]) < 4:
        done = {"update_done": scene.item("dram")} if scene["dram.valid"] else {}
        scene.step(**done)
    scene.step(4)
    assert scene.tokens("row", "n") == [(row, 1) for row in range(4)]
    assert scene["pending"] == 0


@pytest.mark.own_size
def test_performed_ignores_reports_of_what_is_not_outstanding(backend):
    scene = Scene(backend, **PERFORMED)
    scene.set_range()
    scene.report(STORE, times=3)
    scene.step(2)
    assert not scene.got["token"]
    scene.offer("compute_write", *[STORE] * 3)
    scene.step(8)
    scene.control(disarm=1, forced=1)
    scene.report(STORE, times=5)
    scene.step(2)
    scene.set_attributes()
    scene.offer("compute_write", *[STORE | {"row": i} for i in range(6)])
    scene.step(20)
    assert not scene.got["token"]
    assert len(scene.got["dram"]) == 3 + 3, "the places are free again"
