"""`t3 bench --scaling`: real runs on the toy machine, and what is shown and written of them."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from opent3.tables import scaling_table
from t3sim.cli import main as cli
from t3sim.inputs.machine.files import load_machine
from t3sim.inputs.workload import custom_workload
from t3sim.run.request import RunRequest
from t3sim.validation import scaling

GPUS, TOKENS = (2, 4), (64, 128, 256)


@pytest.fixture(scope="module")
def measured() -> scaling.Scaling:
    """Small runs of the golden model."""
    request = RunRequest(
        workload=custom_workload(128, 128, 256, 4), machine=load_machine("toy"), policy="t3-mca", hardware="golden"
    )
    return scaling.measure_scaling(request, lambda label: _quiet(), GPUS, TOKENS)


class _quiet:
    def __enter__(self):
        return lambda progress: None

    def __exit__(self, *_):
        pass


def test_what_is_measured(measured):
    assert [point.value for point in measured.of("gpus")] == list(GPUS)
    assert [point.value for point in measured.of("tokens")] == list(TOKENS)
    by_tokens = measured.of("tokens")
    assert all(point.seconds > 0 and point.bursts < point.lines for point in measured.points)
    assert all(one.lines < other.lines for one, other in itertools.pairwise(by_tokens))
    assert all(one.state_bytes <= other.state_bytes for one, other in itertools.pairwise(by_tokens))
    (same,) = (point for point in by_tokens if point.value == 128)
    (other,) = (point for point in measured.of("gpus") if point.value == 4)
    assert (same.lines, same.simulated_ns) == (other.lines, other.simulated_ns), "the same run, twice"


def test_the_table_has_a_row_for_each_value(measured):
    for axis, values in (("gpus", GPUS), ("tokens", TOKENS)):
        table = scaling_table(measured, axis)
        assert table.row_count == len(values)


def test_an_axis_of_less_than_a_decade_has_numbers(measured):
    points = tuple(replace(point, seconds=12.0 + i, state_bytes=30_000_000) for i, point in enumerate(measured.points))
    figure = scaling.scaling_figure(replace(measured, points=points))
    figure.canvas.draw()
    for panel in figure.axes:
        low, high = panel.get_ylim()
        shown = [tick.get_text() for tick in panel.get_yticklabels() if low <= tick.get_position()[1] <= high]
        assert len(shown) > 1 and all(low <= float(text) <= high for text in shown)


def test_what_the_machine_cannot_run_is_left_out_and_named(monkeypatch, measured):
    request = RunRequest(
        workload=custom_workload(128, 128, 256, 4), machine=load_machine("toy"), policy="t3-mca", hardware="golden"
    )
    found = scaling.measure_scaling(request, lambda label: _quiet(), (4, 64), (64,))
    assert [(point.axis, point.value) for point in found.points] == [("gpus", 4), ("tokens", 64)]
    (reason,) = found.left_out
    assert reason.startswith("64 gpus: ") and measured.left_out == ()
    with pytest.raises(ValueError, match=reason.partition(": ")[0]):
        scaling.measure_scaling(request, lambda label: _quiet(), (64,), ())
    monkeypatch.setattr(scaling, "measure_scaling", lambda request, watch: found)
    assert f"left out: {reason}\n" in CliRunner().invoke(cli.main, ["bench", "--scaling"]).stdout


def test_command(monkeypatch, tmp_path: Path, measured):
    monkeypatch.setattr(scaling, "measure_scaling", lambda request, watch: measured)
    out = tmp_path / "out"
    result = CliRunner().invoke(cli.main, ["bench", "--scaling", "--out", str(out)])
    assert result.exit_code == 0, result.output
    content = json.loads((out / "scaling.json").read_text())
    assert [point["value"] for point in content["points"]] == [*GPUS, *TOKENS]
    assert (out / "scaling.png").stat().st_size > 10_000 and (out / "scaling.svg").exists()
    refused = CliRunner().invoke(cli.main, ["bench", "--scaling", "--ring"])
    assert refused.exit_code == 2 and "one mirrored GPU at a time: leave out --ring" in refused.stderr
    assert ", one GPU mirrored\n" in result.stdout


def test_all_gpus_have_no_scaling(monkeypatch):
    monkeypatch.setattr(scaling, "measure_scaling", lambda request, watch: pytest.fail("it ran"))
    for option in ("--no-mirror", "--ring"):
        result = CliRunner().invoke(cli.main, ["bench", "--scaling", option])
        assert result.exit_code == 2
        assert result.stderr == f"Error: --scaling measures one mirrored GPU at a time: leave out {option}\n"
