"""``t3 map``: on which machines arbitration gains time, how much, and why."""

from pathlib import Path

import click

from t3sim.common.output import output_folder, write_atomically
from t3sim.inputs.machine.files import load_machine, parse_settings
from t3sim.inputs.machine.standing import caution
from t3sim.inputs.workload import MODELS
from t3sim.run.request import Backend
from t3sim.run.result import json_text
from t3sim.study.arbitration.random_gemms import MOST, random_points
from t3sim.study.suite import Suite, sweep_points

from ..errors import Mismatch, out_option
from ..reproduce import run_all, say_where, where_options, wide_console
from .machine_options import machine_options
from .options import names

FULL = (("mega-gpt-2", "t-nlg"), ("op", "fc2", "ip"), ("8", "16"))
"""Models, sublayers and degrees of the paper's evaluation: twelve GEMMs, FC-1 being FC-2's."""
MOST_LAUNCHES = 8
QUICK = (("mega-gpt-2", "t-nlg"), ("op", "fc2"), ("8", "16"))
"""Of each of these the layer where the paper has contention, and the one where it has none: eight GEMMs."""


def _default(number: int) -> str:
    return f"{','.join(FULL[number])}; with --quick {','.join(QUICK[number])}"


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
@click.option("--sublayers", default="", callback=names, show_default=_default(1), help="Some of op, fc2, fc1, ip.")
@click.option("--tp", "degrees", default="", callback=names, show_default=_default(2), help="Tensor-parallel degrees.")
@click.option(
    "--random",
    "count",
    default=0,
    type=click.IntRange(0, MOST),
    metavar="N",
    help="Also the first N of a fixed sequence of random GEMMs, of 2 to 64 GPUs.",
)
@click.option(
    "--launches",
    default=1,
    show_default=True,
    type=click.IntRange(1, MOST_LAUNCHES),
    metavar="N",
    help="Runs of everything, each with the GEMM launched some ns later: means, and how much they differ for nothing.",
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
    from t3sim.study.arbitration.axes import known_axes, plan_of
    from t3sim.study.arbitration.gains import draw_gains, gains_table
    from t3sim.study.arbitration.pictures import draw_map
    from t3sim.study.arbitration.record import MAPPED, map_record
    from t3sim.study.arbitration.table import map_table
    from t3sim.study.sweep import Sweep

    chosen, changes = known_axes().of(axes), parse_settings(settings)
    plan = plan_of(chosen, machine, changes, quick=quick, launches=launches)
    defaults = QUICK if quick else FULL
    points = sweep_points(models or defaults[0], degrees or defaults[2], sublayers or defaults[1])
    points += random_points(load_machine(machine, changes), count)
    suite = Suite(machine=machine, settings=changes, hardware=hardware, quick=True)
    sweep = Sweep(suite=suite, variants=plan.runs(), points=points, policies=MAPPED)
    with output_folder(out) as folder:
        store = run_all(sweep.experiments(), jobs, "map", scheduler)
        record = map_record(sweep, plan, chosen, store, quick=quick)
        if folder is not None:
            write_atomically(folder / "map.json", json_text(record.model_dump(by_alias=True)))
            (draw_map if plan.singles else draw_gains)(record, folder)
    console = wide_console()
    for text in caution(load_machine(machine, changes)):
        console.print(text)
    console.print((map_table if plan.singles else gains_table)(record))
    say_where(out)
    if record.failures:
        raise Mismatch("; ".join(record.failures))
