"""The GEMM on CUs that hold several workgroups, with a path from the cache that has a rate, and its replacement."""

import pytest

from tests.support.system_cases import BASE, ODD, POLICIES, check, run

TOY_CUS = 4
SLAB_CLOCKS = 2 * 32 * 32 * 16 // 1024


def matrix_ns(result):
    """Time that the busiest CU's matrix unit needs for its share of the toy machine's tiles, masked lanes included."""
    gemm, k = result.record.gemm, result.record.workload.k
    slabs, last = divmod(k, 16)
    clocks = slabs * SLAB_CLOCKS + -(-2 * 32 * 32 * last // 1024)
    return -(-gemm.workgroups // TOY_CUS) * clocks / 1.4


def busy_and_stalled_ns(result):
    """Mean time of a CU computing, and stalled (loads, stores), on the simulated GPUs."""
    timeline, stall = result.timeline, result.record.contention.cu_stall_ns
    return timeline.cu_busy.sum(axis=1).mean() * timeline.bin_ns, stall["loads"] + stall["stores"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [BASE, ODD])
def test_two_workgroups_share_a_cu(policy, size):
    result = run(size, policy, {"gpu.workgroups_per_cu": 2})
    check(result)
    assert result.record.gemm.waves == -(-result.record.gemm.workgroups // 8)
    stages = [item for item in result.timeline.intervals if item.kind == "stage" and item.gpu == 0]
    assert len(stages) == result.record.gemm.waves
    assert result.record.time_ns.gemm >= matrix_ns(result)
    busy, stalled = busy_and_stalled_ns(result)
    assert result.timeline.cu_busy.max() <= 1
    gemms = [item.end_ns - item.start_ns for item in result.timeline.intervals if item.kind == "gemm"]
    assert busy + stalled <= sum(gemms) / len(gemms) + 1, "no time of a CU counts twice"


def test_a_second_workgroup_hides_the_first_ones_loads_and_stores():
    alone, shared = (
        run(BASE, "t3", {"gpu.workgroups_per_cu": count, "gpu.prefetch_slabs": 0, "llc.capacity_kib": 4096})
        for count in (1, 2)
    )
    check(shared)
    assert shared.record.time_ns.gemm < 0.7 * alone.record.time_ns.gemm
    # a bin of the timeline holds no more than its length, and a slab is booked where it starts
    assert busy_and_stalled_ns(shared)[0] == pytest.approx(matrix_ns(alone), rel=5e-3)
    assert busy_and_stalled_ns(shared)[0] == pytest.approx(busy_and_stalled_ns(alone)[0], rel=5e-3)
    assert busy_and_stalled_ns(shared)[1] < 0.7 * busy_and_stalled_ns(alone)[1]


def test_path_from_the_cache_limits_the_gemm():
    settings = {"llc.bytes_per_clock_per_cu": 4, "llc.capacity_kib": 4096}
    one, two, wide = (
        run(BASE, "t3", settings | changes).record.time_ns.gemm
        for changes in ({}, {"gpu.prefetch_slabs": 2}, {"llc.bytes_per_clock_per_cu": 4096})
    )
    # 14 tiles on the busiest CU, 8 slabs of 16 columns of 64 elements. With one slab ahead the next load begins when
    # the last one is complete, so the cache's latency (50 ns) shows each time; with two only the rate does.
    loads, load_ns = 14 * 8, 2 * 16 * 64 / 4 / 1.4
    assert one == pytest.approx(loads * (load_ns + 50), rel=0.03)
    assert two == pytest.approx(loads * load_ns, rel=0.06)
    assert wide < one / 2


@pytest.mark.parametrize("policy", ["sequential", "t3"])
def test_random_replacement_repeats_and_differs_from_lru(policy):
    lru, first, second = (run(BASE, policy, {"llc.replacement": name}) for name in ("lru", "random", "random"))
    check(first)
    assert first.record == second.record
    reads = [result.record.traffic_bytes_per_gpu.gemm_read for result in (lru, first)]
    assert reads[0] != reads[1]
    compulsory = 2 * 128 * (256 + 256)  # inputs of 128 columns; rows are padded to whole cache lines
    assert min(reads) >= compulsory


@pytest.mark.parametrize("name", ["lru", "random"])
def test_a_cache_that_holds_all_inputs_reads_them_once(name):
    result = run(BASE, "t3", {"llc.replacement": name, "llc.capacity_kib": 16384})
    assert result.record.traffic_bytes_per_gpu.gemm_read == 2 * 128 * (256 + 256)


def test_how_busy_a_gpu_is_counts_its_own_clock():
    """A GPU of a quarter of the clock computes all the time that its GEMM takes, and is as busy as the others."""
    settings = {"variation.clock_scale": [1.0, 0.25], "gpu.flop_per_clock_per_cu": 16}
    busy = run((256, 256, 512, 2), "sequential", settings).timeline.cu_busy
    assert (busy.max(axis=1) > 0.9).all()
