"""``t3 reproduce`` and ``t3 sweep``: many runs, by workers, and what they show together."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from t3sim.common.output import output_folder, write_atomically
from t3sim.common.user_input import one_line
from t3sim.inputs.machine.files import parse_settings
from t3sim.inputs.machine.standing import caution
from t3sim.run.request import Backend
from t3sim.run.result import json_text
from t3sim.study.suite import PUBLISHED_RULE, QUICK_TABLES, TABLES, Suite

from .console import plain_console, runs_progress
from .errors import Failure, Interrupted, Mismatch, out_option, refuse_given
from .simulation.machine_options import machine_options

if TYPE_CHECKING:
    from t3sim.study.evaluation import Evaluation
    from t3sim.study.experiment import Experiment
    from t3sim.study.reproduction import Reproduction
    from t3sim.study.runner import Status
    from t3sim.study.store import Store


@contextmanager
def kept_runs(label: str) -> "Iterator[Callable[[Status], None]]":
    """Shows on stderr how far many runs are. Raises Failure and Interrupted; finished runs are kept."""
    from t3sim.study.runner import RunsFailedError

    try:
        with runs_progress(Console(stderr=True), label) as show:
            yield show
    except RunsFailedError as error:
        raise Failure(str(error)) from error
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; finished runs are kept, and the same command goes on from there") from error


def run_all(experiments: "Sequence[Experiment]", jobs: int, label: str, scheduler: str | None) -> "Store":
    """Runs what is missing, as :func:`kept_runs` does."""
    from t3sim.study.runner import run_missing
    from t3sim.study.store import Store

    store = Store()
    with kept_runs(label) as show:
        run_missing(experiments, store, jobs, show, scheduler)
    return store


def jobs_option(command: Any) -> Any:
    """The option ``--jobs``."""
    return click.option(
        "--jobs",
        type=click.IntRange(1),
        default=lambda: len(os.sched_getaffinity(0)),
        show_default="usable cores",
        help="Runs at a time; the results do not depend on it.",
    )(command)


def where_options(command: Any) -> Any:
    """The options ``--jobs`` and ``--scheduler``: who works."""
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="A Dask scheduler, as tcp://host:8786, whose workers run all; else processes of this computer.",
    )
    return jobs_option(scheduler(_checked_where(command)))


def _checked_where(command: Any) -> Any:
    """Refuses ``--jobs`` with ``--scheduler``."""

    @wraps(command)
    def checked(**values: Any) -> Any:
        if values["scheduler"] is not None:
            refuse_given(("jobs",), "with --scheduler it is the cluster that decides how many run at a time")
        return command(**values)

    return checked


@click.command()
@click.option("--only", "only", multiple=True, metavar="TABLE", help=f"Table, repeatable: {', '.join(TABLES)}.")
@click.option("--quick", is_flag=True, help="TP 8 and 16 only, one GPU of every ring: a fast look.")
@machine_options("rtl")
@where_options
@out_option
def reproduce(
    only: tuple[str, ...], quick: bool, hardware: Backend, machine: str, settings: tuple[str, ...], jobs: int,
    scheduler: str | None, out: Path | None,
) -> None:  # fmt: skip
    """Compare every published result of the paper with the simulation.

    Memory arbitrates by the paper's rule (arbiter.mca = paper), and what this project's rule gives is shown beside it.
    Finished runs are kept: the same command goes on where it was interrupted, and repeats none. A figure outside its
    band does not change the exit code; an accounting identity that does not hold does.
    """
    known = QUICK_TABLES if quick else TABLES
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ValueError(f"--only must name tables of {', '.join(known)}, not {', '.join(unknown)}")
    suite = Suite(machine=machine, settings=_by_the_published_rule(settings), hardware=hardware, quick=quick)
    tables = [name for name in known if not only or name in only]
    with output_folder(out) as folder:
        store = run_all(suite.experiments(tables), jobs, "reproduce", scheduler)

        from t3sim.study.evaluation import Evaluation
        from t3sim.study.reproduction import reproduction

        evaluation = Evaluation(suite, store)
        record = reproduction(evaluation, tables)
        if folder is not None:
            from t3sim.study.charts import draw_charts

            write_atomically(folder / "reproduce.json", json_text(record.model_dump(by_alias=True)))
            draw_charts(evaluation, tables, folder)
    _print(evaluation, record, tables)
    say_where(out)
    if record.failures:
        raise Mismatch("; ".join(record.failures))


def _by_the_published_rule(texts: tuple[str, ...]) -> dict[str, Any]:
    """The settings of the command line, with the rule of arbitration that the published numbers are of."""
    settings = parse_settings(texts)
    for key, value in PUBLISHED_RULE.items():
        if settings.get(key, value) != value:
            raise ValueError(
                f"--set {key} must be {value} here, not {settings[key]}: published numbers are held against the "
                "paper's rule; what this project's rule gives is measured and shown beside it"
            )
    return {**PUBLISHED_RULE, **settings}


def _print(evaluation: "Evaluation", record: "Reproduction", tables: Sequence[str]) -> None:
    """The tables that were asked for, and every published figure beside ours."""
    from t3sim.study.tables import TABLE_MAKERS, figures_table

    console = wide_console()
    for text in caution(evaluation.suite.machine_of("base")):
        console.print(text)
    for name in tables:
        if name in TABLE_MAKERS:
            console.print(TABLE_MAKERS[name](evaluation), end="\n\n")
    console.print(figures_table(record.figures))


def say_where(out: Path | None) -> None:
    """Says where results were written, if they were."""
    if out is not None:
        click.echo(one_line(f"written to {click.format_filename(out)}"))


def wide_console() -> Console:
    """The console for tables (:func:`t3sim.cli.console.plain_console`)."""
    return plain_console()
