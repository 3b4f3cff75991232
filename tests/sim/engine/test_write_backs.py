"""Workgroups keep their CUs while too many write-backs are under way, and no legal size or cache breaks a run."""

import random
from typing import Any

import pytest
from t3hdl.interface.layouts import BURST_LINES, LINE_BYTES
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run import sizes
from t3sim.run.plan import RunPlan
from t3sim.run.request import RunRequest
from t3sim.run.simulate import simulate

from tests.support.system_cases import POLICIES, RINGS, Size, check, run

SHORT: Size = (256, 512, 12, 3)
"""A short K: the output is most of what moves."""
CACHED = ("sequential", "sequential-pipelined", "sequential-nmc")
"""Policies whose output passes through the cache."""
SEED = 20251125
CASES = 24


@pytest.mark.parametrize("policy", CACHED)
def test_workgroups_wait_for_write_backs_and_the_data_are_right(policy):
    many, few = (run(SHORT, policy, {"llc.write_backs_per_channel": n, "llc.capacity_kib": 4}) for n in (64, 1))
    check(many)
    check(few)
    stalls = [result.record.contention.cu_stall_ns["stores"] for result in (many, few)]
    assert stalls[1] > 2 * stalls[0]
    assert few.record.time_ns.gemm > many.record.time_ns.gemm
    m, n, _, _ = SHORT
    assert [result.record.traffic_bytes_per_gpu.gemm_write for result in (many, few)] == [2 * m * n] * 2


@pytest.mark.parametrize("policy", ["t3", "t3-mca"])
def test_the_limit_is_nothing_to_stores_that_bypass_the_cache(policy):
    many, few = (run(SHORT, policy, {"llc.write_backs_per_channel": n}) for n in (64, 1))
    check(few)
    assert few.record.time_ns == many.record.time_ns


@pytest.mark.slow
@pytest.mark.parametrize("policy", CACHED)
@pytest.mark.parametrize("write_backs", [1, 64])
def test_an_output_larger_than_the_cache_with_a_short_k(policy, write_backs):
    machine = load_machine("paper", {"llc.write_backs_per_channel": write_backs})
    workload = custom_workload(8192, 4256, 512, 8)
    request = RunRequest(workload=workload, machine=machine, policy=policy, hardware="golden", mirror=True)
    check(simulate(request))


@pytest.mark.long
def test_a_stage_of_tiles_whose_every_line_is_written_back_by_itself():
    """With lines of one sector every line of the output is a burst of its own; all workgroups of a stage store at once
    when K is as short as it can be."""
    settings = {"gpu.workgroups_per_cu": 8, "gpu.tiles": [[128, 128]]}
    cache = {"llc.line_bytes": 32, "llc.ways": 16, "llc.capacity_kib": 3}
    request = RunRequest(
        workload=custom_workload(2560, 4096, 2, 2),
        machine=load_machine("paper", settings | cache),
        policy="sequential",
        hardware="golden",
        mirror=True,
    )
    check(simulate(request))


@pytest.mark.parametrize("line_bytes", [32, 64, 96, 128, 256, 320, 1024])
@pytest.mark.parametrize("policy", ["sequential", "t3"])
def test_no_tile_is_stored_in_more_bursts_than_its_pool_counts(policy, line_bytes):
    """Wherever a row begins: a burst ends with an aligned block, and with an entry if the cache writes it back."""
    settings = {"llc.line_bytes": line_bytes, "llc.ways": 1, "llc.capacity_kib": 15, "gpu.tiles": [[128, 112]]}
    workload = custom_workload(4096, 4096, 64, 2)
    request = RunRequest(workload=workload, machine=load_machine("paper", settings), policy=policy, mirror=True)
    ends = {BURST_LINES, line_bytes // LINE_BYTES} if policy == "sequential" else {BURST_LINES}
    rows = [
        1 + sum(any(line % end == 0 for end in ends) for line in range(first + 1, first + 2 * 112 // LINE_BYTES))
        for first in range(BURST_LINES * line_bytes // LINE_BYTES)
    ]
    assert 128 * max(rows) <= sizes.Sizes.of(RunPlan(request), 0).tile_bursts <= 2 * 128 * max(rows)


@pytest.mark.parametrize("number", range(CASES))
def test_any_legal_size_and_cache(number, monkeypatch):
    """Nor do the pools need their spare entries for it."""
    monkeypatch.setattr(sizes, "SLACK", 0)
    case = _case(random.Random(f"{SEED} {number}"))
    check(run(case[0], case[1], case[2]))


def _case(rng: random.Random) -> tuple[Size, str, dict[str, Any]]:
    """A short K, a large N, odd sizes; a cache of few lines, or of long ones."""
    tp = rng.choice([2, 3, 4, 5])
    size = (rng.randint(130, 300), rng.choice([rng.randint(96, 700), 8 * rng.randint(12, 160)]))
    k = tp * rng.choice([1, 2, 4, 16, 33])
    line, ways = rng.choice([32, 64, 128, 256, 1024]), rng.choice([1, 2, 4, 16])
    sets = rng.choice([1, 2, 4, 16])
    while line * ways * sets % 1024:
        sets *= 2
    settings = {
        "llc.line_bytes": line,
        "llc.ways": ways,
        "llc.capacity_kib": line * ways * sets // 1024,
        "llc.write_backs_per_channel": rng.choice([1, 2, 16]),
        "hbm.queue_lines": rng.choice([8, 64]),
        "gpu.workgroups_per_cu": rng.choice([1, 2, 4]),
    }
    return (*size, k, tp), rng.choice([*POLICIES, *RINGS]), settings
