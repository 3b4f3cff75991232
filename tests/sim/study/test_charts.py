"""The charts of reports, from made-up results: what is written can be read, and what is drawn is called what it is."""

from itertools import combinations
from types import SimpleNamespace

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from t3sim.run.result import WallSeconds
from t3sim.study import sweep_output
from t3sim.study.charts import CHARTS
from t3sim.study.drawing import POLICY_COLOURS
from t3sim.study.evaluation import Evaluation
from t3sim.study.store import Outcome, TrafficOverTime
from t3sim.study.suite import Suite
from t3sim.study.sweep import Geomeans, SweepRecord, SweptVariant, assumptions

from tests.support.sample_result import sample_result, sample_timeline

MANY = 30
"""Machines of a large sweep."""


class MadeUp(Evaluation):
    """Any run has a result, and any speedup is between 0.9 and 1.6."""

    def outcome(self, point, policy, variant="base", mirror=False):
        return Outcome(
            label="",
            record=sample_result(policy),
            traffic=TrafficOverTime.of(sample_timeline(policy)),
            wall_seconds=WallSeconds(build=0, simulate=0),
        )

    def speedups(self, points, policy, variant="base"):
        random = np.random.default_rng(len(points) + len(policy))
        return [float(value) for value in random.uniform(0.9, 1.6, len(points))]

    def model_time(self, model, tp, phase, attention="unfused", *, optimizer=False):
        return SimpleNamespace(speedup=lambda policy: 1 + tp / 100 + len(policy) / 1000)


@pytest.fixture(scope="module")
def figures() -> dict[str, Figure]:
    evaluation = MadeUp(Suite(), None)
    drawn = {name: draw(evaluation) for charts in CHARTS.values() for name, draw in charts.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_output, "save", lambda figure, path: drawn.update({path: figure}))
        names = ("link.gb_s=75, dma.block=tile", "hardware.tracker_sets=512, dma.block=column")
        sweep_output.draw_sweep(sweep(names), "sweep")
        sweep_output.draw_sweep(sweep([f"link.gb_s={rate}" for rate in range(100, 100 + MANY)]), "sweep-of-many")
        sweep_output.draw_sensitivity(sweep(["base", *assumptions()]), "sensitivity")
    for figure in drawn.values():
        FigureCanvasAgg(figure).draw()
    return drawn


def sweep(names) -> SweepRecord:
    random, variants = np.random.default_rng(1), []
    for name in names:
        gains = dict(zip(("ideal-overlap", "t3", "t3-mca"), random.uniform(0.7, 1.6, 3), strict=True))
        changes = dict(zip((*gains, "gemm_reads", "data_movement"), random.uniform(-40, 40, 5), strict=True))
        means = Geomeans(speedups=gains, gemm_reads=1.2, data_movement=0.8)
        variants.append(
            SweptVariant(name=name, machine="paper", settings={}, why="", geomeans=means, changes=changes, runs=[])
        )
    return SweepRecord(
        sources="", machine="paper", settings={}, hardware="golden", seed=0, variants=variants, failures=[]
    )


CHART_NAMES = [*(name for charts in CHARTS.values() for name in charts), "sweep", "sweep-of-many", "sensitivity"]
SPEEDUPS = ("speedups", "tp32-speedups", "tp64-speedups", "twice-the-cus", "end-to-end", "sweep", "sweep-of-many")


def written(figure: Figure) -> list[Text]:
    """All visible text but the legends'."""
    found = [text for axes in figure.axes for text in (*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label)]
    for axes in figure.axes:
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in found if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("name", CHART_NAMES)
def test_text_is_horizontal_large_enough_and_apart(figures, name):
    renderer = figures[name].canvas.get_renderer()
    boxes = {}
    for text in written(figures[name]):
        assert text.get_fontsize() >= 8, text
        assert text.get_rotation() == (90 if any(text is axes.yaxis.label for axes in figures[name].axes) else 0), text
        boxes[text] = text.get_window_extent(renderer)
    for one, other in combinations(boxes, 2):
        assert not boxes[one].overlaps(boxes[other]), (one.get_text(), other.get_text())
    whole = figures[name].bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 for box in boxes.values())


def bars(axes: Axes) -> list:
    colours = {matplotlib.colors.to_rgba(colour) for colour in POLICY_COLOURS.values()}
    return [patch for patch in axes.patches if patch.get_facecolor() in colours]


@pytest.mark.parametrize("name", SPEEDUPS)
def test_bars_that_start_at_1_say_so_and_have_their_values_below(figures, name):
    for axes in figures[name].axes:
        assert bars(axes) and all(bar.get_y() == 1 for bar in bars(axes))
        assert "(bars start at 1)" in axes.get_ylabel()
        values = {text.get_text() for text in axes.texts}
        for bar in bars(axes):
            value = 1 + bar.get_height()
            assert f"{value:.2f}" in values or f"{value:.3f}" in values


def test_many_machines_are_rows_of_charts(figures):
    figure = figures["sweep-of-many"]
    assert figure.get_figwidth() <= sweep_output.WIDEST + 3 and len(figure.axes) > 1
    assert len({axes.get_ylim() for axes in figure.axes}) == 1, "bars of one height are of one speedup"
    labels = [label.get_text() for axes in figure.axes for label in axes.get_xticklabels()]
    assert labels == [f"link.gb_s={rate}" for rate in range(100, 100 + MANY)]


@pytest.mark.parametrize("name", [name for name in CHART_NAMES if name not in {*SPEEDUPS, "sensitivity"}])
def test_other_axes_start_at_0(figures, name):
    assert all(axes.get_ylim()[0] == 0 for axes in figures[name].axes)


@pytest.mark.parametrize(("name", "number"), [("speedups", 3), ("tp32-speedups", 1), ("tp64-speedups", 0)])
def test_published_values_are_diamonds_with_a_legend(figures, name, number):
    (axes,) = figures[name].axes
    marks = [line for line in axes.lines if line.get_label() == "published geomean"]
    assert sum(len(line.get_xdata()) for line in marks) == number
    assert all((line.get_marker(), line.get_linestyle()) == ("D", "None") for line in marks)
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert ("published geomean" in legend) == bool(marks)
    for line in marks:
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
            bar = min(bars(axes), key=lambda bar: abs(bar.get_x() + bar.get_width() / 2 - x))
            assert bar.get_x() < x < bar.get_x() + bar.get_width() and y > 1


def test_published_lines_of_whole_models_are_not_of_a_bars_colour(figures):
    for axes in figures["end-to-end"].axes:
        styles = {line.get_label(): line.get_linestyle()[0] for line in axes.collections}
        assert styles.keys() == {"published geomean, t3", "published geomean, t3-mca"}
        assert all(tuple(line.get_color()[0][:3]) == (0, 0, 0) for line in axes.collections)
        assert len({str(style) for style in styles.values()}) == 2


@pytest.mark.parametrize(("machine", "cus"), [("paper", 80), ("h100-like", 132)])
def test_twice_the_cus_are_named_as_the_machine_has_them(machine, cus):
    figure = CHARTS["cus"]["twice-the-cus"](MadeUp(Suite(machine=machine), None))
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes] == [f"{cus} CUs", f"{2 * cus} CUs"]


def test_traffic_over_time_has_units_that_fit(figures):
    *_, last = figures["dram-traffic-over-time"].axes
    assert last.get_xlabel() == "time since GEMM launch (us)"
    assert [axes.get_ylabel() for axes in figures["dram-traffic-over-time"].axes] == [
        "sequential\nGB/s",
        "t3\nGB/s",
        "t3-mca\nGB/s",
    ]
