"""Markdown of generated pages."""

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 130
"""Columns of a page's text."""


def paragraph(text: str) -> str:
    """Text on lines of :data:`WIDTH`, with an empty line after it."""
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False) + "\n\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; a head that ends with a colon is of a column of numbers, which stand right. A bar in a cell is escaped,
    in code, too: tables of Markdown end a cell there."""
    lines = [
        _line(head.removesuffix(":") for head in heads),
        "|" + "|".join("---:" if head.endswith(":") else "---" for head in heads) + "|",
        *(_line(map(str, row)) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
