"""The memory slice and the jobs it serves: foreign writes are refused, an aborted job is no longer counted."""

import pytest
from t3hdl.interface.layouts import Op

from tests.contract.slice.scene import PERFORMED, PORTS, STORE, TOKEN, WRITE_PORTS, Scene

FOREIGN = STORE | {"context": 0}
OTHER = STORE | {"line": 3000, "context": 0}
"""An update of the other job, in :func:`two_jobs`."""


def ranged(backend: str, **overrides) -> Scene:
    scene = Scene(backend, **overrides)
    scene.set_range()
    return scene


def two_jobs(backend: str, **overrides) -> Scene:
    scene = ranged(backend, **overrides)
    scene.set_range(1, 3000, 4000, context=0)
    return scene


# Refusal


@pytest.mark.parametrize("fields", [
    {}, {"tagged": 0}, *({"op": op} for op in range(2, 8)), {"stream": 1}, {"context": 15, "source": 77, "wf": 15},
])  # fmt: skip
@pytest.mark.parametrize("port", WRITE_PORTS)
def test_a_write_into_a_range_of_another_context_is_given_back(backend, port, fields):
    scene = ranged(backend)
    item = FOREIGN | fields
    scene.offer(port, item)
    scene.step()
    expected = {port.removesuffix("_write"): item | {"stream": int(port == "comm_write")}}
    assert scene.refused() == expected, "in the cycle after it was taken"
    assert not scene["idle"]
    scene.step()
    assert not scene.refused()
    scene.step(6)
    assert (scene.got["dram"], scene.got["token"], scene["idle"]) == ([], [], 1)


def test_both_ports_refuse_in_the_same_cycle_and_one_after_the_other(backend):
    scene = ranged(backend)
    items = [FOREIGN | {"tag": tag} for tag in range(5)]
    for port in WRITE_PORTS:
        scene.offer(port, *items, STORE)
    for item in items:
        scene.step()
        assert scene.refused() == {"compute": item | {"stream": 0}, "comm": item | {"stream": 1}}
        assert [scene[f"{port}.ready"] for port in PORTS] == [1] * 4
    scene.step()
    assert not scene.refused()
    scene.step(6)
    assert scene.passed() == [STORE["tag"]] * 2


@pytest.mark.parametrize(
    ("port", "fields"),
    [
        ("compute_write", {"op": Op.READ}),
        ("compute_read", {"op": Op.STORE}),
        ("comm_read", {"op": Op.READ_CLEAR}),
        ("compute_write", {"line": 999, "tagged": 0}),
        ("comm_write", {"line": 2000, "tagged": 0}),
        ("comm_write", {"context": 1, "tagged": 0}),
    ],
)
def test_reads_other_lines_and_the_contexts_own_writes_are_not_refused(backend, port, fields):
    scene = ranged(backend)
    scene.offer(port, FOREIGN | fields)
    for _ in range(4):
        scene.step()
        assert not scene.refused()
    assert scene.passed("tagged") == [0]


def test_a_full_queue_refuses_nothing_yet(backend):
    scene = ranged(backend)
    scene.accept["dram"] = 0
    scene.offer("compute_write", *[STORE] * 3, FOREIGN)
    for _ in range(10):
        scene.step()
        assert not scene.refused()
    assert not scene["compute_write.ready"]
    scene.accept["dram"] = 1
    scene.step(2)
    assert "compute" in scene.refused()


def test_the_lowest_valid_range_decides_who_is_refused(backend):
    scene = Scene(backend)
    scene.set_range(0, context=0)
    scene.set_range(1)
    scene.offer("comm_write", STORE)
    scene.step()
    assert "comm" in scene.refused()
    scene.set_attributes(0, context=0, valid=0)
    assert scene.tracks("comm_write", STORE)
    assert len(scene.got["dram"]) == 1


def test_a_range_written_in_the_cycle_of_entry_refuses_the_next_item(backend):
    scene = ranged(backend)
    scene.set_attributes(valid=0)
    scene.offer("comm_write", FOREIGN, FOREIGN)
    scene.set_attributes()
    assert not scene.refused()
    scene.step()
    assert "comm" in scene.refused()


@pytest.mark.parametrize("port", WRITE_PORTS)
def test_a_disarm_does_not_lose_a_refusal_of_its_cycle(backend, port):
    scene = ranged(backend)
    scene.offer(port, FOREIGN)
    scene.control(disarm=1)
    assert len(scene.sent[port]) == 1
    assert port.removesuffix("_write") in scene.refused()


# Abort


def test_an_abort_ends_the_ranges_of_its_context_from_the_next_cycle_on(backend):
    scene = two_jobs(backend)
    scene.offer("compute_write", *[FOREIGN | {"tag": tag} for tag in range(4)])
    scene.offer("comm_write", STORE, STORE)
    scene.control(abort=1, context=1)
    assert "compute" in scene.refused(), "an item of the abort's cycle still meets the range"
    stale = []
    for _ in range(6):
        scene.step()
        assert not scene.refused()
        stale += scene.stale()
    assert sorted(stale) == ["comm", "compute", "compute", "compute"]
    assert [(r["tag"], r["tagged"]) for _, r in scene.got["dram"] if r["stream"]] == [(77, 1)]
    assert scene.tracks("compute_write", OTHER)
    assert scene.is_stale("compute_write", STORE)
    assert scene.tokens("context") == [(0,)]
    scene.control(arm=1, context=1, descriptors=1)
    assert scene.is_stale("compute_write", STORE), "an arm does not bring the range back"
    scene.set_attributes()  # base and limit are what they were
    assert scene.tracks("compute_write", STORE)
    assert scene.tokens("context") == [(0,), (1,)]


def check_abort(scene: Scene, end: str) -> None:
    """Updates of an aborted context pass uncounted; ``end`` says what comes after the abort."""
    performed = scene.config.count_on == "performed"
    items = [STORE | {"row": row} for row in range(3)]
    scene.accept["dram"] = 0
    scene.offer("compute_write", items[0], OTHER | {"row": 7}, items[1])
    scene.step(5)
    scene.control(abort=1, context=1)
    if end.startswith("arm"):
        scene.control(arm=1, context=int(end == "arm"), descriptors=1)
    scene.accept["dram"] = 1
    scene.step(8)
    assert scene.passed("tagged") == [1] * 3
    if performed:
        for _, request in scene.got["dram"]:
            scene.report(request)
    scene.step(4)
    assert scene.tokens("row") == ([(0,), (7,), (1,)] if end == "arm" else [(7,)])
    if end == "disarm":
        scene.control(disarm=1)
    scene.set_attributes()
    scene.got["token"].clear()
    for item in items:  # the places for tokens were given back
        scene.offer("compute_write", item)
    scene.step(12)
    if performed:
        for _, request in scene.got["dram"][3:]:
            scene.report(request)
    scene.step(4)
    assert len(scene.got["dram"]) == 6
    assert scene.tokens("row") == ([(0,), (1,), (2,)] if end in ("arm", "disarm") else [])


@pytest.mark.parametrize("end", ["arm", "arm of another", "disarm", "nothing"])
def test_what_is_under_way_is_performed_and_not_counted(backend, end):
    check_abort(two_jobs(backend), end)


@pytest.mark.own_size
@pytest.mark.parametrize("end", ["arm", "arm of another", "disarm", "nothing"])
def test_what_is_under_way_is_reported_and_not_counted(backend, end):
    check_abort(two_jobs(backend, **PERFORMED), end)


@pytest.mark.parametrize("late", [0, 1])
def test_a_token_that_waits_or_is_pushed_at_the_abort_stays(backend, late):
    scene = ranged(backend)
    scene.accept["token"] = 0
    scene.offer("compute_write", STORE)
    scene.step(3 - late)
    assert scene["token.valid"] == 1 - late
    scene.control(abort=1, context=1)
    scene.step(3)
    assert scene.item("token") == TOKEN
    scene.accept["token"] = 1
    scene.step()
    assert scene.item("token") is None
