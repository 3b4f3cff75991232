"""The whole system on small GEMMs: exact traffic, right data, the same time from both backends and any thread count."""

import re
from itertools import pairwise

import pytest
from t3sim.engine.state import NEVER_CYCLE
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import model_workload
from t3sim.run.request import Progress, RunRequest, SimulationError
from t3sim.run.simulate import simulate
from t3sim.run.system import System
from t3sim.run.timeline_record import TimelineRecord

from tests.support.system_cases import BASE, EIGHT, EVEN, ODD, POLICIES, RINGS, check, missing_compiler, request, run

TRACKED = ("t3", "t3-mca")
SIZES = {
    "tp2": (256, 200, 512, 2),
    "tp4": BASE,
    "tp8": EIGHT,
    "uneven": ODD,
    "odd": (197, 131, 131, 3),
    "tall": (333, 17, 70, 5),
    "wide": (20, 333, 70, 5),
    "one tile each": (64, 64, 40, 4),
}
NEEDS_COMPILER = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "has a compiler")


@pytest.mark.parametrize("policy", POLICIES + RINGS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_traffic_and_data(size, policy):
    result = run(size, policy)
    check(result)
    record = result.record
    assert record.gpus_simulated == size[3]
    times = record.time_ns
    assert 0 < times.gemm < times.total and 0 < times.all_gather < times.total
    if policy not in TRACKED:
        assert record.tracker is None and record.blocks is None
        return
    # every wavefront tile of every chunk that a GPU stores ends as a tile or in an overflowed chunk
    assert record.tracker.triggers == record.blocks.by_tile + record.blocks.by_chunk
    assert (record.tracker.triggers == 0) == (size[3] == 2)


@pytest.mark.parametrize("policy", TRACKED)
def test_overlap_is_faster_and_moves_less(policy):
    plain, tracked = run(BASE, "sequential").record, run(BASE, policy).record
    assert tracked.time_ns.total < 0.9 * plain.time_ns.total
    for cause in ("gemm_write", "rs_read", "rs_write"):
        assert getattr(tracked.traffic_bytes_per_gpu, cause) < getattr(plain.traffic_bytes_per_gpu, cause)
    assert tracked.traffic_bytes_per_gpu.ag_read == plain.traffic_bytes_per_gpu.ag_read


@NEEDS_COMPILER
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(BASE, id="even"),
        pytest.param(ODD, id="uneven"),
        pytest.param(EIGHT, id="tp8", marks=pytest.mark.long),
    ],
)
def test_compiled_rtl_and_golden_model_are_the_same_machine(size, policy):
    """Records are equal field by field (contention and times too) but for the backend's name and its work, and so are
    all GPUs over time."""
    results = [run(size, policy, hardware=hardware) for hardware in ("golden", "rtl")]
    assert TimelineRecord.of(results[0].timeline) == TimelineRecord.of(results[1].timeline)
    records = [result.record.model_dump() for result in results]
    assert [record.pop("hardware") for record in records] == ["golden", "rtl"]
    golden, rtl = (record.pop("rtl") for record in records)
    assert golden is None and rtl["cycles_evaluated"] == sum(rtl["evaluated_by_part"].values()) > 0
    assert records[0] == records[1]


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.parametrize("policy", POLICIES)
def test_compiled_rtl_and_golden_model_agree_on_the_papers_machine(policy):
    """T-NLG's FC-2 on eight of the paper's GPUs."""
    records = []
    for hardware in ("golden", "rtl"):
        choices = {"policy": policy, "hardware": hardware, "threads": 2}
        result = simulate(
            RunRequest(workload=model_workload("t-nlg", "fc2", 8), machine=load_machine("paper"), **choices)
        )
        assert all(result.record.identities.values())
        records.append(result.record.model_dump(exclude={"hardware", "rtl"}))
    assert records[0] == records[1]
    assert policy == "sequential" or records[0]["data_check"]["mismatches"] == 0


@NEEDS_COMPILER
def test_compiled_rtl_reduces_the_data():
    check(run(ODD, "t3", hardware="rtl"))


@pytest.mark.parametrize("policy", POLICIES)
def test_threads_do_not_change_the_result(policy):
    results = [run(ODD, policy, threads=threads, seed=5) for threads in (1, 2, 1, 3)]
    assert len({result.record.to_json() + TimelineRecord.of(result.timeline).text() for result in results}) == 1


def test_the_seed_changes_data_and_nothing_else():
    first, second = (run(ODD, "t3", seed=seed) for seed in (1, 2))
    check(first)
    check(second)
    assert first.record.model_dump(exclude={"seed"}) == second.record.model_dump(exclude={"seed"})


@pytest.mark.parametrize("policy", POLICIES + RINGS)
def test_mirror_is_one_gpu_of_equal_ones(policy):
    mirrored, whole = run(EVEN, policy, mirror=True), run(EVEN, policy)
    check(mirrored)
    one, all_of_them = mirrored.record, whole.record
    assert one.gpus_simulated == 1 and one.mirror
    exact = {"gemm_write", "rs_read", "rs_write", "ag_read", "ag_write", "init_write"}
    assert one.traffic_bytes_per_gpu.model_dump(include=exact) == all_of_them.traffic_bytes_per_gpu.model_dump(
        include=exact
    )
    assert one.traffic_bytes_per_gpu.gemm_read == pytest.approx(all_of_them.traffic_bytes_per_gpu.gemm_read, rel=0.02)
    # Buffers of equal GPUs' chunks lie in other banks, so their times differ a little (the toy waits for DRAM most of
    # the time), and the one meets its own traffic, not its neighbour's: it is within 2 % of them.
    finishes = [max(i.end_ns for i in whole.timeline.intervals if i.gpu == gpu) for gpu in range(EVEN[3])]
    assert 0.98 * min(finishes) <= one.time_ns.total <= 1.02 * max(finishes)


@pytest.mark.parametrize("policy", POLICIES + RINGS)
def test_mirror_with_unequal_chunks(policy):
    mirrored, whole = run(BASE, policy, mirror=True), run(BASE, policy)
    check(mirrored)
    assert mirrored.record.time_ns.total == pytest.approx(whole.record.time_ns.total, rel=0.03)


VARIATIONS = {
    "block tile": {"dma.block": "tile"},
    "block column": {"dma.block": "column"},
    "block chunk": {"dma.block": "chunk"},
    "stage": {"gpu.dispatch": "stage"},
    "performed": {"gpu.store_release": "performed"},
    "stage performed": {"gpu.dispatch": "stage", "gpu.store_release": "performed"},
    "split queue": {"hbm.queue": "split"},
    "bank-local": {"hbm.line_order": "bank-local"},
    "group-low": {"hbm.line_order": "group-low", "hbm.act_clocks": 1},
    "bank hash": {"hbm.bank_hash": "row-xor"},
    "by age": {"hbm.service_order": "age", "hbm.row_policy": "hits-first", "hbm.hit_order": "oldest"},
    "no refresh": {"hbm.refresh": False},
    "skew": {"variation.start_skew_ns": [0.0, 3000.0, 100.0, 7.0]},
    "clocks": {"variation.clock_scale": [1.0, 0.5, 1.3, 0.9]},
    "links": {"variation.link_gb_s": [20.0, 2.0, 20.0, 5.0]},
    "slow link": {"link.gb_s": 1.0},
    "small buffers": {"link.rx_buffer_kib": 1, "link.egress_buffer_kib": 1, "dma.buffer_kib": 1},
    "no prefetch": {"gpu.prefetch_slabs": 0},
    "deep prefetch": {"gpu.prefetch_slabs": 3},
    "short LLC line": {"llc.line_bytes": 32},
    "no fabric": {"fabric.request_ns": 0, "fabric.response_ns": 0, "llc.latency_ns": 0},
    "overheads": {"gpu.kernel_launch_ns": 500, "kernel.step_overhead_ns": 300},
    "odd clocks": {"hbm.clock_mhz": 850, "gpu.clock_mhz": 1333},
    "no overflow": {"hardware.tracker_sets": 64, "hardware.row_index_bits": 3},
}


@pytest.mark.parametrize(
    "policy", [policy if policy == "t3-mca" else pytest.param(policy, marks=pytest.mark.long) for policy in POLICIES]
)
@pytest.mark.parametrize("overrides", VARIATIONS.values(), ids=VARIATIONS)
def test_any_machine_reduces_right(overrides, policy):
    check(run(BASE, policy, overrides))


def test_blocks_fire_tile_by_tile_where_the_tracker_has_room():
    """Four chunks of 8 x 2 tiles, two of them sent by DMA on each GPU; the hardware has four blocks a chunk."""
    room = VARIATIONS["no overflow"]
    for unit, blocks in (("tile", 4), ("column", 2), ("chunk", 1)):
        record = run(EVEN, "t3", room | {"dma.block": unit}).record
        assert record.tracker.overflowed_chunks == 0
        assert record.blocks.model_dump() == {"by_tile": 4 * 2 * blocks, "by_chunk": 0}
        # a chunk that ends here or passes through: three of four, 16 tiles of two wavefronts
        assert record.tracker.tiles == 4 * 3 * 16 * 2
        # each takes two updates per line
        assert record.tracker.updates == 4 * 3 * 2 * (256 * 16 // 4)


def test_stage_dispatch_has_no_overlapping_stages():
    for policy in POLICIES:
        free, staged = (run(BASE, policy, {"gpu.dispatch": dispatch}) for dispatch in ("free", "stage"))
        assert staged.record.time_ns.gemm > free.record.time_ns.gemm
        for gpu in range(4):
            stages = [i for i in staged.timeline.intervals if i.kind == "stage" and i.gpu == gpu]
            assert len(stages) == 14  # 56 tiles on 4 CUs
            assert all(a.end_ns <= b.start_ns for a, b in pairwise(stages))


def test_release_after_performing_holds_the_cus_longer():
    accepted, performed = (
        run(BASE, "t3", {"gpu.store_release": release}).record.contention.cu_stall_ns["stores"]
        for release in ("accepted", "performed")
    )
    assert performed > accepted


def test_slower_links_and_clocks_take_longer():
    base = run(BASE, "t3").record.time_ns
    link = run(BASE, "t3", {"link.gb_s": 1.0}).record
    assert link.time_ns.total > 4 * base.total
    # every GPU sends all but one chunk twice, 32 + 16 / 8 bytes a line at the least
    sent = 2 * 3 / 4 * 2 * BASE[0] * BASE[1]
    assert link.contention.link_busy_ns > sent and link.time_ns.total > sent
    clock = run(BASE, "t3", {"variation.clock_scale": [1.0, 0.25, 1.0, 1.0]}).record.time_ns
    assert clock.total > base.total


def test_one_late_gpu_delays_all():
    base = run(BASE, "t3").record.time_ns.total
    late = run(BASE, "t3", {"variation.start_skew_ns": [0.0, 0.0, 20_000.0, 0.0]})
    check(late)
    assert late.record.time_ns.total > base + 10_000


@pytest.mark.parametrize("policy", TRACKED)
def test_stores_of_chunks_that_are_not_live_are_held(policy):
    """A late GPU with two live chunks of eight: what its neighbour sends waits in front of the slices."""
    window = {"hardware.chunk_window": 2, "hardware.event_queue": 3}
    late = {"variation.start_skew_ns": [40_000.0] + [0.0] * 7}
    held = run(EIGHT, policy, window | late)
    check(held)
    assert held.record.contention.window_stall_ns > 1000
    roomy = run(EIGHT, policy, {"hardware.chunk_window": 8} | late)
    check(roomy)
    assert roomy.record.contention.window_stall_ns == 0


def test_memory_that_performs_is_refused():
    with pytest.raises(
        ValueError,
        match=r"^the simulated memory does not report performed updates to the T3 hardware: hardware count_on must be "
        r"'accepted', not 'performed'$",
    ):
        simulate(request(BASE, "t3", {"hardware.count_on": "performed"}))


def test_ideal_policy_is_not_simulated():
    with pytest.raises(ValueError, match=r"^policy ideal-overlap is computed from sequential, not simulated$"):
        simulate(request(BASE, "ideal-overlap"))
    with pytest.raises(ValueError, match=r"^policy ideal-overlap-nmc is computed from sequential and sequential-nmc, "):
        simulate(request(BASE, "ideal-overlap-nmc"))


def test_more_gpus_than_descriptors_is_refused():
    with pytest.raises(ValueError, match=r"^--tp must be at most 8 on machine 'toy', not 9: .* has 8 descriptors"):
        run((256, 256, 512, 9), "t3")
    check(run((256, 256, 512, 9), "sequential"))


@pytest.mark.parametrize("refresh", [True, False])
@pytest.mark.parametrize("policy", ["sequential", "t3"])
def test_a_system_that_gets_stuck_says_where(monkeypatch, policy, refresh):
    program = System.program

    def broken(system: System) -> None:
        program(system)
        # GPU 2 waits for a line more of chunk 0 than anybody sends.
        system.gpus[2].part_lines[0] += 1

    monkeypatch.setattr(System, "program", broken)
    with pytest.raises(SimulationError, match=r"^deadlock at cycle \d+: ") as caught:
        run(ODD, policy, {"hbm.refresh": refresh})
    stuck = re.findall(r"GPU (\d+): (\d+) of 35 workgroups done", str(caught.value))
    assert ("2", "35") in stuck
    assert re.search(r"\d+ chunks live, 0 stores held, 0 bursts in memory, ", str(caught.value))


@pytest.mark.parametrize(
    ("slow", "settings"),
    [
        ("a request", {"fabric.request_ns": 1_000_000}),
        ("a GPU", {"variation.clock_scale": [0.001, 1.0, 1.0]}),
        ("a link", {"link.gb_s": 0.0004}),
        ("a link to one GPU", {"variation.link_gb_s": [20.0, 0.0004, 20.0]}),
    ],
)
def test_slow_is_not_stuck(slow, settings):
    """Nothing happens for hundreds of thousands of cycles, and then goes on."""
    result = run(ODD, "t3", settings)
    check(result)
    assert result.record.time_ns.total > 10 * run(ODD, "t3").record.time_ns.total, slow


@pytest.mark.long
@pytest.mark.parametrize("policy", ["sequential", "t3"])
def test_a_slower_link_never_gives_a_faster_run(policy):
    rates = (0.0004, 0.0015, 0.002, 1)
    times = [run(ODD, policy, {"link.gb_s": rate}).record.time_ns.total for rate in rates]
    assert times == sorted(times, reverse=True) and len(set(times)) == len(times)


def test_the_shortest_link_latency_works():
    check(run(ODD, "t3", {"link.latency_ns": 1}))


def test_a_lost_neighbour_is_a_deadlock(monkeypatch):
    """GPU 0 never gets what GPU 1 sends: the senders run out of credits, nobody finishes."""
    program = System.program

    def broken(system: System) -> None:
        program(system)
        silent = system.gpus[0].rx.copy()
        silent["arrival_cycle"] = NEVER_CYCLE
        system.gpus[0].bind("rx", silent)

    monkeypatch.setattr(System, "program", broken)
    with pytest.raises(SimulationError, match=r"^deadlock at cycle \d+: GPU 0: 35 of 35 workgroups done, "):
        run(ODD, "t3")


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("policy", [*POLICIES, *RINGS])
def test_work_goes_from_nothing_to_all(monkeypatch, policy, mirror):
    monkeypatch.setattr("t3sim.run.simulate.REPORT_SECONDS", 0.0)
    reports = []
    simulate(request(EVEN, policy, mirror=mirror), reports.append)
    reports = [report for report in reports if isinstance(report, Progress)]
    done = [report.work_done for report in reports]
    assert done == sorted(done)
    assert done[0] < 0.01 and done[-1] == 1
    gemm = [report.work_done for report in reports if report.phase.startswith("GEMM")]
    assert 0.1 < gemm[-1] < 0.95, "the all-gather is still to come"
    assert max(late - early for early, late in pairwise(done)) < 0.1


def test_progress_reports_go_forward(monkeypatch):
    monkeypatch.setattr("t3sim.run.simulate.REPORT_SECONDS", 0.0)
    reports = []
    result = simulate(request(BASE, "t3"), reports.append)
    reports = [report for report in reports if isinstance(report, Progress)]
    times = [report.simulated_ns for report in reports]
    assert len(times) > 10 and times == sorted(times)
    assert times[-1] + 100 >= result.record.time_ns.total, "all but data on their way into DRAM"
    assert {report.phase for report in reports} >= {"GEMM and reduce-scatter", "all-gather"}


def test_timeline_adds_up_to_the_record():
    result = run(BASE, "t3")
    record, timeline = result.record, result.timeline
    for cause, bins in timeline.bytes.items():
        assert bins.sum() / 4 == getattr(record.traffic_bytes_per_gpu, cause)
    assert len(timeline.triggers) == record.tracker.triggers
    assert timeline.updates.sum() + timeline.local_updates.sum() == record.tracker.updates
    assert max(i.end_ns for i in timeline.intervals) <= record.time_ns.total
    last = max(timeline.intervals, key=lambda interval: interval.end_ns).gpu
    exposed = sum(i.end_ns - i.start_ns for i in timeline.intervals if i.kind == "exposed" and i.gpu == last)
    assert exposed == pytest.approx(record.time_ns.exposed_communication)


def test_llc_lines_of_32_sectors_are_written_back():
    check(run((64, 64, 16, 2), "sequential-nmc", {"llc.line_bytes": 1024, "llc.ways": 1}))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_row_conflict_has_the_causes_of_both_lines(policy):
    dram = run(BASE, policy).record.contention.dram
    assert sum(count for found in dram.conflicts.values() for count in found.values()) == dram.row_conflicts > 0
    assert "gemm_read" in dram.conflicts["gemm_read"]
    met = {"t3": ("rs_write", "rs_read"), "t3-mca": ("rs_write", "rs_read"), "sequential": ()}[policy]
    for cause in met:  # the streams meet in banks
        assert dram.conflicts["gemm_read"].get(cause) and dram.conflicts[cause].get("gemm_read")


@pytest.mark.parametrize("policy", POLICIES + RINGS)
def test_waits_by_stage_are_parts_of_those_of_the_run(policy):
    contention = run(BASE, policy, {"arbiter.mca": "paper", "arbiter.threshold_under_25": 6}).record.contention
    stages = contention.stages
    assert [stage.first_stage for stage in stages] == list(range(len(stages)))
    assert [stage.start_ns for stage in stages] == sorted(stage.start_ns for stage in stages)
    for stream in ("compute", "communication"):
        for cause in ("other_stream", "threshold", "full_queue", "tracker"):
            whole = getattr(getattr(contention, stream), f"blocked_by_{cause}_cycles")
            assert sum(getattr(getattr(stage, stream), cause) for stage in stages) == whole, (stream, cause)
    waits = [stage.communication for stage in stages]
    if policy not in TRACKED:  # the kernels come after the GEMM
        assert not any(sum(vars(found).values()) for found in waits[:-1])
        assert sum(vars(waits[-1]).values())
    else:
        assert sum(sum(vars(found).values()) for found in waits[:-1])


def test_stages_are_those_of_the_timeline():
    result = run(BASE, "t3")
    starts = [stage.start_ns for stage in result.record.contention.stages]
    spans = [item for item in result.timeline.intervals if item.kind == "stage"]
    count = len(starts) - 1
    assert starts[:-1] == [min(span.start_ns for span in spans[stage::count]) for stage in range(count)]
    assert starts[-1] == max(item.end_ns for item in result.timeline.intervals if item.kind == "gemm")


def test_many_stages_share_rows():
    size = (512, 544, 16, 2)
    contention = run(size, "t3").record.contention
    stages = contention.stages
    assert [stage.first_stage for stage in stages] == [*range(0, 68, 2), 68]
    waits = sum(stage.compute.full_queue for stage in stages)
    assert waits == contention.compute.blocked_by_full_queue_cycles > 0
