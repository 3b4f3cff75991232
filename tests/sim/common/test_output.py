"""Output folders: whole or absent, refused before the work if they cannot be had, and no file of a user is lost."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from t3sim.common.manifest import MANIFEST, Manifest
from t3sim.common.output import output_folder
from t3sim.common.staging import MARKER, STAGING


def write(target: Path, **files: str) -> None:
    """An output with these files; a dot in a name is written as two underscores, a slash as three."""
    with output_folder(target) as folder:
        for name, text in files.items():
            path = folder / name.replace("___", "/").replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def tree(folder: Path) -> dict[str, str]:
    """All files below a folder but manifests: path -> text."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }


def refused(target: Path, message: str) -> None:
    """The folder is refused before the block runs, and everything around it stays as it was."""
    with pytest.raises(ValueError, match=message), output_folder(target):
        pytest.fail("the work began")


def test_an_output_appears_only_when_it_is_whole(tmp_path: Path):
    target = tmp_path / "deep" / "out"
    with output_folder(target) as folder:
        (folder / "result.json").write_text("1")
        assert not target.exists()
    assert tree(tmp_path) == {"deep/out/result.json": "1"}
    assert os.listdir(target.parent) == ["out"]


def test_without_a_target_nothing_is_written(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with output_folder(None) as folder:
        assert folder is None
    assert os.listdir(tmp_path) == []


def test_an_interrupted_first_output_leaves_nothing_not_even_its_parents(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt), output_folder(tmp_path / "a" / "b" / "out") as folder:
        (folder / "result.json").write_text("1")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_an_interrupted_output_leaves_the_earlier_one(tmp_path: Path):
    target = tmp_path / "out"
    write(target, result__json="1")
    with pytest.raises(KeyboardInterrupt), output_folder(target) as folder:
        (folder / "result.json").write_text("2")
        raise KeyboardInterrupt
    assert tree(tmp_path) == {"out/result.json": "1"}
    assert sorted(os.listdir(target)) == ["result.json", MANIFEST]


def test_an_earlier_output_is_replaced_and_what_it_had_beyond_is_removed(tmp_path: Path):
    target = tmp_path / "out"
    write(target, compare__json="old", t3___result__json="old", t3___deep___x="old")
    write(target, result__json="new", compare__json="new")
    assert tree(tmp_path) == {"out/compare.json": "new", "out/result.json": "new"}
    assert sorted(os.listdir(target)) == ["compare.json", "result.json", MANIFEST]
    assert Manifest.read(target) == Manifest.of(target)


def test_notes_in_an_earlier_output_stay(tmp_path: Path):
    target = tmp_path / "out"
    write(target, compare__json="old", t3___result__json="old")
    (target / "notes.txt").write_text("mine")
    (target / "t3" / "notes.txt").write_text("mine, too")
    (target / ".git").mkdir()
    write(target, result__json="new")
    assert tree(target) == {"notes.txt": "mine", "t3/notes.txt": "mine, too", "result.json": "new"}
    assert (target / ".git").is_dir()


@pytest.mark.parametrize("name", ["result.json", "bench.json", "sweep.json", MANIFEST])
def test_a_file_with_a_name_of_ours_does_not_make_a_folder_ours(tmp_path: Path, name: str):
    target = tmp_path / "p"
    (target / "src").mkdir(parents=True)
    (target / name).write_text("{}")
    (target / "src" / "thesis.tex").write_text("precious")
    before = tree(tmp_path)
    refused(target, "must be a new folder, an empty one or an earlier output of t3")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["../thesis.tex", "/tmp/thesis.tex", ".", "a/../../thesis.tex"])
def test_a_manifest_that_names_files_elsewhere_is_not_ours(tmp_path: Path, name: str):
    (tmp_path / "thesis.tex").write_text("precious")
    target = tmp_path / "out"
    write(target, result__json="1")
    text = (target / MANIFEST).read_text().replace('"result.json"', f'"{name}"')
    (target / MANIFEST).write_text(text)
    refused(target, "must be a new folder")
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def edit(target: Path) -> None:
    (target / "config.toml").write_text("edited")


def link(target: Path) -> None:
    (target / "config.toml").rename(target.parent / "elsewhere.toml")
    (target / "config.toml").symlink_to(target.parent / "elsewhere.toml")


def link_the_folder(target: Path) -> None:
    (target / "t3").rename(target.parent / "elsewhere")
    (target / "t3").symlink_to(target.parent / "elsewhere")


def put_a_folder(target: Path) -> None:
    (target / "config.toml").unlink()
    (target / "config.toml").mkdir()


@pytest.mark.parametrize("change", [edit, link, link_the_folder, put_a_folder])
def test_what_was_changed_since_is_the_users(tmp_path: Path, change):
    target = tmp_path / "out"
    write(target, config__toml="1", t3___result__json="1")
    change(target)
    before = tree(tmp_path)
    refused(target, "no longer, a file as t3 wrote it: move it away")
    assert tree(tmp_path) == before


def test_a_file_that_the_user_deleted_is_not_missed(tmp_path: Path):
    target = tmp_path / "out"
    write(target, config__toml="1", result__json="1")
    (target / "config.toml").unlink()
    write(target, result__json="2")
    assert tree(target) == {"result.json": "2"}


@pytest.mark.parametrize("name", ["timeline.png", "t3"])
def test_results_are_kept_if_a_users_file_stands_in_their_way(tmp_path: Path, name: str):
    target = tmp_path / "out"
    write(target, compare__json="1")
    (target / name).write_text("mine")
    for place in ("t3-output", "t3-output-2"):
        with pytest.raises(ValueError, match=rf"The results are in .*{place}$"):
            write(target, timeline__png="2", t3___result__json="2")
    found = tree(target)
    assert (found["compare.json"], found[name]) == ("1", "mine")
    assert found["t3-output/t3/result.json"] == found["t3-output-2/timeline.png"] == "2"


def test_a_link_is_followed_and_stays_one(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "lnk").symlink_to("real")
    for text in "12":
        write(tmp_path / "lnk", result__json=text)
        assert (tmp_path / "lnk").is_symlink()
        assert tree(tmp_path / "real") == {"result.json": text}


def test_a_folder_that_exists_stays_the_same_folder(tmp_path: Path):
    target = tmp_path / "out"
    target.mkdir()
    before = target.stat().st_ino
    write(target, result__json="1")
    write(target, result__json="2")
    assert target.stat().st_ino == before


def test_what_a_folder_cannot_take_is_refused_before_the_work(tmp_path: Path):
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    for target, message in (
        (tmp_path / "file", "must be a folder, not the file"),
        (tmp_path / "file" / "out", "must be a folder that can be made"),
        (tmp_path / "dangling", "is a link to nothing"),
        (tmp_path / "dangling" / "out", "is a link to nothing"),
        (tmp_path / "circle", "must be a folder that can be made"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / ("x" * 300) / "out", "File name too long"),
        (tmp_path / Path(*["d"] * 2000), "room for the names of its files"),
        (Path("/"), "must be a new folder"),
        (Path("/proc/x"), "must be a folder that can be made"),
    ):
        refused(target, message)
    assert sorted(os.listdir(tmp_path)) == ["circle", "dangling", "file"]


def test_a_deep_folder_is_made(tmp_path: Path):
    target = tmp_path / Path(*["d"] * 1500)
    write(target, result__json="1")
    assert (target / "result.json").read_text() == "1"
    for path in (target / "result.json", target / MANIFEST):
        path.unlink()
    while target != tmp_path:  # pytest's own removal goes by recursion
        target.rmdir()
        target = target.parent


KILLED = """
import os, signal, sys
from pathlib import Path
from t3sim.common.output import output_folder
with output_folder(Path(sys.argv[1])) as folder:
    (folder / "result.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("exists", [False, True])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, exists: bool):
    target = tmp_path / "out"
    if exists:
        write(target, result__json="0")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (place,) = (target if exists else tmp_path).glob(f"{STAGING}*")
    assert (place / "output" / "result.json").read_text() == "half"
    write(target, result__json="1")
    assert tree(tmp_path) == {"out/result.json": "1"}
    assert not list(tmp_path.rglob(f"{STAGING}*"))


def test_a_process_that_still_works_is_left_alone(tmp_path: Path):
    with output_folder(tmp_path / "a") as folder:
        (folder / "result.json").write_text("1")
        write(tmp_path / "b", result__json="2")
    assert tree(tmp_path) == {"a/result.json": "1", "b/result.json": "2"}


def test_two_outputs_to_one_folder_leave_the_later_one(tmp_path: Path):
    target = tmp_path / "out"
    write(target, result__json="0")
    with output_folder(target) as folder:
        (folder / "result.json").write_text("1")
        write(target, result__json="2", compare__json="2")
    assert tree(tmp_path) == {"out/result.json": "1"}


def test_a_folder_that_no_lock_protects_is_not_taken_for_left(tmp_path: Path, monkeypatch):
    def no_locks(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with output_folder(tmp_path / "a") as folder:
        (folder / "result.json").write_text("1")
        write(tmp_path / "b", result__json="2")
    assert tree(tmp_path) == {"a/result.json": "1", "b/result.json": "2"}


@pytest.mark.parametrize("marker", [None, "", "another machine\n"])
def test_a_users_folder_with_such_a_name_is_left_alone(tmp_path: Path, marker: str | None):
    for place in (tmp_path, tmp_path / "out"):
        (place / f"{STAGING}mine").mkdir(parents=True)
        (place / f"{STAGING}mine" / "thesis").write_text("mine")
        if marker is not None:
            (place / f"{STAGING}mine" / MARKER).write_text(marker)
    before = tree(tmp_path)
    write(tmp_path / "out", result__json="1")
    assert tree(tmp_path) == before | {"out/result.json": "1"}


CUTS = 7
"""Renames of a replacement: the manifest, three new files, the manifest again, and what undoes them."""


@pytest.mark.parametrize("at", range(1, CUTS))
def test_a_replacement_that_fails_anywhere_loses_nothing(tmp_path: Path, monkeypatch, at: int):
    """The folder is as before, and the new results are whole elsewhere."""
    target, calls, replace = tmp_path / "out", 0, Path.replace
    write(target, result__json="old", config__toml="old", t3___result__json="old")
    before = tree(target)

    def fail_once(path: Path, other: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(5, "Input/output error", str(other))
        return replace(path, other)

    monkeypatch.setattr(Path, "replace", fail_once)
    if at == 1:  # the manifest of the output itself
        with pytest.raises(OSError, match="Input/output error"):
            write(target, result__json="new", config__toml="new", timeline__png="new")
        assert tree(tmp_path) == {f"out/{name}": text for name, text in before.items()}
        return
    with pytest.raises(
        ValueError, match="the results cannot be moved to .*Input/output error.* They are in .*t3-output"
    ):
        write(target, result__json="new", config__toml="new", timeline__png="new")
    assert calls > at, "something was undone"
    kept = {"result.json": "new", "config.toml": "new", "timeline.png": "new"}
    assert tree(target) == before | {f"t3-output/{name}": text for name, text in kept.items()}
    monkeypatch.setattr(Path, "replace", replace)
    write(target, result__json="last")
    assert {name: text for name, text in tree(target).items() if "/" not in name} == {"result.json": "last"}


@pytest.mark.parametrize("kind", ["file", "link", "folder of a user's"])
def test_results_are_kept_if_something_takes_their_place_meanwhile(tmp_path: Path, kind: str):
    target = tmp_path / "out"
    with (
        pytest.raises(ValueError, match=r"They are in .*-t3-output$|in .*/t3-output$"),
        output_folder(target) as folder,
    ):
        (folder / "result.json").write_text("new")
        if kind == "file":
            target.write_text("mine")
        elif kind == "link":
            target.symlink_to("nowhere")
        else:
            target.mkdir()
            (target / "result.json").write_text("mine")
    found = [path for path in tmp_path.rglob("result.json") if path.read_text() == "new"]
    assert len(found) == 1 and "t3-output" in str(found[0])
    assert kind != "file" or target.read_text() == "mine"
    assert kind != "folder of a user's" or (target / "result.json").read_text() == "mine"


TWO = """
import sys
from pathlib import Path
from t3sim.common.output import output_folder
for number in range(40):
    with output_folder(Path(sys.argv[1])) as folder:
        for name in "abc":
            (folder / name).write_text(f"{sys.argv[2]} {number}")
"""


def test_two_processes_with_one_folder_take_turns(tmp_path: Path):
    command = [sys.executable, "-c", TWO, str(tmp_path / "out")]
    processes = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("one", "two")]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert errors == ["", ""]
    assert Manifest.read(tmp_path / "out").changed(tmp_path / "out") == []
    assert len(set(tree(tmp_path / "out").values())) == 1
    assert os.listdir(tmp_path) == ["out"]


def test_a_manifest_that_never_ends_is_none(tmp_path: Path):
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / MANIFEST)
    refused(tmp_path / "out", "it holds 't3-manifest.json' and no")


def test_files_have_the_mode_that_the_user_wants(tmp_path: Path):
    script = "import os; os.umask(0o077)\n" + TWO
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "out"), "x"], check=True)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()}
    assert modes == {0o600}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


def test_ctrl_c_does_not_cut_off_a_replacement(tmp_path: Path, monkeypatch):
    replace, target = Path.replace, tmp_path / "out"
    write(target, result__json="1")

    def interrupted(path: Path, other: Path) -> Path:
        os.kill(os.getpid(), signal.SIGINT)
        return replace(path, other)

    monkeypatch.setattr(Path, "replace", interrupted)
    write(target, result__json="2")
    assert tree(target) == {"result.json": "2"}


def test_manifests_in_the_repository_are_true():
    docs = Path(__file__).parents[3] / "docs"
    found = sorted(path.parent for path in docs.rglob(MANIFEST))
    assert len(found) >= 3
    for folder in found:
        manifest = Manifest.read(folder)
        assert manifest is not None and manifest.files, folder
        assert manifest.changed(folder) == [], folder
