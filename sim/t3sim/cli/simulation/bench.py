"""``t3 bench``: how fast the co-simulation is."""

from typing import Any

import click
import opent3
from opent3.tables import bench_tables

from ..console import plain_console, say_where
from ..errors import out_option, refuse_given
from .options import chosen, simulation_options
from .results import watch

QUICK = {"machine": "toy", "m": 256, "n": 200, "k": 512, "tp": 4}
"""What `bench --quick` measures."""


@click.command()
@simulation_options
@out_option
@click.option("--quick", is_flag=True, help="A toy machine and GEMM, for a fast look.")
def bench(quick: bool, **options: Any) -> None:
    """Compare the co-simulation's speed with its targets.

    The workload is one sublayer under t3-mca, with one thread. It runs in mirror mode unless --no-mirror is given. A
    target that is missed does not change the exit code.
    """
    if options["mirror"] is None:
        options["mirror"] = True
    if quick:
        refuse_given((*QUICK, "model", "sublayer", "hf"), "--quick chooses machine and GEMM itself")
        options |= QUICK
    refuse_given(("threads",), "bench measures on one thread")
    work, passed, _ = chosen(options)
    (request,) = opent3.requests_of(work, ("t3-mca",), **passed)
    result = opent3.bench(work, watch=watch, out=options["out"], **passed)
    console = plain_console()
    console.print(f"{request.workload.title}, t3-mca{', one GPU mirrored' if request.mirror else ''}")
    for table in bench_tables(result):
        console.print()
        console.print(table)
    say_where(options["out"])
