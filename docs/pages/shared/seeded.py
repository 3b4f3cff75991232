"""Mistakes that tests seed by hand: what a test's docstring says behind "Seeded:"."""

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.pages import DOCS

TESTS = DOCS.parent / "tests"
_MARK = "Seeded: "


def mistakes(folder: Path = TESTS) -> Iterator[tuple[str, str]]:
    """File, relative to the folder's parent, and mistake of every test that seeds one, in the order of files."""
    for path in sorted(folder.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body if _MARK in source else ():
            text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
            if text and text.startswith(_MARK):
                mistake = " ".join(text.removeprefix(_MARK).split("\n\n")[0].split())
                yield path.relative_to(folder.parent).as_posix(), mistake[0].upper() + mistake[1:]
