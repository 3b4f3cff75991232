"""``t3 report``: output folders as one HTML file."""

from pathlib import Path

import click
import opent3

from .console import plain_console, say_where, step_progress
from .errors import FILE, FOLDER


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=FOLDER)
@click.option("--out", "-o", type=FILE, help="HTML file.  [default: report.html in the first DIR]")
def report(folders: tuple[Path, ...], out: Path | None) -> None:
    """Write the results in DIR as one HTML report.

    DIR is the --out folder of run, compare, model, sweep, map or reproduce; several folders become sections of one
    report. The file needs no network. An existing file is replaced only if t3 wrote it and nobody has edited it since.
    """
    with step_progress(plain_console(stderr=True), "report", len(folders)) as show:
        file = opent3.report(folders, out, on_section=show)
    say_where(file)
