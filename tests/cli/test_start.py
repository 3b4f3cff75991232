"""The first minutes: the demonstration, completion of the shell, and what the doctor repairs."""

import _ctypes
import errno
import os
import pickle
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from t3sim.cli import doctor
from t3sim.cli import main as cli
from t3sim.cli.start import demo as demonstration
from t3sim.cli.start import repair
from t3sim.common.cache import digest
from t3sim.common.manifest import MANIFEST
from t3sim.report.output import is_report
from t3sim.study.store import Outcome, Store

from tests.sim.study.test_runner import toy
from tests.support.sample_result import sample_run

NAME = "t3_slice-" + "0" * 32


def t3(*arguments: object):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_demo_shows_the_table_the_reasons_and_where_to_go_next(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = t3("demo")
    assert result.exit_code == 0, result.output
    for text in ("ideal-overlap", "speedup over sequential", "mismatches", "Why:\nt3-mca:\n- Of ", "Next:\n  t3 "):
        assert text in result.stdout
    assert "\nReport, with charts to zoom: out/demo/report.html\n" in result.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "out"] and is_report(tmp_path / "out/demo/report.html")
    (fired,) = (line for line in result.stdout.splitlines() if line.startswith("blocks by tile / by chunk"))
    assert fired.split()[6:9] == ["-", "16", "/"] and "overflowed" not in result.stdout, "blocks fire by their tiles"


def test_demo_writes_a_comparison_and_its_report(tmp_path: Path):
    for _ in range(2):  # a second time replaces the first
        assert t3("demo", "-o", tmp_path / "out").exit_code == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"compare.json", "t3-mca", "report.html", MANIFEST} <= written
    assert "t3-mca:" in t3("explain", tmp_path / "out").stdout


def test_demo_refuses_an_occupied_folder_before_it_runs(tmp_path: Path):
    (tmp_path / "mine").write_text("")
    result = t3("demo", "-o", tmp_path)
    assert result.exit_code == 2 and "started" not in result.stderr and not result.stdout


@pytest.mark.parametrize("what", ["explain", "report"])
def test_an_interrupted_report_of_the_demo_leaves_the_comparison(tmp_path: Path, monkeypatch, what):
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"opent3.{what}", interrupted)
    result = t3("demo", "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == f"Error: interrupted; the comparison was written, in {tmp_path}/out"
    assert (tmp_path / "out" / "compare.json").exists() and not (tmp_path / "out" / "report.html").exists()


def test_demo_refuses_unknown_hardware_before_it_says_anything():
    result = t3("demo", "--hardware", "fpga")
    assert result.exit_code == 2 and "--hardware must be one of rtl, golden, not 'fpga'" in result.stderr
    assert not result.stdout


def test_what_the_demo_names_is_there():
    for command, _ in demonstration.NEXT:
        program, name, *rest = shlex.split(command)
        assert program == "t3"
        usage = t3(*([name] if name == "--help" else [name, "--help"]))
        assert usage.exit_code == 0
        for option in (word for word in rest if word.startswith("--")):
            assert option in usage.stdout
    values = " ".join(f"--{name} {value}" for name, value in demonstration.SIZE.items())
    settings = " ".join(f"--set {key}={value}" for key, value in demonstration.SETTINGS.items())
    assert f"--machine toy {values} {settings}" == demonstration.TOY


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_how_to_install_it(shell):
    result = t3("completion", shell)
    assert result.exit_code == 0
    script, last = result.stdout.rstrip("\n").rsplit("\n", 1)
    assert "_T3_COMPLETE=" in script.replace("env ", "") and last.startswith("# for this shell: ")
    assert f"t3 completion {shell}" in last
    assert t3("completion", "tcsh").exit_code == 2


COMPLETED = {
    "t3 exp": ["explain"],
    "t3 run --trac": ["--trace"],
    "t3 run --policy t3": ["t3", "t3-mca"],
    "t3 compare --policies sequential,t3-": ["sequential,t3-mca"],
    "t3 run --machine to": ["toy"],
    "t3 run --hardware ": ["rtl", "golden"],
    "t3 completion z": ["zsh"],
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here: apt install bash")
@pytest.mark.parametrize("line", COMPLETED)
def test_bash_completes(line, tmp_path: Path):
    """The function that the script defines, as bash calls it."""
    program = tmp_path / "t3"
    program.write_text(f"#!{sys.executable}\nfrom t3sim.cli.entry import main\nmain()\n")
    program.chmod(0o755)
    (tmp_path / "script").write_text(t3("completion", "bash").stdout)
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    asked = (
        f"source {tmp_path}/script; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
        '_t3_completion t3; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, env=environ, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == COMPLETED[line]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A cache folder with an entry that is whole."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / f"{NAME}.v").write_text("module t3_slice;\nendmodule\n")
    monkeypatch.setenv("OPENT3_CACHE", str(cache))
    monkeypatch.setattr(doctor, "_toolchain", list)  # it takes seconds, and is nothing that --fix repairs
    return cache


def cut_off_library(folder: Path) -> Path:
    path = folder / f"{NAME}.so"
    whole = Path(_ctypes.__file__).read_bytes()
    path.write_bytes(whole)
    assert repair.faults(folder) == []
    path.write_bytes(whole[: len(whole) // 2])
    return path


def cut_off_verilog(folder: Path) -> Path:
    path = folder / f"t3_leaf-{'1' * 32}.v"
    path.write_text("module t3_leaf;\n")
    return path


def empty_object(folder: Path) -> Path:
    path = folder / f"runtime-{'2' * 32}.o"
    path.write_bytes(b"")
    return path


def cut_off_kernel(folder: Path) -> Path:
    path = folder / f"numba-{'3' * 16}" / "engine_0" / "gpu.advance-1.py311.1.nbc"
    path.parent.mkdir(parents=True)
    path.write_bytes(pickle.dumps(("code", b"x" * 100))[:-3])
    return path


def left_build(folder: Path) -> Path:
    path = folder / f"build-{digest(f'{NAME}.so')}-abc"
    path.mkdir()
    (path / "part.cpp").write_text("")
    (folder / f"{NAME}.so.lock").write_text("")
    return path


def garbage_of_runs(folder: Path) -> Path:
    path = folder / "results" / "runs.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 100)
    return path


def truncated_runs(folder: Path) -> Path:
    """A database of which half is there, as of a disk that was full."""
    path = folder / "results" / "runs.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE runs (record TEXT)")
        database.executemany("INSERT INTO runs VALUES (?)", [("x" * 3000,)] * 50)
    assert repair.faults(folder) == []
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


SPOILED = (cut_off_library, cut_off_verilog, empty_object, cut_off_kernel, garbage_of_runs, truncated_runs, left_build)


@pytest.mark.parametrize("spoil", SPOILED)
def test_doctor_names_and_fixes_what_t3_left(folder, spoil):
    whole = (folder / f"{NAME}.v").read_bytes()
    path = spoil(folder)
    result = t3("doctor")
    (line,) = (line for line in result.stdout.splitlines() if "cache entries" in line)
    mark, code = ("--", 0) if spoil is left_build else ("FAIL", 1)  # what was left keeps nothing from working
    assert (line.split()[0], result.exit_code) == (mark, code)
    assert str(path) in result.stdout and "t3 doctor --fix" in result.stdout
    assert path.exists(), "without --fix nothing changes"
    result = t3("doctor", "--fix")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"fixed: {path} ")
    assert not path.exists() and (folder / f"{NAME}.v").read_bytes() == whole
    again = t3("doctor", "--fix")
    assert "fixed" not in again.stdout and again.exit_code == 0


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


@pytest.mark.parametrize("spoil", [garbage_of_runs, truncated_runs])
def test_damaged_runs_are_set_aside_without_their_journal_and_new_ones_are_kept(folder, spoil):
    path = spoil(folder)
    content, journal = path.read_bytes(), path.with_name("runs.sqlite-journal")
    journal.write_bytes(b"of the damaged file")
    assert "set aside as runs.sqlite.damaged-1" in t3("doctor", "--fix").stdout
    aside = path.with_name("runs.sqlite.damaged-1")
    assert aside.read_bytes() == content and not journal.exists(), "else it is played back into the next file"
    run = toy("sequential")
    Store().put(run, Outcome.of(run.label, sample_run("sequential")))
    assert Store().get(run) is not None and t3("doctor").exit_code == 0
    path.write_bytes(content)
    assert "set aside as runs.sqlite.damaged-2" in t3("doctor", "--fix").stdout
    assert aside.read_bytes() == content, "nothing is replaced"


def test_runs_that_another_process_writes_just_now_are_not_judged(folder):
    path = folder / "results" / "runs.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE runs (record TEXT)")
        database.execute("BEGIN EXCLUSIVE")
        assert repair.faults(folder) == []


KILLED = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")  # so that it writes before it is done
database.execute("BEGIN")
database.execute("DELETE FROM runs")
database.executemany("INSERT INTO runs VALUES (?)", [("y" * 3000,)] * 500)
os._exit(0)
"""


def test_what_a_killed_command_left_half_done_is_no_damage(folder):
    path = truncated_runs(folder)
    path.unlink()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE runs (record TEXT)")
        database.execute("INSERT INTO runs VALUES ('x')")
    subprocess.run([sys.executable, "-c", KILLED, path], check=True)
    assert path.with_name("runs.sqlite-journal").exists()
    assert repair.faults(folder) == []
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT record FROM runs").fetchall() == [("x",)]


def test_a_fault_that_hinders_stands_before_what_only_takes_room(folder):
    left, cut = left_build(folder), cut_off_verilog(folder)
    result = t3("doctor")
    assert result.exit_code == 1
    (line,) = (line for line in result.stdout.splitlines() if "cache entries" in line)
    assert str(cut) in line and str(left) not in line and "and 1 more fault" in line


def test_a_build_that_goes_on_is_not_left(folder):
    from filelock import FileLock

    path = left_build(folder)
    with FileLock(folder / f"{NAME}.so.lock"):
        assert repair.repair(folder) == []
    assert path.exists()


def test_a_cache_that_was_used_is_whole():
    """That of the tests."""
    from t3sim.common.cache import cache_folder

    assert [fault for fault in repair.faults(cache_folder()) if "cut off" in fault.what] == []
