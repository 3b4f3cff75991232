"""Mistakes that tests seed by hand: what docstrings in tests say behind "Seeded:", and the named mistakes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.pages import DOCS

TESTS = DOCS.parent / "tests"
_MARK = "Seeded: "


def mistakes(folder: Path = TESTS) -> Iterator[tuple[str, str]]:
    """File, relative to the folder's parent, and mistake of every function or class at the top of a test file that
    seeds one, in the order of files."""
    for path in sorted(folder.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body if _MARK in source else ():
            text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
            if text and text.startswith(_MARK):
                mistake = " ".join(text.removeprefix(_MARK).split("\n\n")[0].split())
                yield path.relative_to(folder.parent).as_posix(), mistake[0].upper() + mistake[1:]


@dataclass(frozen=True)
class Named:
    """A mistake of tests/hdl/test_seeded_mistakes.py, with the file and the test of the quick check that finds it, and
    the proof that finds it, too, or nothing."""

    name: str
    file: str
    test: str
    proof: str


def named_mistakes() -> Iterator[Named]:
    """The named mistakes, in their order."""
    from tests.hdl.test_seeded_mistakes import MISTAKES  # tests are imported for this page alone

    for name, mistake in MISTAKES.items():
        module, test = mistake.check.split(":")
        file = f"tests/{module.replace('.', '/')}.py"
        yield Named(name=name, file=file, test=test, proof=mistake.proof[0] if mistake.proof else "")
