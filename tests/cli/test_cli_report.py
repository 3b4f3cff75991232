"""``t3 report``: where the file goes, and what it never replaces."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST, Manifest
from t3sim.common.output import output_folder
from t3sim.report.output import is_report

from tests.support.report_folders import folder_of, run_folder


def t3(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.main, ["report", *map(str, arguments)])


def fails(result: Result, message: str) -> None:
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert result.stderr.count("Error:") == 1 and "Traceback" not in result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return run_folder(tmp_path / "out")


def test_the_report_is_in_the_first_folder(folder, tmp_path: Path):
    other = run_folder(tmp_path / "other", "t3")
    result = t3(folder, other)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"written to {folder / 'report.html'}\n"
    assert f"step 1 of 2: {folder.name}" in result.stderr and "step 2 of 2: other" in result.stderr
    assert is_report(folder / "report.html")
    assert not (other / "report.html").exists()


def test_a_report_is_replaced_by_the_next(folder):
    path = folder / "report.html"
    assert t3(folder).exit_code == 0
    before = path.read_bytes(), path.stat().st_ino
    assert t3(folder).exit_code == 0
    assert path.read_bytes() == before[0] and path.stat().st_ino != before[1]
    manifest = Manifest.read(folder)
    assert manifest is not None and manifest.holds(folder, "report.html") and manifest.changed(folder) == []


def test_a_report_goes_when_other_results_come(folder):
    assert t3(folder).exit_code == 0
    with output_folder(folder) as inside:
        (inside / "result.json").write_text("{}")
    assert sorted(path.name for path in folder.iterdir()) == ["result.json", MANIFEST]


def test_a_report_that_somebody_edited_holds_other_results_off(folder):
    path = folder / "report.html"
    assert t3(folder).exit_code == 0
    path.write_text(path.read_text() + "mine")
    with pytest.raises(ValueError, match="is not, or no longer, a file as t3 wrote it"), output_folder(folder):
        pass
    assert path.read_text().endswith("mine")


@pytest.mark.parametrize("content", [b"", b"mine", b"<!doctype html>\n<html>", b"\xff\xfe"])
def test_a_file_that_is_no_report_stays(folder, content):
    path = folder / "report.html"
    path.write_bytes(content)
    fails(t3(folder), "is not, or no longer, a report as t3 wrote it: move it away, or choose another --out")
    assert path.read_bytes() == content


def test_a_report_with_notes_stays(folder):
    path = folder / "report.html"
    assert t3(folder).exit_code == 0
    path.write_text(path.read_text().replace("<h1>OpenT3 report", "<h1>My notes"))
    noted = path.read_bytes()
    fails(t3(folder), "no longer, a report")
    assert path.read_bytes() == noted


def test_own_files_of_the_folder_are_no_target(folder):
    before = (folder / "result.json").read_bytes()
    fails(t3(folder, "-o", folder / "result.json"), "not, or no longer, a report")
    assert (folder / "result.json").read_bytes() == before


def test_targets_that_cannot_be(folder, tmp_path: Path):
    fails(t3(folder, "-o", tmp_path), "must be a file, not the folder")
    fails(t3(folder, "-o", ""), "must be the name of a file, not empty")
    fails(t3(folder, "-o", tmp_path / "no" / "such.html"), "in a folder that exists")
    fails(t3(folder, "-o", folder / "result.json" / "x.html"), "in a folder that exists")
    fails(t3(folder, "-o", tmp_path / ("x" * 300)), "must be a file that can be written")
    os.mkfifo(tmp_path / "pipe")
    fails(t3(folder, "-o", tmp_path / "pipe"), "not, or no longer, a report")
    assert sorted(os.listdir(tmp_path)) == ["out", "pipe"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere: run as another user")
def test_a_folder_that_cannot_be_written(folder, tmp_path: Path):
    (tmp_path / "closed").mkdir(mode=0o500)
    fails(t3(folder, "-o", tmp_path / "closed" / "x.html"), "must be a file that can be written")


def test_a_full_disk_leaves_nothing(folder, monkeypatch):
    def full(path: Path, content: str) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("t3sim.report.output.write_atomically", full)
    fails(t3(folder), "can be written")
    assert not (folder / "report.html").exists()


def test_a_link_is_followed(folder, tmp_path: Path):
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    assert t3(folder, "-o", tmp_path / "link.html").exit_code == 0
    assert is_report(tmp_path / "real.html") and (tmp_path / "link.html").is_symlink()


def test_folders_are_read_before_anything_is_written(folder, tmp_path: Path):
    fails(t3(folder, tmp_path / "none", "-o", tmp_path / "x.html"), "is not a folder")
    assert not (tmp_path / "x.html").exists()
    assert t3().exit_code == 2


@pytest.mark.parametrize(
    ("kind", "file", "parts"), [("sweep", "sweep.json", "variants"), ("map", "map.json", "machines")]
)
def test_a_record_whose_parts_do_not_fit_is_one_message(tmp_path: Path, kind, file, parts):
    path = folder_of(kind, tmp_path / "out") / file
    content = json.loads(path.read_text())
    of_second = content[parts][1]
    of_second["runs" if kind == "sweep" else "cells"].pop()
    path.write_text(json.dumps(content))
    result = t3(tmp_path / "out")
    fails(result, f"{file} is not a record of this version")
    assert of_second["name"] in " ".join(result.stderr.split())


def test_a_name_with_control_characters_is_shown_without(folder, tmp_path: Path):
    result = t3(folder, "-o", tmp_path / "\x1b[31mred.html")
    assert result.exit_code == 0 and "\x1b" not in result.stdout
