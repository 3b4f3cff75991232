"""``t3 validate gpu``: what is measured and how, with a device of the tests; the comparison; what is missing."""

import importlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from t3sim.cli.main import main
from t3sim.common.json_text import json_text
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload, paper_shapes
from t3sim.run.records import read_record
from t3sim.validation import gpu_torch
from t3sim.validation.gpu_measure import SAMPLE_SECONDS, Sample, measure
from t3sim.validation.gpu_model import compare
from t3sim.validation.gpu_record import DeviceFacts, GpuRecord

from tests.sim.validation.fake_torch import COPY_TICKS, GEMM_TICKS, FakeTorch

FACTS = DeviceFacts(
    name="Test GPU", driver="1.2", clock_mhz=1000, memory_clock_mhz=500, multiprocessors=4, l2_bytes=1 << 20,
    memory_bytes=1 << 30, versions={"torch": "none"},
)  # fmt: skip
SMALL = {
    custom_workload(256, 200, 512, 4): ("small fc1", "small fc2"),
    custom_workload(256, 256, 256, 2): ("other op",),
}


@dataclass
class FakeDevice:
    """1 TFLOP/s, a tenth slower with 10 GB/s of copies; copies come up to 15 GB/s. Every third sample is an outlier."""

    asked: list[dict[str, Any]] = field(default_factory=list)

    def facts(self) -> DeviceFacts:
        return FACTS

    def sample(self, m: int, n: int, k: int, *, gemms: int, copies_gb_s: float) -> Sample:
        self.asked.append({"m": m, "n": n, "k": k, "gemms": gemms, "rate": copies_gb_s})
        rate = min(copies_gb_s, 15.0)
        us = 2 * m * n * k / 1e6 * (1 + rate / 100) * (3 if len(self.asked) % 3 == 0 else 1)
        return Sample(us=us, read_gb_s=rate, written_gb_s=rate)


def measured(shapes=SMALL, rates=(0.0, 10.0, 30.0)) -> GpuRecord:
    return measure(FakeDevice(), shapes, rates, 5, lambda done: None)


@contextmanager
def silent(label):
    yield lambda progress: None


def t3(*arguments: object):
    return CliRunner().invoke(main, ["validate", "gpu", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "gpu.json").write_text(json_text(measured().model_dump(mode="json", by_alias=True)))
    return tmp_path / "gpu.json"


def test_shapes_are_those_of_the_papers_28_sublayers():
    shapes = paper_shapes()
    assert sum(map(len, shapes.values())) == 28
    assert len(shapes) == 21, "FC-1 and FC-2 are one GEMM"
    (shape,) = [work for work, names in shapes.items() if "t-nlg fc2" in names and work.tp == 8]
    assert (shape.m, shape.n, shape.k, shapes[shape]) == (8192, 4256, 17024, ("t-nlg fc2", "t-nlg fc1"))


def test_times_are_medians_of_samples_of_a_least_length():
    device, seen = FakeDevice(), []
    record = measure(device, SMALL, (10.0,), 5, seen.append)
    assert seen == [1, 2]
    first = record.shapes[0]
    assert (first.names, first.m, first.n, first.k, first.tp) == (("small fc1", "small fc2"), 256, 200, 512, 4)
    alone = 2 * 256 * 200 * 128 / 1e6  # k of one GPU of four
    assert [timing.asked_gb_s for timing in first.timings] == [0, 10], "always without copies, too"
    assert [timing.us for timing in first.timings] == pytest.approx([alone, 1.1 * alone])
    assert all(timing.most_us == pytest.approx(3 * timing.us) for timing in first.timings)
    long = [call for call in device.asked if call["gemms"] > 3]
    assert len(long) == 2 * 2 * 5 and {call["k"] for call in long} == {128}
    assert all(call["gemms"] * 2 * call["m"] * call["n"] * call["k"] / 1e6 * 3 >= SAMPLE_SECONDS * 1e6 for call in long)


def test_the_rate_that_copies_reached_is_what_counts():
    timing = measured().shapes[0].timings[2]
    assert (timing.asked_gb_s, timing.copies_gb_s) == (30, 15)


@pytest.mark.parametrize(
    ("rates", "shown"),
    [((-1.0,), "-1"), ((5.0, 5.0), "5,5"), ((float("inf"),), "inf"), ((float("nan"),), "nan")],
)
def test_illegal_rates_are_refused(rates, shown):
    device = FakeDevice()
    with pytest.raises(ValueError, match=f"--rates must be different GB/s of 0 or more, not {shown}$"):
        measure(device, SMALL, rates, 5, lambda done: None)
    assert not device.asked


def test_a_record_reads_back(file):
    assert read_record(file, GpuRecord) == measured().model_copy(
        update={"measured": read_record(file, GpuRecord).measured}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(schema=2), "has format 2"),
        (lambda r: r["shapes"][0].update(tp=1), r"shapes\.0: .*--tp must be in 2 to 64"),
        (lambda r: r["shapes"][0]["timings"][0].update(us=0), r"shapes\.0\.timings\.0\.us"),
        (lambda r: r["shapes"][0]["timings"].pop(0), "must begin with 0 GB/s"),
        (lambda r: r["device"].pop("driver"), r"device\.driver"),
    ],
)
def test_a_file_that_is_no_record_is_refused(file, change, message):
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        read_record(file, GpuRecord)


def test_the_comparison_has_time_and_slowdown_of_both():
    record = measured({custom_workload(256, 200, 512, 4): ("small fc2",)})
    (row,) = compare(record, lambda settings: load_machine("toy", settings), silent)
    assert row.measured_us == record.shapes[0].timings[0].us
    assert row.error == pytest.approx(row.model_us / row.measured_us - 1)
    assert [(item.asked_gb_s, item.copies_gb_s) for item in row.slowdowns] == [(10, 10), (30, 15)]
    assert [item.measured for item in row.slowdowns] == pytest.approx([1.1, 1.15])
    assert all(0.5 < item.model < 3 for item in row.slowdowns)


def test_the_command_compares_what_was_recorded(file, tmp_path):
    out = tmp_path / "out"
    result = t3("--from", file, "--machine", "toy", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "small fc1, small fc2" in result.stdout and "model x at 30 GB/s" in result.stdout
    written = json.loads((out / "validate.json").read_text())
    assert [shape["m"] for shape in written["shapes"]] == [256, 256]
    assert (written["device"], written["machine"]) == ("Test GPU", "toy")
    assert not (out / "gpu.json").exists(), "that is what was read"
    assert t3("--from", file, "--machine", "toy", "--tolerance", "0.0001").exit_code == 1


def test_the_command_measures_and_writes(monkeypatch, tmp_path):
    monkeypatch.setattr("opent3.validations.open_device", FakeDevice)
    monkeypatch.setattr("opent3.validations.paper_shapes", lambda: SMALL)
    result = t3("--rates", "0,10", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "x at 10 GB/s" in result.stdout and "1.100" in result.stdout and "model" not in result.stdout
    assert read_record(tmp_path / "out" / "gpu.json", GpuRecord).device == FACTS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "x.json"), "--from needs --machine"),
        (("--from", "x.json", "--machine", "toy", "--rates", "5"), "--from has what was measured: leave out --rates"),
        (("--from", "x.json", "--machine", "toy"), "x.json cannot be read"),
        (("--machine", "nope"), "machine must be one of"),
        (("--tolerance", "0.1"), "give --machine"),
        (("--machine", "toy", "--tolerance", "2"), "--tolerance must be above 0 and at most 1"),
        (("--rates", "fast"), "--rates must be numbers"),
        (("--rates", "5,-1"), "--rates must be different GB/s of 0 or more, not 5,-1"),
    ],
)
def test_wrong_options_are_one_message(arguments, message):
    result = t3(*arguments)
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1


def test_without_pytorch_the_command_says_what_to_do(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(gpu_torch.importlib, "import_module", missing)
    result = t3()
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert "needs PyTorch" in result.stderr and "pip install 'opent3[gpu]'" in result.stderr
    assert "--from FILE" in result.stderr


def test_without_a_gpu_the_command_says_what_to_do(monkeypatch):
    class Torch:
        __version__ = "9.9"

        class cuda:
            is_available = staticmethod(lambda: False)

    monkeypatch.setattr(importlib, "import_module", lambda name: Torch)
    result = t3()
    assert result.exit_code == 2
    assert "PyTorch 9.9 finds no CUDA GPU: run on a computer with a CUDA GPU" in result.stderr


def test_pytorch_multiplies_operands_that_the_cache_does_not_hold():
    torch = FakeTorch(l2_bytes=1 << 20)
    device = gpu_torch.TorchDevice(torch)
    sample = device.sample(256, 128, 64, gemms=60, copies_gb_s=0)
    assert sample == Sample(us=pytest.approx(GEMM_TICKS))
    assert not torch.copied
    sets = {id(a): (a.shape, b.shape, out.shape) for a, b, out in torch.multiplied}
    assert set(sets.values()) == {((256, 64), (64, 128), (256, 128))}
    size = 2 * (256 * 64 + 64 * 128 + 256 * 128)
    assert (len(sets) - 1) * size < 3 << 20 <= len(sets) * size
    device.sample(4096, 4096, 64, gemms=4, copies_gb_s=0)
    assert len({id(a) for a, _, _ in torch.multiplied[60:]}) == 2, "at least two"


def test_pytorch_copies_both_ways_until_the_last_gemm_is_done(monkeypatch):
    torch = FakeTorch()
    monkeypatch.setattr(gpu_torch.time, "perf_counter", lambda: torch.now / 1e6)
    device = gpu_torch.TorchDevice(torch)
    slow = device.sample(256, 128, 64, gemms=100, copies_gb_s=5)
    assert slow.read_gb_s == pytest.approx(5, rel=0.1) and slow.written_gb_s == pytest.approx(5, rel=0.1)
    to_host, to_gpu = torch.copied.count(("cpu", "cuda")), torch.copied.count(("cuda", "cpu"))
    assert to_host + to_gpu == len(torch.copied) and abs(to_host - to_gpu) <= 1
    fast = device.sample(256, 128, 64, gemms=100, copies_gb_s=1e6)
    assert 5 < fast.read_gb_s < 2**20 / COPY_TICKS / 1e3 * 1.01, "no more than the copies can"


def test_facts_are_pytorchs_and_the_drivers(monkeypatch):
    asked = []

    def run(command, **options):
        asked.append(command)
        return SimpleNamespace(stdout="535.1, 1410, 1215\n")

    monkeypatch.setattr(gpu_torch.subprocess, "run", run)
    facts = gpu_torch.TorchDevice(FakeTorch()).facts()
    assert (facts.name, facts.driver, facts.clock_mhz, facts.memory_clock_mhz) == ("Fake", "535.1", 1410, 1215)
    assert asked[0][0] == "nvidia-smi" and asked[0][-1] == "--id=GPU-12-34"

    def absent(command, **options):
        raise FileNotFoundError(2, "No such file", "nvidia-smi")

    monkeypatch.setattr(gpu_torch.subprocess, "run", absent)
    with pytest.raises(ValueError, match="nvidia-smi, which knows driver and clocks, failed .*put it on the PATH"):
        gpu_torch.TorchDevice(FakeTorch()).facts()
