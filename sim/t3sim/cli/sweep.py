"""``t3 sweep``: the same sublayers on many machines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import opent3
from opent3 import MODELS, POLICIES, Backend, Point, SizedModel, load_machine, parse_settings

from .console import plain_console, say_where
from .errors import is_given, out_option, refuse_given
from .many import kept_runs, where_options
from .simulation.machine_options import machine_options
from .simulation.options import names
from .simulation.own_model import model_of, own_model_options, phase_option, print_assumptions
from .simulation.results import fail_if_wrong
from .simulation.sizes import refuse_sizes, size_options, sizes_of


@click.command()
@click.option("--vary", multiple=True, metavar="KEY=V1,V2", help="Machine value and what it takes; repeatable.")
@click.option("--assumptions", is_flag=True, help="Change the machine's assumptions one at a time.")
@click.option(
    "--variants", default="", show_default=False, callback=names, help="Only these assumptions, separated by commas."
)
@click.option("--models", default="mega-gpt-2,t-nlg", callback=names, help=f"Some of {', '.join(MODELS)}.")
@own_model_options
@phase_option
@click.option(
    "--sublayers",
    default="op,fc2,fc1,ip",
    callback=names,
    help="Sublayers, separated by commas; with --hf by default all that it has.",
)
@size_options
@click.option("--tp", "degrees", default="8,16", callback=names, help="Tensor-parallel degrees.")
@click.option("--policies", default="ideal-overlap,t3,t3-mca", callback=names, help=f"Some of {', '.join(POLICIES)}.")
@machine_options("golden")
@where_options
@out_option
def sweep(
    vary: tuple[str, ...], assumptions: bool, variants: tuple[str, ...], models: tuple[str, ...],
    sublayers: tuple[str, ...], degrees: tuple[str, ...], policies: tuple[Any, ...], hardware: Backend, machine: str,
    settings: tuple[str, ...], jobs: int, scheduler: str | None, out: Path | None, **others: Any,
) -> None:  # fmt: skip
    """Compare the speedups of the same sublayers on many machines.

    The sublayers are those of --models or of --hf, or any GEMM (--m, --n, --k) at every degree of --tp. One GPU of
    every ring is simulated. Give either --vary, for every combination of values, or --assumptions, for the named
    changes of the machine's assumptions. Finished runs are kept, as with reproduce.

    \b
    t3 sweep --models t-nlg --tp 8 --vary link.gb_s=75,150,300 --out out/links
    """
    if bool(vary) == (assumptions or bool(variants)):
        raise ValueError("give either --vary KEY=V1,V2 (repeatable) or --assumptions, which --variants narrows down")
    own = model_of(others)
    points = _points(own, models, degrees, sublayers, others)
    changes = parse_settings(settings)
    with kept_runs("sweep") as show:
        result = opent3.sweep(
            opent3.varied(vary) if vary else opent3.assumptions(variants),
            points,
            policies,
            own=own,
            machine=machine,
            settings=changes,
            hardware=hardware,
            jobs=jobs,
            scheduler=scheduler,
            on_status=show,
            out=out,
        )
    console = plain_console()
    for degree in sorted({point.tp for point in points}):
        print_assumptions(console, own, degree, None)
    print_assumptions(console, None, 0, load_machine(machine, changes))
    console.print(result.table())
    say_where(out)
    fail_if_wrong(result.failures)


def _points(
    own: SizedModel | None, models: Sequence[str], degrees: Sequence[str], sublayers: Sequence[str],
    options: Mapping[str, Any],
) -> tuple[Point, ...]:  # fmt: skip
    """What is simulated on every machine. Raises ValueError for what may not be given together, or is unknown."""
    if own is not None:
        refuse_sizes(options, "give one of --hf, --models, or --m, --n and --k")
        refuse_given(("models",), "--hf names the model itself")
        return opent3.own_points(own, degrees, sublayers if is_given("sublayers") else None)
    if sizes := sizes_of(options):
        refuse_given(("models", "sublayers"), "--m, --n and --k are one GEMM of your own")
        return opent3.custom_points(degrees=degrees, **sizes)
    return opent3.model_points(models, degrees, sublayers)
