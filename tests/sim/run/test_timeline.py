"""The pictures: written whole, deterministic, of the stated size, and with the activity where the timeline has it."""

from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from t3sim.run import timeline as pictures
from t3sim.run.request import COMPARED, Interval, Timeline
from t3sim.run.result import Result
from t3sim.run.timeline import COLOURS, EXPOSED, GEMM, MAX_BINS, _coarse, draw_comparison, draw_timeline

from tests.support.sample_result import sample_result, sample_timeline

PNG = b"\x89PNG"


def pixels(path: Path) -> np.ndarray:
    return matplotlib.image.imread(path)[..., :3]


def count(path: Path, colour: str) -> int:
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return int((np.abs(pixels(path) - wanted).max(axis=-1) < 0.01).sum())


@pytest.mark.parametrize("policy", ["sequential", "t3-mca"])
def test_timeline_is_drawn_the_same_every_time(tmp_path: Path, policy):
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    for path in (first, second):
        draw_timeline(sample_result(policy), sample_timeline(policy), path)
    assert first.read_bytes().startswith(PNG)
    assert first.read_bytes() == second.read_bytes()
    assert pixels(first).shape == (800, 1300, 3)


def test_only_the_named_gpu_is_drawn(tmp_path: Path):
    timeline = sample_timeline("t3")
    busy = timeline.cu_busy.copy()
    busy[1:] = 0
    other = replace(timeline, cu_busy=busy, intervals=[item for item in timeline.intervals if item.gpu == 0])
    draw_timeline(sample_result("t3"), timeline, tmp_path / "all.png")
    draw_timeline(sample_result("t3"), other, tmp_path / "one.png")
    assert (tmp_path / "all.png").read_bytes() == (tmp_path / "one.png").read_bytes()
    draw_timeline(sample_result("t3"), other, tmp_path / "two.png", gpu=1)
    assert (tmp_path / "all.png").read_bytes() != (tmp_path / "two.png").read_bytes()


def test_triggers_traffic_and_exposed_communication_are_visible(tmp_path: Path):
    timeline = sample_timeline("t3")
    variants = {
        "whole": timeline,
        "no_triggers": replace(timeline, triggers=[]),
        "no_traffic": replace(timeline, bytes={cause: values * 0 for cause, values in timeline.bytes.items()}),
        "hidden": replace(timeline, intervals=[item for item in timeline.intervals if item.kind != "exposed"]),
    }
    images = {}
    for name, variant in variants.items():
        draw_timeline(sample_result("t3"), variant, tmp_path / f"{name}.png")
        images[name] = pixels(tmp_path / f"{name}.png")
    for name in ("no_triggers", "no_traffic", "hidden"):
        assert (images[name] != images["whole"]).any(axis=-1).sum() > 200, name


def test_a_run_without_any_traffic_is_drawn(tmp_path: Path):
    timeline = sample_timeline("t3")
    nothing = timeline.updates * 0
    empty = replace(
        timeline, cu_busy=nothing, updates=nothing, local_updates=nothing, link_bytes=nothing,
        bytes={cause: nothing for cause in timeline.bytes}, intervals=[], triggers=[],
    )  # fmt: skip
    draw_timeline(sample_result("t3"), empty, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(PNG)


def staged(stages: int, overlap: float) -> Timeline:
    """A GEMM of many stages, each of which ends when a part of the next one has passed."""
    timeline = sample_timeline("t3-mca", gpus=1)
    length = 1.3e6 / stages
    bars = [
        Interval(gpu=0, kind="stage", start_ns=i * length, end_ns=min(1.3e6, (i + 1 + overlap) * length))
        for i in range(stages)
    ]
    return replace(timeline, intervals=[item for item in timeline.intervals if item.kind != "stage"] + bars)


@pytest.mark.parametrize(("stages", "overlap"), [(28, 0.3), (66, 0.0), (66, 0.5), (66, 1.1)])
def test_each_stage_of_a_run_of_paper_size_is_a_bar_of_its_own(tmp_path: Path, stages, overlap):
    draw_timeline(sample_result("t3-mca"), staged(stages, overlap), tmp_path / "a.png")
    seen = 0
    for colour in (GEMM, COLOURS["gemm_write"]):
        wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        bars = np.abs(pixels(tmp_path / "a.png")[:75] - wanted).max(axis=-1) < 0.01  # the uppermost lane
        line = bars[np.argmax(bars.sum(axis=1))]
        seen += int(np.count_nonzero(line[1:] & ~line[:-1]))
    assert seen == stages


def scaled(timeline: Timeline, factor: float) -> Timeline:
    """The same at another pace: as many bytes in a bin of another length."""
    bars = [replace(item, start_ns=factor * item.start_ns, end_ns=factor * item.end_ns) for item in timeline.intervals]
    return replace(timeline, bin_ns=factor * timeline.bin_ns, intervals=bars, triggers=[])


def result_of_time(factor: float) -> Result:
    result = sample_result("t3")
    times = {name: factor * getattr(result.time_ns, name) for name in ("total", "gemm", "exposed_communication")}
    traffic = result.traffic_bytes_per_gpu
    return result.model_copy(
        update={
            "time_ns": result.time_ns.model_copy(update=times),
            "traffic_bytes_per_gpu": traffic.model_copy(
                update={name: factor * getattr(traffic, name) for name in (*COLOURS, "total")}
            ),
        }
    )


def texts(figure: Figure) -> set[str]:
    """All that is written in a picture, but for numbers at its axes."""
    notes = {text.get_text() for axes in figure.axes for text in axes.texts}
    return notes | {axes.get_xlabel() for axes in figure.axes} | {axes.get_ylabel() for axes in figure.axes}


@pytest.mark.parametrize(
    ("factor", "time", "title", "rate", "peak"),
    [
        (1.0, "us", "1800 us, of which 500.0 us exposed", "GB/s", "peak 120.0 GB/s"),
        (1e-3, "ns", "1800 ns, of which 500.0 ns exposed", "TB/s", "peak 120.0 TB/s"),
        (100.0, "ms", "180.0 ms, of which 50.00 ms exposed", "MB/s", "peak 1200 MB/s"),
    ],
)
def test_axes_and_notes_have_units_that_fit(monkeypatch, factor, time, title, rate, peak):
    figures: list[Figure] = []
    monkeypatch.setattr(pictures, "save_png", lambda figure, path: figures.append(figure))
    timeline = sample_timeline("t3")
    timeline = replace(timeline, link_bytes=timeline.link_bytes * 0 + timeline.bin_ns * 120)
    draw_timeline(result_of_time(factor), scaled(timeline, factor), Path())
    assert title in figures[0].get_suptitle()
    assert {f"time since GEMM launch ({time})", f"DRAM traffic ({rate})", peak, "27 stages"} <= texts(figures[0])


def test_the_comparison_has_units_that_fit(monkeypatch):
    figures: list[Figure] = []
    monkeypatch.setattr(pictures, "save_png", lambda figure, path: figures.append(figure))
    for factor in (1.0, 1e-3):
        draw_comparison([result_of_time(factor)], [1.25], Path())
    draw_comparison([result_of_time(1.0)], [None], Path())
    assert {"time (us), and speedup over sequential", "1800 us  (1.25x)", "DRAM traffic per GPU (MB)"} <= texts(
        figures[0]
    )
    assert {"time (ns), and speedup over sequential", "1800 ns  (1.25x)", "DRAM traffic per GPU (kB)"} <= texts(
        figures[1]
    )
    assert {"time (us)", "1800 us"} <= texts(figures[2])


@pytest.mark.parametrize("bins", [1, 7, MAX_BINS, MAX_BINS + 1, 10 * MAX_BINS + 3])
def test_bins_are_summed_without_loss(bins):
    values = np.arange(1, bins + 1, dtype=float)
    coarse, width = _coarse(values, 5.0)
    assert len(coarse) <= MAX_BINS
    assert coarse.sum() == values.sum()
    assert len(coarse) * width >= bins * 5.0


def test_comparison_shows_every_policy(tmp_path: Path):
    records = [sample_result(policy) for policy in COMPARED]
    draw_comparison(records, [1.0, 1.2, 1.3, 1.4], tmp_path / "four.png")
    draw_comparison(records[:1], [None], tmp_path / "one.png")
    assert count(tmp_path / "four.png", EXPOSED) > count(tmp_path / "one.png", EXPOSED) > 1000
    assert pixels(tmp_path / "four.png").shape[0] > pixels(tmp_path / "one.png").shape[0]
