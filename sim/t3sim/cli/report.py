"""``t3 report``: output folders as one HTML file."""

from pathlib import Path

import click

from .reproduce import say_where


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="HTML file.  [default: report.html in the first DIR]"
)
def report(folders: tuple[Path, ...], out: Path | None) -> None:
    """Write the results in DIR as one HTML report.

    DIR is the --out folder of run, compare, sweep, map or reproduce; several folders become sections of one report. The
    file needs no network. An existing file is replaced only if t3 wrote it and nobody has edited it since.
    """
    from t3sim.report.folders import read_folder  # here, because charts take a second to import
    from t3sim.report.output import NAME, target_of, write_report
    from t3sim.report.page import report_html

    read = [read_folder(folder) for folder in folders]
    path = out or folders[0] / NAME
    target_of(path)  # before the work
    write_report(report_html(read), path)
    say_where(path)
