"""``t3 bench``: how fast the co-simulation is."""

from typing import Any

import click
import opent3
from opent3.tables import bench_tables, scaling_table

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
@click.option("--ring", is_flag=True, help="Also all GPUs of the ring, on one thread and on two.")
@click.option("--scaling", is_flag=True, help="Instead: time and memory over GPUs and tokens, with a chart.")
def bench(quick: bool, ring: bool, scaling: bool, **options: Any) -> None:
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
    options["threads"] = 1
    refuse_given(("contention",), "bench measures both")
    if scaling:
        refuse_given(("ring",), "--scaling measures one mirrored GPU at a time")
        if not options["mirror"]:
            raise ValueError("--scaling measures one mirrored GPU at a time: leave out --no-mirror")
    work, passed, _ = chosen(options)
    (request,) = opent3.requests_of(work, ("t3-mca",), **passed)
    console = plain_console()
    if scaling:
        found = opent3.bench_scaling(work, watch=watch, out=options["out"], **passed)
        tables, left_out = [scaling_table(found, axis) for axis in found.axes], found.left_out
    else:
        left_out = ()
        tables = bench_tables(opent3.bench(work, ring=ring, watch=watch, out=options["out"], **passed))
    console.print(f"{request.workload.title}, t3-mca{', one GPU mirrored' if request.mirror else ''}")
    for table in tables:
        console.print()
        console.print(table)
    for size in left_out:
        console.print(f"\nleft out: {size}", soft_wrap=True)
    say_where(options["out"])
