"""``--trace`` on the command line: where traces go, what they never replace, and what is refused before the run."""

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.common.manifest import MANIFEST, Manifest
from t3sim.run.records import read_result

from tests.support.traces import read_trace

TOY = ("--machine", "toy", "--m", "64", "--n", "64", "--k", "40", "--tp", "2", "--hardware", "golden")


def t3(*arguments: object):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def refused(result, message: str) -> None:
    assert result.exit_code == 2, result.output
    assert message in result.stderr and result.stderr.count("Error:") == 1
    assert "started" not in result.stderr, "before the run"


def test_run_writes_a_trace_and_says_where(tmp_path: Path):
    path = tmp_path / "run.pftrace"
    result = t3("run", *TOY, "--trace", path)
    assert result.exit_code == 0, result.output
    assert str(path) in result.stdout and "ui.perfetto.dev" in result.stdout
    assert {track.process for track in read_trace(path)} == {"t3-mca GPU 0", "t3-mca GPU 1"}
    assert [item.name for item in tmp_path.iterdir()] == ["run.pftrace"]
    other = tmp_path / "other"
    other.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_compare_writes_one_trace_of_all_policies_that_are_simulated(tmp_path: Path):
    path = tmp_path / "all.pftrace"
    assert t3("compare", *TOY, "--trace", path).exit_code == 0
    assert {track.process.split()[0] for track in read_trace(path)} == {"sequential", "t3", "t3-mca"}


def test_a_trace_inside_the_output_folder_belongs_to_it(tmp_path: Path):
    out = tmp_path / "out"
    for name in ("a.pftrace", "deeper/b.pftrace"):
        result = t3("run", *TOY, "--out", out, "--trace", out / name)
        assert result.exit_code == 0, result.output
        manifest = Manifest.read(out)
        assert manifest is not None and name in manifest.files
    assert not (out / "a.pftrace").exists(), "replaced with the other files of the folder"
    assert t3("run", *TOY, "--out", out).exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "config.toml", "result.json", MANIFEST, "timeline.json", "timeline.png", "timing.json",
    ]  # fmt: skip


def test_a_file_in_the_output_folder_that_is_no_trace_is_refused_before_the_run(tmp_path: Path, monkeypatch):
    out = tmp_path / "out"
    assert t3("run", *TOY, "--out", out).exit_code == 0
    (out / "mine.pftrace").write_text("mine")
    monkeypatch.setattr("t3sim.run.simulate.simulate", lambda *_: pytest.fail("simulated"))
    refused(t3("run", *TOY, "--out", out, "--trace", out / "mine.pftrace"), "choose another name")
    assert (out / "mine.pftrace").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("result.json/a.pftrace", "not in {out}/result.json: choose another"),
        ("t3/timeline.png/deeper/a.pftrace", "not in {out}/t3/timeline.png: choose another"),
        ("x" * 240 + ".pftrace", "File name too long"),
        ("x" * 256 + "/a.pftrace", "File name too long"),
        ("../out", "ends with .pftrace"),
    ],
)
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_trace_inside_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, monkeypatch, command, name, message
):
    monkeypatch.setattr("t3sim.run.simulate.simulate", lambda *_: pytest.fail("simulated"))
    out = tmp_path / "out"
    result = t3(command, *TOY, "--out", out, "--trace", out / name)
    refused(result, message.format(out=out))
    assert "t3-partial" not in result.stderr and list(tmp_path.iterdir()) == []


def test_a_file_on_the_way_of_a_trace_inside_is_refused_before_the_run(tmp_path: Path, monkeypatch):
    out = tmp_path / "out"
    assert t3("run", *TOY, "--out", out).exit_code == 0
    (out / "notes").write_text("mine")
    monkeypatch.setattr("t3sim.run.simulate.simulate", lambda *_: pytest.fail("simulated"))
    refused(t3("run", *TOY, "--out", out, "--trace", out / "notes" / "a.pftrace"), f"not in {out}/notes")


def test_a_trace_may_lie_beside_the_files_of_its_policy(tmp_path: Path):
    out = tmp_path / "out"
    assert t3("compare", *TOY, "--policies", "t3", "--out", out, "--trace", out / "t3" / "a.pftrace").exit_code == 0
    assert read_trace(out / "t3" / "a.pftrace") and (out / "t3" / "result.json").exists()
    trace = tmp_path / "b.pftrace"
    refused(t3("run", *TOY, "--out", trace, "--trace", trace), f"--trace {trace} is there")


def test_a_trace_does_not_change_what_a_run_writes(tmp_path: Path):
    assert t3("run", *TOY, "--out", tmp_path / "plain").exit_code == 0
    assert t3("run", *TOY, "--out", tmp_path / "traced", "--trace", tmp_path / "a.pftrace").exit_code == 0
    for name in ("result.json", "config.toml", "timeline.png"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "traced" / name).read_bytes()
    assert read_result(tmp_path / "traced" / "result.json").policy == "t3-mca"


def test_a_trace_of_ours_is_replaced_and_a_changed_one_is_not(tmp_path: Path):
    path = tmp_path / "a.pftrace"
    assert t3("run", *TOY, "--trace", path).exit_code == 0
    first = path.read_bytes()
    assert t3("run", *TOY, "--policy", "sequential", "--trace", path).exit_code == 0
    second = path.read_bytes()
    assert first != second
    for changed in (first[:-1], first + b"x", first[:99] + bytes([first[99] ^ 1]) + first[100:], b"", b"mine"):
        path.write_bytes(changed)
        refused(t3("run", *TOY, "--trace", path), "choose another name")
        assert path.read_bytes() == changed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/a.pftrace", "No such file"),
        ("a.json", "ends with .pftrace"),
        ("folder.pftrace", "choose another name"),
        ("broken.pftrace", "choose another name"),
    ],
)
def test_a_trace_that_cannot_be_written_is_refused(tmp_path: Path, name, message):
    (tmp_path / "folder.pftrace").mkdir()
    (tmp_path / "broken.pftrace").symlink_to(tmp_path / "folder.pftrace")
    refused(t3("run", *TOY, "--trace", tmp_path / name), message)
    refused(t3("compare", *TOY, "--out", tmp_path / "out", "--trace", tmp_path / name), message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments", [("run", "--policy", "ideal-overlap"), ("compare", "--policies", "ideal-overlap")]
)
def test_a_computed_policy_has_no_trace(tmp_path: Path, arguments):
    refused(t3(*arguments, *TOY, "--trace", tmp_path / "a.pftrace"), "simulated")
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed(tmp_path: Path):
    (tmp_path / "link.pftrace").symlink_to(tmp_path / "real.pftrace")
    for _ in range(2):
        assert t3("run", *TOY, "--trace", tmp_path / "link.pftrace").exit_code == 0
    assert (tmp_path / "link.pftrace").is_symlink() and read_trace(tmp_path / "real.pftrace")


def test_an_error_in_the_run_leaves_no_trace(tmp_path: Path, monkeypatch):
    from t3sim.run import recorder

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(recorder.Recorder, "events", fail)
    result = t3("run", *TOY, "--trace", tmp_path / "a.pftrace")
    assert result.exit_code == 2 and "out of memory" in result.stderr
    assert list(tmp_path.iterdir()) == []
