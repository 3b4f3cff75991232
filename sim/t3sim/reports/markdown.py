"""Markdown of generated pages."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; a head that ends with a colon is of a column of numbers, which stand right."""
    lines = [
        _line(head.removesuffix(":") for head in heads),
        "|" + "|".join("---:" if head.endswith(":") else "---" for head in heads) + "|",
        *(_line(map(str, row)) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
