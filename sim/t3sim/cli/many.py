"""Commands of many runs: who works, and what an end in the middle leaves."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
from opent3 import RunsFailedError, Status
from opent3.options import usable_cores
from rich.console import Console

from .console import runs_progress
from .errors import Failure, Interrupted, refuse_given


@contextmanager
def keeping_runs() -> Iterator[None]:
    """Raises Failure and Interrupted, which say that finished runs are kept."""
    try:
        yield
    except RunsFailedError as error:
        raise Failure(str(error)) from error
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; finished runs are kept, and the same command goes on from there") from error


@contextmanager
def kept_runs(label: str) -> Iterator[Callable[[Status], None]]:
    """The same, and shows on stderr how far many runs are."""
    with keeping_runs(), runs_progress(Console(stderr=True), label) as show:
        yield show


def jobs_option(what: str) -> Callable[[Any], Any]:
    """The option ``--jobs``: how many of ``what``, as "Runs", are carried out at a time."""
    return click.option(
        "--jobs",
        type=click.IntRange(1),
        default=usable_cores,
        show_default="usable cores",
        help=f"{what} at a time; the results do not depend on it.",
    )


def where_options(command: Any) -> Any:
    """The options ``--jobs`` and ``--scheduler``: who works."""
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="A Dask scheduler, as tcp://host:8786, whose workers run all; else processes of this computer.",
    )
    return jobs_option("Runs")(scheduler(_checked_where(command)))


def _checked_where(command: Any) -> Any:
    """Refuses ``--jobs`` with ``--scheduler``."""

    @wraps(command)
    def checked(**values: Any) -> Any:
        if values["scheduler"] is not None:
            refuse_given(("jobs",), "with --scheduler it is the cluster that decides how many run at a time")
        return command(**values)

    return checked
