"""``t3 validate gpu``: what is measured and how, with a device of the tests; the comparison; what is missing."""

import importlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from click.testing import CliRunner
from t3sim.cli.main import main
from t3sim.common.json_text import json_text
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload, paper_shapes
from t3sim.run.records import read_record
from t3sim.validation import gpu_torch
from t3sim.validation.gpu_copies import BLOCK_BYTES, IN_FLIGHT
from t3sim.validation.gpu_measure import FIRST_GEMMS, MOST_GEMMS, SAMPLE_SECONDS, WARM_SAMPLES, Sample, measure
from t3sim.validation.gpu_model import compare
from t3sim.validation.gpu_picture import gpu_figure
from t3sim.validation.gpu_record import DeviceFacts, GpuRecord

from tests.sim.validation.fake_torch import COPY_TICKS, GEMM_TICKS, L2_BYTES, FakeNvml, FakeTorch

FACTS = DeviceFacts(
    name="Test GPU", driver="1.2", memory_clock_mhz=500, multiprocessors=4, l2_bytes=1 << 20,
    memory_bytes=1 << 30, versions={"torch": "none"},
)  # fmt: skip
SMALL = {
    custom_workload(256, 200, 512, 4): ("small fc1", "small fc2"),
    custom_workload(256, 256, 256, 2): ("other op",),
}


@dataclass
class FakeDevice:
    """0.1 TFLOP/s, a tenth slower with 10 GB/s of copies, of which it manages 15 GB/s. One sample in seven is an
    outlier, and all become slower and slower, by ``drift`` each."""

    drift: float = 0.0
    asked: list[dict[str, Any]] = field(default_factory=list)

    def facts(self) -> DeviceFacts:
        return FACTS

    def sample(self, m: int, n: int, k: int, *, gemms: int, copies_gb_s: float) -> Sample:
        self.asked.append({"m": m, "n": n, "k": k, "gemms": gemms, "rate": copies_gb_s})
        rate = min(copies_gb_s, 15.0)
        us = 2 * m * n * k / 1e5 * (1 + rate / 100) * (3 if len(self.asked) % 7 == 0 else 1)
        us *= 1 + self.drift * len(self.asked)
        return Sample(us=us, clock_mhz=1500, read_gb_s=rate, written_gb_s=rate)


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
    alone = 2 * 256 * 200 * 128 / 1e5  # k of one GPU of four
    assert [timing.asked_gb_s for timing in first.timings] == [0, 10], "always without copies, too"
    assert [timing.us for timing in first.timings] == pytest.approx([alone, 1.1 * alone])
    samples = [us for timing in first.timings for us in timing.samples_us]
    assert max(samples) >= 3 * alone, "an outlier, which is kept and does not count"
    assert median(first.slowdowns(first.timings[1])) == pytest.approx(1.1)
    counted = [call for call in device.asked if call["gemms"] > FIRST_GEMMS]
    assert len(counted) == 2 * (WARM_SAMPLES + 2 * 5) and {call["k"] for call in counted} == {128}
    flops = {call["gemms"]: 2 * call["m"] * call["n"] * call["k"] for call in counted}
    assert all(gemms * flop / 1e11 == pytest.approx(SAMPLE_SECONDS, rel=0.01) for gemms, flop in flops.items())


def test_a_sample_has_no_more_gemms_than_the_driver_queues():
    device = FakeDevice()
    (shape,) = measure(device, {custom_workload(64, 64, 64, 2): ("op",)}, (), 1, lambda done: None).shapes
    assert shape.timings[0].gemms == MOST_GEMMS


def test_rates_take_turns_so_that_a_gpu_that_gets_slower_does_so_for_all():
    device = FakeDevice(drift=0.01)
    (shape,) = measure(device, {custom_workload(256, 256, 256, 2): ("op",)}, (10.0,), 9, lambda done: None).shapes
    counted = [call["rate"] for call in device.asked[1 + WARM_SAMPLES :]]
    assert counted == [0, 10, 10, 0, 0, 10, 10, 0, 0, 10, 10, 0, 0, 10, 10, 0, 0, 10]
    assert median(shape.slowdowns(shape.timings[1])) == pytest.approx(1.1, rel=0.02)


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
        (lambda r: r.update(schema=3), "has format 3"),
        (lambda r: r["shapes"][0].update(tp=1), r"shapes\.0: .*--tp must be in 2 to 64"),
        (lambda r: r["shapes"][0]["timings"][0].update(samples_us=[0]), r"shapes\.0\.timings\.0\.samples_us"),
        (lambda r: r["shapes"][0]["timings"][0]["samples_us"].pop(), "as many samples of every rate"),
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
    asked: list[dict[str, object]] = []

    def machine_with(settings):
        asked.append(settings)
        return load_machine("toy", settings)

    (row,) = compare(record, machine_with, silent)
    at_clock = {"gpu.clock_mhz": 1500}
    assert asked == [{}, at_clock, at_clock | {"hbm.nmc_update_cycles": 1}], "on the machine's own link"
    assert row.measured_us == record.shapes[0].timings[0].us
    assert row.error == pytest.approx(row.model_us / row.measured_us - 1)
    assert row.error_at_clock == pytest.approx(row.model_at_clock_us / row.measured_us - 1)
    toy = load_machine("toy").gpu.clock_mhz
    assert toy < row.clock_mhz and row.model_at_clock_us < row.model_us, "a faster clock, a shorter GEMM"
    assert [(item.asked_gb_s, item.copies_gb_s) for item in row.slowdowns] == [(10, 10), (30, 15)]
    assert [item.measured for item in row.slowdowns] == pytest.approx([1.1, 1.15])
    assert 0 < row.t3_gb_s <= load_machine("toy").link.gb_s, "what a reduce-scatter sends after the GEMM does not count"
    assert 0.5 < row.t3_slowdown < 2 and row.t3_slowdown != 1
    assert [(item.modelled - 1) / (row.t3_slowdown - 1) for item in row.slowdowns] == pytest.approx(
        [10 / row.t3_gb_s, 15 / row.t3_gb_s]
    )


def test_the_command_compares_what_was_recorded(file, tmp_path):
    out = tmp_path / "out"
    result = t3("--from", file, "--machine", "toy", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "small fc1, small fc2" in result.stdout and "model x at 30 GB/s" in result.stdout
    written = json.loads((out / "validate.json").read_text())
    assert [shape["m"] for shape in written["shapes"]] == [256, 256]
    assert (written["device"], written["machine"]) == ("Test GPU", "toy")
    assert read_record(out / "gpu.json", GpuRecord) == read_record(file, GpuRecord)
    assert (out / "gpu.png").read_bytes().startswith(b"\x89PNG") and "Test GPU" in (out / "gpu.svg").read_text()
    assert t3("--from", file, "--machine", "toy", "--tolerance", "0.0001").exit_code == 1


def test_the_picture_shows_rates_and_slowdowns_of_both():
    record = measured()
    rows = compare(record, lambda settings: load_machine("toy", settings), silent)
    alone, both = gpu_figure(record, []), gpu_figure(record, rows)
    assert [text.get_text() for text in both.axes[0].get_yticklabels()] == ["small fc1, TP 4", "other op, TP 2"]
    assert [bar.get_width() for bar in both.axes[0].patches] == pytest.approx([0.1, 0.1]), "TFLOP/s of the device"
    at_machines, at_gpus = both.axes[0].lines
    flop = [2 * row.m * row.n * row.k / row.tp / 1e6 for row in rows]
    assert list(at_machines.get_xdata()) == pytest.approx([f / row.model_us for f, row in zip(flop, rows, strict=True)])
    assert list(at_gpus.get_xdata()) == pytest.approx(
        [f / row.model_at_clock_us for f, row in zip(flop, rows, strict=True)]
    )
    assert list(both.axes[1].lines[0].get_xydata().ravel()) == pytest.approx([10, 1.1, 15, 1.15])
    assert list(both.axes[1].lines[2].get_ydata()) == [item.modelled for item in rows[0].slowdowns]
    assert len(alone.axes[0].lines) == 0 and len(alone.axes[1].lines) == 2 + 1, "two shapes, and the line of none"


def test_the_command_measures_and_writes(monkeypatch, tmp_path):
    monkeypatch.setattr("opent3.validations.open_device", FakeDevice)
    monkeypatch.setattr("opent3.validations.paper_shapes", lambda: SMALL)
    result = t3("--rates", "0,10", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "x at 10 GB/s" in result.stdout and "1.100" in result.stdout and "model" not in result.stdout
    record = read_record(tmp_path / "out" / "gpu.json", GpuRecord)
    assert (record.device, record.shapes[0].timings[0].clock_mhz) == (FACTS, 1500)


def test_what_was_measured_is_kept_if_the_comparison_fails(monkeypatch, tmp_path):
    def fails(*arguments):
        raise ValueError("the model cannot run it")

    monkeypatch.setattr("opent3.validations.open_device", FakeDevice)
    monkeypatch.setattr("opent3.validations.paper_shapes", lambda: SMALL)
    monkeypatch.setattr("t3sim.validation.gpu_model.compare", fails)
    result = t3("--machine", "toy", "--out", tmp_path / "out")
    assert result.exit_code == 2 and "the model cannot run it" in result.stderr
    assert read_record(tmp_path / "out" / "gpu.json", GpuRecord).device == FACTS
    assert not (tmp_path / "out" / "validate.json").exists()


@pytest.mark.parametrize("written", [True, False])
def test_an_interruption_of_the_comparison_says_where_the_measurement_is(monkeypatch, tmp_path, written):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("opent3.validations.open_device", FakeDevice)
    monkeypatch.setattr("opent3.validations.paper_shapes", lambda: SMALL)
    monkeypatch.setattr("t3sim.validation.gpu_model.compare", interrupted)
    result = t3("--machine", "toy", *(("--out", tmp_path / "out") if written else ()))
    kept = f"only what was measured was written, in {tmp_path}/out" if written else "no output was written"
    assert result.exit_code == 130 and result.stderr.splitlines()[-1] == f"Error: interrupted; {kept}"
    assert (tmp_path / "out" / "gpu.json").exists() is written


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


@pytest.fixture
def gpu(monkeypatch):
    """PyTorch on a GPU of the tests, whose time is that of the copies, too."""
    torch = FakeTorch()
    modules = {"torch": torch, "pynvml": FakeNvml()}
    monkeypatch.setattr(importlib, "import_module", modules.__getitem__)
    monkeypatch.setattr(gpu_torch.time, "perf_counter", lambda: torch.now / 1e6)
    return torch


def test_pytorch_multiplies_operands_that_the_cache_does_not_hold(gpu):
    device = gpu_torch.open_device()
    sample = device.sample(2048, 1024, 64, gemms=60, copies_gb_s=0)
    assert sample == Sample(us=pytest.approx(GEMM_TICKS), clock_mhz=1410)
    assert not gpu.copied
    sets = {id(a): (a.shape, b.shape, out.shape) for a, b, out in gpu.multiplied}
    assert set(sets.values()) == {((2048, 64), (64, 1024), (2048, 1024))}
    size = 2 * (2048 * 64 + 64 * 1024 + 2048 * 1024)
    assert (len(sets) - 1) * size < 3 * L2_BYTES <= len(sets) * size
    device.sample(8192, 8192, 64, gemms=4, copies_gb_s=0)
    assert len({id(a) for a, _, _ in gpu.multiplied[-4:]}) == 2, "at least two"


def test_copies_go_both_ways_until_the_last_gemm_is_done(gpu):
    device = gpu_torch.open_device()
    slow = device.sample(256, 128, 64, gemms=100, copies_gb_s=50)
    assert slow.read_gb_s == pytest.approx(50, rel=0.1) and slow.written_gb_s == pytest.approx(50, rel=0.1)
    to_host, to_gpu = (sum(copy[:2] == way for copy in gpu.copied) for way in (("cpu", "cuda"), ("cuda", "cpu")))
    assert to_host + to_gpu == len(gpu.copied) and abs(to_host - to_gpu) <= 1
    fast = device.sample(256, 128, 64, gemms=100, copies_gb_s=1e6)
    assert 50 < fast.read_gb_s < BLOCK_BYTES / COPY_TICKS / 1e3 * 1.01, "no more than the copies can"
    done = fast.read_gb_s * fast.us * 100 * 1e3 / BLOCK_BYTES
    assert sum(copy[:2] == ("cpu", "cuda") for copy in gpu.copied) - to_host <= done + IN_FLIGHT, "few are under way"


def test_blocks_of_the_gpus_memory_do_not_stay_in_the_cache(gpu):
    gpu_torch.open_device().sample(256, 128, 64, gemms=100, copies_gb_s=1e6)
    for device, number in ((0, 2), (1, 3)):  # to, from
        blocks = {copy[number] for copy in gpu.copied if copy[device] == "cuda"}
        assert len(blocks) * BLOCK_BYTES >= 3 * L2_BYTES and max(blocks) == len(blocks) - 1
    assert all(copy[2] == 0 for copy in gpu.copied if copy[0] == "cpu"), "one block of the host is enough"


def test_copies_begin_with_the_first_gemm(gpu):
    """One launch starts all GEMMs of a sample, of which there are no more than the driver queues."""
    sample = gpu_torch.open_device().sample(256, 128, 64, gemms=MOST_GEMMS, copies_gb_s=50)
    assert sample.read_gb_s == pytest.approx(50, rel=0.02)


def test_without_the_drivers_bindings_the_command_says_what_to_do(gpu, monkeypatch):
    found = importlib.import_module

    def without(name):
        if name == "pynvml":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return found(name)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ValueError, match=r"come from its driver, through nvidia-ml-py.*pip install 'opent3\[gpu\]'"):
        gpu_torch.open_device()


def test_facts_are_pytorchs_and_the_drivers(gpu):
    facts = gpu_torch.open_device().facts()
    assert (facts.name, facts.driver, facts.memory_clock_mhz) == ("Fake", "535.1", 1215)
    assert (facts.multiprocessors, facts.l2_bytes, facts.versions["torch"]) == (4, L2_BYTES, "9.9")


def test_a_gpu_that_the_driver_does_not_know_is_one_message(gpu, monkeypatch):
    gpu.cuda.get_device_properties(0).uuid = "56-78"
    with pytest.raises(ValueError, match="the driver does not say what GPU 56-78 is .Not Found."):
        gpu_torch.open_device()


def test_a_gemm_without_room_in_the_gpus_memory_is_one_message(gpu, monkeypatch):
    def full(*_, **__):
        raise gpu.cuda.OutOfMemoryError("tried to allocate 2 GiB")

    device = gpu_torch.open_device()
    monkeypatch.setattr(gpu, "randn", full)
    with pytest.raises(ValueError, match=r"no room for the GEMM 256 x 128 x 64 \(tried to allocate 2 GiB\): end other"):
        device.sample(256, 128, 64, gemms=4, copies_gb_s=0)


def test_copies_without_room_in_the_gpus_memory_are_one_message(gpu, monkeypatch):
    def full(*_, **__):
        raise gpu.cuda.OutOfMemoryError("tried to allocate 144 MiB")

    monkeypatch.setattr(gpu, "empty", full)
    result = t3()
    assert result.exit_code == 2
    said = (
        "the GPU's memory has no room for the blocks that are copied (tried to allocate 144 MiB): end other programs "
    )
    assert result.stderr.splitlines()[-1].startswith(f"Error: {said}")


def test_a_gpu_whose_driver_names_no_cache_copies_one_block(gpu):
    gpu.cuda.get_device_properties(0).L2_cache_size = 0
    device = gpu_torch.open_device()
    assert device.sample(256, 128, 64, gemms=100, copies_gb_s=50).read_gb_s == pytest.approx(50, rel=0.1)
    assert device.facts().l2_bytes == 0 and {copy[3] for copy in gpu.copied} == {0}


def test_a_driver_that_tells_no_clock_any_more_is_one_message(gpu, monkeypatch):
    def lost(nvml, handle, kind):
        raise nvml.NVMLError("GPU is lost")

    device = gpu_torch.open_device()
    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetClockInfo", lost)
    with pytest.raises(ValueError, match=r"does not tell the clocks of this GPU \(GPU is lost\)"):
        device.sample(256, 128, 64, gemms=4, copies_gb_s=0)
