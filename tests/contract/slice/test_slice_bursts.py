"""Bursts of 1 to 8 lines in the memory slice: moved, refused and counted as one, counted in lines."""

import pytest
from t3hdl.interface.layouts import BURST_LINES, LINE_BITS, NEVER, Op
from t3sim.hardware.golden.slice.arbiter import S

from tests.contract.slice.scene import PERFORMED, PORTS, READ, STORE, WRITE_PORTS, Scene

LENGTHS = range(BURST_LINES)
BLOCK = STORE | {"line": 1000}
"""From the first line of an aligned block on, which is the first of the range."""
LARGEST = (1 << 24) - 1
OWN, OTHER = {}, {"context": 0}


def ranged(backend: str, *ranges: tuple[int, int, dict]) -> Scene:
    """A slice with these ranges: base, limit and attributes."""
    scene = Scene(backend)
    for index, (base, limit, attributes) in enumerate(ranges):
        scene.set_range(index, base, limit, **attributes)
    return scene


def burst(line: int, last: int, **fields: int) -> dict:
    """An update of lines ``line`` to ``last``."""
    return STORE | {"line": line, "length": last - line} | fields


# Counting


@pytest.mark.parametrize("port", WRITE_PORTS)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_burst_counts_its_lines(backend, port, length):
    scene = ranged(backend, (1000, 2000, OWN))
    request = scene.through(port, BLOCK | {"length": length})
    assert (request["tagged"], request["length"], request["line"]) == (1, length, 1000)
    scene.step(3)
    assert scene.tokens("n") == [(length + 1,)]


def test_bursts_of_a_tile_become_one_token(backend):
    scene = ranged(backend, (1000, 2000, OWN))
    scene.accept["token"] = 0
    scene.offer("comm_write", *[BLOCK | {"length": length} for length in (1, 7, 0, 4)])
    scene.step(10)
    scene.accept["token"] = 1
    scene.step(5)
    assert scene.tokens("n") == [(2,), (8 + 1 + 5,)]


def test_a_burst_takes_one_cycle_and_one_place(backend):
    scene = ranged(backend, (1000, 2000, OWN))
    scene.accept["token"] = 0
    places = scene.config.token_queue
    scene.offer("compute_write", *[BLOCK | {"length": 7, "row": row} for row in range(places + 1)])
    start = scene.now + 2
    scene.step(20)
    assert [cycle for cycle, _ in scene.got["dram"]] == list(range(start, start + places))
    scene.accept["token"] = 1
    scene.step(20)
    assert scene.tokens("n") == [(8,)] * (places + 1)


@pytest.mark.own_size
def test_performed_counts_all_lines_of_a_burst_with_its_report(backend):
    scene = Scene(backend, **PERFORMED)
    scene.set_range()
    scene.offer("comm_write", *[BLOCK | {"length": length, "row": length} for length in (7, 0, 2, 5)])
    scene.step(10)
    requests = [request for _, request in scene.got["dram"]]
    assert [request["row"] for request in requests] == [7, 0, 2], "a place is reserved for every burst under way"
    assert (scene["pending"], scene.got["token"]) == (0b10, [])
    for number in (2, 0, 1):
        scene.report(requests[number])
        scene.step(3)
    assert scene.tokens("row", "n") == [(2, 3), (7, 8), (0, 1)]
    scene.report(scene.got["dram"][3][1])
    scene.step(3)
    assert (scene["pending"], scene.tokens("n")[3:]) == (0, [(6,)])


# Refusal

IMPROPER = {
    "over the end of its block": (burst(1005, 1008), [(1000, 2000, OWN)]),
    "over the end of its block by seven lines": (burst(1007, 1014), [(1000, 2000, OWN)]),
    "over the end of its block, in no range": (burst(5005, 5008), [(1000, 2000, OWN)]),
    "over the end of the addresses": (burst((1 << LINE_BITS) - 1, 1 << LINE_BITS), [(1000, 2000, OWN)]),
    "into its own range": (burst(1000, 1002), [(1002, 2000, OWN)]),
    "out of its own range": (burst(1004, 1006), [(1000, 1006, OWN)]),
    "around a range": (burst(1000, 1007), [(1003, 1005, OWN)]),
    "around another's range": (burst(1000, 1007), [(1003, 1004, OTHER)]),
    "from one of its ranges into the next": (burst(1000, 1007), [(1000, 1004, OWN), (1004, 2000, OWN)]),
    "into another's range with its last line": (burst(1000, 1007), [(1007, 2000, OTHER)]),
    "from its own range into another's": (burst(1002, 1004), [(1000, 1004, OWN), (1004, 2000, OTHER)]),
    "out of another's range": (burst(1003, 1004), [(1000, 1004, OTHER)]),
    "over a bound inside of its own range": (burst(1000, 1001), [(1000, 2000, OWN), (1001, 1500, OTHER)]),
    "over the place of an empty range": (burst(1000, 1004), [(1004, 1004, OWN)]),
}


@pytest.mark.parametrize("change", [{}, {"tagged": 0}, {"op": Op.READ_CLEAR}, {"epoch": 3}], ids=str)
@pytest.mark.parametrize("port", WRITE_PORTS)
@pytest.mark.parametrize("name", IMPROPER)
def test_a_write_that_is_no_burst_of_one_range_and_block_is_given_back(backend, name, port, change):
    item, ranges = IMPROPER[name]
    scene = ranged(backend, *ranges)
    scene.offer(port, item | change)
    scene.step()
    expected = {port.removesuffix("_write"): item | change | {"stream": int(port == "comm_write")}}
    assert (scene.refused(), scene.stale()) == (expected, {}), "once, and not as stale as well"
    scene.step()
    assert not scene.refused()
    scene.step(6)
    assert (scene.got["dram"], scene.got["token"], scene["pending"]) == ([], [], 0)


@pytest.mark.parametrize("name", IMPROPER)
@pytest.mark.parametrize("port", PORTS)
def test_a_read_is_never_refused(backend, name, port):
    item, ranges = IMPROPER[name]
    scene = ranged(backend, *ranges)
    request = scene.through(port, item | {"op": Op.READ})
    assert (request["tagged"], request["length"]) == (0, item["length"])
    assert (scene.got["token"], scene.refused(), scene.stale()) == ([], {}, {})


@pytest.mark.parametrize("port", WRITE_PORTS)
@pytest.mark.parametrize(
    ("item", "ranges", "tracked"),
    [
        (burst(1000, 1007), [(1000, 1008, OWN)], 1),
        (burst(1002, 1005), [(1002, 1006, OWN)], 1),
        (burst(1000, 1003, tagged=0), [(1004, 2000, OWN)], 0),
        (burst(1000, 1003, tagged=0), [(1004, 2000, OTHER)], 0),
        (burst(1004, 1007, tagged=0), [(1000, 1004, OTHER)], 0),
        (burst(1002, 1005), [(1000, 1002, OTHER), (1002, 1006, OWN), (1006, 2000, OTHER)], 1),
        (burst(1000, 1007), [(1000, 2000, OWN), (1003, 1005, OTHER | {"valid": 0})], 1),
        (burst((1 << LINE_BITS) - 8, (1 << LINE_BITS) - 1, tagged=0), [(1000, 2000, OWN)], 0),
    ],
)
def test_a_burst_up_to_a_bound_passes(backend, port, item, ranges, tracked):
    scene = ranged(backend, *ranges)
    assert scene.tracks(port, item) == tracked
    scene.step(3)
    assert scene.tokens("n") == [(item["length"] + 1,)] * tracked


def test_the_bounds_that_count_are_those_of_the_cycle_of_entry(backend):
    scene = ranged(backend, (1000, 2000, OWN), (1004, 1006, OTHER | {"valid": 0}))
    scene.accept["dram"] = 0
    scene.offer("compute_write", BLOCK | {"length": 7}, BLOCK | {"length": 7})
    scene.set_attributes(1, context=0)  # the first burst enters in this cycle
    assert not scene.refused()
    scene.step()
    assert set(scene.refused()) == {"compute"}


def test_an_aborted_context_has_no_bounds(backend):
    scene = ranged(backend, (1000, 2000, OWN), (3004, 4000, OTHER))
    scene.control(abort=1, context=0)
    assert scene.tracks("comm_write", burst(3000, 3007, tagged=0)) == 0
    assert not scene.refused()


# Lines in the monitor's count and in arbitration


def test_served_is_in_lines(backend):
    scene = Scene(backend)
    scene.offer("compute_read", *[READ | {"line": 0, "length": length} for length in (7, 0, 3)])
    scene.offer("comm_write", READ | {"line": 0, "length": 1})
    scene.step(12, measure=1)
    assert scene["served"] == 8 + 1 + 4 + 2


@pytest.mark.parametrize("before", [LARGEST - 8, LARGEST - 7, LARGEST - 1, LARGEST])
@pytest.mark.parametrize("implementation", ["amaranth", "golden"])
def test_served_saturates_within_a_burst(implementation, before):
    scene = Scene(implementation)
    if implementation == "golden":
        scene.backend.memory[S.served] = before
    else:
        scene.backend.context.set(scene.backend.signals["served"], before)
    scene.offer("compute_read", *[READ | {"line": 0, "length": 7}] * 2)
    scene.step(3, measure=1)
    assert scene["served"] == min(before + 8, LARGEST)
    scene.step(5)
    assert scene["served"] == LARGEST


@pytest.mark.parametrize("length", LENGTHS)
def test_a_burst_goes_below_the_threshold_and_holds_the_next_one_back(backend, length):
    """Occupancy 4, threshold 5: one burst goes, however long; the next one not while the first waits at ``dram``."""
    scene = Scene(backend)
    scene.set_arbiter(starvation=500)
    scene.accept["dram"] = 0
    scene.offer("comm_read", *[READ | {"line": 0, "length": length}] * 3)
    scene.step(10, occupancy=4, threshold=5)
    assert scene["dram.valid"]
    scene.accept["dram"] = 1
    scene.step()
    assert not scene["dram.valid"], "what was at dram in this cycle counts, although it was taken"
    scene.step()
    assert scene["dram.valid"]


@pytest.mark.parametrize(
    ("quantum", "length", "bursts"), [(0, 7, 1), (1, 7, 1), (8, 7, 1), (9, 7, 2), (8, 2, 3), (6, 2, 2), (255, 7, 32)]
)
def test_the_starvation_quantum_is_in_lines(backend, quantum, length, bursts):
    scene = Scene(backend)
    scene.set_arbiter(starvation=4, quantum=quantum)
    scene.offer("compute_read", *[READ] * 120)
    scene.offer("comm_read", *[READ | {"line": 0, "length": length}] * 80)
    scene.step(60, threshold=0)
    streams = "".join(str(stream) for stream in scene.passed("stream"))
    first = streams.index("1")
    assert streams[first:].index("0") == bursts


def test_a_slice_of_bursts_that_waits_is_idle(backend):
    scene = ranged(backend, (1000, 2000, OWN))
    scene.accept["dram"] = 0
    scene.offer("compute_write", *[BLOCK | {"length": 7}] * 4)
    scene.step(12)
    assert (scene["idle"], scene["wake_at"], scene["pending"]) == (1, NEVER, 0b10)
