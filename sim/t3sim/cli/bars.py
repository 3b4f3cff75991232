"""Progress of one thing or several at a time: bars on a terminal that can draw them, else lines."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

LINE_SECONDS = 10.0
"""Least time between progress lines where there is no terminal."""
BAR_COLUMNS = 20

Show = Callable[[float, float | None, str], None]
"""Shows what is done, the total if known, and a text."""

_displays: dict[IO[str], Progress] = {}
"""What is shown just now, by the file that it is drawn on: a terminal takes one display, with any number of bars."""
_change = Lock()


@contextmanager
def bar_or_lines(console: Console, label: str, first: str, every: float | None = None) -> Iterator[Show]:
    """Shows what is done, the total if known, and a text. Without a terminal the first line ends with ``first``, and
    the others are ``every`` seconds apart (by default LINE_SECONDS)."""
    if console.is_terminal and not console.is_dumb_terminal:
        with _bar(console, label) as update:
            yield lambda done, total, status: update(total=total, completed=done, status=status)
        return
    console.print(Text(f"{label}: {first}"), soft_wrap=True)
    last = time.monotonic()

    def print_line(done: float, total: float | None, status: str) -> None:
        nonlocal last
        if time.monotonic() - last >= (LINE_SECONDS if every is None else every):
            last = time.monotonic()
            console.print(Text(f"{label}: {status}"), soft_wrap=True)

    yield print_line


@contextmanager
def _bar(console: Console, label: str) -> Iterator[Callable[..., None]]:
    """A bar in the display on a console's terminal; the display begins with its first bar and ends with its last."""
    file = console.file
    with _change:
        if file not in _displays:
            _displays[file] = _new_display(console)
            _displays[file].start()
        display = _displays[file]
        task = display.add_task(label, total=None, status="starting")
    try:
        yield lambda **values: display.update(task, **values)
    finally:
        with _change:
            if len(display.tasks) == 1:
                del _displays[file]
                display.stop()  # draws it a last time
            display.remove_task(task)


def _new_display(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(BAR_COLUMNS),
        TimeElapsedColumn(),
        TextColumn("{task.fields[status]}", markup=False, table_column=Column(overflow="fold")),
        console=console,
        transient=True,
    )
