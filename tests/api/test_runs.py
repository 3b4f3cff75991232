"""``opent3.run`` and ``opent3.compare``: what the command line writes, as records and frames."""

import opent3
import pytest
from click.testing import CliRunner
from opent3 import Comparison
from t3sim.cli import main as cli
from t3sim.run.request import CAUSES

GEMM = {"m": 256, "n": 128, "k": 64, "tp": 4}
TOY = {"machine": "toy", "hardware": "golden", "threads": 1}
POLICIES = ("sequential", "t3-mca", "ideal-overlap")


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return opent3.compare(opent3.custom_workload(**GEMM), POLICIES, **TOY)


@pytest.mark.parametrize("method", ["save", "trace"])
def test_a_place_of_another_type_is_refused(comparison, method):
    for result in (comparison, comparison.runs[POLICIES[0]]):
        with pytest.raises(ValueError, match="must be a path, not None"):
            getattr(result, method)(None)


def test_a_comparison_has_a_run_for_each_policy_in_order(comparison):
    assert tuple(comparison.runs) == POLICIES
    assert comparison.failures == []
    speedups = comparison.speedups
    times = {policy: run.record.time_ns.total for policy, run in comparison.runs.items()}
    assert speedups["sequential"] == 1
    assert speedups["t3-mca"] == times["sequential"] / times["t3-mca"]


def test_the_frame_has_a_row_for_each_policy_and_a_column_for_each_field(comparison):
    frame = comparison.frame()
    assert list(frame["policy"]) == list(POLICIES)
    assert list(frame["time_ns.total"]) == [run.record.time_ns.total for run in comparison.runs.values()]
    assert list(frame["speedup"]) == list(comparison.speedups.values())
    assert comparison.runs["t3-mca"].frame().shape[0] == 1


def test_a_timeline_adds_up_to_the_traffic(comparison):
    run = comparison.runs["t3-mca"]
    frame = run.timeline_frame()
    assert set(frame["gpu"]) == set(range(4))
    traffic = run.record.traffic_bytes_per_gpu
    for cause in CAUSES:
        assert frame[cause].sum() / 4 == pytest.approx(getattr(traffic, cause))
    assert frame["cu_busy"].between(0, 1).all()
    assert (frame["queues.dram_mean"] <= frame["queues.dram_largest"]).all()
    for queue in ("compute_bursts", "communication_bursts", "tokens", "dma_blocks", "link_bytes"):
        assert frame[f"queues.{queue}"].max() > 0, queue


def test_triggers_and_phases_are_frames(comparison):
    run = comparison.runs["t3-mca"]
    assert len(run.trigger_frame()) == run.record.tracker.triggers > 0
    phases = run.interval_frame()
    assert {"gemm", "all_gather"} <= set(phases["kind"])
    assert (phases["end_ns"] >= phases["start_ns"]).all()
    sequential = comparison.runs["sequential"].trigger_frame()
    assert sequential.empty and list(sequential.columns) == ["gpu", "chunk", "time_ns"]


def test_a_computed_policy_has_no_timeline(comparison):
    with pytest.raises(ValueError, match="ideal-overlap is computed from others"):
        comparison.runs["ideal-overlap"].timeline_frame()


def test_what_is_saved_is_what_the_command_line_writes(comparison, tmp_path):
    comparison.save(tmp_path / "api")
    sizes = [text for name, value in GEMM.items() for text in (f"--{name}", str(value))]
    options = ["--machine", "toy", "--hardware", "golden", "--policies", ",".join(POLICIES), "-o", str(tmp_path / "t3")]
    assert CliRunner().invoke(cli.main, ["compare", *sizes, *options]).exit_code == 0
    written = {path.relative_to(tmp_path / "t3") for path in (tmp_path / "t3").rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "api") for path in (tmp_path / "api").rglob("*") if path.is_file()} == written
    for path in written:
        if path.name not in ("timing.json", "t3-manifest.json"):
            assert (tmp_path / "api" / path).read_bytes() == (tmp_path / "t3" / path).read_bytes(), path


def test_progress_is_reported(tmp_path):
    seen = []

    class Watch:
        def __init__(self, label):
            self.label = label

        def __enter__(self):
            return lambda progress: seen.append((self.label, progress.work_done))

        def __exit__(self, *_):
            seen.append((self.label, "end"))

    run = opent3.run(opent3.custom_workload(**GEMM), "t3", watch=Watch, out=tmp_path / "run", **TOY)
    assert seen[-1] == ("t3", "end") and len(seen) > 1
    assert opent3.read_result(tmp_path / "run" / "result.json") == run.record


def test_a_folder_that_cannot_be_used_is_refused_before_the_simulation(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.setattr("opent3.runs.run_policies", lambda *_: pytest.fail("simulated"))
    with pytest.raises(ValueError, match="must be a new folder"):
        opent3.run(opent3.custom_workload(**GEMM), out=tmp_path, **TOY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"link.gbs": 3}}, "unknown key link.gbs"),
        ({"machine": opent3.load_machine("toy"), "settings": {"link.gb_s": 3}}, "not a Machine: load it with them"),
        ({"machine": "nope"}, "machine must be one of"),
        ({"hardware": "silicon"}, "--hardware must be one of rtl, golden"),
        ({"threads": 0}, "--threads must be at least 1"),
    ],
)
def test_what_cannot_be_run_is_a_value_error(change, message):
    with pytest.raises(ValueError, match=message):
        opent3.run(opent3.custom_workload(**GEMM), **(TOY | change))


def test_policies_are_named_once_and_known():
    work = opent3.custom_workload(**GEMM)
    for policies in ((), ("t3", "t3")):
        with pytest.raises(ValueError, match="must name each policy once"):
            opent3.compare(work, policies, **TOY)
    with pytest.raises(ValueError, match="--policies must be one of .*; did you mean 't3'"):
        opent3.compare(work, ("sequential", "t4"), **TOY)


def test_settings_change_the_machine():
    work = opent3.custom_workload(**GEMM)
    slow, fast = (opent3.run(work, "sequential", settings={"link.gb_s": rate}, **TOY) for rate in (5, 50))
    assert slow.record.time_ns.all_gather > fast.record.time_ns.all_gather
    assert slow.request.machine.link.gb_s == 5
