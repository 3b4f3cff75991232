"""The fuzzer: ``python -m tests.fuzz --help``. Any command line there may be, in this process, against what must hold.

A case is made from the seed and its number alone, so that each can be repeated by itself.
"""

import os
import shlex
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import click
from click.testing import CliRunner
from rich.console import Console
from rich.progress import track
from t3sim.cli import main as cli
from t3sim.cli.console import plain_console
from t3sim.common.fitted_table import FittedTable

from tests.fuzz.case import SMALLEST
from tests.fuzz.run import KINDS, LIMIT_S, Report, examine

FAULTS = ("tracebacks", "hangs", "half-written", "wrong acceptances", "wrong refusals", "bad messages")
"""Columns of the table beside the counts: cases with such a fault."""
LINE_CASES = 500
"""Cases between two lines of progress where there is no terminal."""


def again(seed: int, number: int) -> str:
    """The command that repeats a case."""
    return f"python -m tests.fuzz --seed {seed} --only {number}"


def described(report: Report, seed: int) -> str:
    """A case with all that is wrong with it."""
    line = ascii(shlex.join(["t3", *report.case.arguments]))
    shown = line if len(line) <= 500 else f"{line[:300]} ... {line[-150:]}"
    wrong = "; ".join(f"{column}: {text}" for column, text in report.faults) or "as it should be"
    return f"{again(seed, report.number)}\n  {report.kind}, {report.seconds:.1f} s: {shown}\n  {wrong!a}"


def fault_table(reports: Iterable[Report]) -> FittedTable:
    """A line for each kind of cases, and their sums."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*KINDS, "all")}
    for report in reports:
        outcome = "accepted" if report.accepted else "refused"
        for line in (report.kind, "all"):
            counts[line].update(["cases", outcome, *{column for column, _ in report.faults}])
    columns = ("cases", "accepted", "refused", *FAULTS)
    table = FittedTable("", *columns)
    for name, count in counts.items():
        table.add_row(name, *(f"{count[column]:,}" for column in columns))
    return table


def warm_up() -> None:
    """Compiles what the cases run: it must not count as a hang."""
    for policy in ("t3-mca", "sequential-nmc"):
        arguments = ["run", "--machine", "toy", "--hardware", "golden", *SMALLEST, "--policy", policy]
        if CliRunner().invoke(cli.main, arguments).exit_code:
            raise click.ClickException(f"t3 {shlex.join(arguments)} does not run: nothing can be said of other cases")


def fuzz(seed: int, numbers: Sequence[int], console: Console) -> list[Report]:
    """The reports of these cases, with progress and whatever is wrong on ``console``."""
    reports: list[Report] = []
    shown = track(numbers, "fuzz", console=console, transient=True, disable=not console.is_terminal)
    for done, number in enumerate(shown, 1):
        with _not_for_ever(seed, number):
            reports.append(examine(seed, number))
        if reports[-1].faults:
            console.print(described(reports[-1], seed), markup=False, highlight=False, soft_wrap=True)
        if done % LINE_CASES == 0 and not console.is_terminal:
            console.print(
                f"fuzz: {done} of {len(numbers)} cases, {sum(bool(item.faults) for item in reports)} at fault"
            )
    return reports


@contextmanager
def _not_for_ever(seed: int, number: int) -> Iterator[None]:
    """Ends the process, naming the case, if compiled code holds it so long that the case's alarm is not heard."""

    def end() -> None:
        os.write(2, f"hangs, deaf to its alarm: {again(seed, number)}\n".encode())
        os._exit(1)

    timer = threading.Timer(3 * LIMIT_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@click.command(help="Any command lines of t3 against what must hold for all of them.")
@click.option("--cases", default=2000, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True, type=int)
@click.option("--only", type=click.IntRange(0), help="Only the case of this number, with all that it prints.")
def main(cases: int, seed: int, only: int | None) -> None:
    """Runs, reports; exit code 1 if anything is wrong."""
    warm_up()
    console = Console(stderr=True)
    if only is not None:
        report = examine(seed, only)
        print(described(report, seed), report.outcome, sep="\n")
        sys.exit(bool(report.faults))
    reports = fuzz(seed, range(cases), console)
    plain_console().print(fault_table(reports))
    slowest = max(reports, key=lambda report: report.seconds)
    print(f"seed {seed}; the slowest case took {slowest.seconds:.1f} s: {again(seed, slowest.number)}")
    sys.exit(any(report.faults for report in reports))
