"""What people see on the terminal: the console that everything is printed on, and progress."""

import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

import click
import opent3
from opent3 import OnProgress, Preparation, Progress, Status
from rich.console import Console, ConsoleDimensions
from rich.text import Text

from t3sim.common.units import TIMES, digits, with_unit
from t3sim.common.user_input import one_line

from .bars import Show, bar_or_lines

UNLIMITED = 1_000_000
"""Columns where there is no terminal: a file or another program takes lines of any length."""
ESTIMATE_FROM = 0.02
"""Part of a run's work since its first report from which on the rate says something."""
RUNS_SECONDS = 30.0
"""The same, for many runs that take minutes each."""
_PREPARING = {
    "hardware": ("hardware", "its parts are compiled, once"),
    "kernels": ("kernels", "the models' functions are compiled, once"),
}
"""Label and first line of what must be made before a run."""
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


def shown(path: Path) -> str:
    """A path for a terminal: what is not UTF-8 or controls a terminal is replaced."""
    return one_line(click.format_filename(path))


def say_where(out: Path | None) -> None:
    """Says where results were written, if they were."""
    if out is not None:
        click.echo(f"written to {shown(out)}")


@contextmanager
def progress(console: Console, label: str) -> Iterator[OnProgress]:
    """A callback for the engine's progress: a bar on a terminal that can draw one, else a line at the start and every
    ten seconds. What must be made before the run has a bar of its own for as long as that takes."""
    first: Progress | None = None
    with ExitStack() as preparations, bar_or_lines(console, label, "started") as show:
        bars: dict[str, Show] = {}

        def tell(now: Progress | Preparation) -> None:
            nonlocal first
            if isinstance(now, Preparation):
                if now.name not in bars:
                    bars[now.name] = preparations.enter_context(bar_or_lines(console, *_PREPARING[now.name]))
                bars[now.name](now.done, now.total, _preparation_status(now))
                return
            preparations.close()
            first = first or now  # until then kernels may have been compiled, which says nothing about the rate
            show(now.work_done, 1.0, _status(first, now))

        yield tell


@contextmanager
def case_progress(console: Console, label: str, total: int | None) -> Iterator[Callable[[int, float], None]]:
    """A callback for cases done and seconds so far, shown as :func:`progress` does; ``total`` is None if unknown."""
    with bar_or_lines(console, label, "started (a first run compiles for some seconds)") as show:
        yield lambda cases, seconds: show(cases, total, _case_status(cases, total, seconds))


@contextmanager
def count_progress(console: Console, label: str, things: str) -> Iterator[Callable[[int, int], None]]:
    """A callback for the number of ``things`` that are done, and of all; shown as :func:`progress` does."""
    first: tuple[float, int] | None = None
    with _from_first_call(console, label) as display:

        def tell(done: int, total: int) -> None:
            nonlocal first
            show = display()
            first = first or (time.monotonic(), done)  # what was finished before says nothing about the rate
            begin, finished = first
            rate = (done - finished) / max(time.monotonic() - begin, 1e-9)
            left = f", {rate:.3g} {things}/s, {_left((total - done) / rate)}" if rate else ""
            show(done, total, f"{done} of {total} {things}{left}")

        yield tell


@contextmanager
def runs_progress(console: Console, label: str) -> Iterator[Callable[[Status], None]]:
    """A callback for the state of many runs, shown as :func:`progress` does."""
    between = "\n  " if console.is_terminal else "; "
    said: str | None = None
    with _from_first_call(console, label, RUNS_SECONDS) as display:

        def tell(now: Status) -> None:
            nonlocal said
            show = display()
            page = f"dashboard at {now.dashboard}" if now.dashboard else now.no_dashboard
            if page != said:
                said = page
                console.print(Text(f"{label}: {said}"), soft_wrap=True)
            shown = now.running[:MOST_RUNNING]
            more = [f"and {len(now.running) - len(shown)} others"] if len(now.running) > len(shown) else []
            show(now.cost_done, now.cost_total, between.join([_runs_status(now), *shown, *more]))

        yield tell


@contextmanager
def _from_first_call(console: Console, label: str, every: float | None = None) -> Iterator[Callable[[], Show]]:
    """A display of many runs that begins when it is asked for: what is refused is refused before."""
    with ExitStack() as stack:
        shown: Show | None = None

        def display() -> Show:
            nonlocal shown
            shown = shown or stack.enter_context(bar_or_lines(console, label, _begin(), every))
            return shown

        yield display


@contextmanager
def proof_progress(console: Console, label: str, total: int) -> Iterator[Callable[[int, int, float, str], None]]:
    """A callback for proofs done, failed ones, seconds so far, and the latest; shown as :func:`progress` does."""
    with bar_or_lines(console, label, f"{total} proofs, each for one size") as show:
        yield lambda done, failed, seconds, latest: show(
            done, total, _proof_status(done, total, failed, seconds, latest)
        )


@contextmanager
def fpga_progress(console: Console, label: str, steps: int) -> Iterator[Callable[[str, str], None]]:
    """A callback for a step of a build and how far it is, nothing when it is over; shown as :func:`progress` does.
    Threads may call it side by side."""
    begin, done, running, turn = time.monotonic(), 0, dict[str, str](), Lock()
    with bar_or_lines(console, label, "started (synthesis takes minutes for a large preset)", RUNS_SECONDS) as show:

        def tell(step: str, phase: str) -> None:
            nonlocal done
            with turn:
                running[step] = phase
                if not phase:
                    done += 1
                    del running[step]
                latest = "; ".join(f"{name}: {now}" for name, now in running.items()) or f"{done} of {steps} steps"
                show(done, steps, f"{_clock(time.monotonic() - begin)}, {latest}")

        yield tell


@contextmanager
def step_progress(console: Console, label: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A callback for what begins, one of ``steps``: a bar with the time so far on a terminal, else a line for each."""
    done = -1
    with bar_or_lines(console, label, f"{steps} step{'s' * (steps > 1)}", every=0) as show:

        def tell(step: str) -> None:
            nonlocal done
            done += 1
            show(done, steps, f"step {done + 1} of {steps}: {step}")

        yield tell


def _begin() -> str:
    """What the first line says of many runs: their kernels are compiled in other processes, which have no bars."""
    return "started" if opent3.is_compiled() else "started (it compiles the simulator for a minute or two first)"


def _status(first: Progress, now: Progress) -> str:
    """Phase, simulated time, rate, and time to go; the latter two by what has happened since ``first``."""
    parts = [now.phase, f"{with_unit(TIMES, now.simulated_ns)} simulated"]
    seconds, work = now.wall_seconds - first.wall_seconds, now.work_done - first.work_done
    if seconds > 0:
        parts.append(f"{digits((now.simulated_ns - first.simulated_ns) / 1e3 / seconds)} us/s")
        if work >= ESTIMATE_FROM and now.work_done < 1:
            parts.append(_left((1 - now.work_done) * seconds / work))
    return ", ".join(parts)


def _preparation_status(now: Preparation) -> str:
    """What is done, of how much if that is known."""
    if now.total is None:
        return f"functions compiled: {now.done}"
    return f"{now.done} of {now.total} parts ready"


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


def _runs_status(now: Status) -> str:
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
