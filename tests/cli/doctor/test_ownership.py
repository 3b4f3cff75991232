"""What ``t3 doctor --fix`` leaves alone, and what it says of what it cannot look at."""

import errno
import os
import pickle
from pathlib import Path

import pytest
from t3sim.cli import doctor
from t3sim.cli.start import repair

from .damage import NAME, t3


@pytest.mark.parametrize("entry", ["folder", "file", "kernels"])
def test_doctor_makes_entries_writable(folder, entry):
    (folder / f"numba-{'3' * 16}").mkdir()
    path = {"folder": folder, "file": folder / f"{NAME}.v", "kernels": folder / f"numba-{'3' * 16}"}[entry]
    path.chmod(0o500 if path.is_dir() else 0o400)
    assert t3("doctor").exit_code == 1
    assert t3("doctor", "--fix").exit_code == 0
    assert path.stat().st_mode & 0o700 == (0o700 if path.is_dir() else 0o600)


def test_doctor_touches_nothing_that_is_not_t3s(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("OPENT3_CACHE", str(tmp_path))
    names = ("mine.so", "t3_slice.so", "build-x", "numba-0/a.nbi", "t3_slice-xyz.v", f"{NAME}.txt")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / f"{NAME}.so").symlink_to(tmp_path / "mine.so")
    tmp_path.chmod(0o700)
    assert repair.repair(tmp_path) == []
    assert all((tmp_path / name).exists() for name in names)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("")
    other.chmod(0o500)
    assert repair.repair(other) == [] and other.stat().st_mode & 0o777 == 0o500
    other.chmod(0o700)


OURS = (
    "results/runs.sqlite", "results/runs.sqlite-journal", "results/runs.sqlite.damaged-1",
    "results/runs.sqlite.damaged-2-journal", f"faults/{'0' * 16}-7.jsonl", f"faults/{'0' * 16}-7.lock",
    f"numba-{'3' * 16}/advance.lock", f"numba-{'3' * 16}/engine_0/gpu.advance-1.py311.nbi",
    f"numba-{'3' * 16}/engine_0/gpu.advance-1.py311.1.nbc", f"build-{'4' * 32}-abc/part.cpp",
)  # fmt: skip
NOT_OURS = (
    "results/mine.csv", "results/private.key", "results/runs.sqlite.old", "results/frozen/runs.sqlite",
    "faults/7.jsonl", f"faults/{'0' * 16}-x.jsonl", f"faults/mine/{'0' * 16}-7.jsonl", f"numba-{'3' * 16}/mine.txt",
)  # fmt: skip


def test_doctor_makes_only_what_is_t3s_writable_in_folders_that_others_use(folder):
    for name in (*OURS, *NOT_OURS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"" if "sqlite" in name else pickle.dumps("whole"))
        (folder / name).chmod(0o400)
    rooms = [folder / "results" / "frozen", folder / "faults" / "mine"]
    for path in (*rooms, folder / f"numba-{'3' * 16}" / "engine_0"):
        path.chmod(0o500)
    fixed = [line.split()[1] for line in repair.repair(folder)]
    assert sorted(fixed) == sorted([*(str(folder / name) for name in OURS), str(folder / f"numba-{'3' * 16}/engine_0")])
    assert {path.stat().st_mode & 0o777 for path in rooms} == {0o500}
    assert {(folder / name).stat().st_mode & 0o777 for name in NOT_OURS} == {0o400}
    assert {(folder / name).stat().st_mode & 0o777 for name in OURS} == {0o600}


def test_a_file_with_the_name_of_a_folder_of_t3s_is_not_t3s(folder):
    (folder / "results").write_text("of the user")
    (folder / "results").chmod(0o400)
    assert repair.repair(folder) == [] and (folder / "results").stat().st_mode & 0o777 == 0o400


def test_what_another_process_removes_meanwhile_hides_no_fault(folder, monkeypatch):
    cut, *gone = (folder / f"t3_leaf-{digit * 32}.v" for digit in "123")
    for path in (cut, *gone):
        path.write_text("module t3_leaf;\n")
    lacks, whole = repair._lacks_permission, repair._WHOLE["v"]

    def removed(path: Path) -> bool:
        gone[0].unlink(missing_ok=True)
        return lacks(path)

    def removed_later(path: Path) -> bool:
        gone[1].unlink(missing_ok=True)
        return whole(path)

    monkeypatch.setattr(repair, "_lacks_permission", removed)
    monkeypatch.setitem(repair._WHOLE, "v", removed_later)
    (fault,) = repair.faults(folder)
    assert fault.path == cut
    monkeypatch.setattr(repair, "faults", lambda *_: [fault])
    cut.unlink()
    assert repair.repair(folder) == [], "nothing is left to be fixed"


def no_answer(path: Path) -> bool:
    """What a disk that is broken does, without the name of the file."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_doctor_says_what_it_could_not_look_at(folder, monkeypatch):
    monkeypatch.setitem(repair._WHOLE, "v", no_answer)
    result = t3("doctor")
    (line,) = (line for line in result.stdout.splitlines() if "cache entries" in line)
    assert line.split()[0] == "FAIL" and result.exit_code == 1
    assert f"{folder / NAME}.v: Input/output error" in line and "see to its disk and permissions" in line
    result = t3("doctor", "--fix")
    assert result.stdout.splitlines()[0] == f"not looked at: {folder / NAME}.v (Input/output error)"


def test_doctor_says_what_it_fixed_before_it_could_not_look(folder, monkeypatch):
    (folder / f"{NAME}.v").chmod(0o400)
    faults, passes = repair.faults, iter([False])

    def second_fails(*arguments):
        if next(passes, True):
            monkeypatch.setitem(repair._WHOLE, "v", no_answer)
        return faults(*arguments)

    monkeypatch.setattr(repair, "faults", second_fails)
    first, second, *_ = t3("doctor", "--fix").stdout.splitlines()
    assert first.startswith(f"fixed: {folder / NAME}.v cannot be read and written")
    assert second == f"not looked at: {folder / NAME}.v (Input/output error)"


def test_a_folder_that_cannot_be_looked_into_is_said_and_a_missing_one_is_not(folder, monkeypatch):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and access(path, mode))  # root may look at all
    check = doctor._entries(None)
    assert (check.ok, check.found) == (False, f"{folder}: Permission denied")
    assert repair.repair(folder) == [f"not looked at: {folder} (Permission denied)"]
    monkeypatch.setenv("OPENT3_CACHE", str(folder / "missing"))
    assert doctor._entries(None).ok and repair.repair(folder / "missing") == []
    monkeypatch.setenv("OPENT3_CACHE", "~nobody-of-that-name/cache")
    assert not doctor._entries(None).ok
