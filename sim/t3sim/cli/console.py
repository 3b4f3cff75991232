"""What people see on the terminal: the console that everything is printed on, and progress."""

import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleDimensions
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from t3sim.common.units import TIMES, digits, with_unit
from t3sim.run.request import Progress

if TYPE_CHECKING:  # it takes seconds to import
    from t3sim.study.runner import Status

UNLIMITED = 1_000_000
"""Columns where there is no terminal: a file or another program takes lines of any length."""
ESTIMATE_FROM = 0.02
"""Part of a run's work since its first report from which on the rate says something."""
LINE_SECONDS = 10.0
"""Least time between progress lines where there is no terminal."""
RUNS_SECONDS = 30.0
"""The same, for many runs that take minutes each."""
BAR_COLUMNS = 20
MOST_RUNNING = 16
"""Runs that are named at a time."""


def plain_console(*, stderr: bool = False) -> Console:
    """A console that prints what it is given: no text is markup, and without a terminal no line is folded."""
    console = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = UNLIMITED
    elif console.is_dumb_terminal:  # of which Rich does not ask how wide it is
        columns, lines = shutil.get_terminal_size()
        console.size = ConsoleDimensions(columns, lines)
    return console


@contextmanager
def progress(console: Console, label: str) -> Iterator[Callable[[Progress], None]]:
    """A callback for the engine's progress: a bar on a terminal that can draw one, else a line at the start and every
    ten seconds."""
    first: Progress | None = None
    with _bar_or_lines(console, label, _begin()) as show:

        def tell(now: Progress) -> None:
            nonlocal first
            first = first or now  # until then kernels may have been compiled, which says nothing about the rate
            show(now.work_done, 1.0, _status(first, now))

        yield tell


@contextmanager
def case_progress(console: Console, label: str, total: int | None) -> Iterator[Callable[[int, float], None]]:
    """A callback for cases done and seconds so far, shown as :func:`progress` does; ``total`` is None if unknown."""
    with _bar_or_lines(console, label, "started") as show:
        yield lambda cases, seconds: show(cases, total, _case_status(cases, total, seconds))


@contextmanager
def fault_progress(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """A callback for the number of finished runs of a fault campaign, shown as :func:`progress` does."""
    begin, first = time.monotonic(), None
    with _bar_or_lines(console, "faults", f"{total} runs, {_begin()}") as show:

        def tell(done: int) -> None:
            nonlocal begin, first
            if first is None:  # what was finished before says nothing about the rate
                begin, first = time.monotonic(), done
            rate = (done - first) / max(time.monotonic() - begin, 1e-9)
            left = f", {rate:.0f} runs/s, {_left((total - done) / rate)}" if rate else ""
            show(done, total, f"{done} of {total} runs{left}")

        yield tell


@contextmanager
def runs_progress(console: Console, label: str) -> Iterator[Callable[["Status"], None]]:
    """A callback for the state of many runs, shown as :func:`progress` does."""
    between = "\n  " if console.is_terminal else "; "
    said: str | None = None
    with _bar_or_lines(console, label, _begin(), RUNS_SECONDS) as show:

        def tell(now: "Status") -> None:
            nonlocal said
            if now.dashboard != said:
                said = now.dashboard
                console.print(Text(f"{label}: dashboard at {said}"), soft_wrap=True)
            shown = now.running[:MOST_RUNNING]
            more = [f"and {len(now.running) - len(shown)} others"] if len(now.running) > len(shown) else []
            show(now.cost_done, now.cost_total, between.join([_runs_status(now), *shown, *more]))

        yield tell


@contextmanager
def proof_progress(console: Console, label: str, total: int) -> Iterator[Callable[[int, int, float, str], None]]:
    """A callback for proofs done, failed ones, seconds so far, and the latest; shown as :func:`progress` does."""
    with _bar_or_lines(console, label, f"{total} proofs, each for one size") as show:
        yield lambda done, failed, seconds, latest: show(
            done, total, _proof_status(done, total, failed, seconds, latest)
        )


@contextmanager
def fpga_progress(console: Console, label: str, steps: int) -> Iterator[Callable[[str, str], None]]:
    """A callback for a step of a build and how far it is, nothing when it is over; shown as :func:`progress` does."""
    begin, done, running = time.monotonic(), 0, dict[str, str]()
    with _bar_or_lines(console, label, "started (synthesis takes minutes for a large preset)", RUNS_SECONDS) as show:

        def tell(step: str, phase: str) -> None:
            nonlocal done
            running[step] = phase
            if not phase:
                done += 1
                del running[step]
            latest = "; ".join(f"{name}: {now}" for name, now in list(running.items())) or f"{done} of {steps} steps"
            show(done, steps, f"{_clock(time.monotonic() - begin)}, {latest}")

        yield tell


@contextmanager
def step_progress(console: Console, label: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A callback for what begins, one of ``steps``: a bar with the time so far on a terminal, else a line for each."""
    done = -1
    with _bar_or_lines(console, label, f"{steps} steps", every=0) as show:

        def tell(step: str) -> None:
            nonlocal done
            done += 1
            show(done, steps, f"step {done + 1} of {steps}: {step}")

        yield tell


def _begin() -> str:
    """What the first line of a simulation says."""
    from .start.kernels import are_kept  # here, because it loads Numba

    return "started" if are_kept() else "started (it compiles the simulator for a minute or two first)"


class _Compiling(logging.Handler):
    """Hands on what the build of compiled hardware says, part by part."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())


@contextmanager
def _builds_shown(say: Callable[[str], None]) -> Iterator[None]:
    """In this block ``say`` is called when a part of the hardware is compiled, which takes seconds each."""
    log, handler = logging.getLogger("t3sim.hardware"), _Compiling(say)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


@contextmanager
def _bar_or_lines(
    console: Console, label: str, first: str, every: float | None = None
) -> Iterator[Callable[[float, float | None, str], None]]:
    """Shows what is done, the total if known, and a text. Without a terminal the first line ends with ``first``, and
    the others are ``every`` seconds apart (by default LINE_SECONDS)."""
    if console.is_terminal and not console.is_dumb_terminal:
        status_column = TextColumn("{task.fields[status]}", markup=False, table_column=Column(overflow="fold"))
        with Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(BAR_COLUMNS),
            TimeElapsedColumn(),
            status_column,
            console=console,
            transient=True,
        ) as bar:
            task = bar.add_task(label, total=None, status=first)
            with _builds_shown(lambda status: bar.update(task, status=status)):
                yield lambda done, total, status: bar.update(task, total=total, completed=done, status=status)
        return
    console.print(Text(f"{label}: {first}"), soft_wrap=True)
    last = time.monotonic()

    def print_line(done: float, total: float | None, status: str) -> None:
        nonlocal last
        if time.monotonic() - last >= (LINE_SECONDS if every is None else every):
            last = time.monotonic()
            console.print(Text(f"{label}: {status}"), soft_wrap=True)

    with _builds_shown(lambda status: console.print(Text(f"{label}: {status}"), soft_wrap=True)):
        yield print_line


def _status(first: Progress, now: Progress) -> str:
    """Phase, simulated time, rate, and time to go; the latter two by what has happened since ``first``."""
    parts = [now.phase, f"{with_unit(TIMES, now.simulated_ns)} simulated"]
    seconds, work = now.wall_seconds - first.wall_seconds, now.work_done - first.work_done
    if seconds > 0:
        parts.append(f"{digits((now.simulated_ns - first.simulated_ns) / 1e3 / seconds)} us/s")
        if work >= ESTIMATE_FROM and now.work_done < 1:
            parts.append(_left((1 - now.work_done) * seconds / work))
    return ", ".join(parts)


def _case_status(cases: int, total: int | None, seconds: float) -> str:
    """Millions of cases, rate, and time to go."""
    parts = [f"{cases / 1e6:.1f} million cases"]
    if cases and seconds > 0:
        parts.append(f"{cases / seconds / 1e6:.1f} million/s")
        if total is not None:
            parts.append(_left((total - cases) * seconds / cases))
    return ", ".join(parts)


def _proof_status(done: int, total: int, failed: int, seconds: float, latest: str) -> str:
    """Proofs done and failed, seconds, rate, and the latest that ended."""
    parts = [f"{done} of {total} done"]
    if failed:
        parts.append(f"{failed} not proven")
    parts += [_clock(seconds), f"{60 * done / max(seconds, 1e-3):.0f} per minute", f"last: {latest}"]
    return ", ".join(parts)


def _runs_status(now: "Status") -> str:
    """Runs done, running and failed, and time to go."""
    parts = [f"{now.done} of {now.total} runs done"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if seconds := now.seconds_left:
        parts.append(_left(seconds))
    return ", ".join(parts)


def _left(seconds: float) -> str:
    """Time to go, never less than there may be."""
    return f"about {_clock(math.ceil(seconds))} left"


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds, without hours if there are none."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
