"""The pictures: written whole, deterministic, of the stated size, and with the activity where the timeline has it."""

from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from sample_result import sample_result, sample_timeline
from t3sim.request import COMPARED
from t3sim.timeline import EXPOSED, MAX_BINS, _coarse, draw_comparison, draw_timeline

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
