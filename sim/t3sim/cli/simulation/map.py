"""``t3 map``: on which machines arbitration gains time, how much, and why."""

from pathlib import Path

import click
import opent3
from opent3 import MAP_POINTS, MAX_LAUNCHES, MAX_RANDOM, MODELS, QUICK_MAP_POINTS, Backend, load_machine, parse_settings

from ..console import plain_console, say_where
from ..errors import out_option
from ..many import kept_runs, where_options
from .machine_options import machine_options
from .options import names
from .results import fail_if_wrong


def _default(number: int) -> str:
    usual, quick = ",".join(MAP_POINTS[number]), ",".join(QUICK_MAP_POINTS[number])
    return usual if usual == quick else f"{usual}; with --quick {quick}"


@click.command(name="map")
@click.option("--quick", is_flag=True, help="Eight GEMMs, one change at a time and the combinations, without pairs.")
@click.option(
    "--axes",
    default="",
    callback=names,
    show_default="all but rule, cost",
    help="Only these axes, separated by commas; none: the machine as it is, and every GEMM by itself, the worst first.",
)
@click.option("--models", default="", callback=names, show_default=_default(0), help=f"Some of {', '.join(MODELS)}.")
@click.option("--sublayers", default="", callback=names, show_default=_default(2), help="Some of op, fc2, fc1, ip.")
@click.option("--tp", "degrees", default="", callback=names, show_default=_default(1), help="Tensor-parallel degrees.")
@click.option(
    "--random",
    "count",
    default=0,
    type=click.IntRange(0, MAX_RANDOM),
    metavar="N",
    help="Also the first N of a fixed sequence of random GEMMs, of 2 to 64 GPUs.",
)
@click.option(
    "--launches",
    default=1,
    show_default=True,
    type=click.IntRange(1, MAX_LAUNCHES),
    metavar="N",
    help="Repeat every run, the GEMM launched some ns later each time: means, and the deviation that this causes.",
)
@machine_options("golden")
@where_options
@out_option
def arbitration_map(
    quick: bool, axes: tuple[str, ...], models: tuple[str, ...], sublayers: tuple[str, ...], degrees: tuple[str, ...],
    count: int, launches: int, hardware: Backend, machine: str, settings: tuple[str, ...], jobs: int,
    scheduler: str | None, out: Path | None,
) -> None:  # fmt: skip
    """Show on which machines memory arbitration gains time, how much, and why.

    The gain is that of t3-mca over t3. Runs the paper's GEMMs, one GPU of every ring mirrored, on the machine, with
    every change of study/arbitration/axes.toml (dispatch, release of stores, DRAM queue, DMA, starvation, rates, ...),
    every pair of changes of different axes, and some combinations. Finished runs are kept, as with reproduce and sweep.
    """
    changes = parse_settings(settings)
    points = opent3.map_points(models, degrees, sublayers, quick=quick)
    with kept_runs("map") as show:
        result = opent3.arbitration_map(
            axes, points, random=count, launches=launches, quick=quick, machine=machine, settings=changes,
            hardware=hardware, jobs=jobs, scheduler=scheduler, on_status=show, out=out,
        )  # fmt: skip
    console = plain_console()
    for text in opent3.caution(load_machine(machine, changes)):
        console.print(text)
    console.print(result.table())
    say_where(out)
    fail_if_wrong(result.failures)
