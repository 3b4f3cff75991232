"""Sweeps and reproductions machine by machine: a choice in every block, and traffic over time."""

import json
from pathlib import Path

import pytest
from t3sim.report import over_time, sweeps
from t3sim.report.folders import Swept, read_folder
from t3sim.report.over_time import over_time_block, traffic_over_time
from t3sim.report.page import report_html
from t3sim.report.parts import Choice, Text
from t3sim.report.sweeps import sweep_section
from t3sim.run.request import CAUSES

from tests.support.html_page import Element, Page, block_of
from tests.support.report_folders import folder_of, sweep_record, traffic_of

CHOSEN = ("Time split", "DRAM traffic", "DRAM traffic over time", "Contention")


def options(page: Page, block: Element, label: str) -> list[list[str]]:
    """What each list of choices in a block has."""
    lists = [item for item in page.all("select", data_choice=label) if block in item.parents]
    return [[option.text for option in page.all("option") if item in option.parents] for item in lists]


@pytest.mark.parametrize("kind", ["sweep", "sensitivity", "reproduce"])
def test_every_machine_can_be_chosen_in_every_block(tmp_path: Path, kind):
    folder = read_folder(folder_of(kind, tmp_path / kind))
    page = Page(report_html([folder]))
    for title in CHOSEN:
        block = block_of(page, title)
        (machines, *_) = options(page, block, "machine")
        if isinstance(folder, Swept):
            assert machines == [variant.name for variant in folder.record.variants]
        else:
            known = ["the paper's", "tracker that never overflows", "twice the CUs"]
            assert [name for name in known if name in machines] == machines[: len(known)]
            assert ("tracker that never overflows" in machines) == (title != "Time split"), "it has no sequential run"
        panels = [item for item in page.all("div", role="group") if block in item.parents]
        names = [item.attributes.get("aria-label", "") for item in panels]
        assert [name for name in names if name.startswith("machine ")] == [f"machine {name}" for name in machines]
        labels = {item.attributes["for"] for item in page.all("label") if block in item.parents}
        assert labels == {item.attributes["id"] for item in page.all("select") if block in item.parents}


def test_every_sublayer_has_its_traffic_over_time(tmp_path: Path):
    folder = read_folder(folder_of("sweep", tmp_path / "sweep"))
    assert isinstance(folder, Swept) and folder.traffic is not None
    page = Page(report_html([folder]))
    block = block_of(page, "DRAM traffic over time")
    assert options(page, block, "sublayer") == [["t-nlg fc2, TP 8", "t-nlg op, TP 8"]] * 4
    charts = [item for item in page.all("div", role="img") if block in item.parents]
    assert len(charts) == 8 and all("sequential over" in chart.attributes["aria-label"] for chart in charts)
    captions = [item.text for item in page.all("caption") if block in item.parents]
    assert len(captions) == 8 and captions[0].endswith("bytes of each cause, the largest rate in a bin, and when")


def test_a_chart_over_time_has_the_rates_of_its_curves(tmp_path: Path):
    folder = read_folder(folder_of("sweep", tmp_path / "sweep"))
    assert isinstance(folder, Swept) and folder.traffic is not None
    variant = folder.record.variants[0]
    results = {run.result.policy: run.result for run in variant.runs[:4]}
    curves = {policy: folder.traffic.of(variant.name, result) for policy, result in results.items()}
    assert curves.pop("ideal-overlap") is None and list(curves) == ["sequential", "t3", "t3-mca"]
    chart = traffic_over_time("a sublayer", {policy: curve for policy, curve in curves.items() if curve})
    assert len(chart.figure["data"]) == 3 * len(CAUSES)
    assert chart.table.rows[0][0] == "sequential, GEMM reads"
    read = results["sequential"].traffic_bytes_per_gpu.gemm_read
    assert float(chart.table.rows[0][1]) == pytest.approx(read / 1e6, rel=1e-3)
    assert chart.table.rows[0][3] == "0 to 1312"  # 7 of 12 bins of 2250 us


@pytest.mark.parametrize("kind", ["sweep", "sensitivity", "reproduce"])
def test_a_folder_of_a_version_without_it_says_so(tmp_path: Path, kind):
    path = folder_of(kind, tmp_path / kind)
    (path / "traffic.json").unlink()
    page = Page(report_html([read_folder(path)]))
    assert "has no traffic.json" in block_of(page, "DRAM traffic over time").text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": "1" * 16}, "is of other runs than the record beside it"),
        ({"curves": []}, "runs must name curves that are there"),
        ({"schema": 2}, "reads format 1"),
    ],
)
def test_traffic_that_does_not_belong_to_the_record(tmp_path: Path, change, message):
    path = folder_of("sweep", tmp_path / "sweep")
    content = json.loads((path / "traffic.json").read_text())
    (path / "traffic.json").write_text(json.dumps(content | change))
    with pytest.raises(ValueError, match=message):
        read_folder(path)


def test_of_very_many_machines_the_first_and_the_extremes_can_be_chosen(monkeypatch):
    monkeypatch.setattr(sweeps, "MOST_RUNS", 80)
    names = [f"link.gb_s={rate}" for rate in range(10, 50)]
    record = sweep_record([{"link.gb_s": rate} for rate in range(10, 50)], names)
    section = sweep_section(Swept(name="many", record=record, traffic=None, assumptions=False, config=None))
    (text, choice) = next(block for block in section.blocks if block.title == "Time split").items
    assert isinstance(choice, Choice) and isinstance(text, Text)
    assert len(choice.contents) == 80 // len(record.variants[0].runs) < len(names)
    assert f"{len(choice.contents)} of 40 machines" in text.text
    assert {names[0], names[1], names[-1]} <= set(choice.contents), "speedups grow with the number"


def test_of_very_many_charts_only_the_first_sublayers_have_one(monkeypatch):
    monkeypatch.setattr(over_time, "MOST_CHARTS", 6)
    record = sweep_record([{"link.gb_s": 10}], ["only"])
    results = [run.result for run in record.variants[0].runs]
    machines = {f"machine {number}": ("only", results) for number in range(6)}
    block = over_time_block(traffic_of(record.sources, [("only", result) for result in results]), machines)
    last = block.items[-1]
    assert isinstance(last, Text)
    assert last.text == "1 further sublayer of each machine not shown: there would be too many."
