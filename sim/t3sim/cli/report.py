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
    """Write one HTML file that shows what run, compare, sweep or reproduce left in DIR, a section for each DIR.

    The file needs no network. A file that is there already is replaced only if it is a report as t3 wrote it.
    """
    from t3sim.report.folders import read_folder  # here, because charts take a second to import
    from t3sim.report.output import NAME, target_of, write_report
    from t3sim.report.page import report_html

    read = [read_folder(folder) for folder in folders]
    path = out or folders[0] / NAME
    target_of(path)  # before the work
    write_report(report_html(read), path)
    say_where(path)
