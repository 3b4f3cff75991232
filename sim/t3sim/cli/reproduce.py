"""``t3 reproduce``: every published result beside the simulation's."""

from pathlib import Path

import click
import opent3
from opent3 import TABLES, Backend

from .console import plain_console, say_where
from .errors import out_option
from .many import kept_runs, where_options
from .simulation.machine_options import machine_options
from .simulation.results import fail_if_wrong


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
    changes = opent3.parse_settings(settings)
    with kept_runs("reproduce") as show:
        result = opent3.reproduce(
            only, quick=quick, machine=machine, settings=changes, hardware=hardware, jobs=jobs, scheduler=scheduler,
            on_status=show, out=out,
        )  # fmt: skip
    console = plain_console()
    for text in opent3.caution(opent3.load_machine(machine, changes)):
        console.print(text)
    console.print(result.table())
    say_where(out)
    fail_if_wrong(result.failures)
