"""Tables that lose no character, however narrow the terminal is."""

import re
from collections.abc import Collection, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

GAP = 2
"""Blanks between two columns."""
TEXT_COLUMNS = 24
"""A column of text is not made narrower than this to save a block of columns."""


class FittedTable:
    """Rows of names and figures; what does not fit side by side stands in blocks one below the other.

    The first ``names`` columns say what a row is, and every block repeats them. They, the columns called ``text`` and
    those without a title are text, which wraps between words; all others are figures, which never wrap. Nothing in a
    cell is markup.
    """

    def __init__(self, *titles: str, names: int = 1, text: Collection[str] = ()) -> None:
        columns = [
            _Column(title, is_text=number < names or not title or title in text) for number, title in enumerate(titles)
        ]
        self._names, self._others = columns[:names], columns[names:]
        self.row_count = 0

    def add_row(self, *cells: str | Text) -> None:
        """One cell for each column."""
        for column, cell in zip((*self._names, *self._others), cells, strict=True):
            column.cells.append(cell if isinstance(cell, Text) else Text(cell))
        self.row_count += 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, (columns, widths) in enumerate(self._blocks(options.max_width)):
            if number:
                yield Text()
            table = Table(box=None, pad_edge=False)
            for column, width in zip(columns, widths, strict=True):
                table.add_column(
                    Text(column.title), justify="left" if column.is_text else "right", width=width, overflow="fold"
                )
            for row in range(self.row_count):
                table.add_row(*(column.cells[row] for column in columns))
            yield table

    def _blocks(self, width: int) -> "Iterator[tuple[list[_Column], list[int]]]":
        """Columns of each block, with their widths."""
        columns = [*self._names, *self._others]
        one_block = width - GAP * (len(columns) - 1)
        if sum(column.least for column in columns) <= one_block:
            yield columns, _fit(columns, one_block)
            return
        widest = max(
            (min(column.least, width // 2) if column.is_text else column.least for column in self._others), default=-GAP
        )
        gaps = GAP * (len(self._names) - 1)
        least = sum(column.least for column in self._names)
        names = _fit(self._names, min(max(least, width // 2), width - GAP - widest) - gaps)
        room = width - sum(names) - gaps
        block: list[_Column] = []
        for column in self._others:
            if block and sum(GAP + other.least for other in (*block, column)) > room:
                yield [*self._names, *block], names + _fit(block, room - GAP * len(block))
                block = []
            block.append(column)
        yield [*self._names, *block], names + _fit(block, room - GAP * len(block))


class _Column:
    """A column of a :class:`FittedTable`."""

    def __init__(self, title: str, *, is_text: bool) -> None:
        self.title, self.is_text, self.cells = title, is_text, list[Text]()

    @property
    def natural(self) -> int:
        """Cells of a terminal that it takes without a wrapped line."""
        return max(cell_len(text) for text in (self.title, *(cell.plain for cell in self.cells)))

    @property
    def least(self) -> int:
        """What it should have: room for its longest word or figure, and for text that wraps some words on a line."""
        longest = _longest_word(self.title)
        if not self.is_text:
            return max(longest, *(cell.cell_len for cell in self.cells), 0)
        return max(longest, *(_longest_word(cell.plain) for cell in self.cells), min(self.natural, TEXT_COLUMNS))


def _longest_word(text: str) -> int:
    """Width of the longest word; the first has what it is indented by."""
    return max(map(cell_len, re.findall(r"^\s*\S+|\S+", text)), default=0)


def _fit(columns: Sequence[_Column], room: int) -> list[int]:
    """Widths that fill ``room``, but none beyond what its column can use; text gives way, and folds, if it must."""
    widths, natural = [column.least for column in columns], [column.natural for column in columns]
    while sum(widths) > max(room, len(widths)):
        widths[max(range(len(widths)), key=lambda i: (columns[i].is_text and widths[i] > 1, widths[i]))] -= 1
    while sum(widths) < min(room, sum(natural)):
        widths[max(range(len(widths)), key=lambda i: natural[i] - widths[i])] += 1
    return widths
