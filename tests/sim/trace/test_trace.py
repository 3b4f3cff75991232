"""Traces of toy runs, read back: what they show agrees with what the record says, which was counted elsewhere."""

import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from t3sim.inputs.machine.files import load_machine
from t3sim.run import allocate
from t3sim.run.events import QUEUE_TITLES
from t3sim.run.request import CAUSE_TITLES, RunResult
from t3sim.trace.file import trace_file
from t3sim.trace.perfetto import write_trace
from t3sim.trace.tracks import processes

from tests.support.system_cases import BASE, EVEN, ODD, RINGS, Size, run
from tests.support.traces import ReadSlice, ReadTrack, read_trace

ALL = ("sequential", *RINGS, "t3", "t3-mca")
CASES = {
    **{policy: (BASE, policy, {}, {}) for policy in ALL},
    "uneven": (ODD, "t3", {}, {}),
    "two GPUs": ((256, 200, 512, 2), "t3-mca", {}, {}),
    "a block per tile": (EVEN, "t3-mca", {"dma.block": "tile"}, {}),
    "small slices": (BASE, "sequential-pipelined", {"kernel.slice_kib": 4}, {}),
    "odd clock": (BASE, "t3-mca", {"hbm.clock_mhz": 857}, {}),
    "retry": (BASE, "t3", {"link.retry": True}, {}),
    "late GPU": (BASE, "t3", {"variation.start_skew_ns": [0, 3000, 0, 0]}, {}),
    **{f"mirrored {policy}": (EVEN, policy, {}, {"mirror": True}) for policy in ALL},
    "mirrored, uneven": (ODD, "t3-mca", {}, {"mirror": True}),
}


def traced(path: Path, *results: RunResult) -> list[ReadTrack]:
    with trace_file(path) as file:
        write_trace(processes(result.events for result in results), file)
    return read_trace(path)


def tracks_of(tracks: list[ReadTrack], name: str) -> dict[str, list[ReadTrack]]:
    """Tracks of a name, by process."""
    found = defaultdict(list)
    for track in tracks:
        if track.name == name:
            found[track.process].append(track)
    return found


def slices_of(tracks: list[ReadTrack], name: str) -> list[ReadSlice]:
    return [item for group in tracks_of(tracks, name).values() for track in group for item in track.slices]


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request, tmp_path_factory) -> tuple[RunResult, list[ReadTrack]]:
    size, policy, overrides, choices = request.param
    result = run(size, policy, overrides, events=True, **choices)
    return result, traced(tmp_path_factory.mktemp("traces") / "run.pftrace", result)


def test_slices_of_a_track_follow_each_other(case):
    _, tracks = case
    for track in tracks:
        for before, after in zip(track.slices, track.slices[1:], strict=False):
            assert before.begin <= before.end <= after.begin, (track.name, before, after)


def test_times_are_the_floor_of_cycles_through_the_clock(case):
    result, tracks = case
    clock = result.events.clock_mhz
    for track in tracks:
        for item in track.slices:
            assert item.begin == item.details["begin_cycle"] * 1000 // clock
            assert item.end == item.details["end_cycle"] * 1000 // clock


def test_counters_hold_the_bytes_of_the_record(case):
    result, tracks = case
    count = result.record.gpus_simulated
    for cause, title in CAUSE_TITLES.items():
        shown = [track.integral for group in tracks_of(tracks, f"DRAM {title}").values() for track in group]
        assert len(shown) == count
        assert sum(shown) == pytest.approx(getattr(result.record.traffic_bytes_per_gpu, cause) * count, rel=1e-12)


def test_the_link_carries_what_the_packets_hold(case):
    """The engine's count of bytes on the link, and the packets that were seen in its ring."""
    result, tracks = case
    if result.record.mirror:
        pytest.skip("a mirrored link counts the rows that leave, and the ring holds those that arrive")
    link = load_machine("toy").link
    shown = tracks_of(tracks, "link out rate")
    for process, group in tracks_of(tracks, "link out").items():
        sent = [item.details for track in group for item in track.slices]
        size = sum(32 * item["lines"] + link.header_bytes * item["packets"] for item in sent)
        assert shown[process][0].integral == pytest.approx(size, rel=1e-12)
    busiest = max(track.integral for group in shown.values() for track in group)
    assert busiest / link.gb_s == pytest.approx(result.record.contention.link_busy_ns, abs=1)


def test_what_is_sent_arrives(case):
    result, tracks = case
    sent, arrived = slices_of(tracks, "link out"), slices_of(tracks, "link in")
    latency = result.events.look_cycles
    by_flow = {item.flows[0]: item for item in sent}
    assert len(arrived) == len(sent) == len(by_flow)
    for item in arrived:
        source = by_flow[item.ending[0]]
        assert item.details["lines"] == source.details["lines"]
        assert item.details["end_cycle"] == source.details["end_cycle"] + latency
        assert item.details["begin_cycle"] > source.details["begin_cycle"] + latency


def test_lines_that_arrive_are_written(case):
    """RS and AG writes of the record, but for padding and for what a kernel reduces in place: its own chunk."""
    result, tracks = case
    record = result.record
    lines = sum(item.details["lines"] for item in slices_of(tracks, "link in"))
    traffic = record.traffic_bytes_per_gpu
    written = (traffic.rs_write + traffic.ag_write) * record.gpus_simulated
    if record.policy in ("sequential", "sequential-pipelined"):
        written *= (2 * record.workload.tp - 2) / (2 * record.workload.tp - 1)
    exact = record.workload.m % 16 == record.workload.n % 16 == 0 and not record.mirror
    assert 32 * lines == pytest.approx(written, rel=1e-9 if exact else 0.2)


def test_every_flow_begins_and_ends_in_this_order(case):
    _, tracks = case
    begins, ends = defaultdict(list), defaultdict(list)
    for track in tracks:
        for item in track.slices:
            for flow in item.flows:
                begins[flow].append(item)
            for flow in item.ending:
                ends[flow].append(item)
    assert begins and set(begins) == set(ends)
    for flow, found in begins.items():
        assert len(found) <= 2 and len(ends[flow]) == 1
        assert max(item.begin for item in found) <= ends[flow][0].begin


def test_every_trigger_has_its_data_on_the_link(case):
    result, tracks = case
    triggers = slices_of(tracks, "triggers")
    fired = result.record.tracker.triggers if result.record.tracker else 0
    assert len(triggers) == fired
    if result.record.mirror:
        assert not any(item.flows for item in triggers)
        return
    sent = {item.flows[0]: item for item in slices_of(tracks, "link out") if "command" in item.details}
    assert {item.flows[0] for item in triggers} == set(sent)
    for item in triggers:
        data = sent[item.flows[0]]
        assert data.begin > item.begin
        assert data.details["chunk"] == item.details["chunk"]
        assert data.details["command"] == item.details["command"]


def test_spans_are_the_times_of_the_record(case):
    """Of the GPU that finishes last: those of any one GPU must be the record's."""
    result, tracks = case
    times = result.record.time_ns
    found = []
    for group in tracks_of(tracks, "GEMM").values():
        process = group[0].process
        spans = {}
        for name in ("GEMM", "reduce-scatter", "all-gather", "exposed communication"):
            items = [item for track in tracks_of(tracks, name)[process] for item in track.slices]
            spans[name] = sum(item.details["end_cycle"] - item.details["begin_cycle"] for item in items)
        found.append([cycles * 1000 / result.events.clock_mhz for cycles in spans.values()])
    wanted = [times.gemm, times.reduce_scatter, times.all_gather, times.exposed_communication]
    assert pytest.approx(wanted) in found


def test_kernel_steps_are_the_rings(case):
    """Each GPU sends N - 1 chunks in an all-gather, and with kernels as many in a reduce-scatter."""
    result, tracks = case
    tp, policy = result.record.workload.tp, result.record.policy
    for group in tracks_of(tracks, "collective kernel steps").values():
        names = [item.name for track in group for item in track.slices]
        sends = {name for name in names if name.startswith("all-gather: send")}
        assert len(sends) == tp - 1
        reduces = {name for name in names if name.startswith("reduce-scatter: send")}
        assert len(reduces) == (0 if policy in ("t3", "t3-mca") else tp - 1)
        local = {name for name in names if name.startswith("reduce-scatter: reduce")}
        assert len(local) == (policy in ("sequential", "sequential-pipelined"))


def test_steps_are_exact_or_within_a_look(case):
    result, tracks = case
    for item in slices_of(tracks, "collective kernel steps"):
        assert item.details["resolution_cycles"] in (0, result.events.look_cycles)
    end = max(item.details["end_cycle"] for item in slices_of(tracks, "collective kernel steps"))
    assert end * 1000 / result.events.clock_mhz <= result.record.time_ns.total + result.events.look_cycles


def test_samples_are_within_what_there_is(case):
    _, tracks = case
    busy = tracks_of(tracks, "CUs computing")
    assert 0 < max(value for group in busy.values() for _, value in group[0].values) <= 4 + 1e-9
    for group in tracks_of(tracks, "resident workgroups").values():
        values = [value for _, value in group[0].values]
        assert min(values) == 0 and values[-1] == 0


def test_queues_are_those_of_the_timeline(case):
    """At the beginning of every bin each counter has the value that the timeline has."""
    result, tracks = case
    clock, width = result.events.clock_mhz, result.events.bin_cycles
    for queue, (title, unit) in QUEUE_TITLES.items():
        groups = tracks_of(tracks, title).values()
        assert len(groups) == result.record.gpus_simulated
        for (track,), wanted in zip(groups, result.timeline.queues[queue], strict=True):
            assert track.unit == unit and track.values[-1][1] == 0
            times, values = zip(*track.values, strict=True)
            begins = np.arange(len(wanted)) * width * 1000 // clock
            np.testing.assert_array_equal(np.array(values)[np.searchsorted(times, begins, "right") - 1], wanted)
    fired = result.record.tracker.triggers if result.record.tracker else 0
    assert result.timeline.queues["dma_blocks"].any() == bool(fired)


@pytest.mark.parametrize("policy", ["sequential", "t3-mca"])
def test_a_trace_does_not_change_the_record_and_has_the_same_bytes_every_time(tmp_path: Path, policy):
    plain = run(ODD, policy).record.to_json()
    written = set()
    for number, threads in enumerate((1, 3)):
        result = run(ODD, policy, threads=threads, events=True)
        assert result.record.to_json() == plain
        traced(tmp_path / f"{number}.pftrace", result)
        written.add((tmp_path / f"{number}.pftrace").read_bytes())
    assert len(written) == 1


def test_a_run_without_events_keeps_none():
    assert run(BASE, "t3").events is None


def test_commands_that_came_too_fast_have_no_flow(monkeypatch, tmp_path: Path):
    """A queue of two commands wraps round within a window; their data are still on the link, under the chunk."""
    monkeypatch.setattr(allocate, "COMMAND_QUEUE", 2)
    overrides = {"dma.block": "tile", "link.latency_ns": 6000}
    result = run(EVEN, "t3", overrides, events=True)
    tracks = traced(tmp_path / "a.pftrace", result)
    triggers = slices_of(tracks, "triggers")
    assert len(triggers) == result.record.tracker.triggers
    lost = [item for item in triggers if not item.flows]
    assert lost and all("tile_rows" not in item.details for item in lost)
    dma = [item for item in slices_of(tracks, "link out") if item.name.startswith("DMA")]
    assert 32 * sum(item.details["lines"] for item in dma) == result.record.traffic_bytes_per_gpu.rs_read * 4


def test_a_comparison_has_a_process_for_each_policy_and_gpu(tmp_path: Path):
    size: Size = (64, 64, 40, 2)
    tracks = traced(tmp_path / "a.pftrace", *(run(size, policy, events=True) for policy in ("sequential", "t3")))
    assert list(dict.fromkeys(track.process for track in tracks)) == [
        "sequential GPU 0", "sequential GPU 1", "t3 GPU 0", "t3 GPU 1",
    ]  # fmt: skip
    flows = [flow for track in tracks for item in track.slices for flow in item.ending]
    assert len(set(flows)) == len(flows)


@pytest.mark.skipif(
    shutil.which("trace_processor_shell") is None,
    reason="Perfetto's trace_processor_shell is not on the PATH: https://perfetto.dev/docs/analysis/trace-processor",
)
def test_perfettos_own_reader_finds_no_fault(tmp_path: Path):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    result = run(BASE, "t3-mca", events=True)
    traced(tmp_path / "a.pftrace", result)
    config = TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell"))
    with TraceProcessor(trace=str(tmp_path / "a.pftrace"), config=config) as reader:
        errors = reader.query("select name, value from stats where severity = 'error' and value > 0")
        assert [row.name for row in errors] == []
        (row,) = reader.query("select count(*) as n from slice where name like 'trigger %'")
        assert row.n == result.record.tracker.triggers
