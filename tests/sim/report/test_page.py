"""The page: what each kind of folder shows, well formed, accessible, deterministic, and safe from what it shows."""

import base64
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from t3sim.explain.folder import explain
from t3sim.report.checks import IDENTITIES
from t3sim.report.folders import read_folder
from t3sim.report.page import report_html
from t3sim.run.events import QUEUE_TITLES
from t3sim.run.records import read_record, read_result
from t3sim.run.request import CAUSE_TITLES
from t3sim.run.result import write_result
from t3sim.study.model_record import WholeModelRecord

from tests.support import sample_result
from tests.support.html_page import Page
from tests.support.report_folders import KINDS, compare_folder, folder_of, run_folder, without_queues
from tests.support.sample_map import sample_map

COMMON = ("Summary", "Time split", "DRAM traffic", "Contention", "Data check and identities",
          "Tracker and RTL evaluations", "Configuration with sources", "Provenance", "How to reproduce")  # fmt: skip
OWN = {
    "run": ("Speedup and bounds", "What limited the time", "Timeline"),
    "compare": ("Speedup and bounds", "What limited the time", "Timeline"),
    "model": ("Time of the model", "Time of every operator"),
    "sweep": ("Speedup by machine", "Changes against the first machine", "Speedup and bounds of every run",
              "DRAM traffic over time"),
    "sensitivity": ("Speedup by machine", "Changes against the first machine", "Speedup and bounds of every run",
                    "DRAM traffic over time"),
    "map": ("What arbitration is worth", "Speedups on every machine", "Waits by cause", "Waits by stage", "Changes"),
    "reproduce": ("Published and measured", "Speedups and bounds", "Whole models", "DRAM traffic over time"),
}  # fmt: skip
OF_MANY_MACHINES = ("Summary", "Provenance", "How to reproduce")
"""What is common to all is not shown for each machine of a map."""
REFERENCES = ("aria-labelledby", "aria-controls", "aria-describedby", "for")


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """The text of a report of every kind of folder."""
    root = tmp_path_factory.mktemp("folders")
    return {kind: report_html([read_folder(folder_of(kind, root / kind))]) for kind in KINDS}


@pytest.fixture(scope="module")
def parsed(pages) -> dict[str, Page]:
    return {kind: Page(text) for kind, text in pages.items()}


def data_of(page: Page) -> list[dict]:
    return [json.loads(script.text) for script in page.all("script", type="application/json")]


def rows_of(page: Page, caption: str) -> list[list[str]]:
    """The cells of the table whose caption begins so, its head first."""
    title = next(item for item in page.all("caption") if item.text.startswith(caption))
    (table,) = (parent for parent in title.parents if parent.tag == "table")
    rows = [row for row in page.all("tr") if table in row.parents]
    cells = [item for item in page.elements if item.tag in ("th", "td")]
    return [[cell.text for cell in cells if row in cell.parents] for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_sections(parsed, kind):
    titles = [heading.text for heading in parsed[kind].all("h3")]
    assert set(titles) == {*(OF_MANY_MACHINES if kind == "map" else COMMON), *OWN[kind]}
    assert len(titles) == len(set(titles))
    links = {link.attributes["href"] for link in parsed[kind].all("a") if link.within("nav")}
    headings = {f"#{heading.attributes['id']}" for heading in parsed[kind].all("h3") + parsed[kind].all("h2")}
    assert links == headings, "the contents lead to every heading"


@pytest.mark.parametrize("kind", KINDS)
def test_references_resolve_and_ids_are_unique(parsed, kind):
    elements = parsed[kind].elements
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in elements:
        for name in REFERENCES:
            for target in element.attributes.get(name, "").split():
                assert target in ids, (element.tag, name, target)
        if element.tag == "a" and element.attributes["href"].startswith("#"):
            assert element.attributes["href"][1:] in ids


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_loaded_from_anywhere(parsed, kind):
    for element in parsed[kind].elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            address = element.attributes.get(name, "#")
            assert address.startswith(("#", "data:")), (element.tag, address)
    style = parsed[kind].all("style")[0].text
    assert "url(" not in style and "@import" not in style
    policy = parsed[kind].all("meta", http_equiv="Content-Security-Policy")[0].attributes["content"]
    assert policy.startswith("default-src 'none'") and "http" not in policy and "unsafe-eval" not in policy


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_without_eyes_finds_his_way(parsed, kind):
    page = parsed[kind]
    levels = [int(element.tag[1]) for element in page.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later <= level + 1 for level, later in pairwise(levels))
    assert page.all("html")[0].attributes["lang"] == "en"
    assert page.all("a", **{"class": "skip"})[0].attributes["href"] == "#content" and len(page.all("main")) == 1
    tables = page.all("table")
    assert len(page.all("caption")) == len(tables) and all(caption.text for caption in page.all("caption"))
    for cell in page.all("th"):
        assert cell.attributes["scope"] in ("row", "col") and cell.text
    charts = page.all("div", role="img")
    assert len(charts) == len(data_of(page)) > 1
    for chart in charts:
        figure = chart.within("figure")
        assert chart.attributes["aria-label"].endswith(".")
        assert any(table.within("details") and table.within("figure") is figure for table in tables)
    assert all(button.attributes["type"] == "button" and button.text for button in page.all("button"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_folder_gives_the_same_bytes(pages, tmp_path: Path, kind):
    assert report_html([read_folder(folder_of(kind, tmp_path / kind))]) == pages[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_charts_have_values(parsed, kind):
    for figure in data_of(parsed[kind]):
        assert figure["data"]
        for trace in figure["data"]:
            for axis in ("x", "y"):
                values = trace.get(axis)
                assert values is None or (values.get("bdata") if isinstance(values, dict) else values)
        assert "template" not in figure["layout"], "the page has the colours"


def test_a_whole_model_adds_up(parsed, tmp_path: Path):
    """Parts of the time, operators and speedups, from the table's rows alone."""
    record = read_record(folder_of("model", tmp_path / "model") / "model.json", WholeModelRecord)
    _, *policies = rows_of(parsed["model"], "Time of the model and speedup over sequential")
    assert [row[0] for row in policies] == ["sequential", "t3", "t3-mca"]
    totals = [float(row[1].replace(",", "")) for row in policies]
    for row, total in zip(policies, totals, strict=True):
        parts = [float(cell.replace(",", "")) for cell in row[2:6]]
        assert sum(parts) == pytest.approx(total, rel=2e-3) and float(row[6]) == pytest.approx(totals[0] / total, 2e-3)
    _, *operators = rows_of(parsed["model"], "Operators of t-nlg, sequential")
    assert len(operators) == 2 + len(record.operators)
    assert sum(float(row[6].rstrip("%")) for row in operators) == pytest.approx(100, abs=0.05 * len(operators))
    assert record.amdahl.text in parsed["model"].all("main")[0].text


def test_a_comparison_has_its_figures(parsed):
    page = parsed["compare"]
    text = page.all("main")[0].text
    cards = {card.text for card in page.all("div") if card.attributes.get("class", "").startswith("card ")}
    assert any("Largest speedup 1.364x t3-mca over sequential" in card for card in cards)
    assert any(card.startswith("Bound: ideal-overlap 1.286x 1750 us") for card in cards)
    bounds = "Bounds: 1 without overlap, ideal-overlap 1.286, ideal-overlap-nmc 1.286."
    assert any(chart.attributes["aria-label"].endswith(f". {bounds}") for chart in page.all("div", role="img"))
    titles = {caption.text for caption in page.all("figcaption")}
    assert {"t3-mca, all GPUs", "t3-mca, GPU 7 over time", "GPU 0 under every policy"} <= titles
    for title in (*CAUSE_TITLES.values(), *IDENTITIES.values(), "DMA triggers", "tracker busy", "peak tracker entries",
                  "evaluated: slice", "20,000,000", "memory clock", "digest of the machine", "12.0"):  # fmt: skip
        assert title in text, title
    tabs = [tab.text for tab in page.all("button", role="tab")]
    assert tabs[:6] == ["t3-mca", "t3", "sequential-nmc", "sequential", "ideal-overlap", "ideal-overlap-nmc"]
    assert tabs[6:11] == ["side by side", "sequential", "sequential-nmc", "t3", "t3-mca"]
    assert tabs.count("GPU 7") == 4, "of every simulated policy; the ideal ones have no timeline"


AXES = [
    "DRAM queue<br>(lines)", "slices<br>(bursts)", "tracker<br>(tokens)", "DMA<br>(blocks)", "link queue<br>(kB)",
]  # fmt: skip


def gpu_figures(page: Page) -> list[tuple[list[str], dict[str, dict]]]:
    """Of each chart of one GPU over time: titles of its rows but the first, and its traces by name."""
    charts = [figure for figure in data_of(page) if len(figure.get("zoom", ())) > 1]
    found = []
    for figure in charts:
        rows = range(2, len(figure["zoom"]) + 1)
        titles = [figure["layout"][f"yaxis{row}"]["title"]["text"] for row in rows]
        found.append((titles, {trace["name"]: trace for trace in figure["data"]}))
    return found


def test_the_limits_are_the_sentences_of_explain(parsed, tmp_path: Path):
    explained = explain(read_folder(compare_folder(tmp_path / "out")).results)
    sentences = [finding.text for policy in ("t3-mca", "sequential") for finding in explained[policy]]
    assert sentences and set(sentences) <= {item.text for item in parsed["compare"].all("li")}


def test_a_sweep_has_a_row_for_each_sublayer_on_each_machine(parsed):
    rows = rows_of(parsed["sweep"], "Speedups over sequential: 1 is no overlap")
    assert [row[:2] for row in rows[:3]] == [
        ["machine", "sublayer"],
        ["link.gb_s=10, dma.block=tile", "t-nlg fc2, TP 8"],
        ["link.gb_s=10, dma.block=tile", "t-nlg op, TP 8"],
    ]
    assert rows[0][3:] == ["ideal-overlap", "t3", "t3-mca"] and rows[-1][3:] == ["1.500"] * 3 and len(rows) == 1 + 4 * 2
    heads = {kind: rows_of(parsed[kind], "Change of each geometric mean")[0] for kind in ("sweep", "sensitivity")}
    assert "settings" not in heads["sweep"] and "why" not in heads["sweep"], "the names are the settings"
    assert "settings" in heads["sensitivity"] and heads["sensitivity"][-1] == "why"


def test_a_map_says_where_its_extremes_are(parsed):
    rows = rows_of(parsed["map"], "Extremes over all machines and GEMMs")
    record = sample_map()
    best = max(record.places(), key=lambda place: place.cell.worth)
    assert rows[1][:3] == ["arbitration is worth most", best.gemm, best.machine.name]
    assert rows[1][3:] == [f"{value:.3f}" for value in (*best.cell.pair, best.cell.worth, best.cell.gain)]
    assert rows[-1][0] == "nearest to the implied pair"


def test_a_gpu_over_time_has_a_track_for_each_queue(parsed):
    figures = gpu_figures(parsed["run"])
    assert len(figures) == 8, "one for each GPU"
    timeline = sample_result.sample_timeline("t3-mca")
    for number, (titles, traces) in enumerate(figures):
        assert titles[3:] == AXES and titles[1] == "DRAM (GB/s)"
        for queue, (name, _) in QUEUE_TITLES.items():
            kilo = 1e3 if queue == "link_bytes" else 1
            shown = np.frombuffer(base64.b64decode(traces[name]["y"]["bdata"]), traces[name]["y"]["dtype"]) * kilo
            wanted = timeline.queues[queue][number]
            np.testing.assert_allclose(shown, [*wanted, wanted[-1]], rtol=1e-6)
    text = parsed["run"].all("main")[0].text
    assert "link and near-memory updates, and what waits in queues" in next(
        chart.attributes["aria-label"] for chart in parsed["run"].all("div", role="img")
        if "GPU 0 over" in chart.attributes["aria-label"]
    )  # fmt: skip
    assert all(f"{name} ({unit})" in text for name, unit in QUEUE_TITLES.values() if unit != "bytes")


def test_a_timeline_without_queues_is_shown_without_their_tracks(tmp_path: Path):
    page = Page(report_html([read_folder(without_queues(run_folder(tmp_path / "run")))]))
    figures = gpu_figures(page)
    assert len(figures) == 8
    for titles, traces in figures:
        assert len(titles) == 3 and not any(title in titles for title in AXES)
        assert not any(name in traces for name, _ in QUEUE_TITLES.values())
    assert "what waits in queues" not in " ".join(item.attributes["aria-label"] for item in page.all("div", role="img"))


def test_every_machine_value_has_its_unit_and_source(parsed):
    rows = [row.text for row in parsed["run"].all("tr") if row.within("details")]
    assert any(row.startswith("cus 80 CUs compute units [P]") for row in rows)
    assert any(re.match(r"gb_s 150\.0 GB/s bandwidth.*\[P\]", row) for row in rows)


def test_a_single_run_says_where_speedups_are(parsed):
    assert (
        "t3 compare has speedups and their bounds"
        in parsed["run"].by_id("s1-speedup-and-bounds").within("section").text
    )


def test_identities_have_words():
    assert {*sample_result.IDENTITIES, *sample_result.TRACKED_IDENTITIES} == set(IDENTITIES)


def test_what_does_not_add_up_is_said_first(tmp_path: Path):
    folder = run_folder(tmp_path / "run")
    record = read_result(folder / "result.json")
    broken = record.identities | {"no_hardware_error": False}
    check = record.data_check.model_copy(update={"mismatches": 3})
    write_result(record.model_copy(update={"identities": broken, "data_check": check}), folder / "result.json")
    page = Page(report_html([read_folder(folder)]))
    text = page.by_id("s1-summary").within("section").text
    assert "identity no_hardware_error does not hold" in text and "3 of 1048576 output elements differ" in text
    assert len([card for card in page.all("div", **{"class": "card bad"})]) == 2
    assert "✗ broken" in page.by_id("s1-data-check-and-identities").within("section").text


def test_several_folders_are_sections_of_one_report(tmp_path: Path):
    folders = [run_folder(tmp_path / "one"), compare_folder(tmp_path / "two", ("sequential", "t3"))]
    text = report_html([read_folder(folder) for folder in folders])
    page = Page(text)
    assert [heading.text for heading in page.all("h2")] == ["t-nlg fc2, TP 8: t3-mca", "t-nlg fc2, TP 8: 2 policies"]
    assert text.count("plotly.js v") == 1, "the library is there once"


NASTY = '</script><script>alert("x")</script><img src=x onerror=alert(1)> & `code` \'"'


def test_a_machine_cannot_bring_a_script(tmp_path: Path):
    machine = tmp_path / "<b>mine & yours.toml"
    machine.write_text(f'base = "paper"\n[link]\ngb_s = {{ value = 99, source = {json.dumps(NASTY)} }}\n')
    folder = compare_folder(tmp_path / "<i>out&amp;", ("sequential", "t3"), machine)
    text = report_html([read_folder(folder)])
    page = Page(text)
    assert len(page.all("script")) == len(page.all("script", type="application/json")) + 2
    assert not page.all("img") and not page.all("b") and not page.all("i")
    assert 'alert("x")' in page.by_id("s1-configuration-with-sources").within("section").text, "it is shown as text"
    assert "<i>out&amp;" in page.all("main")[0].text


def test_names_in_charts_are_shown_as_they_are(tmp_path: Path):
    folder = folder_of("sweep", tmp_path / "sweep")
    text = (folder / "sweep.json").read_text()
    first = json.loads(text)["variants"][0]["name"]
    (folder / "sweep.json").write_text(text.replace(json.dumps(first), json.dumps("<a href='http://x'>y</a>")))
    labels = json.dumps(data_of(Page(report_html([read_folder(folder)]))))
    assert "<a" not in labels and "&lt;a" in labels


def test_a_machine_without_a_published_result_is_named_as_such(tmp_path: Path, pages):
    own = tmp_path / "mine.toml"
    own.write_text('base = "h100-like"\n[link]\ngb_s = 200\n')
    page = Page(report_html([read_folder(compare_folder(tmp_path / "out", machine=own))]))
    assert "Unvalidated machine: " in page.by_id("s1-summary").within("section").text
    assert all("nvalidated machine" not in text for text in pages.values()), "the paper's machine and the toy are not"
