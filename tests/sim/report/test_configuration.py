"""The machine of a sweep, a map or a reproduction in its report: that of the folder, if its values are the runs'."""

import json
from collections import Counter
from pathlib import Path

import pytest
from t3sim.common.manifest import MANIFEST, Manifest
from t3sim.inputs.machine.files import load_machine
from t3sim.report.folders import RECORDS, read_folder
from t3sim.report.page import report_html
from t3sim.study.sources import digest_for

from tests.support.html_page import Page, block_of
from tests.support.report_folders import folder_of

TITLE = "Configuration with sources"
FIRST = {"link.gb_s": 10, "dma.block": "tile"}
"""Of the sweep's first machine."""


def page_of(folder: Path) -> Page:
    return Page(report_html([read_folder(folder)]))


def keep_machine(folder: Path, text: str) -> None:
    """Puts a machine where t3 writes it, as one of its own files."""
    (folder / "config.toml").write_text(text)
    (folder / MANIFEST).write_text(Manifest.of(folder).text())


def test_the_machine_of_the_folder_is_shown_whatever_its_name(tmp_path: Path):
    folder = folder_of("sweep", tmp_path / "sweep")
    for record in folder.glob("sweep.json"):
        content = json.loads(record.read_text())
        for variant in content["variants"]:
            variant["machine"] = "mine.toml"
        record.write_text(json.dumps(content))
    assert "a file of its own that is not kept here" in block_of(page_of(folder), TITLE).text
    keep_machine(folder, load_machine("toy", FIRST).to_toml())
    page = page_of(folder)
    text = block_of(page, TITLE).text
    assert "The folder's config.toml, whose values have the digest of the runs." in text and "gb_s" in text
    assert "config.toml: the machine with all sources" in block_of(page, "How to reproduce").text


def test_a_machine_with_other_values_than_the_runs_is_not_shown(tmp_path: Path):
    folder = folder_of("sweep", tmp_path / "sweep")
    keep_machine(folder, load_machine("toy").to_toml())
    text = block_of(page_of(folder), TITLE).text
    assert "config.toml has other values than the runs had" in text and "gb_s" not in text


@pytest.mark.parametrize("kind", ["map", "reproduce", "sweep"])
def test_a_machine_that_is_none_is_refused(tmp_path: Path, kind):
    folder = folder_of(kind, tmp_path / kind)
    keep_machine(folder, "[gpu\n")
    with pytest.raises(ValueError, match=r"config\.toml is not TOML"):
        read_folder(folder)


@pytest.mark.parametrize("text", ["[mine\n", "[gpu]\ncus = 1\n"])
@pytest.mark.parametrize("kind", ["map", "reproduce", "sweep"])
def test_a_file_of_the_users_beside_an_older_record_is_no_machine(tmp_path: Path, kind, text):
    folder = folder_of(kind, tmp_path / kind)
    (folder / "config.toml").write_text(text)
    assert read_folder(folder).config is None


@pytest.mark.parametrize("kind", ["map", "model", "sweep"])
def test_the_summary_says_that_a_machine_is_unvalidated(tmp_path: Path, kind):
    folder = folder_of(kind, tmp_path / kind)
    assert "Unvalidated machine" not in block_of(page_of(folder), "Summary").text
    keep_machine(folder, load_machine("h100-like").to_toml())
    assert "Unvalidated machine" in block_of(page_of(folder), "Summary").text


@pytest.mark.parametrize("kind", ["map", "reproduce", "sweep"])
def test_a_record_of_another_simulator_says_so_first(tmp_path: Path, kind):
    folder = folder_of(kind, tmp_path / kind)
    (record,) = (path for path in folder.glob("*.json") if path.name in RECORDS)
    assert "from another version of the simulator" in block_of(page_of(folder), "Summary").text
    current = digest_for(json.loads(record.read_text())["hardware"])
    for path in (record, folder / "traffic.json"):
        if path.exists():
            path.write_text(json.dumps(json.loads(path.read_text()) | {"sources": current}))
    assert "from another version of the simulator" not in block_of(page_of(folder), "Summary").text


def test_figures_without_a_verdict_are_counted_by_what_they_are(tmp_path: Path):
    folder = folder_of("reproduce", tmp_path / "out")
    figures = json.loads((folder / "reproduce.json").read_text())["figures"]
    kinds = Counter(figure["verdict"] for figure in figures)
    assert kinds["no band"] and kinds["unreconciled"]
    text = block_of(page_of(folder), "Summary").text
    for kind in ("no band", "unreconciled"):
        assert f"{kinds[kind]} {kind}" in text
    record = json.loads((folder / "reproduce.json").read_text())
    for figure in record["figures"]:
        figure |= {"verdict": "not run", "measured": None}
    (folder / "reproduce.json").write_text(json.dumps(record))
    text = block_of(page_of(folder), "Summary").text
    assert f"{len(figures)} of tables that were not run" in text and "Inside their band" not in text


def test_a_map_shows_the_machine_without_a_change(tmp_path: Path):
    folder = folder_of("map", tmp_path / "map")
    assert TITLE not in [heading.text for heading in page_of(folder).all("h3")]
    keep_machine(folder, load_machine("paper").to_toml())
    assert "starvation_cycles" in block_of(page_of(folder), TITLE).text
