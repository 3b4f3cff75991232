"""Figures in the README: those of ``make run``, and of the paper's main claims.

``python -m docs.pages readme`` writes them from what is kept; ``python -m docs.pages.readme`` does what ``make run``
does, some minutes, keeps its comparison and its picture, and writes them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from t3sim.common.output import output_folder, write_atomically
from t3sim.common.units import BYTES, TIMES, unit_of
from t3sim.run.records import Comparison, read_record
from t3sim.study.reproduction import FigureRecord, Reproduction

from docs.pages import DOCS, RESULTS
from docs.pages.shared.blocks import with_blocks
from docs.pages.shared.kept import made_by
from docs.pages.shared.markdown import paragraph, table

PAGE = DOCS.parent / "README.md"
KEPT = RESULTS / "first-run"
"""What is kept of ``make run``: compare.json, and comparison.png, which the README shows."""
REPRODUCTION = RESULTS / "reproduction" / "reproduce.json"
ARGUMENTS = ("compare", "--model", "t-nlg", "--sublayer", "fc2", "--tp", "8")
"""Of ``make run``, without its folders."""
CLAIMS = (
    "t3-geomean", "t3-mca-geomean", "t3-mca-over-t3-geomean", "traffic-geomean", "training-t3-geomean",
    "training-t3-mca-geomean",
)  # fmt: skip
"""Published figures that the README names."""


def page() -> str:
    """The README with today's figures. Raises ValueError if a mark is missing, or what is kept cannot be read."""
    blocks = {
        "first run": run_table(read_record(KEPT / "compare.json", Comparison)),
        "claims": claims(REPRODUCTION),
    }
    return with_blocks(PAGE, "readme", blocks)


def run_table(record: Comparison) -> str:
    """Times, speedups and traffic by policy."""
    results, gains = record.runs, record.speedup_over_sequential
    time = unit_of(TIMES, (result.time_ns.total for result in results.values()))
    moved = unit_of(BYTES, (result.traffic_bytes_per_gpu.total for result in results.values()))
    rows = [
        (time.title("time"), *(time.text(result.time_ns.total) for result in results.values())),
        ("speedup", *("" if gain is None else f"{gain:.3f}" for gain in gains.values())),
        (time.title("exposed communication"),
         *(time.text(result.time_ns.exposed_communication) for result in results.values())),
        (moved.title("DRAM traffic per GPU"),
         *(moved.text(result.traffic_bytes_per_gpu.total) for result in results.values())),
    ]  # fmt: skip
    clears = {policy: result.time_ns.init_write for policy, result in results.items()}
    if any(clears.values()):
        rows.append((time.title("clearing the output before the launch, not in the time above"),
                     *("" if not clear else time.text(clear) for clear in clears.values())))  # fmt: skip
    return table(("", *(f"`{policy}`:" for policy in results)), rows)


def claims(path: Path) -> str:
    """Published, ours, and whether that is inside the band, of the record in ``path``; and whether that is of today's
    simulator."""
    record = read_record(path, Reproduction)
    figures = {figure.name: figure for figure in record.figures}
    made = made_by(record, path)
    return table(("result", "published:", "ours:", "inside its band"), (_claim(figures[name]) for name in CLAIMS)) + (
        "\n" + paragraph(" ".join(made)) if made else ""
    )


def _claim(figure: FigureRecord) -> tuple[str, ...]:
    def text(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}x" if figure.unit == "x" else f"{value:.1f} %"

    return figure.title, text(figure.published), text(figure.measured), figure.verdict


@click.command()
def main() -> None:
    """Do what `make run` does, keep its comparison and picture, and write the README."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        subprocess.run(
            [sys.executable, "-m", "t3sim", *ARGUMENTS, "--out", str(out)], check=True, stdout=subprocess.DEVNULL
        )
        with output_folder(KEPT) as kept:
            for name in ("compare.json", "comparison.png"):
                shutil.copyfile(out / name, kept / name)
    write_atomically(PAGE, page())
    click.echo(f"written: {os.path.relpath(KEPT)}, {os.path.relpath(PAGE)}")


if __name__ == "__main__":
    main()
