"""The arbiter of the golden MemorySlice against hand-computed scenarios, one per statement of docs/hardware.md."""

import pytest
from golden_bench import Bench
from golden_slice_scene import drain, make, out, request, set_arbiter
from t3hdl.interface.layouts import Op


def test_stream_alternates_write_first():
    bench = make()
    for i in range(2):
        bench.tick(compute_read=request(10 + i), compute_write=request(20 + i, op=Op.STORE))
    assert out(bench)["tag"] == 20
    assert drain(bench) == [20, 10, 21, 11]


def test_round_robin_between_streams_compute_first():
    bench = make()
    for i in range(2):
        bench.tick(compute_read=request(10 + i), comm_read=request(20 + i))
    assert drain(bench) == [10, 20, 11, 21]
    bench.tick(comm_read=request(30))  # one alone: that one, whatever was last
    assert drain(bench) == [30]


@pytest.mark.parametrize(("occupancy", "order"), [(9, [10, 11, 20, 21]), (10, [10, 11])])
def test_mca_compute_first_then_comm_below_the_threshold(occupancy, order):
    bench = make()
    set_arbiter(bench, threshold=10)
    bench.tick(0, occupancy=occupancy)
    for i in range(2):
        bench.tick(compute_read=request(10 + i), comm_read=request(20 + i))
    assert drain(bench) == order


def test_mca_level_counts_the_request_in_out():
    bench = make()
    set_arbiter(bench, threshold=10)
    bench.tick(occupancy=9, comm_read=request(1))
    bench.tick(comm_read=request(2))
    assert out(bench)["tag"] == 1  # 9 + 0 < 10
    bench.tick(dram_ready=1)
    assert out(bench) is None  # 9 + 1 < 10 is false in the cycle of the transfer
    bench.tick()
    assert out(bench)["tag"] == 2


def test_mca_threshold_input_when_not_fixed_and_127_is_no_limit():
    bench = make()
    set_arbiter(bench, fixed=0, threshold=127)
    bench.tick(2, comm_read=request(1), threshold=5, occupancy=5)
    bench.tick(3)
    assert out(bench) is None
    assert bench.get("idle") == 1  # blocked by the threshold
    bench.tick(threshold=6)
    assert out(bench)["tag"] == 1
    bench.tick(occupancy=127, threshold=127, dram_ready=1, comm_read=request(2))
    bench.tick()
    assert out(bench)["tag"] == 2


def blocked_comm(**arbiter) -> Bench:
    """Communication blocked by the threshold, the candidate visible in the present cycle for the first time."""
    bench = make()
    set_arbiter(bench, threshold=1, **arbiter)
    bench.tick(comm_read=request(1), occupancy=1)
    return bench


def test_starvation_lets_comm_through_after_its_cycles():
    bench = blocked_comm(starvation=7, burst=1)
    since = bench.now
    bench.tick()
    assert (bench.get("idle"), bench.get("wake_at")) == (1, since + 6)  # it is over for the cycle after that
    while out(bench) is None:
        bench.tick()
    assert bench.now - 1 == since + 7  # granted in the cycle with now - since = 7


def test_a_deadline_behind_the_end_of_time_lets_comm_go_at_once():
    bench = make()
    set_arbiter(bench, threshold=1, starvation=7)
    bench.now = (1 << 48) - 5
    bench.tick(comm_read=request(1), occupancy=1)
    since = bench.now
    bench.until("dram.valid")
    assert bench.now - 1 == since + 2


def test_starvation_zero_waits_for_the_waiting_bit_only():
    bench = blocked_comm(starvation=0)
    since = bench.now
    bench.until("dram.valid")
    assert bench.now - 1 == since + 1


@pytest.mark.parametrize(("burst", "length"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_burst_after_starvation(burst, length):
    bench = blocked_comm(starvation=5, burst=burst)
    bench.tick(0, dram_ready=1)
    seen = []
    tag = 2
    for _ in range(5 + length + 4):
        ready = bench.get("comm_read.ready")
        bench.tick(**({"comm_read": request(tag)} if ready else {}))
        tag += ready
        seen.append(out(bench)["tag"] if out(bench) else 0)
    assert seen == [0] * 5 + list(range(1, length + 1)) + [0] * 4


def test_burst_goes_before_compute():
    bench = blocked_comm(starvation=3, burst=2)
    bench.tick(comm_read=request(2), dram_ready=1)
    bench.tick(2)
    bench.tick(compute_read=request(9))
    assert drain(bench) == [1, 2, 9]


def test_burst_ends_when_comm_has_no_candidate():
    bench = blocked_comm(starvation=3, burst=8)
    bench.tick(0, dram_ready=1)
    bench.until("dram.valid")
    bench.tick(2)  # a cycle without candidate
    bench.tick(comm_read=request(2))
    since = bench.now
    bench.until("dram.valid")
    assert bench.now - 1 == since + 3  # starved again, not let through by the rest of the burst


def test_a_grant_ends_the_wait():
    bench = make()
    set_arbiter(bench, threshold=1, starvation=10)
    bench.tick(comm_read=request(1), occupancy=1)
    bench.tick(5, comm_read=request(2), dram_ready=1)
    bench.tick(occupancy=0)  # granted below the threshold
    assert out(bench)["tag"] == 1
    since = bench.now  # request 2 waits from here
    bench.tick(occupancy=1)
    bench.until("dram.valid")
    assert (out(bench)["tag"], bench.now - 1) == (2, since + 10)


def test_the_wait_goes_on_while_compute_is_served():
    bench = make()
    set_arbiter(bench, threshold=0, starvation=6, burst=1)
    bench.tick(comm_read=request(1), compute_read=request(10), dram_ready=1)
    since, order = bench.now, []
    for i in range(12):
        bench.tick(compute_read=request(11 + i))
        order.append(out(bench)["tag"])
    assert order.index(1) == 6  # granted at since + 6
    assert bench.now == since + 12


def test_switching_to_round_robin_ends_wait_and_burst():
    bench = make()
    set_arbiter(bench, threshold=0, starvation=6, burst=8)
    for tag in range(3):
        bench.tick(comm_read=request(tag))
    bench.until("dram.valid")  # the first of a burst; the second has begun to wait
    bench.tick()
    set_arbiter(bench, mca=0)
    bench.tick(2)
    set_arbiter(bench, threshold=0, starvation=6)
    since = bench.now  # neither the burst nor the wait goes on
    bench.tick(dram_ready=1)
    assert out(bench) is None
    bench.until("dram.valid")
    assert (out(bench)["tag"], bench.now - 1) == (1, since + 6)
