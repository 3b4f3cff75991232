"""What a report refuses: folders of another kind, and files that are missing, cut off, of another version, or wrong."""

import json
import os
from pathlib import Path

import pytest
from t3sim.report.folders import Mapped, Modelled, Reproduced, Runs, Swept, read_folder
from t3sim.report.page import report_html

from tests.support.report_folders import KINDS, compare_folder, folder_of, run_folder

RECORD = {"run": "result.json", "compare": "compare.json", "model": "model.json", "sweep": "sweep.json",
          "sensitivity": "sensitivity.json", "map": "map.json", "reproduce": "reproduce.json"}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_known(tmp_path: Path, kind):
    folder = read_folder(folder_of(kind, tmp_path / "out"))
    assert folder.name == "out"
    kinds = {"run": Runs, "compare": Runs, "model": Modelled, "map": Mapped, "reproduce": Reproduced}
    assert isinstance(folder, kinds.get(kind, Swept))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [b"", b'{"schema": 1, "opent3"', b"\xff\xfe", b"[" * 100_000])
def test_a_record_that_was_cut_off(tmp_path: Path, kind, content):
    folder = folder_of(kind, tmp_path / "out")
    path = folder / RECORD[kind]
    path.write_bytes(content)
    with pytest.raises(ValueError, match=RECORD[kind]):
        read_folder(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_another_version(tmp_path: Path, kind):
    folder = folder_of(kind, tmp_path / "out")
    path = folder / RECORD[kind]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 2, "opent3": "9.0"}))
    with pytest.raises(ValueError, match=r"format 2 \(written by version '9.0'\).*reads format 1.*run again"):
        read_folder(folder)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [{"surplus": 1}, {"opent3": None}])
def test_a_record_that_says_something_else(tmp_path: Path, kind, change):
    folder = folder_of(kind, tmp_path / "out")
    path = folder / RECORD[kind]
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=f"not a record of this version: {next(iter(change))}"):
        read_folder(folder)


@pytest.mark.parametrize("content", [b"[]", b"1", b"null"])
def test_json_that_is_no_record(tmp_path: Path, content):
    folder = run_folder(tmp_path / "out")
    (folder / "result.json").write_bytes(content)
    with pytest.raises(ValueError, match="not a record of this version: file"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["config.toml", "timing.json"])
@pytest.mark.parametrize("kind", ["run", "compare"])
def test_a_file_that_is_missing(tmp_path: Path, name, kind):
    folder = folder_of(kind, tmp_path / "out")
    (folder / ("t3" if kind == "compare" else ".") / name).unlink()
    with pytest.raises(ValueError, match=name):
        read_folder(folder)


MISSING = [
    ("sweep", "variants 1 runs 3", "variant 'link.gb_s=10, dma.block=column' has no run of 't-nlg fc2 TP 8 t3-mca'"),
    ("sweep", "variants 0 runs 0", "has no run of 't-nlg fc2 TP 8 sequential'"),
    ("sweep", "variants 2 geomeans speedups t3", "has no mean of 't3'"),
    ("sensitivity", "variants 1 changes t3", "variant 'link-75' has no change of 't3'"),
    ("sensitivity", "variants 0 changes t3", "must have the changes of the first one and no others, in order"),
    ("map", "machines 4 cells 1", "machine 'lockstep' must have a cell for each of 2 GEMMs, and has 1"),
    ("map", "machines 0 cells 0 policies t3", r"machines\.0\.cells\.0: .*policies has no entry for t3"),
    ("map", "machines 0 cells 0 policies t3 stalls loads", "stalls has no entry for loads"),
    ("map", "machines 0 cells 0 policies t3 compute blocked tracker", "blocked or by_stage has no entry for tracker"),
    ("map", "machines 0 cells 0 policies t3 compute by_stage 0", "by_stage must have as many entries as stages"),
    ("reproduce", "models 0", "models has no entry for mega-gpt-2 TP 8, prompt, unfused, sequential"),
]
"""Kind of folder, what is taken out of its record, and what is said."""


@pytest.mark.parametrize(("kind", "place", "message"), MISSING)
def test_a_record_that_lacks_one_of_its_parts(tmp_path: Path, kind, place, message):
    folder = folder_of(kind, tmp_path / "out")
    *within, last = (int(key) if key.isdecimal() else key for key in place.split())
    content = json.loads((folder / RECORD[kind]).read_text())
    part = content
    for key in within:
        part = part[key]
    del part[last]
    (folder / RECORD[kind]).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"{RECORD[kind]} is not a record of this version: .*{message}"):
        read_folder(folder)


def test_runs_of_a_sweep_in_another_order(tmp_path: Path):
    folder = folder_of("sweep", tmp_path / "out")
    content = json.loads((folder / "sweep.json").read_text())
    content["variants"][1]["runs"].reverse()
    (folder / "sweep.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"sweep\.json .* must have the runs of the first one and no others, in order"):
        read_folder(folder)


def test_a_sweep_of_other_policies_with_failures_is_read(tmp_path: Path):
    folder = folder_of("sweep", tmp_path / "out")
    content = json.loads((folder / "sweep.json").read_text()) | {"failures": ["a failure"]}
    for variant in content["variants"]:
        variant["geomeans"] = {"speedups": {"t3": 1.2}, "gemm_reads": None, "data_movement": None}
        variant["changes"] = {"t3": 1.0}
        variant["runs"] = [run for run in variant["runs"] if run["result"]["policy"] in ("sequential", "t3")]
    (folder / "sweep.json").write_text(json.dumps(content))
    read = read_folder(folder)
    assert isinstance(read, Swept) and len(read.record.variants[0].runs) == 4
    assert "Does not add up: a failure." in report_html([read])


def test_a_timeline_that_is_missing_is_said_in_the_report(tmp_path: Path):
    folder = run_folder(tmp_path / "out")
    (folder / "timeline.json").unlink()
    read = read_folder(folder)
    assert isinstance(read, Runs) and read.runs[0].timeline is None


def test_a_timeline_of_another_run(tmp_path: Path):
    folder = run_folder(tmp_path / "out")
    timeline = json.loads((folder / "timeline.json").read_text())
    timeline["gpus"].pop()
    (folder / "timeline.json").write_text(json.dumps(timeline))
    with pytest.raises(ValueError, match=r"has 7 GPUs, and the run beside it 8"):
        read_folder(folder)
    timeline["gpus"][0]["link_bytes"].pop()
    (folder / "timeline.json").write_text(json.dumps(timeline))
    with pytest.raises(ValueError, match="one value per bin"):
        read_folder(folder)


def test_a_machine_that_is_none(tmp_path: Path):
    folder = run_folder(tmp_path / "out")
    (folder / "config.toml").write_text("[gpu\n")
    with pytest.raises(ValueError, match=r"config\.toml is not TOML"):
        read_folder(folder)


def test_a_comparison_cannot_lead_out_of_its_folder(tmp_path: Path):
    folder = compare_folder(tmp_path / "out", ("sequential", "t3"))
    content = json.loads((folder / "compare.json").read_text())
    content["runs"]["../../elsewhere"] = content["runs"].pop("t3") | {"policy": "../../elsewhere"}
    content["speedup_over_sequential"]["../../elsewhere"] = content["speedup_over_sequential"].pop("t3")
    (folder / "compare.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="named by their policies"):
        read_folder(folder)


def test_a_run_of_no_policy(tmp_path: Path):
    folder = run_folder(tmp_path / "out")
    text = (folder / "result.json").read_text()
    (folder / "result.json").write_text(text.replace('"t3-mca"', '"magic"'))
    with pytest.raises(ValueError, match="policy must be one of .* not 'magic'"):
        read_folder(folder)


def test_folders_that_are_none_of_ours(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, message in (
        ("empty", "has none of compare.json, result.json"),
        ("file", "is not a folder"),
        ("nowhere", "is not a folder"),
    ):
        with pytest.raises(ValueError, match=message):
            read_folder(tmp_path / name)
    both = run_folder(tmp_path / "both")
    (both / "sweep.json").write_text("{}")
    with pytest.raises(ValueError, match=r"has both result.json and sweep.json"):
        read_folder(both)


def test_a_record_that_never_ends(tmp_path: Path):
    folder = run_folder(tmp_path / "out")
    (folder / "timing.json").unlink()
    os.mkfifo(folder / "timing.json")
    with pytest.raises(ValueError, match=r"timing.json must be a file that t3 wrote, and is not a regular file"):
        read_folder(folder)
