"""What ``t3 doctor`` finds damaged, and what ``--fix`` makes of it."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from t3sim.cli.start import repair
from t3sim.study.store import Outcome, Store

from tests.sim.study.test_runner import toy
from tests.support.sample_result import sample_run

from .damage import NAME, SPOILED, cut_off_verilog, garbage_of_runs, left_build, t3, truncated_runs


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
