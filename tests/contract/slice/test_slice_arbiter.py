"""The arbiter of the memory slice, seen from outside. tests/hdl/test_arbiter.py has its rules one by one."""

from itertools import pairwise

import pytest
from t3hdl.config import NO_LIMIT
from t3hdl.interface.layouts import NEVER

from tests.contract.slice.scene import PORTS, READ, STORE, Scene


def offer_numbered(scene: Scene, port: str, count: int) -> None:
    """Reads that pass uncounted; their tags are 0, 1, ... + 10 x the port's number."""
    scene.offer(port, *[READ | {"tag": 10 * PORTS.index(port) + i} for i in range(count)])


def granted(scene: Scene, stream: int) -> list[int]:
    """The cycles in which this stream was granted, if ``dram`` was ready all the time."""
    return [t - 1 for t, request in scene.got["dram"] if request["stream"] == stream]


# Round-robin


@pytest.mark.parametrize(
    ("ports", "order"),
    [
        (("compute_read", "compute_write"), [10, 0, 11, 1, 12, 2]),
        (("comm_read", "comm_write"), [30, 20, 31, 21, 32, 22]),
        (("compute_read", "comm_read"), [0, 20, 1, 21, 2, 22]),
        (PORTS, [10, 30, 0, 20, 11, 31, 1, 21, 12, 32, 2, 22]),
    ],
)
def test_round_robin_after_reset_with_alternating_kinds_write_first(backend, ports, order):
    scene = Scene(backend)
    for port in ports:
        offer_numbered(scene, port, 3)
    scene.step(16)
    assert scene.passed() == order


def test_a_stream_alone_is_granted_whatever_was_last(backend):
    scene = Scene(backend)
    offer_numbered(scene, "comm_read", 3)
    scene.step(6)
    offer_numbered(scene, "compute_read", 3)
    scene.step(6)
    assert granted(scene, 1) == [1, 2, 3] and granted(scene, 0) == [7, 8, 9]


# T3-MCA: the threshold


@pytest.mark.parametrize("fixed", [0, 1])
def test_mca_compute_first_then_communication_below_the_threshold(backend, fixed):
    """A request in the output register counts as occupancy: with 9 entries the next waits until it is empty."""
    scene = Scene(backend)
    scene.set_arbiter(fixed=fixed, threshold=10 if fixed else NO_LIMIT, starvation=500)
    scene.step(threshold=NO_LIMIT if fixed else 10, occupancy=10)
    offer_numbered(scene, "comm_read", 3)
    offer_numbered(scene, "compute_read", 5)
    scene.step(20)
    assert scene.passed() == [0, 1, 2, 3, 4]
    start = scene.now
    scene.step(10, occupancy=9)
    assert granted(scene, 1) == [start, start + 2, start + 4]
    assert [later - earlier for earlier, later in pairwise(granted(scene, 0))] == [1] * 4


def test_mca_while_communication_is_behind_the_streams_take_turns(backend):
    """Whatever the threshold: from the cycle in which the input says so, to the last one."""
    scene = Scene(backend)
    scene.set_arbiter(starvation=500)
    scene.step(threshold=1, occupancy=20)
    offer_numbered(scene, "comm_read", 8)
    offer_numbered(scene, "compute_read", 12)
    scene.step(4)
    start = scene.now
    scene.step(4, behind=1)
    scene.step(4, behind=0)
    assert granted(scene, 1) == [start, start + 2]
    assert granted(scene, 0) == [*range(start - 3, start), start + 1, *range(start + 3, start + 7)]


def test_a_wait_begins_anew_when_communication_is_no_longer_behind(backend):
    scene = Scene(backend)
    scene.set_arbiter(starvation=6)
    scene.step(threshold=0)
    offer_numbered(scene, "comm_read", 1)
    offer_numbered(scene, "compute_read", 30)
    scene.accept["dram"] = 0
    scene.step(4, behind=0)
    scene.step(1, behind=1)
    scene.accept["dram"] = 1
    start = scene.now
    scene.step(16, behind=0)
    assert granted(scene, 1) == [start + 6]


@pytest.mark.parametrize("fixed", [0, 1])
def test_mca_a_threshold_of_127_is_no_limit(backend, fixed):
    scene = Scene(backend)
    scene.set_arbiter(fixed=fixed, threshold=NO_LIMIT if fixed else 0)
    scene.step(threshold=0 if fixed else NO_LIMIT, occupancy=127)
    offer_numbered(scene, "comm_read", 3)
    scene.step(6)
    assert len(scene.got["dram"]) == 3


def test_mca_communication_at_the_threshold_waits_idle(backend):
    scene = Scene(backend)
    scene.set_arbiter(starvation=500)
    scene.step(threshold=10, occupancy=10)
    scene.offer("comm_read", READ)
    scene.step(50)
    assert (scene["idle"], scene["dram.valid"]) == (1, 0)
    arrived = scene.sent["comm_read"][0][0]
    assert scene["wake_at"] == arrived + 1 + 499  # it may go in the cycle after that
    scene.step(threshold=11)
    assert scene["dram.valid"] == 1
    assert backend == "rtl" or scene.idle_checks > 40


@pytest.mark.parametrize("quiet", [1, 3, 255])
@pytest.mark.parametrize("missing", [0, 1])
def test_mca_the_threshold_does_not_hold_while_compute_is_absent(backend, quiet, missing):
    """So many lines of communication went since compute's last one; if one is missing, it holds."""
    scene = Scene(backend)
    scene.set_arbiter(starvation=60000, quiet=quiet)
    scene.step(threshold=10, occupancy=0)
    offer_numbered(scene, "compute_read", 2)
    scene.step(6)
    offer_numbered(scene, "comm_read", quiet - missing)
    scene.step(quiet + 6)
    assert len(granted(scene, 1)) == quiet - missing
    scene.step(1, occupancy=127)
    offer_numbered(scene, "comm_read", 20)
    scene.step(10)
    assert len(granted(scene, 1)) == (quiet - 1 if missing else quiet + 8), "one in every cycle, or none"
    if missing:
        assert scene["idle"] == 1
        return
    offer_numbered(scene, "compute_read", 1)
    scene.step(20)
    assert len(granted(scene, 0)) == 3
    assert max(granted(scene, 1)) == max(granted(scene, 0)) - 1, "with compute's first line it holds again"


def test_mca_turns_end_the_absence_of_compute(backend):
    scene = Scene(backend)
    scene.set_arbiter(starvation=60000, quiet=2)
    scene.step(threshold=10, occupancy=0)
    offer_numbered(scene, "comm_read", 2)
    scene.step(6)
    scene.step(1, behind=1)
    scene.step(1, behind=0, occupancy=127)
    offer_numbered(scene, "comm_read", 20)
    scene.step(8)
    assert len(granted(scene, 1)) == 2, "the two lines before the turns do not count"
    scene.step(8, occupancy=0)
    passed = len(granted(scene, 1))
    scene.step(8, occupancy=127)
    assert len(granted(scene, 1)) == passed + 8, "absent again"


def test_an_arbiter_write_wakes_a_waiting_slice(backend):
    scene = Scene(backend)
    scene.set_arbiter(fixed=1, threshold=0, starvation=500)
    scene.offer("comm_read", READ)
    scene.step(20)
    assert (scene["idle"], scene["dram.valid"]) == (1, 0)
    scene.set_arbiter(fixed=1, threshold=1, starvation=500)
    assert (scene["idle"], scene["dram.valid"]) == (0, 0)
    scene.step()
    assert scene["dram.valid"] == 1


def test_full_dram_queue_blocks_and_the_slice_is_idle_without_a_deadline(backend):
    scene = Scene(backend)
    scene.set_arbiter()
    scene.accept["dram"] = 0
    for port in PORTS:
        scene.offer(port, *[READ] * 4)
    scene.step(60)
    assert (scene["idle"], scene["wake_at"], scene["dram.valid"]) == (1, NEVER, 1)
    assert [scene[f"{port}.ready"] for port in PORTS] == [0] * 4
    assert backend == "rtl" or scene.idle_checks > 50


# T3-MCA: starvation


@pytest.mark.parametrize(
    ("starvation", "seen", "wait"),
    [(0, 10, 1), (1, 10, 1), (2, 10, 2), (7, 10, 7), (7, NEVER - 3, 2)],  # a deadline behind the end of time is over
)
def test_mca_starving_communication_goes_after_its_wait(backend, starvation, seen, wait):
    scene = Scene(backend)
    scene.set_arbiter(starvation=starvation)
    scene.now = seen - 1
    scene.offer("comm_read", READ)
    scene.step()
    scene.until("dram.valid")
    assert scene.now - 1 == seen + wait


@pytest.mark.parametrize("compute", [0, 90])
@pytest.mark.parametrize("quantum", [0, 1, 2, 3])
def test_mca_a_quantum_follows_each_wait_and_the_next_head_waits_anew(backend, quantum, compute):
    scene = Scene(backend)
    scene.set_arbiter(quantum=quantum)
    offer_numbered(scene, "compute_read", compute)
    scene.step(5)
    offer_numbered(scene, "comm_read", 8)
    scene.step(75)
    seen, length = scene.sent["comm_read"][0][0] + 1, max(1, quantum)
    starts = [seen + 20 + k * (length + 20) for k in range(3)]
    expected = [start + i for start in starts for i in range(length) if start + i < scene.now - 1]
    assert granted(scene, 1) == expected[:8]
    if compute:
        assert sum(map(len, scene.got.values())) == scene.now - 3, "something left in every cycle"


def test_mca_a_quantum_ends_when_communication_has_no_head(backend):
    scene = Scene(backend)
    scene.set_arbiter(starvation=3, quantum=8)
    scene.offer("comm_read", READ)
    scene.step(8)
    scene.offer("comm_read", READ)
    seen = scene.now + 1
    scene.step(8)
    assert granted(scene, 1)[1:] == [seen + 3], "not let through by the rest of the quantum"


def test_mca_a_quantum_waits_for_a_full_dram_queue(backend):
    scene = Scene(backend)
    scene.set_arbiter(starvation=3, quantum=3)
    offer_numbered(scene, "compute_read", 50)
    scene.step(5)
    offer_numbered(scene, "comm_read", 4)
    scene.step(5)  # the first of the quantum is in `out`
    scene.accept["dram"] = 0
    scene.step(30)
    assert scene.fields("dram.payload")["tag"] == 20
    scene.accept["dram"] = 1
    left = len(scene.got["dram"])
    scene.step(4)
    assert [tag // 10 for tag in scene.passed()[left:]] == [2, 2, 2, 0]


def test_mca_a_grant_below_the_threshold_ends_the_wait(backend):
    scene = Scene(backend)
    scene.set_arbiter(starvation=10)
    scene.step(threshold=1, occupancy=1)
    scene.offer("comm_read", *[READ] * 2)
    scene.step(6)
    scene.step(occupancy=0)
    since = scene.now  # the second one waits from here
    scene.step(20, occupancy=1)
    assert granted(scene, 1) == [since - 1, since + 10]


@pytest.mark.parametrize("cycles", [3, 7, 8])
def test_an_arbiter_write_begins_the_wait_anew(backend, cycles):
    """Written in the middle of the wait, in the cycle in which it ends, and when it is over."""
    scene = Scene(backend)
    scene.set_arbiter(starvation=8)
    scene.accept["dram"] = 0
    scene.offer("compute_read", READ)
    scene.step(3)
    scene.offer("comm_read", READ)
    scene.step()
    scene.step(cycles)
    scene.set_arbiter(starvation=9)
    since = scene.now
    scene.accept["dram"] = 1
    scene.step(20)
    assert granted(scene, 1) == [since + 9]


def test_leaving_mca_ends_wait_and_quantum(backend):
    scene = Scene(backend)
    scene.set_arbiter(starvation=6, quantum=8)
    scene.accept["dram"] = 0
    offer_numbered(scene, "comm_read", 3)
    scene.until("dram.valid")  # the first of a quantum
    scene.step(3)  # the second has begun to wait
    scene.set_arbiter(mca=0)
    scene.step(2)
    scene.set_arbiter(starvation=6, quantum=1)
    since = scene.now  # neither the quantum nor the wait goes on
    scene.accept["dram"] = 1
    scene.step(12)
    assert granted(scene, 1)[1:] == [since + 6]


def test_mca_a_head_without_a_token_place_waits_idle(backend):
    scene = Scene(backend)
    scene.set_range()
    scene.set_arbiter(starvation=10)
    scene.accept["token"] = 0
    scene.offer("compute_write", *[STORE | {"row": i} for i in range(scene.config.token_queue + 2)])
    scene.step(3)
    scene.offer("comm_write", STORE)  # waits for compute, then for a place
    scene.step(60)
    assert (scene["idle"], scene["wake_at"]) == (1, NEVER)
