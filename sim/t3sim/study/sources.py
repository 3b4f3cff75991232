"""The digest of the sources that decide a result: a changed model of the machine never meets an old result.

A run on golden hardware executes no RTL of the parts: their sources do not decide its result, and do not count for it.
"""

import ast
import hashlib
from functools import lru_cache
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Protocol

import t3hdl
from t3hdl.interface.parts import TABLE

import t3sim
from t3sim.run.request import Backend

SIMULATOR = "t3sim.run.simulate"
"""The module whose sources, with all of this project that they import, decide a result."""


class Made(Protocol):
    """A record of runs."""

    @property
    def sources(self) -> str:
        """Digest of the sources of the simulator that ran."""

    @property
    def hardware(self) -> Backend:
        """What T3's hardware was in all runs."""


def is_current(record: Made) -> bool:
    """Whether the simulator that is installed is the one that made a record."""
    return record.sources == digest_for(record.hardware)


def digest_for(hardware: Backend) -> str:
    """Digest of the sources that decide the result of a run on this hardware."""
    return source_digest(SIMULATOR, hardware == "rtl")


@lru_cache
def source_digest(program: str = SIMULATOR, parts: bool = True) -> str:
    """Digest of the sources that decide a result: of every module that ``program`` imports, at once or later, and with
    ``parts`` of the RTL of all parts.

    Comments, docstrings and layout do not count, so that a correction of words does not cost hours of simulation.
    """
    roots = {Path(folder).parent for package in (t3sim, t3hdl) for folder in package.__path__}
    finder = ModuleFinder(path=sorted(map(str, roots)), excludes=_foreign(roots))
    finder.import_hook(program)
    for part in TABLE.values() if parts else ():  # their classes are imported by name
        finder.import_hook(f"t3hdl.{part.component.rpartition('.')[0]}")
    found = {name: file for name, module in finder.modules.items() if (file := getattr(module, "__file__", None))}
    state = hashlib.sha256()
    for name, file in sorted(found.items()):
        state.update(f"{name}\n{_code(Path(file))}\n".encode())
    return state.hexdigest()[:16]


def _foreign(roots: set[Path]) -> list[str]:
    """Other packages beside ours, as in a folder of installed packages; their versions are no sources of a result."""
    names = {path.name.partition(".")[0] for root in roots for path in root.iterdir()}
    return sorted(names - {t3sim.__name__, t3hdl.__name__})


def _code(path: Path) -> str:
    """A module's syntax tree as text, without docstrings: of modules, classes, functions and constants."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [statement for statement in node.body if not _is_docstring(statement)]
    return ast.dump(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    """A text that stands alone does nothing."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
