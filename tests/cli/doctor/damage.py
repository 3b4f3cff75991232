"""Each function spoils a cache folder in one way and returns what it spoiled; and the command line, to judge it."""

import _ctypes
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

from click.testing import CliRunner
from t3sim.cli import main as cli
from t3sim.cli.start import repair
from t3sim.common.cache import digest

NAME = "t3_slice-" + "0" * 32


def t3(*arguments: object):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


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
